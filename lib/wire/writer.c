/* SPDX-License-Identifier: BSD-2-Clause */
/* writer.c - Kafka's primitive types into a buffer, with places where bytes of
 * others are to be spliced in.  Pure; one thread a writer.
 *
 * Invariant: splices are in order of `at`, and external_size is their sum. */
#include "lib/wire/writer.h"

#include "lib/base/mem.h"
#include "lib/wire/varint.h"

void kp__writer_init(struct writer *w)
{
    kp__buf_init(&w->buf);
    w->splices = NULL;
    w->splice_count = 0;
    w->splice_capacity = 0;
    w->external_size = 0;
}

void kp__writer_fini(struct writer *w)
{
    kp__buf_fini(&w->buf);
    kp__free(w->splices);
    w->splices = NULL;
    w->splice_count = 0;
    w->splice_capacity = 0;
    w->external_size = 0;
}

bool kp__writer_failed(const struct writer *w)
{
    return kp__buf_failed(&w->buf);
}

static void write_big_endian(struct writer *w, uint64_t v, size_t n)
{
    uint8_t *p = kp__buf_reserve(&w->buf, n);

    if (p == NULL)
        return;
    for (size_t i = 0; i < n; i++)
        p[i] = (uint8_t)(v >> (8 * (n - 1 - i)));
    w->buf.size += n;
}

void kp__write_i8(struct writer *w, int8_t v)
{
    write_big_endian(w, (uint64_t)v, 1);
}

void kp__write_i16(struct writer *w, int16_t v)
{
    write_big_endian(w, (uint64_t)v, 2);
}

void kp__write_i32(struct writer *w, int32_t v)
{
    write_big_endian(w, (uint64_t)v, 4);
}

void kp__write_i64(struct writer *w, int64_t v)
{
    write_big_endian(w, (uint64_t)v, 8);
}

void kp__write_uvarint(struct writer *w, uint32_t v)
{
    uint8_t *p = kp__buf_reserve(&w->buf, VARINT_MAX_SIZE);

    if (p != NULL)
        w->buf.size += (size_t)(kp__uvarint_put(p, v) - p);
}

void kp__write_bytes(struct writer *w, const void *data, size_t n)
{
    if (n != 0)
        kp__buf_append(&w->buf, data, n);
}

static bool splices_grow(struct writer *w)
{
    size_t capacity = w->splice_capacity == 0 ? 16 : 2 * w->splice_capacity;
    struct splice *p;

    if (w->splice_count < w->splice_capacity)
        return true;
    p = kp__realloc(w->splices, capacity * sizeof *p);
    if (p == NULL)
        return false;
    w->splices = p;
    w->splice_capacity = capacity;
    return true;
}

void kp__write_external(struct writer *w, size_t size, void *owner)
{
    if (kp__writer_failed(w))
        return;
    if (!splices_grow(w)) {
        w->buf.failed = true;
        return;
    }
    w->splices[w->splice_count++] =
        (struct splice){.at = w->buf.size, .size = size, .owner = owner};
    w->external_size += size;
}

size_t kp__writer_size(const struct writer *w)
{
    return w->buf.size + w->external_size;
}
