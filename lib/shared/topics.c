/* SPDX-License-Identifier: BSD-2-Clause */
/* topics.c - topics that exist.  The I/O thread adds and publishes; any thread
 * looks up, without a lock.  Names that are only asked for: topic_waits.c.
 *
 * Invariant: what a reader may still hold (tables, lists, views, entries) is
 * never freed before kp__topics_destroy.  Everything is complete before the
 * release store that makes it visible. */
#include "lib/shared/topics_table.h"

#include <string.h>

#include "lib/base/map.h"
#include "lib/base/mem.h"
#include "lib/base/thread.h"
#include "lib/shared/partition_queue.h"

#define TABLE_FIRST 64 /* a power of two; it is kept at most half full */
#define LIST_FIRST 32
#define TOPIC_ALIGN 128 /* of the words that senders write */

static _Atomic uint64_t serials;

struct topics *kp__topics_create(struct record_accumulator *a)
{
    struct topics *t = kp__zalloc(sizeof(*t));

    if (t == NULL)
        return NULL;
    t->accumulator = a;
    /* relaxed: only the number's uniqueness matters */
    t->serial =
        1 + atomic_fetch_add_explicit(&serials, 1, memory_order_relaxed);
    atomic_init(&t->table, NULL);
    atomic_init(&t->list, NULL);
    atomic_init(&t->count, 0);
    kp__mutex_init(&t->lock);
    kp__map_init(&t->waits);
    return t;
}

static void free_view(struct topic_view *v)
{
    for (int32_t i = 0; i < v->made_count; i++)
        kp__queue_fini(&v->made[i]);
    kp__free(v->made);
    if (v->owner) {
        kp__free(v->queues);
        kp__free(v->weights);
    }
    kp__free(v);
}

static void free_topic(struct topic *t)
{
    struct topic_view *v = atomic_load_explicit(&t->view, memory_order_relaxed);

    while (v != NULL) {
        struct topic_view *older = v->older;

        free_view(v);
        v = older;
    }
    kp__topic_name_unref(t->name);
    kp__free(t);
}

/* relaxed in the next two: the last thread is alone */
void kp__topics_destroy(struct topics *t)
{
    struct topic_table *table =
        atomic_load_explicit(&t->table, memory_order_relaxed);
    struct topic_list *list =
        atomic_load_explicit(&t->list, memory_order_relaxed);
    uint32_t count = atomic_load_explicit(&t->count, memory_order_relaxed);

    for (uint32_t i = 0; i < count; i++)
        free_topic(list->topics[i]);
    while (table != NULL) {
        struct topic_table *older = table->older;

        kp__free(table);
        table = older;
    }
    while (list != NULL) {
        struct topic_list *older = list->older;

        kp__free(list);
        list = older;
    }
    kp__topics_free_waits(t);
    kp__topics_free_retries(t);
    kp__map_fini(&t->waits);
    kp__mutex_fini(&t->lock);
    kp__free(t);
}

/* -- Looking up -- */

struct topic *kp__topics_find(const struct topics *topics, const char *name,
                              size_t size)
{
    struct topics *t = (struct topics *)(uintptr_t)topics;
    /* acquire: the table's slots were filled before it was published */
    struct topic_table *table =
        atomic_load_explicit(&t->table, memory_order_acquire);
    uint64_t hash;

    /* A size that no name has is not one to read by. */
    if (table == NULL || size > TOPIC_SIZE_MAX)
        return NULL;
    hash = kp__hash(name, size);
    for (size_t i = hash & table->mask;; i = (i + 1) & table->mask) {
        /* acquire: the entry was made before it was put there */
        struct topic *e =
            atomic_load_explicit(&table->slots[i], memory_order_acquire);

        if (e == NULL)
            return NULL;
        if (e->hash == hash && e->name->size == size &&
            memcmp(e->name->text, name, size) == 0)
            return e;
    }
}

bool kp__topics_is_full(const struct topics *topics)
{
    struct topics *t = (struct topics *)(uintptr_t)topics;

    /* relaxed: whoever is not the I/O thread need not know exactly */
    return atomic_load_explicit(&t->count, memory_order_relaxed) >= TOPICS_MAX;
}

