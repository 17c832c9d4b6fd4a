/* SPDX-License-Identifier: BSD-2-Clause */
/* metadata.c - when to ask for metadata, whom, and the request itself.  I/O
 * thread only.
 *
 * One request at a time.  A name never asked about is asked at once; all else
 * waits for the backoff, which grows with failures and with answers that tell
 * nothing new.  Never asks for all topics.  Kafka: Metadata, ProducerMetadata,
 * NetworkClient.DefaultMetadataUpdater; KIP-526, KIP-899, KIP-1102. */
#include "io_thread/metadata.h"

#include <string.h>

#include "io_thread/backoff.h"
#include "io_thread/client.h"
#include "io_thread/metadata_state.h"
#include "lib/base/mem.h"
#include "lib/base/wait.h"
#include "lib/wire/errors.h"

struct metadata *kp__metadata_create(const struct settings *s,
                                     struct network_client *client,
                                     struct topics *topics,
                                     struct status *status, struct logger *log,
                                     struct metrics *metrics, uint64_t seed,
                                     const struct metadata_events *events,
                                     int64_t now_ns)
{
    struct metadata *m = kp__zalloc(sizeof *m);

    if (m == NULL)
        return NULL;
    m->settings = s;
    m->client = client;
    m->topics = topics;
    m->status = status;
    m->log = log;
    m->metrics = metrics;
    m->events = *events;
    kp__rng_seed(&m->rng, seed);
    kp__map_init(&m->wanted);
    kp__map_init(&m->by_id);
    kp__list_init(&m->wanted_due);
    kp__list_init(&m->wanted_asked);
    kp__list_init(&m->wanted_gone);
    kp__heap_init(&m->refused);
    kp__heap_init(&m->refused_topics);
    kp__list_init(&m->all);
    kp__list_init(&m->listed);
    kp__list_init(&m->topics_due);
    kp__list_init(&m->topics_asked);
    m->now_ns = now_ns;
    m->last_full_ns = now_ns;
    m->next_allowed_ns = now_ns;
    m->trying_since_ns = -1;
    m->full_due =
        true; /* who leads the cluster? and say so if nobody answers */
    return m;
}

static void free_wanted(void *arg, const void *key, size_t size, void *value)
{
    (void)key;
    (void)size;
    kp__wanted_drop(arg, value);
}

void kp__metadata_destroy(struct metadata *m)
{
    struct list_node *link;

    if (m == NULL)
        return;
    kp__map_each(&m->wanted, free_wanted, m);
    while ((link = kp__list_pop_front(&m->all)) != NULL) {
        struct topic_meta *t = KP_CONTAINER(link, struct topic_meta, all);
        t->topic->metadata = NULL;
        kp__free(t->partitions);
        kp__free(t);
    }
    kp__map_fini(&m->wanted);
    kp__map_fini(&m->by_id);
    kp__free(m);
}

void kp__metadata_stale(struct metadata *m, int64_t now_ns)
{
    m->now_ns = now_ns;
    m->full_due = true;
}

void kp__metadata_look_again(struct metadata *m)
{
    m->no_node = false;
}

/* -- how it ended -- */

static int64_t backoff(struct metadata *m, uint32_t times)
{
    return kp__backoff_ns(m->settings->retry_backoff_ns,
                          m->settings->retry_backoff_max_ns,
                          times > 0 ? times - 1 : 0, &m->rng);
}

/* What was asked about and not answered is asked about again. */
static void ask_again(struct metadata *m)
{
    struct list_node *link;

    kp__list_splice_back(&m->wanted_due, &m->wanted_asked);
    while ((link = kp__list_pop_front(&m->topics_asked)) != NULL)
        kp__meta_due(m, KP_CONTAINER(link, struct topic_meta, due));
}

static void rebootstrap(struct metadata *m)
{
    if (m->settings->recovery != RECOVERY_REBOOTSTRAP ||
        m->client->bootstrapping)
        return;
    kp__client_rebootstrap(m->client);
    m->full_due = true;
    m->trying_since_ns = m->now_ns;
}

static void failed(struct metadata *m, kp_err err)
{
    if (m->in_flight_full)
        m->full_due = true;
    m->fresh = false; /* it has had its chance: now the backoff rules */
    ask_again(m);
    if (m->failures < UINT32_MAX)
        m->failures++;
    m->next_allowed_ns = kp__ns_add(m->now_ns, backoff(m, m->failures));
    kp__metrics_record(m->metrics, SENSOR_METADATA_ERRORS, 1, m->now_ns);
    kp__log_limited(m->log, &m->failed_limit, 10 * KP_NS_PER_SEC, KP_LOG_WARN,
                    "metadata", "no metadata: %s",
                    err == KP_EMETADATA ? "the answer names no broker"
                                        : kp__error_info(err)->name);
    if (err == KP_REBOOTSTRAP_REQUIRED)
        rebootstrap(m);
}

