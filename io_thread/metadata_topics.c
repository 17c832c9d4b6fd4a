/* SPDX-License-Identifier: BSD-2-Clause */
/* metadata_topics.c - names that are wanted, and topics in use.  I/O thread
 * only.
 *
 * Invariant: a wanted name stands in exactly one of wanted_due, wanted_asked
 * and the heap of refused ones; a topic is in `listed` exactly while its
 * `listed` says so, and never among those due unless it is listed. */
#include <string.h>

#include "io_thread/metadata_state.h"
#include "lib/base/mem.h"
#include "lib/base/wait.h"

bool kp__uuid_is_zero(const struct uuid *id)
{
    static const struct uuid zero;

    return memcmp(id, &zero, sizeof zero) == 0;
}

static bool uuid_equal(const struct uuid *a, const struct uuid *b)
{
    return memcmp(a, b, sizeof *a) == 0;
}

/* -- wanted names -- */

struct wanted *kp__wanted_find(const struct metadata *m, const char *name,
                               size_t size)
{
    return kp__map_get(&m->wanted, name, size);
}

static void leave_places(struct metadata *m, struct wanted *w)
{
    if (kp__node_linked(&w->link))
        kp__list_remove(&w->link);
    kp__heap_remove(&m->refused, &w->again);
}

void kp__wanted_drop(struct metadata *m, struct wanted *w)
{
    leave_places(m, w);
    (void)kp__map_remove(&m->wanted, w->name, w->size);
    kp__free(w->name);
    kp__free(w);
}

void kp__wanted_due(struct metadata *m, struct wanted *w)
{
    leave_places(m, w);
    kp__list_push_back(&m->wanted_due, &w->link);
}

void kp__wanted_refused(struct metadata *m, struct wanted *w)
{
    leave_places(m, w);
    kp__heap_set(&m->refused, &w->again,
                 kp__ns_add(m->now_ns, REFUSED_AGAIN_NS));
}

void kp__wanted_again(struct metadata *m)
{
    struct heap_node *h;

    while ((h = kp__heap_first(&m->refused)) != NULL && h->at_ns <= m->now_ns)
        kp__wanted_due(m, KP_CONTAINER(h, struct wanted, again));
}

/* Inside the table's call: only noted here. */
static void forget(void *arg, const char *name, size_t size)
{
    struct metadata *m = arg;
    struct wanted *w = kp__wanted_find(m, name, size);

    if (w == NULL)
        return;
    leave_places(m, w);
    kp__list_push_back(&m->wanted_gone, &w->link);
}

void kp__wanted_expire(struct metadata *m)
{
    int64_t kept_ns = m->settings->max_block_ns > NAME_KEPT_NS
                          ? m->settings->max_block_ns
                          : NAME_KEPT_NS;
    struct list_node *link;

    if (m->wanted.count == 0)
        return;
    kp__topics_expire(m->topics, m->now_ns - kept_ns, forget, m);
    while ((link = kp__list_first(&m->wanted_gone)) != NULL) {
        struct wanted *w = KP_CONTAINER(link, struct wanted, link);
        if (w->err != KP_OK)
            kp__status_topic(m->status, w->name, w->size, KP_OK, KP_OK, "%s",
                             "");
        kp__wanted_drop(m, w);
    }
}

void kp__wanted_tell_too_old(struct metadata *m, bool too_old)
{
    struct list_node *link = kp__list_first(&m->wanted_due);

    for (; link != NULL; link = kp__list_next(&m->wanted_due, link)) {
        struct wanted *w = KP_CONTAINER(link, struct wanted, link);
        kp_err err = too_old ? KP_ENOTSUP : KP_ECONNECT;

        if (w->err == err || (!too_old && w->err != KP_ENOTSUP))
            continue;
        w->err = err;
        kp__topics_refuse(m->topics, w->name, w->size, err);
    }
}

static void want_new(struct metadata *m, const char *topic, size_t size)
{
    struct wanted *w = kp__zalloc(sizeof *w);

    if (w == NULL) {
        kp__topics_refuse(m->topics, topic, size, KP_ENOMEM);
        return;
    }
    kp__node_init(&w->link);
    w->name = kp__strndup(topic, size);
    w->size = size;
    if (w->name == NULL || !kp__map_put(&m->wanted, topic, size, w)) {
        kp__free(w->name);
        kp__free(w);
        kp__topics_refuse(m->topics, topic, size, KP_ENOMEM);
        return;
    }
    kp__wanted_due(m, w);
    m->fresh = true;
}

