/* SPDX-License-Identifier: BSD-2-Clause */
/* batch_result.c - what became of a batch.  Written by the I/O thread, read by
 * any.
 *
 * Invariant: outcome, text and parts do not change once DONE (or QUIET) is in
 * the word; who sees the bit sees them.  The last reference frees. */
#include "lib/shared/batch_result.h"

#include <string.h>

#include "lib/base/check.h"
#include "lib/base/mem.h"
#include "lib/base/thread.h"

/* -- Names of topics -- */

struct topic_name *kp__topic_name_create(const char *name, size_t size)
{
    struct topic_name *n = kp__alloc(sizeof(*n) + size + 1);

    if (n == NULL)
        return NULL;
    atomic_init(&n->refs, 1);
    n->size = (uint32_t)size;
    memcpy(n->text, name, size);
    n->text[size] = '\0';
    return n;
}

void kp__topic_name_ref(struct topic_name *n)
{
    /* relaxed: whoever takes a reference has one */
    (void)atomic_fetch_add_explicit(&n->refs, 1, memory_order_relaxed);
}

void kp__topic_name_unref(struct topic_name *n)
{
    /* acq_rel: reads of the text come before the last one frees it */
    if (atomic_fetch_sub_explicit(&n->refs, 1, memory_order_acq_rel) == 1)
        kp__free(n);
}

/* -- References -- */

void kp__result_init(struct batch_result *r, struct topic_name *topic,
                     int32_t partition)
{
    memset(r, 0, sizeof(*r));
    atomic_init(&r->word, 0);
    /* The batch's own, and the bias until kp__result_publish. */
    atomic_init(&r->refs, RESULT_BIAS + 1);
    kp__topic_name_ref(topic);
    r->topic = topic;
    r->partition = partition;
    r->fork_generation = kp__fork_generation();
    r->outcome.base_offset = -1;
    r->outcome.append_time_ms = -1;
}

void kp__result_publish(struct batch_result *r, uint32_t future_refs)
{
    /* relaxed: the batch's own reference is held, so nothing can end here.
     * Wraps around zero on purpose. */
    (void)atomic_fetch_add_explicit(&r->refs, future_refs - RESULT_BIAS,
                                    memory_order_relaxed);
}

void kp__result_ref(struct batch_result *r)
{
    /* relaxed: whoever takes a reference has one */
    (void)atomic_fetch_add_explicit(&r->refs, 1, memory_order_relaxed);
}

static void result_free(struct batch_result *r)
{
    for (uint32_t i = 0; i < r->part_count; i++)
        kp__free(r->parts[i].text);
    kp__free(r->parts);
    kp__free(r->text);
    kp__topic_name_unref(r->topic);
    kp__free(r);
}

void kp__result_unref(struct batch_result *r, uint32_t count)
{
    uint32_t before;

    if (count == 0)
        return;
    /* acq_rel: what others read of it comes before the last one frees it */
    before = atomic_fetch_sub_explicit(&r->refs, count, memory_order_acq_rel);
    KP_CHECK(before >= count);
    if (before == count)
        result_free(r);
}

/* -- Completion -- */

static bool grow_parts(struct batch_result *r, uint32_t count)
{
    uint32_t capacity = r->part_capacity > 0 ? r->part_capacity * 2 : 4;
    struct result_part *parts;

    if (count <= r->part_capacity - r->part_count)
        return true;
    if (capacity < r->part_count + count)
        capacity = r->part_count + count;
    parts = kp__realloc(r->parts, capacity * sizeof(*parts));
    if (parts == NULL)
        return false;
    r->parts = parts;
    r->part_capacity = capacity;
    return true;
}

static uint32_t end_of(const struct result_part *part)
{
    return part->first + part->count;
}

