/* SPDX-License-Identifier: BSD-2-Clause */
/* record_split.c - the records of one batch made those of two.  Pure.
 *
 * The bytes are our own, so they are whole records.  Invariant: a record with a
 * smaller offset delta is never longer, so renumbering needs no other place. */
#include "lib/wire/record_split.h"

#include <string.h>

#include "lib/wire/record_batch.h"
#include "lib/wire/varint.h"

bool kp__records_cut(const uint8_t *data, size_t size, uint32_t *records,
                     size_t *bytes)
{
    uint32_t count = 0;
    size_t at = 0;
    struct reader r;
    struct record_view v;

    kp__reader_init(&r, data, size);
    while (kp__record_next(&r, &v)) {
        if (count > 0 && at + v.size > size / 2) {
            *records = count;
            *bytes = at;
            return true;
        }
        count++;
        at += v.size;
    }
    return false;
}

/* One record at `out` (at or before its old place) with another offset delta.
 * */
static uint8_t *rewrite_one(uint8_t *out, const struct record_view *v,
                            int32_t delta)
{
    /* length | attributes, timestamp delta | offset delta | the rest */
    const uint8_t *after_length, *after_ts, *rest;
    size_t middle, tail;
    struct reader r;

    kp__reader_init(&r, v->bytes, v->size);
    (void)kp__read_varint(&r);
    after_length = r.at;
    (void)kp__read_i8(&r);
    (void)kp__read_varlong(&r);
    after_ts = r.at;
    (void)kp__read_varint(&r);
    rest = r.at;
    middle = (size_t)(after_ts - after_length);
    tail = v->size - (size_t)(rest - v->bytes);
    out =
        kp__varint_put(out, (int32_t)(middle + kp__varint_size(delta) + tail));
    memmove(out, after_length, middle);
    out = kp__varint_put(out + middle, delta);
    memmove(out, rest, tail);
    return out + tail;
}

size_t kp__records_renumber(uint8_t *data, size_t size, uint32_t *largest)
{
    uint8_t *out = data;
    struct reader r;
    struct record_view v;
    int32_t delta = 0;

    *largest = 0;
    kp__reader_init(&r, data, size);
    while (kp__record_next(&r, &v)) {
        uint8_t *begin = out;

        out = rewrite_one(out, &v, delta++);
        if ((size_t)(out - begin) > *largest)
            *largest = (uint32_t)(out - begin);
    }
    return (size_t)(out - data);
}
