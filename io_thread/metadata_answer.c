/* SPDX-License-Identifier: BSD-2-Clause */
/* metadata_answer.c - taking a Metadata answer in.  I/O thread only.
 *
 * Nothing in it is believed further than it goes: an entry that cannot be is
 * passed over, the others count; memory follows the entries that are there,
 * never a number that is announced.  Kafka: Metadata.update,
 * updateLatestMetadata. */
#include <string.h>

#include "io_thread/client.h"
#include "io_thread/metadata_state.h"
#include "lib/base/mem.h"
#include "lib/base/str.h"
#include "lib/wire/errors.h"

/* -- brokers -- */

/* Those whose entry makes sense, each once; returns how many. */
static size_t take_brokers(struct metadata *m, const struct array *brokers,
                           int32_t *ids)
{
    const struct metadata_broker *b = brokers->items;
    size_t count = 0;

    for (size_t i = 0; i < brokers->count; i++) {
        struct node *n = kp__client_find(m->client, b[i].node_id);
        if (n != NULL && n->metadata_serial == m->serial)
            continue; /* named twice: the first counts */
        n = kp__client_node(m->client, b[i].node_id, b[i].host.data,
                            b[i].host.size, b[i].port, b[i].rack.data,
                            b[i].rack.size);
        if (n == NULL)
            continue;
        n->metadata_serial = m->serial;
        ids[count++] = b[i].node_id;
    }
    return count;
}

static kp_err set_brokers(struct metadata *m,
                          const struct metadata_response *answer)
{
    int32_t *ids = kp__alloc_array(answer->brokers.count, sizeof *ids);
    size_t count;

    if (ids == NULL)
        return KP_ENOMEM;
    count = take_brokers(m, &answer->brokers, ids);
    if (count > 0)
        kp__client_keep_only(m->client, ids, count);
    kp__free(ids);
    return count > 0 ? KP_OK : KP_EMETADATA;
}

static struct node *leader_of(struct metadata *m,
                              const struct metadata_partition *p)
{
    struct node *n =
        p->leader_id < 0 ? NULL : kp__client_find(m->client, p->leader_id);

    return n != NULL && n->metadata_serial == m->serial ? n : NULL;
}

/* -- partitions -- */

static void set_counts(struct topic_meta *t, const struct metadata_partition *p)
{
    struct partition_queue *q =
        kp__topic_view(t->topic)->queues[p->partition_index];

    /* relaxed: each for itself, for whoever looks (partition_queue.h) */
    atomic_store_explicit(&q->replica_count, (int32_t)p->replica_nodes.count,
                          memory_order_relaxed);
    atomic_store_explicit(&q->isr_count, (int32_t)p->isr_nodes.count,
                          memory_order_relaxed);
}

/* An epoch above all that brokers have can only be a lie or a mistake, of a hint
 * or of metadata, and would stand for ever.  What is known is given up if nobody
 * bears it out and answer after answer names an older epoch.  One broker may be
 * behind, or cut off from the others and be asked again and again: these have a
 * while to be heard, and if the leader cannot be reached (or there is none) to
 * choose another. */
#define DENIED_NS (5 * KP_NS_PER_SEC)
#define UNREACHABLE_NS (30 * KP_NS_PER_SEC)

static bool is_outvoted(struct metadata *m, const struct topic_meta *t,
                        int32_t i, int32_t epoch)
{
    struct partition_meta *p = &t->partitions[i];
    bool reachable = p->leader != NULL && !kp__client_is_unreachable(p->leader);

    if (reachable && !p->denied) {
        p->older_since_ns = 0;
        return false;
    }
    if (p->older_since_ns == 0)
        p->older_since_ns = m->now_ns;
    if (m->now_ns - p->older_since_ns <
        (reachable ? DENIED_NS : UNREACHABLE_NS))
        return false;
    kp__log_limited(
        m->log, &m->older_limit, TELL_AGAIN_NS, KP_LOG_WARN, "metadata",
        "topic %s: leader epoch %d of partition %d, which no leader bears out, "
        "is given up for %d",
        t->topic->name->text, (int)p->epoch, (int)i, (int)epoch);
    return true;
}

