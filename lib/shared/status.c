/* SPDX-License-Identifier: BSD-2-Clause */
/* status.c - what now stands between topics and their brokers.  The I/O thread
 * writes, any thread reads, under one small lock.
 *
 * Invariant: `topics` has entries only for topics in trouble. */
#include "lib/shared/status.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/error.h"
#include "lib/base/mem.h"

#define TEXT_SIZE sizeof(((kp_error *)NULL)->text)

void kp__status_init(struct status *s)
{
    memset(s, 0, sizeof(*s));
    kp__mutex_init(&s->lock);
    kp__map_init(&s->topics);
}

static void free_error(void *arg, const void *key, size_t size, void *value)
{
    (void)arg;
    (void)key;
    (void)size;
    kp__free(value);
}

void kp__status_fini(struct status *s)
{
    kp__map_each(&s->topics, free_error, NULL);
    kp__map_fini(&s->topics);
    kp__mutex_fini(&s->lock);
}

/* Before the lock is taken: formatting may be slow. */
static void make(kp_error *out, kp_err err, kp_err cause, const char *fmt,
                 va_list args) KP_PRINTF(4, 0);
static void make(kp_error *out, kp_err err, kp_err cause, const char *fmt,
                 va_list args)
{
    char text[TEXT_SIZE] = "";

    if (fmt != NULL)
        (void)vsnprintf(text, sizeof(text), fmt, args);
    (void)kp__error_set(out, err, cause, "%s", text);
}

void kp__status_cluster(struct status *s, kp_err err, kp_err cause,
                        const char *fmt, ...)
{
    kp_error e;
    va_list args;

    va_start(args, fmt);
    make(&e, err, cause, fmt, args);
    va_end(args);
    kp__mutex_lock(&s->lock);
    s->cluster = e;
    kp__mutex_unlock(&s->lock);
}

static void clear_topic(struct status *s, const char *topic, size_t size)
{
    void *old;

    kp__mutex_lock(&s->lock);
    old = kp__map_remove(&s->topics, topic, size);
    kp__mutex_unlock(&s->lock);
    kp__free(old);
}

void kp__status_topic(struct status *s, const char *topic, size_t size,
                      kp_err err, kp_err cause, const char *fmt, ...)
{
    kp_error *e, *old;
    va_list args;

    if (err == KP_OK) {
        clear_topic(s, topic, size);
        return;
    }
    e = kp__alloc(sizeof(*e));
    if (e == NULL)
        return; /* it is only an explanation */
    va_start(args, fmt);
    make(e, err, cause, fmt, args);
    va_end(args);
    kp__mutex_lock(&s->lock);
    old = kp__map_get(&s->topics, topic, size);
    if (!kp__map_put(&s->topics, topic, size, e))
        old = e;
    kp__mutex_unlock(&s->lock);
    kp__free(old);
}

void kp__status_fatal(struct status *s, kp_err err, const char *fmt, ...)
{
    kp_error e;
    va_list args;

    va_start(args, fmt);
    make(&e, err, KP_OK, fmt, args);
    va_end(args);
    /* Whatever the code says by itself: every call now says this. */
    e.kind = KP_KIND_FATAL;
    kp__mutex_lock(&s->lock);
    if (s->fatal.err == KP_OK)
        s->fatal = e;
    kp__mutex_unlock(&s->lock);
}

static void keep_first(void *arg, const void *key, size_t size, void *value)
{
    const kp_error **first = arg;

    (void)key;
    (void)size;
    if (*first == NULL)
        *first = value;
}

static const kp_error *topic_error(struct status *s, const char *topic,
                                   size_t size)
{
    const kp_error *e = NULL;

    if (topic != NULL)
        return kp__map_get(&s->topics, topic, size);
    kp__map_each(&s->topics, keep_first, &e);
    return e;
}

kp_err kp__status_get(struct status *s, const char *topic, size_t size,
                      kp_error *out)
{
    const kp_error *e = NULL;
    kp_err err = KP_OK;

    kp__mutex_lock(&s->lock);
    if (s->fatal.err != KP_OK)
        e = &s->fatal;
    if (e == NULL)
        e = topic_error(s, topic, size);
    if (e == NULL && s->cluster.err != KP_OK)
        e = &s->cluster;
    if (e != NULL) {
        err = e->err;
        if (out != NULL)
            *out = *e;
    }
    kp__mutex_unlock(&s->lock);
    return err;
}
