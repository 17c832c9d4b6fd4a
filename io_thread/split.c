/* SPDX-License-Identifier: BSD-2-Clause */
/* split.c - a batch that a broker called too large, cut in two.  I/O thread.
 *
 * Only a batch that is proven not to be stored is split: children of one that
 * may be stored would be duplicates.  One batch is split at a time, in memory
 * kept aside for it, so that splitting never waits for the pool that waits for
 * it.  The raw records stand there; a child is a range of them, its offset
 * deltas rewritten from 0 (smaller numbers never need more bytes), compressed
 * at the same place of a second area.  Children keep the parent's ordinal,
 * deadline and sequence numbers: the same record keeps the same number.  The
 * parent (origin) keeps the result, the report slots and its place in the line
 * of reports.
 *
 * Java: ProducerBatch.split, RecordAccumulator.splitAndReenqueue. */
#include "io_thread/sender.h"

#include <string.h>

#include "lib/base/crc32c.h"
#include "lib/wire/record_batch.h"
#include "lib/wire/varint.h"

/* -- records in memory -- */

static bool copy_raw(const struct batch *b, uint8_t *out, size_t capacity)
{
    size_t n = kp__batch_iov_count(b), at = 0;
    struct iovec *iov = kp__alloc_array(n, sizeof(*iov));

    if (iov == NULL)
        return false;
    n = kp__batch_iov(b, iov, n);
    for (size_t i = 0; i < n && at + iov[i].iov_len <= capacity; i++) {
        memcpy(out + at, iov[i].iov_base, iov[i].iov_len);
        at += iov[i].iov_len;
    }
    kp__free(iov);
    return at == b->wire_size;
}

/* The uncompressed records of b to io->aside. */
static bool set_aside(struct io_thread *io, const struct batch *b)
{
    const struct codec *codec;
    struct buf raw;
    bool ok;

    if (b->raw_size > io->aside_size)
        return false;
    if (b->codec == CODEC_NONE)
        return copy_raw(b, io->aside, io->aside_size);
    codec = kp__codec(b->codec);
    kp__buf_init(&raw);
    ok = copy_raw(b, io->aside_packed, io->aside_size) &&
         codec->decompress(io->aside_packed, b->wire_size, b->raw_size,
                           &raw) &&
         raw.size == b->raw_size;
    if (ok)
        memcpy(io->aside, raw.data, raw.size);
    kp__buf_fini(&raw);
    return ok;
}

/* How many records, and bytes, of [data, size) make the first half: at least
 * one, not all, and no more than half of the bytes if that is possible. */
static bool find_cut(const uint8_t *data, size_t size, uint32_t *records,
                     size_t *bytes)
{
    struct reader r;
    struct record_view v;

    *records = 0;
    *bytes = 0;
    kp__reader_init(&r, data, size);
    while (kp__record_next(&r, &v)) {
        if (*records > 0 && *bytes + v.size > size / 2)
            return true;
        *records += 1;
        *bytes += v.size;
    }
    return false;
}

/* One record at `out` (at or before its old place) with another offset delta.
 * */
static uint8_t *rewrite_one(uint8_t *out, const struct record_view *v,
                            int32_t delta)
{
    /* length | attributes, timestamp delta | offset delta | the rest */
    size_t old_length_size = v->size;
    struct reader r;
    const uint8_t *after_ts, *rest;
    size_t middle, tail;

    kp__reader_init(&r, v->bytes, v->size);
    (void)kp__read_varint(&r);
    old_length_size = (size_t)(r.at - v->bytes);
    (void)kp__read_i8(&r);
    (void)kp__read_varlong(&r);
    after_ts = r.at;
    (void)kp__read_varint(&r);
    rest = r.at;
    middle = (size_t)(after_ts - v->bytes) - old_length_size;
    tail = v->size - (size_t)(rest - v->bytes);
    out = kp__varint_put(
        out, (int32_t)(middle + kp__varint_size(delta) + tail));
    memmove(out, v->bytes + old_length_size, middle);
    out = kp__varint_put(out + middle, delta);
    memmove(out, rest, tail);
    return out + tail;
}

/* Offset deltas from 0 on, in place; returns the new size. */
static size_t renumber(uint8_t *data, size_t size, uint32_t *largest)
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

/* -- children -- */

static void pack(struct io_thread *io, struct batch *child)
{
    struct compressor *k = kp__compressors_own(&io->p->compressors);
    uint8_t *raw = io->aside + child->part_offset;
    struct iovec in = {raw, child->raw_size};
    size_t packed = 0;

    child->codec = CODEC_NONE;
    child->flat = raw;
    child->wire_size = child->raw_size;
    if (k->codec != NULL)
        packed = k->codec->compress(k->context, &in, 1,
                                    io->aside_packed + child->part_offset,
                                    child->raw_size);
    if (packed > 0 && packed < child->raw_size) {
        child->codec = k->codec->id;
        child->flat = io->aside_packed + child->part_offset;
        child->wire_size = packed;
    }
    child->body_crc = kp__crc32c(0, child->flat, child->wire_size);
}