/* Epochs are to be trusted from version 9 on; before, brokers may tell one from
 * long ago. */
static bool take_partition(struct metadata *m, struct topic_meta *t,
                           int16_t version, const struct metadata_partition *p)
{
    int32_t epoch = version >= 9 ? p->leader_epoch : -1;
    struct partition_meta *known;

    if (p->partition_index < 0 || p->partition_index >= t->count)
        return false;
    known = &t->partitions[p->partition_index];
    if (epoch >= 0 && epoch < known->epoch &&
        !is_outvoted(m, t, p->partition_index, epoch))
        return false; /* that broker is behind */
    known->older_since_ns = 0;
    set_counts(t, p);
    return kp__meta_set_leader(m, t, p->partition_index, leader_of(m, p),
                               epoch >= 0 ? epoch : known->epoch);
}

/* Queues that the answer did not name are new all the same. */
static void tell_rest(struct metadata *m, struct topic_meta *t)
{
    for (int32_t i = 0; i < t->count; i++)
        if (!t->partitions[i].told)
            (void)kp__meta_set_leader(m, t, i, NULL, -1);
}

static int32_t count_leaderless(const struct topic_meta *t)
{
    int32_t n = 0;

    for (int32_t i = 0; i < t->living; i++)
        n += t->partitions[i].leader == NULL ? 1 : 0;
    return n;
}

/* -- what stands against a topic -- */

static void set_status(struct metadata *m, struct topic_meta *t, kp_err err,
                       int32_t leaderless)
{
    const struct topic_name *name = t->topic->name;

    if (err != KP_OK)
        kp__status_topic(m->status, name->text, name->size, err, KP_OK,
                         "topic %s: the brokers say %s: %s", name->text,
                         kp__error_info(err)->name, kp__error_info(err)->text);
    else if (leaderless > 0)
        kp__status_topic(m->status, name->text, name->size,
                         KP_LEADER_NOT_AVAILABLE, KP_OK,
                         "topic %s: %d of %d partitions have no leader",
                         name->text, (int)leaderless, (int)t->count);
    else if (t->status_set)
        kp__status_topic(m->status, name->text, name->size, KP_OK, KP_OK, "%s",
                         "");
    t->status_set = err != KP_OK || leaderless > 0;
}

/* False: another line came just before it. */
static bool log_trouble(struct metadata *m, const char *name, size_t size,
                        const struct trouble *t, const char *why)
{
    char shown[256], more[64] = "";

    kp__str_escape(shown, sizeof shown, name, size);
    if (t->answers > 1)
        (void)kp__format(more, sizeof more, " for %lld s, in %u answers",
                         (long long)((m->now_ns - t->since_ns) / KP_NS_PER_SEC),
                         (unsigned)t->answers);
    return kp__log_limited(m->log, &m->topic_limit, TELL_AGAIN_NS, KP_LOG_WARN,
                           "metadata", "topic %s: %s%s", shown,
                           why != NULL ? why : kp__error_info(t->err)->name,
                           more);
}

/* An answer says so of a topic: it is told as soon as lines may be, and for as
 * long as that goes on from time to time.  why: or NULL, the error's name. */
static void note_trouble(struct metadata *m, const char *name, size_t size,
                         struct trouble *t, kp_err err, const char *why)
{
    int64_t wait_ns = TELL_AGAIN_NS;

    kp__metrics_record(m->metrics, SENSOR_METADATA_ERRORS, 1, m->now_ns);
    if (t->err != err)
        *t = (struct trouble){err, 1, m->now_ns, m->now_ns};
    else if (t->answers < UINT32_MAX)
        t->answers++;
    /* All topics share one limit: who is held back by it stays due. */
    if (m->now_ns < t->tell_ns || !log_trouble(m, name, size, t, why))
        return;
    if (m->now_ns - t->since_ns > wait_ns)
        wait_ns = m->now_ns - t->since_ns;
    if (wait_ns > TELL_AGAIN_MAX_NS)
        wait_ns = TELL_AGAIN_MAX_NS;
    t->tell_ns = kp__ns_add(m->now_ns, wait_ns);
}

#define TOO_MANY_SIZE 160

/* No Kafka cluster has as many as a producer takes: what says so is something
 * else, or broken. */
