/* SPDX-License-Identifier: BSD-2-Clause */
/* payload.h - what is sent: values and keys, all made before the run, so that
 * the timed loop only walks a table. */
#ifndef KP_PERF_PAYLOAD_H
#define KP_PERF_PAYLOAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <kp/kp.h>

#include "perf/lib/options.h"

/* At least so many different values are made: more than a compressor's window
 * holds, so that no codec looks better than it is. */
#define PAYLOADS_MIN 4096

struct payload {
    kp_bytes *values; /* sent in this order, over and over */
    size_t value_count;
    double mean_size; /* bytes of a value */
    kp_bytes *keys;   /* NULL: records have no keys */
    size_t key_count;
    char *value_data, *key_data;
};

/* False: what is wrong went to stderr. */
bool payload_make(struct payload *p, const struct options *o);
void payload_free(struct payload *p);

/* splitmix64. */
uint64_t payload_random(uint64_t *state);
/* Exactly `size` bytes that look like one JSON object, as far as they fit. */
void payload_json(char *out, size_t size, uint64_t *state);

#endif