/* What this thread found last, by where the name stood.  Programs name a topic
 * by the same few strings, so comparing it with what was found there is cheaper
 * than hashing it. */
#define FOUND_SLOTS 4 /* a power of two */

struct found {
    uint64_t serial; /* of the table; 0: nothing */
    struct topic *topic;
};
static _Thread_local KP_TLS_FAST struct found found[FOUND_SLOTS];

static bool has_name(const struct topic *e, const char *name, size_t size)
{
    if (size == 0)
        return strcmp(e->name->text, name) == 0;
    return e->name->size == size && memcmp(e->name->text, name, size) == 0;
}

struct topic *kp__topics_find_again(const struct topics *t, const char *name,
                                    size_t size)
{
    uintptr_t at = (uintptr_t)name;
    struct found *f = &found[(at ^ at >> 4) & (FOUND_SLOTS - 1)];
    struct topic *e;

    /* Topics live as long as their table, and no other has its serial. */
    if (KP_LIKELY(f->serial == t->serial && has_name(f->topic, name, size)))
        return f->topic;
    e = kp__topics_find(t, name, size > 0 ? size : strlen(name));
    if (e != NULL)
        *f = (struct found){t->serial, e};
    return e;
}

void kp__topics_each(struct topics *t,
                     void (*fn)(void *arg, struct topic *topic), void *arg)
{
    /* acquire: so many entries of the list, and of any newer one, are there */
    uint32_t count = atomic_load_explicit(&t->count, memory_order_acquire);
    struct topic_list *list =
        atomic_load_explicit(&t->list, memory_order_acquire);

    for (uint32_t i = 0; i < count; i++)
        fn(arg, list->topics[i]);
}

/* -- Adding an entry: I/O thread -- */

static void put_slot(struct topic_table *table, struct topic *e)
{
    size_t i = e->hash & table->mask;

    /* relaxed: only this thread writes slots */
    while (atomic_load_explicit(&table->slots[i], memory_order_relaxed) != NULL)
        i = (i + 1) & table->mask;
    /* release: pairs with kp__topics_find */
    atomic_store_explicit(&table->slots[i], e, memory_order_release);
}

/* Room for one more in the table; old ones are kept for their readers. */
static bool grow_table(struct topics *t, uint32_t count)
{
    struct topic_table *old =
        atomic_load_explicit(&t->table, memory_order_relaxed);
    struct topic_list *list =
        atomic_load_explicit(&t->list, memory_order_relaxed);
    size_t size = old != NULL ? (old->mask + 1) * 2 : TABLE_FIRST;
    struct topic_table *table;

    if (old != NULL && (count + 1) * (size_t)2 <= old->mask + 1)
        return true;
    table = kp__zalloc(sizeof(*table) + size * sizeof(table->slots[0]));
    if (table == NULL)
        return false;
    table->mask = size - 1;
    table->older = old;
    for (uint32_t i = 0; i < count; i++)
        put_slot(table, list->topics[i]);
    /* release: pairs with kp__topics_find */
    atomic_store_explicit(&t->table, table, memory_order_release);
    return true;
}

static bool grow_list(struct topics *t, uint32_t count)
{
    struct topic_list *old =
        atomic_load_explicit(&t->list, memory_order_relaxed);
    uint32_t capacity = old != NULL ? old->capacity * 2 : LIST_FIRST;
    struct topic_list *list;

    if (old != NULL && count < old->capacity)
        return true;
    list = kp__alloc(sizeof(*list) + capacity * sizeof(struct topic *));
    if (list == NULL)
        return false;
    list->capacity = capacity;
    list->older = old;
    if (count > 0)
        memcpy(list->topics, old->topics, count * sizeof(struct topic *));
    /* release: pairs with kp__topics_each */
    atomic_store_explicit(&t->list, list, memory_order_release);
    return true;
}

static struct topic *make_topic(const char *name, size_t size, uint32_t number)
{
    struct topic *e = kp__alloc_aligned(TOPIC_ALIGN, sizeof(*e));

