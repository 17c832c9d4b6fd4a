/* SPDX-License-Identifier: BSD-2-Clause */
/* topic_retries.c - completion queues that hear when a topic has news.
 * Application threads register, the I/O thread signals; the table's lock.
 *
 * A KP_NOWAIT send that is refused because its topic (or partition) is not
 * known leaves its queue here, then asks for the news, and then looks once
 * more: so either it sees them or they find it.  That nobody asks for a name
 * any more, and that the producer closes, are news too.  A queue hears of any
 * topic's news: that costs a try, no more. */
#include "lib/shared/topics_table.h"

#include "lib/base/mem.h"
#include "lib/shared/cq.h"

struct topic_retry {
    struct topic_retry *next;
    struct kp_cq *cq;
};

void kp__topics_want_retry(struct topics *t, struct kp_cq *cq)
{
    struct topic_retry *r = kp__alloc(sizeof(*r)), *at;

    if (r == NULL) {
        kp__cq_signal(cq); /* no memory to note it: it may try at once */
        return;
    }
    kp__cq_ref(cq);
    r->cq = cq;
    kp__mutex_lock(&t->lock);
    at = t->retries;
    while (at != NULL && at->cq != cq)
        at = at->next;
    if (at == NULL) {
        r->next = t->retries;
        t->retries = r;
    }
    kp__mutex_unlock(&t->lock);
    if (at == NULL)
        return;
    kp__cq_unref(cq);
    kp__free(r);
}

static struct topic_retry *take(struct topics *t)
{
    struct topic_retry *first;

    kp__mutex_lock(&t->lock);
    first = t->retries;
    t->retries = NULL;
    kp__mutex_unlock(&t->lock);
    return first;
}

static void end_all(struct topic_retry *r, bool signal)
{
    while (r != NULL) {
        struct topic_retry *next = r->next;

        if (signal)
            kp__cq_signal(r->cq);
        kp__cq_unref(r->cq);
        kp__free(r);
        r = next;
    }
}

void kp__topics_retry(struct topics *t)
{
    end_all(take(t), true);
}

void kp__topics_free_retries(struct topics *t)
{
    end_all(take(t), false);
}