/* What a child (zeroed but for the pool's fields) inherits from the batch it is
 * cut from. */
static void inherit(struct batch *child, const struct batch *b,
                    struct batch *origin)
{
    kp__node_init(&child->link);
    kp__node_init(&child->order_link);
    child->queue = b->queue;
    child->ordinal = b->ordinal;
    child->created_ns = b->created_ns;
    child->deadline_ns = b->deadline_ns;
    child->place = PLACE_IN_FLIGHT;
    child->base_timestamp_ms = b->base_timestamp_ms;
    child->max_timestamp_ms = b->max_timestamp_ms;
    child->producer_id = b->producer_id;
    child->producer_epoch = b->producer_epoch;
    child->base_sequence = b->base_sequence;
    child->attempts = b->attempts;
    child->last_attempt_ns = b->last_attempt_ns;
    child->certainty = CERTAIN_NO;
    child->last_err = KP_MESSAGE_TOO_LARGE;
    child->split_child = true;
    child->origin = origin;
}

static void set_range(struct batch *child, size_t offset, size_t size,
                      uint32_t first, uint32_t count)
{
    child->part_offset = offset;
    child->raw_size = size;
    child->first_index = first;
    child->record_count = count;
}

static void keep_numbers(struct sender_partition *sp, const struct batch *b,
                         struct batch *left, struct batch *right)
{
    struct ledger_entry *e = b->base_sequence >= 0
                                 ? kp__ledger_find(&sp->ledger, b)
                                 : NULL;

    if (e == NULL)
        return;
    right->base_sequence = kp__sequence_add(b->base_sequence,
                                            (int32_t)left->record_count);
    if (kp__ledger_split(&sp->ledger, e, left, (int32_t)left->record_count,
                         right))
        return;
    /* No room for so many pieces: a new epoch numbers them all afresh. */
    e->batch = NULL;
    e->certainty = CERTAIN_NO;
    left->base_sequence = -1;
    right->base_sequence = -1;
}

static void put_children_back(struct io_thread *io,
                              struct sender_partition *sp, struct batch *left,
                              struct batch *right)
{
    pack(io, left);
    pack(io, right);
    kp__queue_put_back(sp->queue, left);
    kp__queue_put_back(sp->queue, right);
}

/* Cut a child again: it becomes its own left half. */
static bool split_child(struct io_thread *io, struct sender_partition *sp,
                        struct batch *b)
{
    struct batch *right;
    uint32_t records, largest;
    size_t bytes, right_size;
    uint32_t count = b->record_count;
    size_t size = b->raw_size;

    if (!find_cut(io->aside + b->part_offset, size, &records, &bytes))
        return false;
    right = kp__pool_split_batch(io->p->pool);
    if (right == NULL)
        return false;
    inherit(right, b, b->origin);
    set_range(b, b->part_offset, bytes, b->first_index, records);
    right_size = renumber(io->aside + b->part_offset + bytes, size - bytes,
                          &largest);
    set_range(right, b->part_offset + bytes, right_size,
              b->first_index + records, count - records);
    right->max_record_size = largest;
    keep_numbers(sp, b, b, right);
    b->origin->parts_pending++;
    io->aside_users++;
    put_children_back(io, sp, b, right);
    return true;
}

static bool split_origin(struct io_thread *io, struct sender_partition *sp,
                         struct batch *b)
{
    struct batch *left, *right;
    uint32_t records, largest;
    size_t bytes, right_size;

    if (io->aside_users > 0 || !set_aside(io, b) ||
        !find_cut(io->aside, b->raw_size, &records, &bytes))
        return false;
    left = kp__pool_split_batch(io->p->pool);
    right = left != NULL ? kp__pool_split_batch(io->p->pool) : NULL;
    if (right == NULL) {
        if (left != NULL)
            kp__pool_give_batch(io->p->pool, NULL, left);
        return false;
    }
    inherit(left, b, b);
    inherit(right, b, b);
    set_range(left, 0, bytes, 0, records);
    left->max_record_size = b->max_record_size;
    right_size =
        renumber(io->aside + bytes, b->raw_size - bytes, &largest);
    set_range(right, bytes, right_size, records, b->record_count - records);
    right->max_record_size = largest;
    keep_numbers(sp, b, left, right);
    b->parts_pending = 2;
    b->result->outcome = (struct outcome){
        .stored = CERTAIN_YES, .base_offset = -1, .append_time_ms = -1};
    io->aside_users = 2;
    /* The children stand in the memory kept aside. */
    kp__batch_release_bytes(b);
    put_children_back(io, sp, left, right);
    return true;
}

bool kp__split(struct io_thread *io, struct sender_partition *sp,
               struct batch *b)
{
    return b->origin != NULL ? split_child(io, sp, b)
                             : split_origin(io, sp, b);
}

void kp__split_release(struct io_thread *io, struct batch *child)
{
    KP_CHECK(io->aside_users > 0);
    if (--io->aside_users == 0)
        io->aside_freed = true;
    kp__pool_give_batch(io->p->pool, NULL, child);
}
