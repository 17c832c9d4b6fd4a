/* SPDX-License-Identifier: BSD-2-Clause */
/* split.c - a batch that a broker called too large, cut in two.  I/O thread.
 *
 *   origin  IN_FLIGHT --too large--> cut: its memory goes, two children stand
 *           in its place in the queue
 *   child   READY -> IN_FLIGHT -> READY  (a retry, as of any batch)
 *                              -> cut    (it becomes its own left half)
 *                              -> its outcome is noted in the origin's result,
 *                                 and it goes
 *   origin  completed with its last child: reported as one batch
 *
 * Only a batch that is proven not to be stored is cut: children of one that may
 * be stored would be duplicates.  Children keep the origin's ordinal, deadline
 * and sequence numbers: the same record keeps the same number.  The origin
 * keeps the result, the report slots and its place in the line of reports.
 *
 * One batch is cut at a time, in memory kept aside for it, so that splitting
 * never waits for the pool that waits for it.  Its raw records stand there; a
 * child is a range of them, its offset deltas rewritten from 0, compressed at
 * the same place of a second area.
 *
 * Invariant: io->split.children counts those who stand in that memory; it is
 * free when there is none.  A child on a wire stands in io->split.on_wire, as
 * its origin alone stands in sp->order.
 *
 * Java: ProducerBatch.split, RecordAccumulator.splitAndReenqueue. */
#include "io_thread/sender.h"

#include <string.h>

#include "lib/base/crc32c.h"
#include "lib/wire/record_batch.h"
#include "lib/wire/record_split.h"

/* -- the memory kept aside -- */

bool kp__split_init(struct io_thread *io)
{
    struct split *s = &io->split;
    bool packs = io->settings->codec != CODEC_NONE;

    kp__list_init(&s->on_wire);
    s->size = io->p->accumulator.raw_max;
    s->raw = kp__alloc(s->size);
    s->packed = packs ? kp__alloc(s->size) : NULL;
    return s->raw != NULL && (!packs || s->packed != NULL);
}

void kp__split_fini(struct io_thread *io)
{
    kp__free(io->split.raw);
    kp__free(io->split.packed);
}

static bool copy_body(const struct batch *b, uint8_t *out, size_t capacity)
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

/* The uncompressed records of b into the memory kept aside. */
static bool set_aside(struct split *s, const struct batch *b)
{
    const struct codec *codec;
    struct buf raw;
    bool ok;

    if (b->raw_size > s->size)
        return false;
    if (b->codec == CODEC_NONE)
        return copy_body(b, s->raw, s->size);
    codec = kp__codec(b->codec);
    kp__buf_init(&raw);
    ok = copy_body(b, s->packed, s->size) &&
         codec->decompress(s->packed, b->wire_size, b->raw_size, &raw) &&
         raw.size == b->raw_size;
    if (ok)
        memcpy(s->raw, raw.data, raw.size);
    kp__buf_fini(&raw);
    return ok;
}

/* -- children -- */

static void pack(struct io_thread *io, struct batch *child)
{
    struct compressor *k = kp__compressors_own(&io->p->compressors);
    uint8_t *raw = io->split.raw + child->split.offset;
    struct iovec in = {raw, child->raw_size};
    size_t packed = 0;

    child->codec = CODEC_NONE;
    child->split.body = raw;
    child->wire_size = child->raw_size;
    if (k->codec != NULL)
        packed = k->codec->compress(k->context, &in, 1,
                                    io->split.packed + child->split.offset,
                                    child->raw_size);
    if (packed > 0 && packed < child->raw_size) {
        child->codec = k->codec->id;
        child->split.body = io->split.packed + child->split.offset;
        child->wire_size = packed;
    }
    child->body_crc = kp__crc32c(0, child->split.body, child->wire_size);
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
    child->certainty = CERTAIN_NO;
    child->last_err = KP_MESSAGE_TOO_LARGE;
    child->split.origin = origin;
}

static void set_range(struct batch *child, size_t offset, size_t size,
                      uint32_t first, uint32_t count)
{
    child->split.offset = offset;
    child->raw_size = size;
    child->first_index = first;
    child->record_count = count;
}

static void keep_numbers(struct sender_partition *sp, const struct batch *b,
                         struct batch *left, struct batch *right)
{
    struct ledger_entry *e =
        b->base_sequence >= 0 ? kp__ledger_find(&sp->ledger, b) : NULL;

    if (e == NULL)
        return;
    right->base_sequence = kp__sequence_add(b->base_sequence,
                                            (int32_t)left->record_count);
    if (kp__ledger_split(&sp->ledger, e, left, (int32_t)left->record_count,
                         right))
        return;
    /* No room for so many pieces: a new epoch numbers them all afresh. */
    kp__ledger_gone(&sp->ledger, e, CERTAIN_NO);
    left->base_sequence = -1;
    right->base_sequence = -1;
}