static void too_many(char out[TOO_MANY_SIZE], size_t count, int32_t room)
{
    (void)kp__format(out, TOO_MANY_SIZE,
                     "a broker says that it has %zu partitions, and there is "
                     "room for %d (%d of a topic, %d of all); check what "
                     "answers as a broker",
                     count, (int)room, TOPIC_PARTITIONS_MAX, PARTITIONS_MAX);
}

/* Of a topic in use, which keeps those it has. */
static void log_too_many(struct metadata *m, const struct topic_name *name,
                         size_t count, int32_t room)
{
    char shown[256], why[TOO_MANY_SIZE];

    kp__str_escape(shown, sizeof shown, name->text, name->size);
    too_many(why, count, room);
    kp__log_limited(m->log, &m->count_limit, 10 * KP_NS_PER_SEC, KP_LOG_WARN,
                    "metadata", "topic %s: %s", shown, why);
}

/* -- a topic in use -- */

/* How many it has from now on: all that are named, or no more than before. */
static int32_t count_taken(struct metadata *m, const struct topic_meta *t,
                           size_t entries)
{
    int32_t room = kp__topics_room(m->topics, t->topic);

    if (entries <= (size_t)room)
        return (int32_t)entries;
    log_too_many(m, t->topic->name, entries, room);
    return t->count;
}

static bool grow_to(struct metadata *m, struct topic_meta *t, int32_t count)
{
    const struct topic_name *name = t->topic->name;
    bool was_refused = t->err != KP_OK;

    if (count <= t->count && !was_refused)
        return false;
    if (count < t->count)
        count = t->count;
    if (kp__topics_publish(m->topics, name->text, name->size, count) == NULL ||
        !kp__meta_grow(t, count)) {
        m->full_due = true; /* no memory now */
        return false;
    }
    t->asked_until_ns = INT64_MIN; /* whoever waits is woken to look */
    t->announce = true;
    return true;
}

/* The error of a topic that we know: records for it wait, or are refused. */
static bool topic_failed(struct metadata *m, struct topic_meta *t, kp_err err)
{
    const struct topic_name *name = t->topic->name;
    bool news = t->err != err;

    t->err = err;
    note_trouble(m, name->text, name->size, &t->trouble, err, NULL);
    if (news) {
        kp__topics_refuse(m->topics, name->text, name->size, err);
        set_status(m, t, err, 0);
    }
    if (kp__error_may_pass(err))
        m->full_due = true;
    else
        kp__meta_refused(m, t);
    return news;
}

/* A partition that was asked for is not there: ask again for as long as a send
 * may wait for it.  Who sleeps on a queue is told that nobody asks any more. */
static void lacks_partition(struct metadata *m, struct topic_meta *t)
{
    if (t->asked_until_ns > m->now_ns) {
        kp__meta_due(m, t);
    } else if (t->asked_until_ns != INT64_MIN) {
        t->asked_until_ns = INT64_MIN;
        kp__topics_announce(m->topics, t->topic);
    }
}

static bool topic_known(struct metadata *m, struct topic_meta *t,
                        int16_t version, const struct metadata_topic *a)
{
    const struct metadata_partition *p = a->partitions.items;
    size_t entries = a->partitions.count;
    int32_t leaderless, count;
    bool news = kp__meta_set_id(m, t, &a->topic_id);

    count = count_taken(m, t, entries);
    news = grow_to(m, t, count) || news;
    if (count > t->living)
        t->living = count < t->count ? count : t->count;
    t->err = KP_OK;
    for (size_t i = 0; i < entries; i++)
        news = take_partition(m, t, version, &p[i]) || news;
    tell_rest(m, t);
    leaderless = count_leaderless(t);
    set_status(m, t, KP_OK, leaderless);
    if (t->announce && m->events.complete != NULL)
        m->events.complete(m->events.arg, t->topic);
    if (t->announce)
        kp__topics_announce(m->topics, t->topic);
    t->announce = false;
    if (leaderless > 0) {
        note_trouble(m, t->topic->name->text, t->topic->name->size, &t->trouble,
                     KP_LEADER_NOT_AVAILABLE, NULL);
        m->full_due = true;
    } else {
        t->trouble.err = KP_OK;
    }
    lacks_partition(m, t);
    return news;
}