static void succeeded(struct metadata *m, bool news)
{
    struct list_node *link;

    /* names that the answer left out are asked about again, topics are known */
    kp__list_splice_back(&m->wanted_due, &m->wanted_asked);
    while ((link = kp__list_pop_front(&m->topics_asked)) != NULL)
        ;
    m->failures = 0;
    m->equivalents = news ? 0 : m->equivalents + 1;
    m->next_allowed_ns = kp__ns_add(m->now_ns, backoff(m, m->equivalents));
    if (m->in_flight_full)
        m->last_full_ns = m->now_ns;
    m->trying_since_ns = -1;
    kp__meta_expire(m);
    kp__metrics_metadata_updated(m->metrics, m->now_ns);
}

static void answered(struct metadata *m, struct request *r, struct reader *body)
{
    struct metadata_response answer;
    struct arena a;
    bool news = false;
    kp_err err = KP_EPROTO;

    kp__arena_init(&a);
    if (kp__schema_decode(r->api->response, body, &a, r->version,
                          kp__api_flexible(r->api, r->version), &answer)) {
        kp__client_throttle(m->client, r, answer.throttle_time_ms);
        err = kp__meta_take(m, r->version, &answer, &news);
    }
    kp__arena_fini(&a);
    if (err != KP_OK)
        failed(m, err);
    else
        succeeded(m, news);
}

static void done(void *arg, struct request *r, enum request_end end,
                 struct reader *body, kp_err err)
{
    struct metadata *m = arg;

    m->now_ns = m->client->now_ns;
    m->in_flight = false;
    if (end == REQUEST_ANSWERED)
        answered(m, r, body);
    else
        failed(m, err);
    kp__request_destroy(r);
    m->events.updated(m->events.arg);
}

/* -- the request -- */

static size_t list_size(const struct list *l)
{
    const struct list_node *link = kp__list_first(l);
    size_t n = 0;

    for (; link != NULL; link = kp__list_next(l, link))
        n++;
    return n;
}

static void name_topics(struct metadata *m, bool full,
                        struct metadata_request_topic *out, size_t *count)
{
    const struct list *l = full ? &m->listed : &m->topics_due;
    const struct list_node *link = kp__list_first(l);

    for (; link != NULL; link = kp__list_next(l, link)) {
        const struct topic_meta *t =
            full ? KP_CONTAINER(link, struct topic_meta, link)
                 : KP_CONTAINER(link, struct topic_meta, due);
        out[*count].name.data = t->topic->name->text;
        out[*count].name.size = t->topic->name->size;
        (*count)++;
    }
    for (link = kp__list_first(&m->wanted_due); link != NULL;
         link = kp__list_next(&m->wanted_due, link)) {
        const struct wanted *w = KP_CONTAINER(link, struct wanted, link);
        out[*count].name.data = w->name;
        out[*count].name.size = w->size;
        (*count)++;
    }
}

/* NULL: no memory. */
static struct metadata_request_topic *collect(struct metadata *m, bool full,
                                              struct arena *a, size_t *count)
{
    size_t room = list_size(full ? &m->listed : &m->topics_due) +
                  list_size(&m->wanted_due);
    struct metadata_request_topic *names =
        kp__arena_alloc_array(a, room + 1, sizeof *names);

    *count = 0;
    if (names != NULL)
        name_topics(m, full, names, count);
    return names;
}

static struct request *make(struct metadata *m, int16_t version, bool full)
{
    const struct api *api = kp__api(API_METADATA);
    struct request *r = kp__request_create(api, version);
    struct metadata_request q;
    struct arena a;

    if (r == NULL)
        return NULL;
    kp__arena_init(&a);
    kp__schema_defaults(api->request, &q);
    q.topics.null = false;
    q.topics.items = collect(m, full, &a, &q.topics.count);
    q.allow_auto_topic_creation = true;
    kp__request_begin(r, m->settings->client_id);
    if (q.topics.items != NULL)
        kp__schema_encode(api->request, &r->frame, version,
                          kp__api_flexible(api, version), &q);
    /* version 0 reads an empty list as "all" */
    if (q.topics.items == NULL || kp__writer_failed(&r->frame) ||
        (version == 0 && q.topics.count == 0)) {
        kp__request_destroy(r);
        r = NULL;
    }
    kp__arena_fini(&a);
    return r;
}