    if (e == NULL)
        return NULL;
    e->name = kp__topic_name_create(name, size);
    if (e->name == NULL) {
        kp__free(e);
        return NULL;
    }
    e->hash = kp__hash(name, size);
    e->number = number;
    atomic_init(&e->view, NULL);
    atomic_init(&e->refused, KP_OK);
    atomic_init(&e->version, 0);
    atomic_init(&e->sticky, -1);
    kp__node_init(&e->weigh_link);
    return e;
}

static void add_topic(struct topics *t, struct topic *e)
{
    struct topic_list *list =
        atomic_load_explicit(&t->list, memory_order_relaxed);
    struct topic_table *table =
        atomic_load_explicit(&t->table, memory_order_relaxed);

    list->topics[e->number] = e;
    put_slot(table, e);
    /* release: pairs with kp__topics_each */
    atomic_store_explicit(&t->count, e->number + 1, memory_order_release);
}

/* -- Views -- */

static bool make_queues(struct topics *t, struct topic *e, struct topic_view *v,
                        int32_t from)
{
    size_t count = (size_t)(v->count - from);

    v->made = kp__alloc_aligned(alignof(struct partition_queue),
                                count * sizeof(*v->made));
    if (v->made == NULL)
        return false;
    for (int32_t i = from; i < v->count; i++) {
        struct partition_queue *q = &v->made[i - from];

        kp__queue_init(q, e, i, t->accumulator);
        v->queues[i] = q;
        v->made_count++;
    }
    return true;
}

/* Twice what there was: were they exact, a topic that grows by one partition
 * again and again would leave arrays behind as the square of its size. */
static bool make_arrays(struct topic_view *v, const struct topic_view *old)
{
    int32_t room = v->count;

    if (old != NULL && room / 2 < old->count)
        room = old->count * 2;
    v->owner = true;
    v->queues = kp__alloc_array((size_t)room, sizeof(struct partition_queue *));
    v->weights = kp__zalloc(sizeof(*v->weights) +
                            (size_t)room * sizeof(v->weights->entries[0]));
    if (v->queues == NULL || v->weights == NULL)
        return false;
    v->weights->capacity = room;
    if (old != NULL)
        memcpy(v->queues, old->queues,
               (size_t)old->count * sizeof(struct partition_queue *));
    return true;
}

static bool share_arrays(struct topic_view *v, const struct topic_view *old)
{
    if (old == NULL || v->count > old->weights->capacity)
        return false;
    v->queues = old->queues;
    v->weights = old->weights;
    return true;
}

/* A view of `count` partitions after `old` (or NULL). */
static struct topic_view *make_view(struct topics *t, struct topic *e,
                                    struct topic_view *old, int32_t count)
{
    struct topic_view *v = kp__zalloc(sizeof(*v));
    int32_t from = old != NULL ? old->count : 0;

    if (v == NULL)
        return NULL;
    v->count = count;
    if ((!share_arrays(v, old) && !make_arrays(v, old)) ||
        !make_queues(t, e, v, from)) {
        free_view(v);
        return NULL;
    }
    v->older = old;
    return v;
}

/* True if the topic has at least `count` partitions now. */
static bool let_grow(struct topics *t, struct topic *e, int32_t count)
{
    struct topic_view *old =
        atomic_load_explicit(&e->view, memory_order_relaxed);
    struct topic_view *v;

    if (old != NULL && old->count >= count)
        return true;
    KP_CHECK(count <= kp__topics_room(t, old != NULL ? e : NULL));
    v = make_view(t, e, old, count);
    if (v == NULL)
        return false;
    t->partition_count += v->made_count;
    /* release: pairs with kp__topic_view */
    atomic_store_explicit(&e->view, v, memory_order_release);
    return true;
}

int32_t kp__topics_room(const struct topics *t, const struct topic *e)
{
    int32_t has = e != NULL ? kp__topic_view(e)->count : 0;
    int32_t room = has + (PARTITIONS_MAX - t->partition_count);

    return room < TOPIC_PARTITIONS_MAX ? room : TOPIC_PARTITIONS_MAX;
}

