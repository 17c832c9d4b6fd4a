/* SPDX-License-Identifier: BSD-2-Clause */
/* found.h - the records an independent reader found in the log. */
#ifndef KP_TEST_INTEGRATION_FOUND_H
#define KP_TEST_INTEGRATION_FOUND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct found {
    uint64_t hash; /* of all, or of key and value only: see whole_hash */
    int64_t offset;
    int64_t stamp_ms;
    int64_t batch_ms; /* largest timestamp of its batch; -1: not said */
    int32_t partition;
    int16_t codec;          /* Kafka's number; -1: the reader did not say */
    int16_t java_partition; /* -1: no key, or the reader did not say */
};

struct found_list {
    struct found *at;
    size_t count, capacity;
    bool whole_hash; /* the hashes cover headers too */
};

#define PARTITIONS_MAX 256

/* Read what `kcat -f '%p %o %T %K %S\n%k%s'` wrote. */
void found_read_kcat(struct found_list *list, const char *path);
/* Read what KpLog wrote. */
void found_read_records(struct found_list *list, const char *path);

#endif