/* For a topic that exists it means: a partition that we do not know of. */
static void want_more(struct metadata *m, struct topic_meta *t)
{
    t->used_ns = m->now_ns;
    t->asked_until_ns = kp__ns_add(m->now_ns, m->settings->max_block_ns);
    if (!t->listed)
        kp__metadata_used(m, t->topic, m->now_ns);
    kp__meta_due(m, t);
}

void kp__metadata_want(struct metadata *m, const char *topic, size_t size,
                       int64_t now_ns)
{
    struct topic *t = kp__topics_find(m->topics, topic, size);
    struct wanted *w = kp__wanted_find(m, topic, size);

    m->now_ns = now_ns;
    if (t != NULL && kp__meta_of(t) != NULL)
        want_more(m, kp__meta_of(t));
    else if (w == NULL)
        want_new(m, topic, size);
    else if (w->again.in_heap &&
             w->again.at_ns - now_ns <= REFUSED_AGAIN_NS - KP_NS_PER_SEC)
        kp__wanted_due(m, w); /* somebody asks again, a second later */
}

/* -- topics -- */

struct topic_meta *kp__meta_of(const struct topic *t)
{
    return t->metadata;
}

void kp__meta_due(struct metadata *m, struct topic_meta *t)
{
    if (!t->listed)
        return;
    if (kp__node_linked(&t->due))
        kp__list_remove(&t->due);
    kp__list_push_back(&m->topics_due, &t->due);
}

static void list_it(struct metadata *m, struct topic_meta *t)
{
    t->listed = true;
    kp__list_push_back(&m->listed, &t->link);
}

void kp__metadata_used(struct metadata *m, struct topic *topic, int64_t now_ns)
{
    struct topic_meta *t = kp__meta_of(topic);

    if (t == NULL)
        return;
    t->used_ns = now_ns;
    if (t->listed)
        return;
    list_it(m, t);
    kp__meta_due(m, t);
    m->fresh = true;
}

static bool is_idle(const struct metadata *m, const struct topic_meta *t)
{
    return m->now_ns - t->used_ns > m->settings->metadata_max_idle_ns;
}

void kp__meta_refused(struct metadata *m, struct topic_meta *t)
{
    if (!is_idle(m, t))
        kp__heap_set(&m->refused_topics, &t->again,
                     kp__ns_add(m->now_ns, REFUSED_AGAIN_NS));
}

void kp__meta_again(struct metadata *m)
{
    struct heap_node *h;

    while ((h = kp__heap_first(&m->refused_topics)) != NULL &&
           h->at_ns <= m->now_ns) {
        kp__heap_remove(&m->refused_topics, h);
        kp__meta_due(m, KP_CONTAINER(h, struct topic_meta, again));
    }
}

void kp__meta_expire(struct metadata *m)
{
    struct list_node *link = kp__list_first(&m->listed), *next;

    for (; link != NULL; link = next) {
        struct topic_meta *t = KP_CONTAINER(link, struct topic_meta, link);

        next = kp__list_next(&m->listed, link);
        if (!is_idle(m, t))
            continue;
        if (t->err != KP_OK)
            continue; /* senders are refused: nobody would use it again */
        t->listed = false;
        kp__list_remove(&t->link);
        kp__list_remove(&t->due);
    }
}

bool kp__meta_grow(struct topic_meta *t, int32_t count)
{
    struct partition_meta *p;

    if (count <= t->count)
        return true;
    if ((size_t)count > SIZE_MAX / sizeof *p)
        return false;
    p = kp__realloc(t->partitions, (size_t)count * sizeof *p);
    if (p == NULL)
        return false;
    t->partitions = p;
    while (t->count < count)
        t->partitions[t->count++] = (struct partition_meta){.epoch = -1};
    return true;
}

static struct topic_meta *create(void)
{
    struct topic_meta *t = kp__zalloc(sizeof *t);

    if (t == NULL)
        return NULL;
    kp__node_init(&t->link);
    kp__node_init(&t->due);
    kp__node_init(&t->all);
    return t;
}

struct topic_meta *kp__meta_confirm(struct metadata *m, const char *name,
                                    size_t size, int32_t count)
{
    struct topic_meta *t = create();

    if (t == NULL)
        return NULL;
    if (kp__meta_grow(t, count))
        t->topic = kp__topics_publish(m->topics, name, size, count);
    if (t->topic == NULL || t->topic->metadata != NULL) {
        kp__free(t->partitions);
        kp__free(t);
        return NULL;
    }
    t->topic->metadata = t;
    t->announce = true;
    t->used_ns = m->now_ns;
    t->asked_until_ns = INT64_MIN;
    kp__list_push_back(&m->all, &t->all);
    list_it(m, t);
    return t;
}

