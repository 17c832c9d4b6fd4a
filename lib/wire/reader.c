/* SPDX-License-Identifier: BSD-2-Clause */
/* reader.c - Kafka's primitive types out of untrusted bytes.  Pure; any thread,
 * one reader a thread.
 *
 * Invariant: at <= end, and once `failed` is set at == end, so that no loop
 * over what is left can go on. */
#include "lib/wire/reader.h"

#include "lib/wire/varint.h"

static const uint8_t nothing[1];

void kp__reader_init(struct reader *r, const void *data, size_t size)
{
    /* An empty reader still has an address: NULL means null to our callers. */
    r->at = data != NULL ? data : nothing;
    r->end = r->at + (data != NULL ? size : 0);
    r->failed = false;
    r->what = NULL;
}

void kp__reader_fail(struct reader *r, const char *what)
{
    if (!r->failed)
        r->what = what;
    r->failed = true;
    r->at = r->end;
}

const uint8_t *kp__read_bytes(struct reader *r, size_t n)
{
    const uint8_t *at = r->at;

    if (r->failed || n > kp__reader_left(r)) {
        kp__reader_fail(r, "cut short");
        return NULL;
    }
    r->at += n;
    return at;
}

static uint64_t read_big_endian(struct reader *r, size_t n)
{
    const uint8_t *p = kp__read_bytes(r, n);
    uint64_t v = 0;

    for (size_t i = 0; p != NULL && i < n; i++)
        v = v << 8 | p[i];
    return v;
}

int8_t kp__read_i8(struct reader *r)
{
    return (int8_t)read_big_endian(r, 1);
}

int16_t kp__read_i16(struct reader *r)
{
    return (int16_t)read_big_endian(r, 2);
}

int32_t kp__read_i32(struct reader *r)
{
    return (int32_t)read_big_endian(r, 4);
}

int64_t kp__read_i64(struct reader *r)
{
    return (int64_t)read_big_endian(r, 8);
}

/* A number of at most `bits` bits.  Groups of zeroes at the end are let pass,
 * as in Java, but not more groups than the widest number needs. */
static uint64_t read_groups(struct reader *r, unsigned bits)
{
    uint64_t v = 0;

    for (unsigned shift = 0; shift < bits; shift += 7) {
        const uint8_t *p = kp__read_bytes(r, 1);
        if (p == NULL)
            return 0;
        uint64_t group = *p & 0x7f;
        if (shift + 7 > bits && group >> (bits - shift) != 0)
            break;
        v |= group << shift;
        if ((*p & 0x80) == 0)
            return v;
    }
    kp__reader_fail(r, "varint too long");
    return 0;
}

uint32_t kp__read_uvarint(struct reader *r)
{
    return (uint32_t)read_groups(r, 32);
}

int32_t kp__read_varint(struct reader *r)
{
    return kp__unzigzag32((uint32_t)read_groups(r, 32));
}

int64_t kp__read_varlong(struct reader *r)
{
    return kp__unzigzag64(read_groups(r, 64));
}

void kp__read_skip_tags(struct reader *r)
{
    uint32_t count = kp__read_uvarint(r);

    for (uint32_t i = 0; i < count && !r->failed; i++) {
        kp__read_uvarint(r); /* the tag */
        kp__read_bytes(r, kp__read_uvarint(r));
    }
}
