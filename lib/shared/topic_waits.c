/* SPDX-License-Identifier: BSD-2-Clause */
/* topic_waits.c - names that are asked for and not confirmed.  Application
 * threads ask, the I/O thread answers; one lock, on the slow path only.
 *
 *   none --want--> ASKED (the caller posts the op) --confirm--> none: a topic
 *                    |    ^                           '-expire-> none: nobody
 *       not_posted,  |    | want: err is                    waits or has asked
 *       answer ENOMEM|    | KP_OK again                     for long
 *                    v    |
 *                  UNPOSTED: the I/O thread may not know of it
 *
 * In ASKED `err` is the last answer, KP_OK if there was none: whoever wants the
 * name then need not post.  What is news to those who wait raises the entry's
 * version, on which they sleep.
 *
 * Invariant: an entry is in the map until its name is confirmed or forgotten,
 * and the map holds one of its references; waiters hold the others, so that the
 * word they sleep on stays. */
#include "lib/shared/topics_table.h"

#include "lib/base/mem.h"

static void wait_unref(struct topic_wait *w)
{
    /* acq_rel: what the others did with it comes before its end */
    if (atomic_fetch_sub_explicit(&w->refs, 1, memory_order_acq_rel) != 1)
        return;
    kp__topic_name_unref(w->name);
    kp__free(w);
}

void kp__topics_wait_unref(struct topics *t, struct topic_wait *w)
{
    (void)t;
    wait_unref(w);
}

static struct topic_wait *make_wait(const char *name, size_t size,
                                    int64_t now_ns)
{
    struct topic_wait *w = kp__zalloc(sizeof(*w));

    if (w == NULL)
        return NULL;
    w->name = kp__topic_name_create(name, size);
    if (w->name == NULL) {
        kp__free(w);
        return NULL;
    }
    atomic_init(&w->version, 0);
    atomic_init(&w->refs, 1);
    w->since_ns = now_ns;
    return w;
}

static bool table_is_full(struct topics *t)
{
    return kp__topics_is_full(t) || t->waits.count >= TOPICS_MAX;
}

/* Under the lock. */
static kp_err add_wait(struct topics *t, const char *name, size_t size,
                       int64_t now_ns, struct topic_wait **out)
{
    struct topic_wait *w;

    if (table_is_full(t))
        return KP_ETOPIC;
    w = make_wait(name, size, now_ns);
    if (w == NULL)
        return KP_ENOMEM;
    if (!kp__map_put(&t->waits, name, size, w)) {
        wait_unref(w);
        return KP_ENOMEM;
    }
    *out = w;
    return KP_OK;
}

kp_err kp__topics_want(struct topics *t, const char *name, size_t size,
                       int64_t now_ns, struct topic_wait **out, bool *post)
{
    struct topic_wait *w;
    kp_err err = KP_OK;

    kp__mutex_lock(&t->lock);
    w = kp__map_get(&t->waits, name, size);
    if (w == NULL)
        err = add_wait(t, name, size, now_ns, &w);
    if (err == KP_OK) {
        w->asked_ns = now_ns;
        *post = !w->posted;
        if (!w->posted)
            w->err = KP_OK; /* it is asked for anew */
        w->posted = true;
        /* relaxed: the map's reference is held */
        (void)atomic_fetch_add_explicit(&w->refs, 1, memory_order_relaxed);
        *out = w;
    }
    kp__mutex_unlock(&t->lock);
    return err;
}

void kp__topics_not_posted(struct topics *t, struct topic_wait *w)
{
    kp__mutex_lock(&t->lock);
    w->posted = false;
    kp__mutex_unlock(&t->lock);
    kp__topics_raise(&w->version);
}

kp_err kp__topics_wait_state(struct topics *t, struct topic_wait *w,
                             int64_t *since_ns)
{
    kp_err err;

    kp__mutex_lock(&t->lock);
    err = w->err;
    *since_ns = w->since_ns;
    kp__mutex_unlock(&t->lock);
    return err;
}

/* -- I/O thread -- */

void kp__topics_confirm(struct topics *t, const char *name, size_t size)
{
    struct topic_wait *w;

    kp__mutex_lock(&t->lock);
    w = kp__map_remove(&t->waits, name, size);
    if (w != NULL)
        w->err = KP_OK;
    kp__mutex_unlock(&t->lock);
    if (w == NULL)
        return;
    kp__topics_raise(&w->version);
    wait_unref(w);
}

void kp__topics_answer(struct topics *t, const char *name, size_t size,
                       kp_err err)
{
    struct topic_wait *w;

    kp__mutex_lock(&t->lock);
    w = kp__map_get(&t->waits, name, size);
    if (w != NULL) {
        w->err = err;
        if (err == KP_ENOMEM)
            w->posted = false; /* the I/O thread may not know of it any more */
        /* relaxed: the map's reference is held */
        (void)atomic_fetch_add_explicit(&w->refs, 1, memory_order_relaxed);
    }
    kp__mutex_unlock(&t->lock);
    if (w == NULL)
        return;
    kp__topics_raise(&w->version);
    wait_unref(w);
}

/* Entries that go, by next. */
struct picked {
    struct topics *topics;
    struct topic_wait *first;
    int64_t before_ns;
};

static void pick_old(void *arg, const void *key, size_t size, void *value)
{
    struct picked *p = arg;
    struct topic_wait *w = value;

    /* relaxed: references are only taken under the lock, which is held */
    if (w->asked_ns >= p->before_ns ||
        atomic_load_explicit(&w->refs, memory_order_relaxed) > 1)
        return;
    w->next = p->first;
    p->first = w;
    (void)kp__map_remove(&p->topics->waits, key, size);
}

void kp__topics_expire(struct topics *t, int64_t before_ns,
                       void (*fn)(void *arg, const char *name, size_t size),
                       void *arg)
{
    struct picked p = {.topics = t, .before_ns = before_ns};

    kp__mutex_lock(&t->lock);
    kp__map_each(&t->waits, pick_old, &p);
    kp__mutex_unlock(&t->lock);
    if (p.first != NULL)
        kp__topics_retry(t);
    while (p.first != NULL) {
        struct topic_wait *w = p.first;

        p.first = w->next;
        fn(arg, w->name->text, w->name->size);
        wait_unref(w);
    }
}

static void wake_wait(void *arg, const void *key, size_t size, void *value)
{
    struct topic_wait *w = value;

    (void)arg;
    (void)key;
    (void)size;
    kp__topics_raise(&w->version);
}

void kp__topics_wake_waits(struct topics *t)
{
    /* System calls under the lock, this once in a producer's life: whoever
     * closes calls this, so the entries' links are not ours to use. */
    kp__mutex_lock(&t->lock);
    kp__map_each(&t->waits, wake_wait, NULL);
    kp__mutex_unlock(&t->lock);
}

static void drop_wait(void *arg, const void *key, size_t size, void *value)
{
    (void)arg;
    (void)key;
    (void)size;
    wait_unref(value);
}

void kp__topics_free_waits(struct topics *t)
{
    kp__map_each(&t->waits, drop_wait, NULL);
}
