/* SPDX-License-Identifier: BSD-2-Clause */
/* reports.c - the last step of a turn: results become public, callbacks run,
 * completion queues get their batches.  I/O thread.
 *
 * Invariant: user code runs here and nowhere else, with no lock held and no
 * structure half changed, after memory was given back.  Callbacks and queue
 * entries leave in the partition's order: a completed batch waits, without its
 * memory, for those in front of it, which have earlier deadlines.  Futures do
 * not wait. */
#include "io_thread/sender.h"

#include "lib/base/thread.h"
#include "lib/shared/cq.h"

/* The report of record `index`, from that of one before it in the batch: unless
 * there are parts they differ in the tag and the offset alone. */
static void next_report(const struct batch_result *r, uint32_t index,
                        void *tag, kp_report *report)
{
    if (KP_UNLIKELY(r->part_count > 0)) {
        kp__result_read(r, index, tag, report);
        return;
    }
    report->tag = tag;
    if (r->outcome.base_offset >= 0)
        report->offset = r->outcome.base_offset + index;
}

/* False: one of them forked, and this is the child. */
static bool run_callbacks(const struct batch *b)
{
    uint32_t index = b->reports.slots_from;
    kp_report report;

    kp__result_read(b->result, index, NULL, &report);
    for (const struct chunk *page = b->reports.slots; page != NULL;
         page = page->next) {
        const struct report_slot *slot = (const void *)page->data;
        size_t n = page->used / sizeof(*slot);

        for (size_t i = 0; i < n; i++, index++) {
            kp_delivery_fn fn;

            if (!kp__slot_is_callback(&slot[i]))
                continue;
            fn = (kp_delivery_fn)slot[i].target;
            next_report(b->result, index, slot[i].tag, &report);
            fn(&report);
            /* Only a fork changes that. */
            if (KP_UNLIKELY(!kp__in_callback()))
                return false;
        }
    }
    return true;
}

static void post_to_queues(struct batch *b)
{
    for (uint32_t i = 0; i < b->reports.post_count; i++)
        kp__cq_post(b->reports.posts[i].cq, &b->reports.posts[i]);
}

/* Failures of records that have neither future nor callback nor queue.  Which
 * of the batch's those are is not kept: of a batch that failed in part as many
 * are counted as may be. */
static void note_unwatched(struct io_thread *io, const struct batch *b)
{
    const struct batch_result *r = b->result;
    kp_err first = KP_OK;
    uint64_t failed = 0, rest = b->record_count;

    if (b->reports.unwatched == 0)
        return;
    for (uint32_t i = 0; i < r->part_count; i++) {
        const struct result_part *part = &r->parts[i];

        rest -= part->count;
        if (part->outcome.err == KP_OK)
            continue;
        failed += part->count;
        if (first == KP_OK)
            first = part->outcome.err;
    }
    /* those that no part speaks of have the whole's outcome */
    if (rest > 0 && r->outcome.err != KP_OK) {
        failed += rest;
        if (first == KP_OK)
            first = r->outcome.err;
    }
    if (failed > b->reports.unwatched)
        failed = b->reports.unwatched;
    if (failed > 0)
        kp__producer_note_unwatched(io->p, first, failed);
}

static void report_batch(struct io_thread *io, struct sender_partition *sp,
                         struct batch *b)
{
    kp__list_remove(&b->order_link);
    sp->unreported--;
    note_unwatched(io, b);
    if (b->reports.slots != NULL) {
        kp__set_in_callback(true);
        io->forked = !run_callbacks(b);
        kp__set_in_callback(false);
        /* Locks may be held by threads that are not here. */
        if (io->forked)
            return;
    }
    if (b->reports.future_and_callback)
        kp__result_wake(b->result);
    post_to_queues(b);
    KP_CHECK(io->flush_pending[b->flush_epoch % FLUSH_EPOCHS] > 0);
    io->flush_pending[b->flush_epoch % FLUSH_EPOCHS]--;
    io->progressed = true;
    kp__batch_unref(b);
}

static void report_partition(struct io_thread *io, struct sender_partition *sp)
{
    struct list_node *n;

    while ((n = kp__list_first(&sp->order)) != NULL) {
        struct batch *b = KP_CONTAINER(n, struct batch, order_link);

        if (b->fate != FATE_COMPLETED || kp__node_linked(&b->link))
            break; /* undecided, or decided by a callback just now */
        report_batch(io, sp, b);
        if (io->forked)
            return;
    }
    if (sp->unreported == 0 && sp->standing == STANDS_IDLE &&
        kp__node_linked(&sp->active_link))
        kp__list_remove(&sp->active_link);
}

/* Results first: a future need not wait for other batches' callbacks.  One
 * whose record also has a callback is public after it. */
static void publish_results(struct io_thread *io)
{
    struct list_node *n;

    while ((n = kp__list_pop_front(&io->done)) != NULL) {
        struct batch *b = KP_CONTAINER(n, struct batch, link);

        if (b->reports.future_and_callback)
            kp__result_publish_quietly(b->result, &b->result->outcome);
        else
            kp__result_complete(b->result, &b->result->outcome, NULL);
    }
}

void kp__report_all(struct io_thread *io)
{
    struct list todo;
    struct list_node *n;

    publish_results(io);
    /* What a callback brings about is reported in the next turn, not nested. */
    kp__list_init(&todo);
    kp__list_splice_back(&todo, &io->to_report);
    while (!io->forked && (n = kp__list_pop_front(&todo)) != NULL)
        report_partition(io,
                         KP_CONTAINER(n, struct sender_partition,
                                      report_link));
}