/* -- ids -- */

bool kp__meta_set_id(struct metadata *m, struct topic_meta *t,
                     const struct uuid *id)
{
    bool recreated = !kp__uuid_is_zero(&t->id);

    if (kp__uuid_is_zero(id) || uuid_equal(id, &t->id))
        return false; /* a broker too old to tell, or nothing new */
    if (!kp__map_put(&m->by_id, id, sizeof *id, t))
        return false; /* with the next answer */
    /* a broker that is behind may have named the older one again */
    if (!kp__uuid_is_zero(&t->previous_id) && !uuid_equal(id, &t->previous_id))
        (void)kp__map_remove(&m->by_id, &t->previous_id, sizeof t->previous_id);
    t->previous_id = t->id; /* answers about it may still be on their way */
    t->id = *id;
    if (!recreated)
        return false;
    kp__log_limited(m->log, &m->anew_limit, 10 * KP_NS_PER_SEC, KP_LOG_WARN,
                    "metadata", "topic %s was deleted and created anew",
                    t->topic->name->text);
    t->living = 0;
    for (int32_t i = 0; i < t->count; i++) {
        t->partitions[i].epoch = -1; /* its epochs begin again */
        t->partitions[i].told = false; /* it may have fewer partitions */
    }
    return true;
}

struct uuid kp__metadata_topic_id(const struct topic *topic)
{
    static const struct uuid zero;
    const struct topic_meta *t = kp__meta_of(topic);

    return t != NULL ? t->id : zero;
}

struct topic *kp__metadata_by_id(const struct metadata *m,
                                 const struct uuid *id)
{
    const struct topic_meta *t = kp__map_get(&m->by_id, id, sizeof *id);

    return t != NULL ? t->topic : NULL;
}

/* -- leaders -- */

struct node *kp__metadata_leader(const struct partition_queue *q,
                                 int32_t *epoch)
{
    const struct topic_meta *t = q->topic->metadata;

    if (t == NULL || q->partition >= t->count)
        return NULL;
    *epoch = t->partitions[q->partition].epoch;
    return t->partitions[q->partition].leader;
}

bool kp__meta_set_leader(struct metadata *m, struct topic_meta *t, int32_t i,
                         struct node *leader, int32_t epoch)
{
    struct partition_meta *p = &t->partitions[i];
    struct partition_queue *q = kp__topic_view(t->topic)->queues[i];

    if (p->told && p->leader == leader && p->epoch == epoch)
        return false;
    *p = (struct partition_meta){leader, epoch, .told = true};
    /* relaxed: each for itself, for whoever looks (partition_queue.h) */
    atomic_store_explicit(&q->leader_id,
                          leader != NULL ? kp__node_id(leader) : -1,
                          memory_order_relaxed);
    atomic_store_explicit(&q->leader_epoch, epoch, memory_order_relaxed);
    m->events.leader(m->events.arg, q, leader, epoch);
    return true;
}

void kp__metadata_denied(struct partition_queue *q, const struct node *n)
{
    struct topic_meta *t = kp__meta_of(q->topic);

    if (t != NULL && q->partition < t->count &&
        t->partitions[q->partition].leader == n)
        t->partitions[q->partition].denied = true;
}

static struct node *hinted_node(struct metadata *m, int32_t id,
                                const struct node_endpoint *e)
{
    struct node *n = NULL;

    if (e != NULL && e->node_id == id)
        n = kp__client_node(m->client, id, e->host.data, e->host.size, e->port,
                            e->rack.data, e->rack.size);
    return n != NULL ? n : kp__client_find(m->client, id);
}

void kp__metadata_hint(struct metadata *m, struct partition_queue *q,
                       int32_t leader_id, int32_t leader_epoch,
                       const struct node_endpoint *endpoint)
{
    struct topic_meta *t = kp__meta_of(q->topic);
    struct node *n;

    if (t == NULL || q->partition >= t->count || leader_id < 0 ||
        leader_epoch <= t->partitions[q->partition].epoch)
        return;
    n = hinted_node(m, leader_id, endpoint);
    if (n != NULL)
        (void)kp__meta_set_leader(m, t, q->partition, n, leader_epoch);
    m->full_due = true; /* it names one partition; others will have moved too */
}