static struct topic *new_topic(struct topics *t, const char *name, size_t size,
                               int32_t count)
{
    uint32_t number = atomic_load_explicit(&t->count, memory_order_relaxed);
    struct topic *e;

    if (number >= TOPICS_MAX || !grow_list(t, number) || !grow_table(t, number))
        return NULL;
    e = make_topic(name, size, number);
    if (e == NULL)
        return NULL;
    if (!let_grow(t, e, count)) {
        free_topic(e);
        return NULL;
    }
    add_topic(t, e);
    return e;
}

void kp__topics_raise(_Atomic uint32_t *version)
{
    /* seq_cst: a waiter reads the version, then looks at what it waits for */
    uint32_t seen = atomic_fetch_add(version, 1);

    kp__wake_masked(version, 2, kp__topics_mask(seen));
}

struct topic *kp__topics_publish(struct topics *t, const char *name,
                                 size_t size, int32_t count)
{
    struct topic *e = kp__topics_find(t, name, size);

    if (count <= 0)
        return e;
    if (e == NULL)
        e = new_topic(t, name, size, count);
    else if (!let_grow(t, e, count))
        return NULL;
    return e;
}

void kp__topics_announce(struct topics *t, struct topic *e)
{
    if (e == NULL)
        return;
    /* relaxed: a send that still sees the old answer gives it */
    atomic_store_explicit(&e->refused, KP_OK, memory_order_relaxed);
    kp__topics_raise(&e->version);
    kp__topics_confirm(t, e->name->text, e->name->size);
    kp__topics_retry(t);
}

void kp__topics_refuse(struct topics *t, const char *name, size_t size,
                       kp_err err)
{
    struct topic *e = kp__topics_find(t, name, size);

    if (e != NULL) {
        /* relaxed: see kp__topics_announce */
        atomic_store_explicit(&e->refused, err, memory_order_relaxed);
        kp__topics_raise(&e->version);
    }
    kp__topics_answer(t, name, size, err);
    /* An answer that may pass is no reason to try again; that nobody asks is.
     * */
    if (!kp__error_may_pass(err) || err == KP_ENOMEM)
        kp__topics_retry(t);
}

static void raise_topic(void *arg, struct topic *e)
{
    (void)arg;
    kp__topics_raise(&e->version);
}

void kp__topics_wake_all(struct topics *t)
{
    kp__topics_each(t, raise_topic, NULL);
    kp__topics_wake_waits(t);
    kp__topics_retry(t);
}

/* Unkeyed records go on at once, and not after batch.size bytes, when the
 * sticky partition is one that they should avoid. */
static void leave_sticky(struct topic *t, const int32_t *partitions, int32_t n)
{
    /* relaxed: see topic.sticky; a sender that changes it meanwhile is right
     * too */
    int32_t sticky = atomic_load_explicit(&t->sticky, memory_order_relaxed);

    for (int32_t i = 0; i < n; i++)
        if (partitions[i] == sticky)
            return;
    if (n > 0)
        (void)atomic_compare_exchange_strong_explicit(&t->sticky, &sticky, -1,
                                                      memory_order_relaxed,
                                                      memory_order_relaxed);
}

/* relaxed throughout: see topic_weights */
void kp__topic_set_weights(struct topic *t, const int32_t *partitions,
                           const uint32_t *weights, int32_t n)
{
    struct topic_weights *w =
        atomic_load_explicit(&t->view, memory_order_relaxed)->weights;
    uint64_t sum = 0;

    if (n > w->capacity)
        n = w->capacity;
    atomic_store_explicit(&w->count, 0, memory_order_relaxed);
    for (int32_t i = 0; i < n; i++) {
        sum += weights[i];
        atomic_store_explicit(&w->entries[i].partition, partitions[i],
                              memory_order_relaxed);
        atomic_store_explicit(&w->entries[i].sum, sum, memory_order_relaxed);
    }
    atomic_store_explicit(&w->count, n, memory_order_relaxed);
    leave_sticky(t, partitions, n);
}