/* Where to cut the `size` bytes of raw records at `offset`. */
struct cut {
    size_t offset, size;
    size_t left_size;
    uint32_t left_count;
};

static bool find_cut(const struct split *s, struct cut *c)
{
    return kp__records_cut(s->raw + c->offset, c->size, &c->left_count,
                           &c->left_size);
}

/* Make left and right of b's `c`; left may be b itself. */
static void cut(struct io_thread *io, struct sender_partition *sp,
                const struct batch *b, const struct cut *c, struct batch *left,
                struct batch *right)
{
    size_t middle = c->offset + c->left_size, right_size;
    uint32_t first = b->first_index, count = b->record_count, largest;

    set_range(left, c->offset, c->left_size, first, c->left_count);
    right_size = kp__records_renumber(io->split.raw + middle,
                                      c->size - c->left_size, &largest);
    set_range(right, middle, right_size, first + c->left_count,
              count - c->left_count);
    right->max_record_size = largest;
    keep_numbers(sp, b, left, right);
}

static void put_children_back(struct io_thread *io, struct sender_partition *sp,
                              struct batch *left, struct batch *right)
{
    pack(io, left);
    pack(io, right);
    kp__queue_put_back(sp->queue, left);
    kp__queue_put_back(sp->queue, right);
}

/* Cut a child again: it becomes its own left half. */
static bool cut_child(struct io_thread *io, struct sender_partition *sp,
                      struct batch *b)
{
    struct cut c = {.offset = b->split.offset, .size = b->raw_size};
    struct batch *right;

    if (!find_cut(&io->split, &c))
        return false;
    right = kp__pool_split_batch(io->p->pool);
    if (right == NULL)
        return false;
    inherit(right, b, b->split.origin);
    cut(io, sp, b, &c, b, right);
    b->split.origin->split.children++;
    io->split.children++;
    put_children_back(io, sp, b, right);
    return true;
}

static bool cut_origin(struct io_thread *io, struct sender_partition *sp,
                       struct batch *b)
{
    struct cut c = {.offset = 0, .size = b->raw_size};
    struct batch *left, *right;

    if (io->split.children > 0 || !set_aside(&io->split, b) ||
        !find_cut(&io->split, &c))
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
    left->max_record_size = b->max_record_size;
    cut(io, sp, b, &c, left, right);
    b->split.children = 2;
    b->result->outcome = (struct outcome){
        .stored = CERTAIN_YES, .base_offset = -1, .append_time_ms = -1};
    io->split.children = 2;
    kp__batch_release_bytes(b);
    put_children_back(io, sp, left, right);
    return true;
}

bool kp__split(struct io_thread *io, struct sender_partition *sp,
               struct batch *b)
{
    return b->split.origin != NULL ? cut_child(io, sp, b)
                                   : cut_origin(io, sp, b);
}

/* -- on a wire, and off it -- */

void kp__split_on_wire(struct io_thread *io, struct batch *b)
{
    if (b->split.origin != NULL)
        kp__list_push_back(&io->split.on_wire, &b->order_link);
}

void kp__split_off_wire(struct batch *b)
{
    if (b->split.origin != NULL)
        kp__list_remove(&b->order_link);
}

/* -- the outcome -- */

/* The whole's own outcome speaks of the children that there was no memory for:
 * of all of them together, so it says no more than is true of each. */
static void note_lost(struct batch *origin, const struct outcome *o)
{
    struct outcome *whole = &origin->result->outcome;

    if (!origin->split.lost) {
        *whole = *o;
    } else {
        if (whole->err == KP_OK) {
            whole->err = o->err;
            whole->cause = o->cause;
        }
        if (whole->stored != o->stored)
            whole->stored = CERTAIN_MAYBE;
    }
    whole->base_offset = -1;
    whole->append_time_ms = -1;
    origin->split.lost = true;
}

bool kp__split_complete(struct batch *child, const struct outcome *o,
                        const char *text)
{
    struct batch *origin = child->split.origin;

    if (!kp__result_add_part(origin->result, child->first_index,
                             child->record_count, o, text))
        note_lost(origin, o);
    KP_CHECK(origin->split.children > 0);
    if (--origin->split.children > 0)
        return false;
    origin->fate = FATE_COMPLETED;
    return true;
}

void kp__split_release(struct io_thread *io, struct batch *child)
{
    KP_CHECK(io->split.children > 0);
    if (--io->split.children == 0)
        io->split.freed = true;
    kp__pool_give_batch(io->p->pool, NULL, child);
}
