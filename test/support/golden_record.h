/* SPDX-License-Identifier: BSD-2-Clause */
/* golden_record.h - the "record" lines of test/golden/batches.txt. */
#ifndef KP_TEST_SUPPORT_GOLDEN_RECORD_H
#define KP_TEST_SUPPORT_GOLDEN_RECORD_H

#include "include/kp/kp.h"
#include "test/support/golden.h"

struct golden_record {
    kp_record record; /* key, value and headers */
    int64_t timestamp_delta_ms;
    int32_t offset_delta;
    size_t size, upper_bound; /* as Kafka reckons them */
    kp_header *headers;
};

/* The i-th record of a case; false: there are not so many. */
bool golden_record_open(struct golden_record *g, const struct golden_case *c,
                        size_t i);
void golden_record_close(struct golden_record *g);

#endif
