/* SPDX-License-Identifier: BSD-2-Clause */
/* record_split.h - cutting the uncompressed records of a batch in two. */
#ifndef KP_WIRE_RECORD_SPLIT_H
#define KP_WIRE_RECORD_SPLIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* How many records, and bytes, of [data, size) make the first half: at least
 * one, not all, and no more than half of the bytes if that is possible.  False:
 * it is one record. */
bool kp__records_cut(const uint8_t *data, size_t size, uint32_t *records,
                     size_t *bytes);
/* Give the records offset deltas from 0 on, in place; returns the new size.
 * *largest gets the size of the largest record. */
size_t kp__records_renumber(uint8_t *data, size_t size, uint32_t *largest);

#endif
