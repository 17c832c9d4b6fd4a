/* SPDX-License-Identifier: BSD-2-Clause */
/* cq.c - completion queues.  The I/O thread posts, one thread at a time polls.
 *
 * Invariants: every post is on one queue until it was polled to its end, and
 * holds its batch (slots and result) until then; the fd, once anyone has asked
 * for it, is readable while there is something to say.  It is cleared before
 * anything is taken, so that a post in between arms it again. */
#include "lib/shared/cq.h"

#include "lib/base/mem.h"
#include "lib/shared/batch_result.h"

#define LENT_FIRST 16

void kp__cq_ref(struct kp_cq *cq)
{
    /* relaxed: whoever takes a reference has one */
    (void)atomic_fetch_add_explicit(&cq->refs, 1, memory_order_relaxed);
}

void kp__cq_unref(struct kp_cq *cq)
{
    /* acq_rel: what others did with the queue comes before its end */
    if (atomic_fetch_sub_explicit(&cq->refs, 1, memory_order_acq_rel) != 1)
        return;
    kp__wakeup_fini(&cq->wakeup);
    kp__mutex_fini(&cq->lock);
    kp__free(cq->lent);
    kp__free(cq);
}

/* -- Saying that there is something -- */

/* After the lock: something was added, or the flag set. */
static void announce(struct kp_cq *cq, bool arm)
{
    /* seq_cst: a poller counts itself before it reads the word, so either it
     * sees the new word or it is seen here */
    (void)atomic_fetch_add(&cq->word, 1);
    if (atomic_load(&cq->sleepers) != 0)
        kp__wake(&cq->word, 1);
    /* seq_cst: kp_cq_fd sets it before it looks at the queue */
    if (arm && atomic_load(&cq->fd_used) != 0)
        kp__wakeup_set(&cq->wakeup);
}

static void drop_post(struct cq_post *post)
{
    struct kp_cq *cq = post->cq;

    kp__batch_unref(post->batch); /* with it the post is gone */
    kp__cq_unref(cq);
}

bool kp__cq_has_news(struct kp_cq *cq)
{
    bool news;

    kp__mutex_lock(&cq->lock);
    news = cq->woken || !kp__list_empty(&cq->posts) || cq->partly;
    kp__mutex_unlock(&cq->lock);
    return news;
}

void kp__cq_post(struct kp_cq *cq, struct cq_post *post)
{
    bool was_empty, closed;

    kp__batch_disown(post->batch);
    /* The post's own may be gone, and with it the queue, before the news of it
     * are told. */
    kp__cq_ref(cq);
    kp__mutex_lock(&cq->lock);
    closed = cq->closed;
    was_empty = kp__list_empty(&cq->posts);
    if (!closed)
        kp__list_push_back(&cq->posts, &post->link);
    kp__mutex_unlock(&cq->lock);
    /* From here on the post may have been polled. */
    if (closed)
        drop_post(post);
    else
        announce(cq, was_empty);
    kp__cq_unref(cq);
}

void kp__cq_signal(struct kp_cq *cq)
{
    kp__mutex_lock(&cq->lock);
    cq->woken = true;
    kp__mutex_unlock(&cq->lock);
    announce(cq, true);
}

/* -- Polling -- */

void kp__cq_begin_poll(struct kp_cq *cq)
{
    for (size_t i = 0; i < cq->lent_count; i++)
        kp__result_unref(cq->lent[i], 1);
    cq->lent_count = 0;
}

/* Topic and text are lent until the next poll: by the result alone, so that the
 * batch's memory goes back at once.  False: no memory; the batch is kept. */
static bool lend(struct kp_cq *cq, struct batch_result *r)
{
    if (cq->lent_count == cq->lent_capacity) {
        size_t capacity =
            cq->lent_capacity > 0 ? cq->lent_capacity * 2 : LENT_FIRST;
        struct batch_result **lent =
            kp__realloc(cq->lent, capacity * sizeof(struct batch_result *));

        if (lent == NULL)
            return false;
        cq->lent = lent;
        cq->lent_capacity = capacity;
    }
    kp__result_ref(r);
    cq->lent[cq->lent_count++] = r;
    return true;
}