static void send_to(struct metadata *m, struct node *n, bool full)
{
    struct request *r =
        make(m, kp__node_version(n, API_METADATA, INT16_MAX), full);
    struct list_node *link;

    m->in_flight_full = full;
    if (r == NULL) {
        failed(m, KP_ENOMEM);
        return;
    }
    r->timeout_ns = m->settings->request_timeout_ns;
    r->done = done;
    r->arg = m;
    kp__list_splice_back(&m->wanted_asked, &m->wanted_due);
    while (full && (link = kp__list_first(&m->topics_due)) != NULL)
        kp__list_remove(link); /* all are asked about */
    kp__list_splice_back(&m->topics_asked, &m->topics_due);
    if (full)
        m->full_due = false;
    m->fresh = false;
    m->in_flight = true;
    kp__client_send(m->client, n, r, m->now_ns);
}

/* -- when -- */

static bool is_due(const struct metadata *m)
{
    return m->full_due || !kp__list_empty(&m->wanted_due) ||
           !kp__list_empty(&m->topics_due);
}

/* A request that is due may go from now on.  What was never asked about need
 * not wait: but then only that is asked. */
static bool may_ask(const struct metadata *m)
{
    return m->fresh || m->now_ns >= m->next_allowed_ns;
}

static bool recovers(const struct metadata *m)
{
    return m->settings->recovery == RECOVERY_REBOOTSTRAP &&
           !m->client->bootstrapping;
}

static int64_t give_up_ns(const struct metadata *m)
{
    return m->trying_since_ns < 0 || !recovers(m)
               ? KP_NEVER
               : kp__ns_add(m->trying_since_ns,
                            m->settings->rebootstrap_trigger_ns);
}

/* Whom to ask; NULL: nobody now, but somebody is being connected to. */
static struct node *choose(struct metadata *m)
{
    struct node *n = kp__client_least_loaded(m->client, m->now_ns);

    if (n == NULL && recovers(m) && kp__client_all_failed(m->client)) {
        rebootstrap(m);
        n = kp__client_least_loaded(m->client, m->now_ns);
    }
    return n;
}

static void ask(struct metadata *m)
{
    bool full = m->full_due && m->now_ns >= m->next_allowed_ns;
    struct node *n;

    if (!full && kp__list_empty(&m->wanted_due) &&
        kp__list_empty(&m->topics_due)) {
        m->fresh = false; /* what was new is wanted no more */
        return;
    }
    if (m->trying_since_ns < 0)
        m->trying_since_ns = m->now_ns;
    if (m->now_ns >= give_up_ns(m))
        rebootstrap(m);
    n = choose(m);
    m->no_node = n == NULL;
    if (n != NULL)
        send_to(m, n, full);
    else
        kp__wanted_tell_too_old(m, kp__choose_all_too_old(m->client));
}

void kp__metadata_run(struct metadata *m, int64_t now_ns)
{
    m->now_ns = now_ns;
    if (m->client->misrouted) {
        m->client->misrouted = false;
        rebootstrap(m);
    }
    if (m->in_flight)
        return;
    kp__wanted_again(m);
    kp__meta_again(m);
    if (now_ns >=
        kp__ns_add(m->last_full_ns, m->settings->metadata_max_age_ns)) {
        m->full_due = true;
        m->equivalents = 0;
    }
    if (!is_due(m) || !may_ask(m))
        return;
    kp__wanted_expire(m);
    if (is_due(m))
        ask(m);
}

static int64_t earlier(int64_t at_ns, const struct heap_node *h)
{
    return h != NULL && h->at_ns < at_ns ? h->at_ns : at_ns;
}

int64_t kp__metadata_next_timer(const struct metadata *m, int64_t now_ns)
{
    int64_t at_ns =
        kp__ns_add(m->last_full_ns, m->settings->metadata_max_age_ns);

    if (m->in_flight)
        return KP_NEVER; /* its end, one way or another, comes by the client */
    at_ns = earlier(at_ns, kp__heap_first(&m->refused));
    at_ns = earlier(at_ns, kp__heap_first(&m->refused_topics));
    if (!is_due(m))
        return at_ns;
    if (m->no_node) /* its coming up is an event */
        return kp__ns_add(now_ns, LOOK_AGAIN_NS);
    if (m->fresh)
        return now_ns;
    return m->next_allowed_ns > now_ns ? m->next_allowed_ns : now_ns;
}

#ifdef KP_DEBUG
bool kp__metadata_is_asking(const struct metadata *m)
{
    return m->full_due || m->in_flight;
}
#endif