/* The first part that ends past this record. */
static uint32_t place_of(const struct batch_result *r, uint32_t index)
{
    uint32_t low = 0, high = r->part_count;

    while (low < high) {
        uint32_t mid = low + (high - low) / 2;

        if (end_of(&r->parts[mid]) <= index)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

/* Those from `at` on make room, once for all that come. */
static bool open_gap(struct batch_result *r, uint32_t at, uint32_t count)
{
    if (!grow_parts(r, count))
        return false;
    memmove(&r->parts[at + count], &r->parts[at],
            (r->part_count - at) * sizeof(*r->parts));
    r->part_count += count;
    return true;
}

void kp__result_part_set(struct result_part *part, uint32_t first,
                         uint32_t count, const struct outcome *o,
                         const char *text)
{
    *part = (struct result_part){
        .first = first,
        .count = count,
        .outcome = *o,
        .text = text != NULL ? kp__strdup(text) : NULL,
    };
}

struct result_part *kp__result_add_parts(struct batch_result *r, uint32_t first,
                                         uint32_t count)
{
    uint32_t at = place_of(r, first);

    if (!open_gap(r, at, count))
        return NULL;
    memset(&r->parts[at], 0, count * sizeof(*r->parts));
    return &r->parts[at];
}

/* The parts [at, *behind) stand in [first, end): how many ranges of it have
 * none? */
static uint32_t count_gaps(const struct batch_result *r, uint32_t at,
                           uint32_t first, uint32_t end, uint32_t *behind)
{
    uint32_t gaps = 0;

    for (; at < r->part_count && r->parts[at].first < end; at++) {
        gaps += r->parts[at].first > first ? 1 : 0;
        first = end_of(&r->parts[at]);
    }
    *behind = at;
    return gaps + (first < end ? 1 : 0);
}

bool kp__result_add_part(struct batch_result *r, uint32_t first, uint32_t count,
                         const struct outcome *o, const char *text)
{
    uint32_t end = first + count, at = place_of(r, first), from, to;
    uint32_t gaps = count_gaps(r, at, first, end, &from);

    if (!open_gap(r, from, gaps))
        return false;
    /* From the end, so that none is written over before it has moved. */
    for (to = from + gaps; to > from;) {
        uint32_t begin = from > at ? end_of(&r->parts[from - 1]) : first;

        if (begin < end)
            kp__result_part_set(&r->parts[--to], begin, end - begin, o, text);
        if (to > from) {
            r->parts[--to] = r->parts[--from];
            end = r->parts[to].first;
        }
    }
    return true;
}

static void set_outcome(struct batch_result *r, const struct outcome *o)
{
    if (o != &r->outcome)
        r->outcome = *o;
}

void kp__result_complete(struct batch_result *r, const struct outcome *o,
                         const char *text)
{
    set_outcome(r, o);
    if (text != NULL && r->text == NULL)
        r->text = kp__strdup(text);
    kp__result_wake(r);
}

void kp__result_publish_quietly(struct batch_result *r, const struct outcome *o)
{
    set_outcome(r, o);
    /* release: pairs with is_done */
    (void)atomic_fetch_or_explicit(&r->word, RESULT_QUIET,
                                   memory_order_release);
}

void kp__result_wake(struct batch_result *r)
{
    /* acq_rel: release of the outcome; acquire because the waiters' bit says
     * that somebody sleeps on the old word */
    uint32_t old =
        atomic_fetch_or_explicit(&r->word, RESULT_DONE, memory_order_acq_rel);

    KP_CHECK((old & RESULT_DONE) == 0);
    if ((old & RESULT_WAITERS) != 0)
        kp__wake(&r->word, 2);
}

/* -- Reading -- */

static bool is_done(const struct batch_result *r)
{
    struct batch_result *result = (struct batch_result *)(uintptr_t)r;
    /* acquire: pairs with kp__result_wake and kp__result_publish_quietly */
    uint32_t word = atomic_load_explicit(&result->word, memory_order_acquire);

    return (word & RESULT_DONE) != 0 ||
           ((word & RESULT_QUIET) != 0 && kp__in_callback());
}

/* The part that a record belongs to, or NULL: the batch's outcome is its own.
 * */
static const struct result_part *find_part(const struct batch_result *r,
                                           uint32_t index)
{
    uint32_t at = place_of(r, index);

    return at < r->part_count && r->parts[at].first <= index ? &r->parts[at]
                                                             : NULL;
}

void kp__result_read(const struct batch_result *r, uint32_t index, void *tag,
                     kp_report *out)
{
    const struct result_part *part = find_part(r, index);
    const struct outcome *o = part != NULL ? &part->outcome : &r->outcome;
    uint32_t first = part != NULL ? part->first : 0;

    *out = (kp_report){
        .tag = tag,
        .err = o->err,
        .cause = o->cause,
        .kind = o->err == KP_OK ? KP_KIND_NONE : kp__error_info(o->err)->kind,
        .stored = (int32_t)o->stored,
        .partition = r->partition,
        .offset = o->base_offset >= 0 ? o->base_offset + (index - first) : -1,
        .timestamp_ms = o->append_time_ms,
        .topic = r->topic->text,
        .text = part != NULL && part->text != NULL ? part->text : r->text,
    };
}

bool kp__result_get(const struct batch_result *r, uint32_t index, void *tag,
                    kp_report *out)
{
    if (!is_done(r))
        return false;
    if (out != NULL)
        kp__result_read(r, index, tag, out);
    return true;
}

kp_err kp__result_err(const struct batch_result *r, uint32_t index)
{
    const struct result_part *part =
        r->part_count > 0 ? find_part(r, index) : NULL;

    return part != NULL ? part->outcome.err : r->outcome.err;
}

void kp__result_ticket(struct batch_result *r, int64_t deadline_ns,
                       struct ticket *out)
{
    /* acq_rel: either completing sees the bit, or the bit DONE is seen here */
    uint32_t old = atomic_fetch_or_explicit(&r->word, RESULT_WAITERS,
                                            memory_order_acq_rel);

    *out = (struct ticket){(old & RESULT_DONE) != 0 ? NULL : &r->word,
                           old | RESULT_WAITERS, deadline_ns, 0};
}

void kp__result_relay(struct batch_result *r)
{
    kp__wake(&r->word, 2);
}