/* -- a name that is wanted -- */

static void set_name_status(struct metadata *m, const struct wanted *w,
                            kp_err err, const char *why)
{
    if (why != NULL)
        kp__status_topic(m->status, w->name, w->size, err, KP_OK,
                         "topic %.*s: %s", (int)w->size, w->name, why);
    else
        kp__status_topic(m->status, w->name, w->size, err, KP_OK,
                         "topic %.*s: the brokers say %s: %s", (int)w->size,
                         w->name, kp__error_info(err)->name,
                         kp__error_info(err)->text);
}

/* why: or NULL, what the error says. */
static bool name_failed(struct metadata *m, struct wanted *w, kp_err err,
                        const char *why)
{
    bool news = w->err != err;

    w->err = err;
    note_trouble(m, w->name, w->size, &w->trouble, err, why);
    if (news) {
        kp__topics_refuse(m->topics, w->name, w->size, err);
        set_name_status(m, w, err, why);
    }
    if (kp__error_may_pass(err))
        kp__wanted_due(m, w);
    else
        kp__wanted_refused(m, w);
    return news;
}

static bool name_too_large(struct metadata *m, struct wanted *w, size_t entries,
                           int32_t room)
{
    char why[TOO_MANY_SIZE];

    too_many(why, entries, room);
    return name_failed(m, w, KP_ETOPIC, why);
}

static bool name_confirmed(struct metadata *m, struct wanted *w,
                           int16_t version, const struct metadata_topic *a)
{
    size_t entries = a->partitions.count;
    int32_t room = kp__topics_room(m->topics, NULL);
    struct topic_meta *t;

    if (entries > (size_t)room)
        return name_too_large(m, w, entries, room);
    t = kp__meta_confirm(m, w->name, w->size, (int32_t)entries);
    if (t == NULL)
        return name_failed(
            m, w, kp__topics_is_full(m->topics) ? KP_ETOPIC : KP_ENOMEM, NULL);
    t->status_set = w->err != KP_OK;
    kp__wanted_drop(m, w);
    (void)topic_known(m, t, version, a);
    return true;
}

/* -- the answer -- */

/* Being created, or about to be forgotten: a topic has a partition. */
static kp_err error_of(const struct metadata_topic *a)
{
    if (a->error_code != 0)
        return kp__error_answered(a->error_code);
    return a->partitions.count == 0 ? KP_LEADER_NOT_AVAILABLE : KP_OK;
}

static struct topic_meta *find_topic(const struct metadata *m,
                                     const struct metadata_topic *a)
{
    struct topic *t =
        a->name.data != NULL
            ? kp__topics_find(m->topics, a->name.data, a->name.size)
            : kp__metadata_by_id(m, &a->topic_id);

    return t != NULL ? kp__meta_of(t) : NULL;
}

static bool take_topic(struct metadata *m, int16_t version,
                       const struct metadata_topic *a)
{
    struct topic_meta *t = find_topic(m, a);
    struct wanted *w = NULL;
    kp_err err = error_of(a);

    if (t != NULL)
        return err != KP_OK ? topic_failed(m, t, err)
                            : topic_known(m, t, version, a);
    if (a->name.data != NULL)
        w = kp__wanted_find(m, a->name.data, a->name.size);
    if (w == NULL)
        return false; /* not asked for */
    return err != KP_OK ? name_failed(m, w, err, NULL)
                        : name_confirmed(m, w, version, a);
}

kp_err kp__meta_take(struct metadata *m, int16_t version,
                     const struct metadata_response *answer, bool *news)
{
    const struct metadata_topic *topics = answer->topics.items;
    kp_err err;

    if (answer->error_code != 0)
        return kp__error_answered(answer->error_code);
    m->serial++;
    err = set_brokers(m, answer);
    if (err != KP_OK)
        return err;
    kp__client_set_cluster_id(m->client, answer->cluster_id.data,
                              answer->cluster_id.size);
    *news = false;
    for (size_t i = 0; i < answer->topics.count; i++)
        *news = take_topic(m, version, &topics[i]) || *news;
    return KP_OK;
}