/* The next slot of the post's batch that is for this queue; false: no more. */
static bool next_slot(struct cq_post *post, const struct report_slot **slot,
                      uint32_t *index)
{
    uintptr_t number = (uintptr_t)(post - post->batch->reports.posts) + 1;

    while (post->page != NULL) {
        const struct report_slot *slots =
            (const struct report_slot *)(const void *)post->page->data;
        size_t count = post->page->used / sizeof(*slots);

        while (post->page_index < count) {
            *slot = &slots[post->page_index++];
            *index = post->record++;
            if ((*slot)->target == number)
                return true;
        }
        post->page = post->page->next;
        post->page_index = 0;
    }
    return false;
}

static struct cq_post *pop_post(struct kp_cq *cq)
{
    struct list_node *n;
    struct cq_post *post;

    kp__mutex_lock(&cq->lock);
    n = kp__list_pop_front(&cq->posts);
    kp__mutex_unlock(&cq->lock);
    if (n == NULL)
        return NULL;
    post = KP_CONTAINER(n, struct cq_post, link);
    post->page = post->batch->reports.slots;
    post->page_index = 0;
    post->record = post->batch->reports.slots_from;
    return post;
}

static size_t take_reports(struct kp_cq *cq, kp_report *reports, size_t max)
{
    size_t n = 0;

    while (n < max) {
        const struct report_slot *slot;
        uint32_t index;

        if (cq->current == NULL)
            cq->current = pop_post(cq);
        if (cq->current == NULL)
            break;
        if (next_slot(cq->current, &slot, &index)) {
            kp__result_read(cq->current->batch->result, index, slot->tag,
                            &reports[n++]);
            continue;
        }
        /* The caller reads the texts of what it was given until its next poll.
         * */
        if (n > 0 && !lend(cq, cq->current->batch->result))
            break;
        drop_post(cq->current);
        cq->current = NULL;
    }
    return n;
}

/* Take the wake-up if there is one; and is anything left to say? */
static bool take_woken(struct kp_cq *cq, bool *left)
{
    bool woken;

    kp__mutex_lock(&cq->lock);
    woken = cq->woken;
    cq->woken = false;
    cq->partly = cq->current != NULL;
    *left = cq->partly || !kp__list_empty(&cq->posts);
    kp__mutex_unlock(&cq->lock);
    return woken;
}

size_t kp__cq_try(struct kp_cq *cq, kp_report *reports, size_t max,
                  int64_t deadline_ns, bool *again, struct ticket *out)
{
    bool left;
    size_t n;

    /* seq_cst: before the queue is looked at; see announce */
    *out = (struct ticket){&cq->word, atomic_load(&cq->word), deadline_ns, 0};
    if (atomic_load(&cq->fd_used) != 0)
        kp__wakeup_clear(&cq->wakeup);
    n = take_reports(cq, reports, max);
    *again = take_woken(cq, &left);
    if (left && atomic_load(&cq->fd_used) != 0)
        kp__wakeup_set(&cq->wakeup);
    return n;
}

void kp__cq_close(struct kp_cq *cq)
{
    struct list posts;
    struct list_node *n;

    kp__cq_begin_poll(cq);
    kp__list_init(&posts);
    kp__mutex_lock(&cq->lock);
    cq->closed = true;
    kp__list_splice_back(&posts, &cq->posts);
    kp__mutex_unlock(&cq->lock);
    if (cq->current != NULL)
        drop_post(cq->current);
    cq->current = NULL;
    while ((n = kp__list_pop_front(&posts)) != NULL)
        drop_post(KP_CONTAINER(n, struct cq_post, link));
    kp__cq_unref(cq);
}
