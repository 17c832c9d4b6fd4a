/* SPDX-License-Identifier: BSD-2-Clause */
/* metadata_test.c - which topics exist, who leads them, when to ask again; on a
 * network in memory.  What the ids (N5 .. N7, K3, K4) ask stands in
 * test/README.md. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "io_thread/metadata_state.h"
#include "lib/base/mem.h"
#include "lib/base/wait.h"
#include "lib/shared/record_accumulator.h"
#include "test/support/client_rig.h"
#include "test/support/main.h"

#define MS KP_NS_PER_MS
#define SEC KP_NS_PER_SEC

/* -- a client with metadata, and the brokers that answer it -- */

struct told {
    char topic[64];
    int32_t partition, leader, epoch;
};

struct world {
    struct rig r;
    struct record_accumulator accumulator;
    struct topics *topics;
    struct metadata *m;
    uint32_t updates;
    struct told told[256];
    size_t told_count;
    /* what the brokers say */
    struct metadata_broker brokers[8];
    size_t broker_count;
    struct metadata_broker *many; /* instead, or NULL */
    size_t many_count;
    struct metadata_topic says[8];
    struct metadata_partition parts[8][16];
    size_t says_count;
    int16_t version; /* of Metadata; 13 */
    int16_t error;
    char cluster[16];
    /* what was asked */
    uint32_t asked;
    struct metadata_request last;
    char last_names[16][64];
    size_t last_count;
    int64_t asked_ns[512];
    bool mute;            /* requests are taken and not answered */
    long calls, fail_nth; /* of the client's allocations from now; 0: none */
    int64_t longest_ns;   /* of a turn, in processor time */
    /* the topic that was completed last */
    int completed, leaders_then;
    uint32_t version_then;
};

/* The allocator of the client fails, that of the brokers does not. */
static void memory_ends(struct world *w)
{
#ifdef KP_FAILMALLOC
    w->calls = kp__mem_calls();
    if (w->fail_nth > 0)
        kp__mem_fail_at(w->fail_nth);
#else
    (void)w;
#endif
}

static void memory_is_back(struct world *w)
{
#ifdef KP_FAILMALLOC
    long used = kp__mem_calls() - w->calls;

    kp__mem_fail_at(-1);
    w->fail_nth = w->fail_nth > used ? w->fail_nth - used : 0;
#else
    (void)w;
#endif
}

static void on_leader(void *arg, struct partition_queue *q, struct node *leader,
                      int32_t epoch)
{
    struct world *w = arg;
    struct told *t = &w->told[w->told_count++ % 256];

    (void)snprintf(t->topic, sizeof t->topic, "%s", q->topic->name->text);
    t->partition = q->partition;
    t->leader = leader != NULL ? kp__node_id(leader) : -1;
    t->epoch = epoch;
}

static void on_updated(void *arg)
{
    ((struct world *)arg)->updates++;
}

static const int32_t three[] = {1, 2, 3};

/* Told before anybody is woken, when all leaders are known. */
static void on_complete(void *arg, struct topic *t)
{
    struct world *w = arg;
    const struct topic_view *v = kp__topic_view(t);

    w->completed++;
    w->version_then = atomic_load(&t->version);
    for (int32_t i = 0; i < v->count; i++)
        w->leaders_then += atomic_load(&v->queues[i]->leader_id) > 0;
}

static void add_broker(struct world *w, int32_t id, const char *host)
{
    w->brokers[w->broker_count++] = (struct metadata_broker){
        .node_id = id, .host = {host, strlen(host)}, .port = 9092};
    fake_net_listen(w->r.net, host, 9092, FAKE_ACCEPTS);
}

/* A topic with `count` partitions led by brokers 1, 2, .. in turn, epoch 5. */
static struct metadata_topic *say(struct world *w, const char *name,
                                  int32_t count)
{
    struct metadata_topic *t = &w->says[w->says_count];
    struct metadata_partition *p = w->parts[w->says_count++];

    memset(t, 0, sizeof *t);
    t->name = (struct text){name, strlen(name)};
    t->topic_id.b[0] = (uint8_t)w->says_count;
    t->partitions = (struct array){p, (size_t)count, false};
    for (int32_t i = 0; i < count; i++) {
        memset(&p[i], 0, sizeof p[i]);
        p[i].partition_index = i;
        p[i].leader_id = 1 + i % (int32_t)w->broker_count;
        p[i].leader_epoch = 5;
        p[i].replica_nodes = (struct array){(void *)(uintptr_t)three, 3, false};
        p[i].isr_nodes = (struct array){(void *)(uintptr_t)three, 2, false};
    }
    return t;
}

static struct metadata_topic *say_error(struct world *w, const char *name,
                                        int16_t error)
{
    struct metadata_topic *t = say(w, name, 0);

    t->error_code = error;
    return t;
}

static void create(struct world *w)
{
    struct metadata_events events = {on_leader, on_updated, w, on_complete};

    w->accumulator.settings = &w->r.settings;
    w->topics = kp__topics_create(&w->accumulator);
    w->m = kp__metadata_create(&w->r.settings, w->r.client, w->topics,
                               &w->r.status, w->r.log, w->r.metrics, 7, &events,
                               fake_net_now_ns(w->r.net));
    ck_assert_ptr_nonnull(w->m);
    w->version = 13;
    (void)snprintf(w->cluster, sizeof w->cluster, "cluster");
}

/* One bootstrap address, which is broker 1's; it and others at 10.0.0.x. */
static void world_init(struct world *w, size_t brokers)
{
    static const char *const hosts[] = {"10.0.0.1", "10.0.0.2", "10.0.0.3"};

    memset(w, 0, sizeof *w);
    rig_init(&w->r, "10.0.0.1:9092");
    for (size_t i = 0; i < brokers; i++)
        add_broker(w, (int32_t)i + 1, hosts[i]);
    create(w);
}

static void world_fini(struct world *w)
{
    rig_fini(&w->r);
    kp__metadata_destroy(w->m);
    kp__topics_destroy(w->topics);
}

static void note_asked(struct world *w, const struct fake_request *q)
{
    struct arena a;
    const struct metadata_request_topic *t;

    kp__arena_init(&a);
    ck_assert(fake_request_decode(q, &a, &w->last));
    w->asked_ns[w->asked++ % 512] = fake_net_now_ns(w->r.net);
    ck_assert(!w->last.topics.null); /* never all topics */
    ck_assert(w->last.allow_auto_topic_creation);
    ck_assert(!w->last.include_topic_authorized_operations);
    t = w->last.topics.items;
    w->last_count = w->last.topics.count;
    for (size_t i = 0; i < w->last_count && i < 16; i++)
        (void)snprintf(w->last_names[i], sizeof w->last_names[i], "%.*s",
                       (int)t[i].name.size, t[i].name.data);
    kp__arena_fini(&a);
}

static bool was_asked(const struct world *w, const char *name)
{
    for (size_t i = 0; i < w->last_count && i < 16; i++)
        if (strcmp(w->last_names[i], name) == 0)
            return true;
    return false;
}

/* Only what was asked about, as a broker does; unless it says it all. */
static void answer(struct world *w, struct fake_conn *c,
                   const struct fake_request *q)
{
    struct metadata_response a;
    struct metadata_topic chosen[8];
    size_t n = 0;

    kp__schema_defaults(kp__api(API_METADATA)->response, &a);
    for (size_t i = 0; i < w->says_count; i++)
        if (w->says[i].name.data == NULL || was_asked(w, w->says[i].name.data))
            chosen[n++] = w->says[i];
    a.brokers = (struct array){w->brokers, w->broker_count, false};
    if (w->many != NULL)
        a.brokers = (struct array){w->many, w->many_count, false};
    a.topics = (struct array){chosen, n, false};
    a.cluster_id = (struct text){w->cluster, strlen(w->cluster)};
    a.error_code = w->error;
    fake_conn_answer(c, q, &a);
}

static bool serve_one(struct world *w, struct fake_conn *c)
{
    struct fake_request q;

    if (!fake_conn_request(c, &q))
        return false;
    if (q.header.api_key == API_API_VERSIONS) {
        fake_conn_answer_versions(c, &q, API_METADATA, 0, w->version);
        return true;
    }
    ck_assert_int_eq(q.header.api_key, API_METADATA);
    ck_assert_int_eq(q.header.version, w->version);
    note_asked(w, &q);
    if (!w->mute)
        answer(w, c, &q);
    return true;
}

static void serve(struct world *w)
{
    static const char *const hosts[] = {"10.0.0.1", "10.0.0.2", "10.0.0.3",
                                        "10.0.0.4"};

    for (size_t i = 0; i < 4; i++) {
        struct fake_conn *c = fake_net_conn(w->r.net, hosts[i], 9092);
        while (c != NULL && serve_one(w, c))
            continue;
    }
}

static int64_t processor_ns(void)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (int64_t)t.tv_sec * SEC + t.tv_nsec;
}

static int64_t turn(struct world *w)
{
    struct poll_event events[64];
    int64_t now_ns = fake_net_now_ns(w->r.net), a, b, began_ns;
    int n = w->r.env.poller->wait(w->r.poller, now_ns, now_ns, events, 64);

    began_ns = processor_ns();
    memory_ends(w);
    (void)kp__client_read(w->r.client, events, (size_t)n, now_ns);
    kp__client_timers(w->r.client, now_ns);
    kp__metadata_run(w->m, now_ns);
    (void)kp__client_write(w->r.client, now_ns);
    memory_is_back(w);
    if (processor_ns() - began_ns > w->longest_ns)
        w->longest_ns = processor_ns() - began_ns;
    serve(w);
    a = kp__client_next_timer(w->r.client);
    b = kp__metadata_next_timer(w->m, now_ns);
    return a < b ? a : b;
}

/* Go on for so long, from timer to timer. */
static void run(struct world *w, int64_t ns)
{
    int64_t end_ns = fake_net_now_ns(w->r.net) + ns;

    for (;;) {
        int64_t next_ns = 0, now_ns = fake_net_now_ns(w->r.net);
        for (int i = 0; i < 6; i++)
            next_ns = turn(w);
        if (next_ns <= now_ns)
            next_ns = now_ns + 1;
        if (next_ns >= end_ns)
            break;
        fake_net_advance_ns(w->r.net, next_ns - now_ns);
    }
    fake_net_advance_ns(w->r.net, end_ns - fake_net_now_ns(w->r.net));
    for (int i = 0; i < 6; i++)
        (void)turn(w);
}

static void settle(struct world *w)
{
    run(w, MS);
}

/* As a sender does: stands in the table, and tells the I/O thread. */
static struct topic_wait *want(struct world *w, const char *name)
{
    struct topic_wait *t = NULL;
    bool post = false;

    ck_assert_int_eq(kp__topics_want(w->topics, name, strlen(name),
                                     fake_net_now_ns(w->r.net), &t, &post),
                     KP_OK);
    if (post)
        kp__metadata_want(w->m, name, strlen(name), fake_net_now_ns(w->r.net));
    return t;
}

static void unwant(struct world *w, struct topic_wait *t)
{
    kp__topics_wait_unref(w->topics, t);
}

static struct topic *find(struct world *w, const char *name)
{
    return kp__topics_find(w->topics, name, strlen(name));
}

static struct topic *get(struct world *w, const char *name)
{
    struct topic_wait *t = want(w, name);

    settle(w);
    unwant(w, t);
    ck_assert_ptr_nonnull(find(w, name));
    return find(w, name);
}

/* With a connection to a broker, which the bootstrap address is not. */
static void connected(struct world *w)
{
    settle(w);
    kp__metadata_stale(w->m, fake_net_now_ns(w->r.net));
    run(w, SEC);
    ck_assert(kp__client_is_ready(kp__client_find(w->r.client, 1)));
}

static struct partition_queue *queue(struct world *w, const char *name,
                                     int32_t i)
{
    const struct topic_view *v = kp__topic_view(find(w, name));

    ck_assert_int_lt(i, v->count);
    return v->queues[i];
}

static const struct told *last_told(const struct world *w, const char *topic,
                                    int32_t partition)
{
    for (size_t i = w->told_count; i > 0; i--) {
        const struct told *t = &w->told[(i - 1) % 256];
        if (strcmp(t->topic, topic) == 0 && t->partition == partition)
            return t;
    }
    return NULL;
}

#define ck_leader(w, topic, partition, id, ep) \
    do { \
        const struct told *told_ = last_told((w), (topic), (partition)); \
        ck_assert_ptr_nonnull(told_); \
        ck_assert_int_eq(told_->leader, (id)); \
        ck_assert_int_eq(told_->epoch, (ep)); \
    } while (0)

/* -- getting to know -- */

START_TEST(first_of_all_it_asks_who_is_there)
{
    struct world w;

    world_init(&w, 3);
    settle(&w);
    ck_assert_uint_eq(w.asked, 1);
    ck_assert_uint_eq(w.last_count, 0);
    ck_assert_ptr_nonnull(kp__client_find(w.r.client, 1));
    ck_assert_ptr_nonnull(kp__client_find(w.r.client, 3));
    ck_assert_str_eq(w.r.client->cluster_id, "cluster");
    /* and then there is nothing to do until all of it is old */
    run(&w, 299 * SEC);
    ck_assert_uint_eq(w.asked, 1);
    run(&w, 2 * SEC);
    ck_assert_uint_eq(w.asked, 2);
    world_fini(&w);
}
END_TEST

/* K3 */
START_TEST(k3_an_unknown_topic_is_asked_about_once_and_at_once)
{
    struct world w;
    struct topic_wait *t;
    uint32_t before;

    world_init(&w, 3);
    settle(&w);
    (void)say(&w, "orders", 4);
    before = w.asked;
    t = want(&w, "orders");
    for (int i = 0; i < 6; i++)
        (void)turn(&w); /* no time passes: not even the backoff */
    ck_assert_uint_eq(w.asked, before + 1);
    ck_assert_uint_eq(w.last_count, 1);
    ck_assert(was_asked(&w, "orders"));
    ck_assert_ptr_nonnull(find(&w, "orders"));
    ck_assert_int_eq(w.completed, 1);
    ck_assert_int_eq(w.leaders_then, 4);
    ck_assert_uint_gt(atomic_load(&find(&w, "orders")->version),
                      w.version_then);
    ck_assert_int_eq(kp__topic_view(find(&w, "orders"))->count, 4);
    ck_leader(&w, "orders", 0, 1, 5);
    ck_leader(&w, "orders", 1, 2, 5);
    ck_leader(&w, "orders", 2, 3, 5);
    ck_leader(&w, "orders", 3, 1, 5);
    ck_assert_int_eq(atomic_load(&queue(&w, "orders", 1)->leader_id), 2);
    ck_assert_int_eq(atomic_load(&queue(&w, "orders", 1)->leader_epoch), 5);
    ck_assert_int_eq(atomic_load(&queue(&w, "orders", 1)->replica_count), 3);
    ck_assert_int_eq(atomic_load(&queue(&w, "orders", 1)->isr_count), 2);
    run(&w, 10 * SEC);
    ck_assert_uint_eq(w.asked, before + 1);
    unwant(&w, t);
    world_fini(&w);
}
END_TEST

START_TEST(new_names_while_one_is_asked_about_are_not_lost)
{
    struct world w;
    struct topic_wait *a, *b;

    world_init(&w, 1);
    (void)say(&w, "a", 1);
    (void)say(&w, "b", 1);
    connected(&w);
    w.mute = true;
    a = want(&w, "a");
    (void)turn(&w);
    b = want(&w, "b");
    (void)turn(&w);
    ck_assert(was_asked(&w, "a"));
    ck_assert_uint_eq(w.last_count, 1); /* one request at a time */
    w.mute = false;
    run(&w, 31 * SEC); /* the first is never answered: its time passes */
    ck_assert_ptr_nonnull(find(&w, "a"));
    ck_assert_ptr_nonnull(find(&w, "b"));
    unwant(&w, a);
    unwant(&w, b);
    world_fini(&w);
}
END_TEST

/* K4 */
START_TEST(k4_a_missing_topic_is_asked_about_with_backoff_while_waited_for)
{
    static const int16_t errors[] = {KP_UNKNOWN_TOPIC_OR_PARTITION,
                                     KP_LEADER_NOT_AVAILABLE};
    struct world w;
    struct topic_wait *t;
    uint32_t before;
    int64_t since_ns;
    kp_error e;

    world_init(&w, 1);
    settle(&w);
    (void)say_error(&w, "nope", errors[_i]);
    before = w.asked;
    t = want(&w, "nope");
    run(&w, 60 * SEC);
    ck_assert_int_eq(kp__topics_wait_state(w.topics, t, &since_ns), errors[_i]);
    ck_assert_uint_ge(w.asked - before, 40);
    ck_assert_uint_le(w.asked - before, 90);
    for (uint32_t i = before + 1; i < w.asked; i++) {
        int64_t gap_ns = w.asked_ns[i] - w.asked_ns[i - 1];
        ck_assert_int_ge(gap_ns, i > before + 6 ? 790 * MS : 80 * MS);
        ck_assert_int_le(gap_ns, 1001 * MS);
    }
    ck_assert_int_eq(kp__status_get(&w.r.status, "nope", 4, &e), errors[_i]);
    ck_assert_ptr_nonnull(strstr(e.text, "nope"));
    ck_assert_ptr_nonnull(strstr(e.text, kp_err_name(errors[_i])));
    /* then somebody makes it */
    w.says_count = 0;
    (void)say(&w, "nope", 2);
    run(&w, 1100 * MS);
    ck_assert_ptr_nonnull(find(&w, "nope"));
    ck_assert_int_eq(kp__status_get(&w.r.status, "nope", 4, &e), KP_OK);
    unwant(&w, t);
    world_fini(&w);
}
END_TEST

/* Lines about topics have one limit; each topic is named all the same. */
START_TEST(of_several_topics_in_trouble_each_is_named)
{
    static const char *const names[] = {"one", "two", "three"};
    struct topic_wait *t[3];
    struct world w;

    world_init(&w, 1);
    settle(&w);
    for (int i = 0; i < 3; i++) {
        (void)say_error(&w, names[i], KP_UNKNOWN_TOPIC_OR_PARTITION);
        t[i] = want(&w, names[i]);
    }
    run(&w, 65 * SEC);
    ck_assert(rig_logged(&w.r, "topic one: UNKNOWN_TOPIC_OR_PARTITION"));
    ck_assert(rig_logged(&w.r, "topic two: UNKNOWN_TOPIC_OR_PARTITION"));
    ck_assert(rig_logged(&w.r, "topic three: UNKNOWN_TOPIC_OR_PARTITION"));
    for (int i = 0; i < 3; i++)
        unwant(&w, t[i]);
    world_fini(&w);
}
END_TEST

START_TEST(a_name_nobody_waits_for_is_forgotten)
{
    struct world w;
    uint32_t before;
    kp_error e;

    world_init(&w, 1);
    settle(&w);
    (void)say_error(&w, "nope", KP_UNKNOWN_TOPIC_OR_PARTITION);
    unwant(&w, want(&w, "nope"));
    run(&w, 70 * SEC); /* max.block.ms, and some */
    before = w.asked;
    run(&w, 100 * SEC);
    ck_assert_uint_eq(w.asked, before);
    ck_assert_uint_eq(w.m->wanted.count, 0);
    ck_assert_int_eq(kp__status_get(&w.r.status, "nope", 4, &e), KP_OK);
    world_fini(&w);
}
END_TEST

START_TEST(a_refused_name_is_remembered_and_asked_about_seldom)
{
    static const int16_t errors[] = {KP_INVALID_TOPIC_EXCEPTION,
                                     KP_TOPIC_AUTHORIZATION_FAILED};
    struct world w;
    struct topic_wait *t;
    uint32_t before;
    int64_t since_ns;

    world_init(&w, 1);
    settle(&w);
    (void)say_error(&w, "secret", errors[_i]);
    before = w.asked;
    t = want(&w, "secret");
    settle(&w);
    ck_assert_int_eq(kp__topics_wait_state(w.topics, t, &since_ns), errors[_i]);
    run(&w, 35 * SEC);
    ck_assert_uint_eq(w.asked - before, 4); /* at once, then every 10 s */
    w.says_count = 0;
    (void)say(&w, "secret", 1);
    run(&w, 10 * SEC);
    ck_assert_ptr_nonnull(find(&w, "secret"));
    unwant(&w, t);
    world_fini(&w);
}
END_TEST

/* -- keeping up -- */

START_TEST(stale_asks_about_all_in_use_after_the_backoff)
{
    struct world w;
    uint32_t before;

    world_init(&w, 3);
    (void)say(&w, "a", 1);
    (void)say(&w, "b", 1);
    (void)get(&w, "a");
    (void)get(&w, "b");
    before = w.asked;
    kp__metadata_stale(w.m, fake_net_now_ns(w.r.net));
    (void)turn(&w);
    ck_assert_uint_eq(w.asked, before);
    run(&w, 130 * MS);
    ck_assert_uint_eq(w.asked, before + 1);
    ck_assert_uint_eq(w.last_count, 2);
    run(&w, 10 * SEC);
    ck_assert_uint_eq(w.asked, before + 1);
    world_fini(&w);
}
END_TEST

START_TEST(stale_while_asking_asks_once_more)
{
    struct world w;
    uint32_t before;

    world_init(&w, 1);
    (void)say(&w, "a", 1);
    (void)get(&w, "a");
    run(&w, SEC);
    kp__metadata_stale(w.m, fake_net_now_ns(w.r.net));
    w.mute = true;
    (void)turn(&w);
    before = w.asked;
    kp__metadata_stale(w.m, fake_net_now_ns(w.r.net)); /* since it left */
    w.mute = false;
    {
        struct fake_request q = {0};
        struct fake_conn *c = fake_net_conn(w.r.net, "10.0.0.1", 9092);
        q.header.api_key = API_METADATA;
        q.header.version = 13;
        q.header.correlation_id = w.r.client->next_correlation - 1;
        answer(&w, c, &q);
    }
    run(&w, SEC);
    ck_assert_uint_eq(w.asked, before + 1);
    world_fini(&w);
}
END_TEST

START_TEST(answers_without_news_slow_the_asking_down)
{
    struct world w;
    uint32_t first;

    world_init(&w, 1);
    (void)say(&w, "a", 1);
    (void)get(&w, "a");
    first = w.asked;
    for (int i = 0; i < 1000; i++) { /* stale all the time */
        kp__metadata_stale(w.m, fake_net_now_ns(w.r.net));
        run(&w, 10 * MS);
    }
    ck_assert_uint_ge(w.asked - first, 10);
    ck_assert_uint_le(w.asked - first, 20);
    world_fini(&w);
}
END_TEST

/* N5 */
START_TEST(n5_an_older_epoch_is_ignored_unless_the_topic_is_new)
{
    struct world w;

    world_init(&w, 3);
    (void)say(&w, "a", 2);
    (void)get(&w, "a");
    ck_leader(&w, "a", 0, 1, 5);
    w.parts[0][0].leader_id = 2;
    w.parts[0][0].leader_epoch = 4; /* a broker that is behind */
    w.parts[0][1].leader_id = 3;
    w.parts[0][1].leader_epoch = 6;
    kp__metadata_stale(w.m, fake_net_now_ns(w.r.net));
    run(&w, SEC);
    ck_leader(&w, "a", 0, 1, 5);
    ck_leader(&w, "a", 1, 3, 6);
    /* deleted and made again: its epochs begin anew */
    w.says[0].topic_id.b[0] = 99;
    w.parts[0][0].leader_epoch = 0;
    w.parts[0][1].leader_epoch = 0;
    kp__metadata_stale(w.m, fake_net_now_ns(w.r.net));
    run(&w, SEC);
    ck_leader(&w, "a", 0, 2, 0);
    ck_leader(&w, "a", 1, 3, 0);
    ck_assert(rig_logged(&w.r, "deleted and created anew"));
    ck_assert_int_eq(kp__metadata_topic_id(find(&w, "a")).b[0], 99);
    {
        struct uuid old = {{1}}, now = {{99}}, other = {{7}};
        ck_assert_ptr_eq(kp__metadata_by_id(w.m, &now), find(&w, "a"));
        /* answers about the old one may still come */
        ck_assert_ptr_eq(kp__metadata_by_id(w.m, &old), find(&w, "a"));
        ck_assert_ptr_null(kp__metadata_by_id(w.m, &other));
    }
    world_fini(&w);
}
END_TEST

/* Three brokers, and a topic "a" of one partition, which 1 leads in epoch 5. */
static struct partition_queue *begin_with_a(struct world *w)
{
    world_init(w, 3);
    (void)say(w, "a", 1);
    (void)get(w, "a");
    return queue(w, "a", 0);
}

static void ask_for_two_seconds(struct world *w)
{
    kp__metadata_stale(w->m, fake_net_now_ns(w->r.net));
    run(w, 2 * SEC);
}

/* One answer more. */
static void ask_once(struct world *w)
{
    uint32_t before = w->asked;

    ask_for_two_seconds(w);
    ck_assert_uint_eq(w->asked, before + 1);
}

static void say_leader(struct world *w, int32_t id, int32_t epoch)
{
    w->parts[0][0].leader_id = id;
    w->parts[0][0].leader_epoch = epoch;
}

static void refuse_connects(struct world *w, const char *host, int32_t id)
{
    struct node *n = kp__client_find(w->r.client, id);

    fake_net_listen(w->r.net, host, 9092, FAKE_REFUSES);
    kp__client_connect(w->r.client, n, fake_net_now_ns(w->r.net));
    run(w, SEC);
    ck_assert(kp__client_is_unreachable(n));
}

/* C16: a lie, of a hint or of metadata, leads to a broker that says no.  What all
 * others say counts again after five seconds. */
START_TEST(an_epoch_that_its_leader_denies_is_given_up)
{
    struct world w;
    struct partition_queue *q = begin_with_a(&w);

    if (_i == 0) {
        kp__metadata_hint(w.m, q, 2, INT32_MAX, NULL);
    } else {
        say_leader(&w, 2, INT32_MAX);
        ask_once(&w);
    }
    ck_leader(&w, "a", 0, 2, INT32_MAX);
    kp__metadata_denied(q, kp__client_find(w.r.client, 2));
    say_leader(&w, 1, 5);
    for (int i = 0; i < 3; i++)
        ask_once(&w);
    ck_leader(&w, "a", 0, 2, INT32_MAX);
    ck_assert(!rig_logged(&w.r, "given up"));
    ask_once(&w);
    ck_leader(&w, "a", 0, 1, 5);
    ck_assert(rig_logged(&w.r, "topic a: leader epoch 2147483647 of partition 0, "
                               "which no leader bears out, is given up for 5"));
    /* what is newer than that is news again */
    kp__metadata_hint(w.m, q, 3, 6, NULL);
    ck_leader(&w, "a", 0, 3, 6);
    world_fini(&w);
}
END_TEST

/* One that nobody leads, or a broker that is not there: only after half a minute,
 * as the broker that is asked may be one that hears no other. */
START_TEST(an_epoch_without_a_leader_is_given_up_later)
{
    struct world w;
    int32_t lied = _i == 0 ? -1 : 2;

    (void)begin_with_a(&w);
    if (lied == 2)
        refuse_connects(&w, "10.0.0.2", lied);
    say_leader(&w, lied, INT32_MAX);
    ask_for_two_seconds(&w);
    say_leader(&w, 1, 5);
    for (int i = 0; i < 14; i++)
        ask_for_two_seconds(&w);
    ck_leader(&w, "a", 0, lied, INT32_MAX);
    for (int i = 0; i < 2; i++)
        ask_for_two_seconds(&w);
    ck_leader(&w, "a", 0, 1, 5);
    world_fini(&w);
}
END_TEST

/* However often brokers that are behind say so: the leader leads, or others
 * bear it out in between, or it was another that denied it. */
START_TEST(an_epoch_that_is_borne_out_stays)
{
    struct world w;
    struct partition_queue *q = begin_with_a(&w);

    say_leader(&w, 2, 4);
    for (int i = 0; i < 10; i++)
        ask_once(&w);
    kp__metadata_denied(q, kp__client_find(w.r.client, 3));
    for (int i = 0; i < 10; i++)
        ask_once(&w);
    kp__metadata_denied(q, kp__client_find(w.r.client, 1));
    for (int i = 0; i < 10; i++) {
        say_leader(&w, i % 3 == 2 ? 1 : 2, i % 3 == 2 ? 5 : 4);
        ask_once(&w);
    }
    ck_leader(&w, "a", 0, 1, 5);
    /* a new leader has to be denied itself */
    kp__metadata_denied(q, kp__client_find(w.r.client, 1));
    kp__metadata_hint(w.m, q, 3, 6, NULL);
    for (int i = 0; i < 10; i++)
        ask_once(&w);
    ck_leader(&w, "a", 0, 3, 6);
    world_fini(&w);
}
END_TEST

/* Made again with fewer partitions: those that are no more have no leader, which
 * is nobody's fault and not asked about; what grows again is found again. */
START_TEST(a_topic_made_anew_may_be_smaller)
{
    struct world w;
    uint32_t before;
    kp_error e;

    world_init(&w, 3);
    (void)say(&w, "a", 4);
    (void)get(&w, "a");
    w.says_count = 0;
    say(&w, "a", 2)->topic_id.b[0] = 99;
    kp__metadata_stale(w.m, fake_net_now_ns(w.r.net));
    run(&w, SEC);
    ck_leader(&w, "a", 0, 1, 5);
    ck_leader(&w, "a", 1, 2, 5);
    ck_leader(&w, "a", 2, -1, -1);
    ck_leader(&w, "a", 3, -1, -1);
    ck_assert_int_eq(kp__topic_view(find(&w, "a"))->count, 4);
    ck_assert_int_eq(kp__status_get(&w.r.status, "a", 1, &e), KP_OK);
    before = w.asked;
    run(&w, 20 * SEC);
    ck_assert_uint_eq(w.asked, before);
    w.says_count = 0;
    say(&w, "a", 3)->topic_id.b[0] = 99;
    kp__metadata_stale(w.m, fake_net_now_ns(w.r.net));
    run(&w, SEC);
    ck_leader(&w, "a", 2, 3, 5);
    ck_leader(&w, "a", 3, -1, -1);
    world_fini(&w);
}
END_TEST

START_TEST(epochs_of_old_brokers_are_not_trusted)
{
    struct world w;

    world_init(&w, 3);
    w.version = 8;
    (void)say(&w, "a", 1);
    (void)get(&w, "a");
    ck_leader(&w, "a", 0, 1, -1);
    w.parts[0][0].leader_id = 2;
    w.parts[0][0].leader_epoch = 1;
    kp__metadata_stale(w.m, fake_net_now_ns(w.r.net));
    run(&w, SEC);
    ck_leader(&w, "a", 0, 2, -1);
    world_fini(&w);
}
END_TEST

START_TEST(every_version_tells_topics_and_leaders)
{
    struct world w;

    world_init(&w, 3);
    w.version = (int16_t)_i;
    (void)say(&w, "a", 3);
    (void)get(&w, "a");
    ck_assert_int_eq(kp__topic_view(find(&w, "a"))->count, 3);
    ck_leader(&w, "a", 2, 3, _i >= 9 ? 5 : -1);
    ck_assert_int_eq(
        kp__uuid_is_zero((struct uuid[]){kp__metadata_topic_id(find(&w, "a"))}),
        _i < 10);
    world_fini(&w);
}
END_TEST

START_TEST(partitions_that_are_added_are_published)
{
    struct world w;
    struct topic *t;
    uint32_t version;

    world_init(&w, 3);
    (void)say(&w, "a", 2);
    t = get(&w, "a");
    version = atomic_load(&t->version);
    kp__metadata_stale(w.m, fake_net_now_ns(w.r.net));
    run(&w, SEC);
    ck_assert_uint_eq(atomic_load(&t->version), version); /* nothing new */
    w.says_count = 0;
    (void)say(&w, "a", 5);
    kp__metadata_stale(w.m, fake_net_now_ns(w.r.net));
    run(&w, SEC);
    ck_assert_int_eq(kp__topic_view(t)->count, 5);
    ck_assert_uint_gt(atomic_load(&t->version), version);
    ck_leader(&w, "a", 4, 2, 5);
    /* fewer (another broker's older view) take nothing away */
    w.says_count = 0;
    (void)say(&w, "a", 1);
    kp__metadata_stale(w.m, fake_net_now_ns(w.r.net));
    run(&w, SEC);
    ck_assert_int_eq(kp__topic_view(t)->count, 5);
    ck_leader(&w, "a", 4, 2, 5);
    world_fini(&w);
}
END_TEST

/* A sender that asks for a topic that is there lacks one of its partitions. */
START_TEST(a_partition_that_is_waited_for_is_asked_about_until_it_comes)
{
    struct world w;
    struct topic *t;
    uint32_t before;

    world_init(&w, 1);
    (void)say(&w, "a", 2);
    (void)say(&w, "b", 2);
    t = get(&w, "a");
    (void)get(&w, "b");
    run(&w, SEC);
    before = w.asked;
    kp__metadata_want(w.m, "a", 1, fake_net_now_ns(w.r.net));
    run(&w, 2 * SEC);
    ck_assert_uint_ge(w.asked - before, 3);
    ck_assert_uint_eq(w.last_count, 1); /* only the one */
    w.parts[0][2] = w.parts[0][1];
    w.parts[0][2].partition_index = 2;
    w.says[0].partitions.count = 3;
    run(&w, 1100 * MS);
    ck_assert_int_eq(kp__topic_view(t)->count, 3);
    before = w.asked;
    run(&w, 10 * SEC);
    ck_assert_uint_eq(w.asked, before);
    world_fini(&w);
}
END_TEST

/* S8: a topic that nobody used for metadata.max.idle.ms is not asked about any
 * more, until somebody sends to it again. */
START_TEST(idle_topics_leave_and_come_back)
{
    struct world w;
    struct topic *a;
    uint32_t before;

    world_init(&w, 1);
    w.r.settings.metadata_max_age_ns = 60 * SEC;
    (void)say(&w, "a", 1);
    (void)say(&w, "b", 1);
    a = get(&w, "a");
    (void)get(&w, "b");
    for (int i = 0; i < 50; i++) {
        run(&w, 10 * SEC);
        kp__metadata_used(w.m, find(&w, "b"), fake_net_now_ns(w.r.net));
    }
    ck_assert(was_asked(&w, "b"));
    ck_assert(!was_asked(&w, "a"));
    before = w.asked;
    w.parts[0][0].leader_epoch = 9;
    kp__metadata_used(w.m, a, fake_net_now_ns(w.r.net));
    settle(&w);
    ck_assert_uint_eq(w.asked, before + 1); /* at once, and only it */
    ck_assert_uint_eq(w.last_count, 1);
    ck_assert(was_asked(&w, "a"));
    ck_leader(&w, "a", 0, 1, 9);
    run(&w, 60 * SEC);
    ck_assert(was_asked(&w, "a"));
    ck_assert(was_asked(&w, "b"));
    world_fini(&w);
}
END_TEST

START_TEST(a_partition_without_a_leader_is_asked_about_again)
{
    struct world w;
    uint32_t before;
    kp_error e;

    world_init(&w, 2);
    (void)say(&w, "a", 2);
    (void)get(&w, "a");
    w.parts[0][1].leader_id = -1;
    w.parts[0][1].error_code = KP_LEADER_NOT_AVAILABLE;
    kp__metadata_stale(w.m, fake_net_now_ns(w.r.net));
    run(&w, SEC);
    ck_leader(&w, "a", 0, 1, 5);
    ck_leader(&w, "a", 1, -1, 5);
    ck_assert_int_eq(atomic_load(&queue(&w, "a", 1)->leader_id), -1);
    ck_assert_int_eq(kp__status_get(&w.r.status, "a", 1, &e),
                     KP_LEADER_NOT_AVAILABLE);
    ck_assert_ptr_nonnull(strstr(e.text, "1 of 2 partitions"));
    before = w.asked;
    run(&w, 5 * SEC);
    ck_assert_uint_ge(w.asked, before + 4);
    w.parts[0][1].leader_id = 1;
    w.parts[0][1].leader_epoch = 6;
    run(&w, 2 * SEC);
    ck_leader(&w, "a", 1, 1, 6);
    ck_assert_int_eq(kp__status_get(&w.r.status, "a", 1, &e), KP_OK);
    before = w.asked;
    run(&w, 10 * SEC);
    ck_assert_uint_eq(w.asked, before);
    world_fini(&w);
}
END_TEST

START_TEST(a_topic_in_use_that_is_refused_or_gone)
{
    struct world w;
    struct topic *t;
    uint32_t before;

    world_init(&w, 1);
    (void)say(&w, "a", 1);
    t = get(&w, "a");
    /* gone: its records keep their leader, and it may come back */
    w.says_count = 0;
    (void)say_error(&w, "a", KP_UNKNOWN_TOPIC_OR_PARTITION);
    kp__metadata_stale(w.m, fake_net_now_ns(w.r.net));
    run(&w, 5 * SEC);
    ck_leader(&w, "a", 0, 1, 5);
    before = w.asked;
    run(&w, 5 * SEC);
    ck_assert_uint_ge(w.asked, before + 4);
    /* refused: at once, with the broker's code */
    w.says[0].error_code = KP_TOPIC_AUTHORIZATION_FAILED;
    run(&w, 2 * SEC);
    ck_assert_int_eq(atomic_load(&t->refused), KP_TOPIC_AUTHORIZATION_FAILED);
    before = w.asked;
    run(&w, 30 * SEC);
    ck_assert_uint_ge(w.asked, before + 2);
    ck_assert_uint_le(w.asked, before + 4);
    w.says_count = 0;
    (void)say(&w, "a", 1);
    run(&w, 11 * SEC);
    ck_assert_int_eq(atomic_load(&t->refused), KP_OK);
    world_fini(&w);
}
END_TEST

/* -- KIP-951 -- */

/* S71, P11: an older or equal epoch, and a node that nobody knows, change
 * nothing. */
START_TEST(hints_move_leaders_if_their_epoch_is_newer)
{
    struct world w;
    struct node_endpoint e = {
        .node_id = 7, .host = {"10.0.0.4", 8}, .port = 9092};
    struct partition_queue *q;

    world_init(&w, 3);
    (void)say(&w, "a", 1);
    (void)get(&w, "a");
    q = queue(&w, "a", 0);
    kp__metadata_hint(w.m, q, 2, 5, NULL); /* no newer */
    ck_leader(&w, "a", 0, 1, 5);
    kp__metadata_hint(w.m, q, 2, 6, NULL);
    ck_leader(&w, "a", 0, 2, 6);
    kp__metadata_hint(w.m, q, 7, 7, NULL); /* nobody knows 7 */
    ck_leader(&w, "a", 0, 2, 6);
    kp__metadata_hint(w.m, q, 7, 7, &e);
    ck_leader(&w, "a", 0, 7, 7);
    ck_assert_ptr_nonnull(kp__client_find(w.r.client, 7));
    e.port = 0;
    e.node_id = 8;
    kp__metadata_hint(w.m, q, 8, 8, &e); /* no such place */
    ck_leader(&w, "a", 0, 7, 7);
    kp__metadata_hint(w.m, q, -1, 9, NULL);
    ck_leader(&w, "a", 0, 7, 7);
    /* metadata that has not heard of it yet changes nothing */
    kp__metadata_stale(w.m, fake_net_now_ns(w.r.net));
    run(&w, SEC);
    ck_leader(&w, "a", 0, 7, 7);
    world_fini(&w);
}
END_TEST

/* -- answers that cannot be -- */

/* N7 */
START_TEST(n7_an_answer_without_brokers_has_failed)
{
    struct world w;
    uint32_t before;

    world_init(&w, 1);
    settle(&w);
    (void)say(&w, "a", 1);
    w.broker_count = 0;
    before = w.asked;
    {
        struct topic_wait *t = want(&w, "a");
        run(&w, 5 * SEC);
        ck_assert_ptr_null(find(&w, "a"));
        ck_assert_uint_ge(w.asked - before, 5);
        ck_assert_uint_le(w.asked - before, 12);
        ck_assert(rig_logged(&w.r, "names no broker"));
        w.broker_count = 1;
        run(&w, 2 * SEC);
        ck_assert_ptr_nonnull(find(&w, "a"));
        unwant(&w, t);
    }
    world_fini(&w);
}
END_TEST

START_TEST(entries_that_cannot_be_are_passed_over)
{
    struct world w;
    struct metadata_partition *p = w.parts[0];

    world_init(&w, 2);
    add_broker(&w, -5, "10.0.0.3");
    add_broker(&w, 1, "10.0.0.4"); /* named twice: the first counts */
    w.brokers[w.broker_count++] =
        (struct metadata_broker){.node_id = 9, .host = {"h", 1}, .port = 0};
    (void)say(&w, "a", 8);
    for (int32_t i = 0; i < 8; i++)
        p[i].leader_id = 1;
    p[0].partition_index = 7; /* in no order */
    p[7].partition_index = 0;
    p[1].partition_index = -1;
    p[2].partition_index = INT32_MAX;
    p[3].leader_id = 77;      /* no such broker */
    p[4].leader_id = 9;       /* no place to go */
    p[5].partition_index = 6; /* twice */
    p[6].leader_id = 2;
    w.says[w.says_count++] = w.says[0]; /* and all of it twice */
    (void)get(&w, "a");
    ck_assert_int_eq(kp__topic_view(find(&w, "a"))->count, 8);
    ck_leader(&w, "a", 0, 1, 5);
    ck_leader(&w, "a", 1, -1, -1);
    ck_leader(&w, "a", 2, -1, -1);
    ck_leader(&w, "a", 3, -1, 5);
    ck_leader(&w, "a", 4, -1, 5);
    ck_leader(&w, "a", 5, -1, -1);
    ck_leader(&w, "a", 7, 1, 5);
    ck_assert_str_eq(kp__node_name(kp__client_find(w.r.client, 1)),
                     "10.0.0.1:9092 (id 1)");
    ck_assert_ptr_null(kp__client_find(w.r.client, 9));
    world_fini(&w);
}
END_TEST

START_TEST(topics_nobody_asked_about_are_ignored)
{
    struct world w;

    world_init(&w, 1);
    (void)say(&w, "a", 1);
    (void)say(&w, "b", 1);
    w.says[1].name.data = NULL; /* said whatever is asked; and by id only */
    (void)get(&w, "a");
    ck_assert_ptr_null(find(&w, "b"));
    ck_assert_uint_eq(w.told_count, 1);
    world_fini(&w);
}
END_TEST

/* Two names are asked for while there is room for one: whichever the answer
 * names first gets it, the other is told why not, and nothing else that an
 * answer brings ever enters. */
START_TEST(the_last_place_is_given_once)
{
    struct world w;
    struct topic_wait *a, *b;
    int64_t since_ns;
    char name[32];

    world_init(&w, 1);
    settle(&w);
    for (uint32_t i = 0; i < TOPICS_MAX - 1; i++) {
        (void)snprintf(name, sizeof(name), "t%u", i);
        ck_assert_ptr_nonnull(
            kp__topics_publish(w.topics, name, strlen(name), 1));
    }
    (void)say(&w, "a", 1);
    (void)say(&w, "b", 1);
    (void)say(&w, "c", 1);
    a = want(&w, "a");
    b = want(&w, "b");
    run(&w, 5 * SEC);
    ck_assert_ptr_nonnull(find(&w, "a"));
    ck_assert_ptr_null(find(&w, "b"));
    ck_assert_ptr_null(find(&w, "c"));
    ck_assert_int_eq(kp__topics_wait_state(w.topics, a, &since_ns), KP_OK);
    ck_assert_int_eq(kp__topics_wait_state(w.topics, b, &since_ns), KP_ETOPIC);
    ck_assert(kp__topics_is_full(w.topics));
    /* a topic in use still grows */
    w.says_count = 0;
    (void)say(&w, "a", 3);
    kp__metadata_stale(w.m, fake_net_now_ns(w.r.net));
    run(&w, 5 * SEC);
    ck_assert_int_eq(kp__topic_view(find(&w, "a"))->count, 3);
    unwant(&w, a);
    unwant(&w, b);
    world_fini(&w);
}
END_TEST

START_TEST(a_topic_named_by_its_id_is_found)
{
    struct world w;

    world_init(&w, 2);
    (void)say(&w, "a", 1);
    (void)get(&w, "a");
    w.says[0].name.data = NULL;
    w.parts[0][0].leader_id = 2;
    w.parts[0][0].leader_epoch = 6;
    kp__metadata_stale(w.m, fake_net_now_ns(w.r.net));
    run(&w, SEC);
    ck_leader(&w, "a", 0, 2, 6);
    world_fini(&w);
}
END_TEST

/* Every bit of an answer changed: a failure or an odd answer, never a crash,
 * and in the end the truth. */
START_TEST(spoilt_answers_do_no_harm)
{
    for (size_t bit = 0; bit < 8 * 100; bit += 3) {
        struct world w;
        struct fake_request q;
        struct fake_conn *c;
        struct metadata_response a;
        struct writer bytes;
        struct topic_wait *t;

        world_init(&w, 1);
        (void)say(&w, "a", 2);
        connected(&w);
        t = want(&w, "a");
        kp__metadata_run(w.m, fake_net_now_ns(w.r.net));
        (void)kp__client_write(w.r.client, fake_net_now_ns(w.r.net));
        c = fake_net_conn(w.r.net, "10.0.0.1", 9092);
        ck_assert(fake_conn_request(c, &q));
        kp__schema_defaults(kp__api(API_METADATA)->response, &a);
        a.brokers = (struct array){w.brokers, 1, false};
        a.topics = (struct array){w.says, 1, false};
        kp__writer_init(&bytes);
        fake_answer_bytes(&q, &a, &bytes);
        if (bit / 8 < bytes.buf.size)
            bytes.buf.data[bit / 8] ^= (uint8_t)(1u << (bit % 8));
        fake_conn_send(c, bytes.buf.data, bytes.buf.size);
        kp__writer_fini(&bytes);
        run(&w, 70 * SEC);
        kp__metadata_want(w.m, "a", 1, fake_net_now_ns(w.r.net));
        run(&w, 10 * SEC);
        ck_assert_ptr_nonnull(find(&w, "a"));
        unwant(&w, t);
        world_fini(&w);
    }
}
END_TEST

static void wait_for(struct world *w, const char *name)
{
    struct topic_wait *t = want(w, name);

    for (int i = 0; i < 400 && find(w, name) == NULL; i++)
        (void)turn(w); /* several reads' worth */
    ck_assert_ptr_nonnull(find(w, name));
    unwant(w, t);
}

/* What a turn takes grows as what is said does, and not as its square: ten times
 * as much in less than this many times as long. */
#define LINEAR 40

static int64_t longest_with_partitions(size_t count)
{
    struct world w;
    struct metadata_partition *p;
    int64_t longest_ns;

    world_init(&w, 3);
    (void)say(&w, "big", 1);
    p = calloc(count, sizeof *p);
    ck_assert_ptr_nonnull(p);
    for (size_t i = 0; i < count; i++) {
        p[i] = w.parts[0][0];
        p[i].partition_index = (int32_t)i;
        p[i].leader_id = 1 + (int32_t)(i % 3);
    }
    w.says[0].partitions.items = p;
    w.says[0].partitions.count = count;
    wait_for(&w, "big");
    ck_assert_int_eq(kp__topic_view(find(&w, "big"))->count, (int32_t)count);
    ck_assert_uint_eq(w.told_count, count);
    longest_ns = w.longest_ns;
    world_fini(&w);
    free(p);
    return longest_ns;
}

/* What disturbs a turn makes it longer: the least of some runs counts. */
#define RUNS 5

START_TEST(a_hundred_thousand_partitions)
{
    int64_t small_ns = longest_with_partitions(10000), large_ns = INT64_MAX;

    for (int i = 0; i < RUNS && large_ns >= LINEAR * small_ns; i++)
        large_ns = longest_with_partitions(100000);
    ck_assert_int_lt(large_ns, LINEAR * small_ns);
}
END_TEST

/* As said so far, but with so many partitions; frees what it said before. */
static void say_many(struct world *w, size_t which, size_t count)
{
    struct metadata_partition *p = calloc(count, sizeof *p);

    ck_assert_ptr_nonnull(p);
    for (size_t i = 0; i < count; i++) {
        p[i].partition_index = (int32_t)i;
        p[i].leader_id = 1;
        p[i].leader_epoch = 5;
    }
    if (w->says[which].partitions.items != w->parts[which])
        free(w->says[which].partitions.items);
    w->says[which].partitions = (struct array){p, count, false};
}

/* Until an answer was taken in: a large one comes in several reads. */
static void ask_anew(struct world *w)
{
    uint32_t before = w->updates;

    fake_net_advance_ns(w->r.net, 30 * SEC);
    kp__metadata_stale(w->m, fake_net_now_ns(w->r.net));
    for (int i = 0; i < 10000 && w->updates == before; i++)
        (void)turn(w);
    ck_assert_uint_ne(w->updates, before);
}

/* A name for which a broker tells more partitions than a topic may have is
 * refused, with its count in the log, and leaves nothing behind; a topic in use
 * stays as it was; others go on. */
START_TEST(more_partitions_than_any_topic_has)
{
    struct world w;
    struct topic_wait *t;
    int64_t since_ns;
    kp_error e;

    world_init(&w, 1);
    (void)say(&w, "vast", 1);
    (void)say(&w, "grown", 2);
    (void)say(&w, "good", 2);
    (void)get(&w, "grown");
    say_many(&w, 0, TOPIC_PARTITIONS_MAX + 1);
    t = want(&w, "vast");
    ask_anew(&w);
    ck_assert_ptr_null(find(&w, "vast"));
    ck_assert_int_eq(kp__topics_wait_state(w.topics, t, &since_ns), KP_ETOPIC);
    ck_assert(rig_logged(&w.r, "topic vast: a broker says that it has 200001 "
                               "partitions, and there is room for 200000"));
    ck_assert(!rig_logged(&w.r, "topic vast: KP_ETOPIC")); /* once is enough */
    ck_assert_int_eq(kp__status_get(&w.r.status, "vast", 4, &e), KP_ETOPIC);
    ck_assert_ptr_nonnull(strstr(e.text, "there is room for 200000"));
    ck_assert_ptr_nonnull(strstr(e.text, "check what answers as a broker"));
    unwant(&w, t);
    say_many(&w, 1, TOPIC_PARTITIONS_MAX + 7);
    fake_net_advance_ns(w.r.net, 20 * SEC);
    ask_anew(&w);
    ck_assert_int_eq(kp__topic_view(find(&w, "grown"))->count, 2);
    ck_assert(
        rig_logged(&w.r, "topic grown: a broker says that it has 200007"));
    say_many(&w, 0, TOPIC_PARTITIONS_MAX); /* as many as there may be */
    say_many(&w, 1, 3);
    t = want(&w, "good");
    ask_anew(&w);
    ck_assert_ptr_nonnull(find(&w, "good"));
    ck_assert_int_eq(kp__topic_view(find(&w, "grown"))->count, 3);
    unwant(&w, t);
    free(w.says[0].partitions.items);
    free(w.says[1].partitions.items);
    world_fini(&w);
}
END_TEST

static int64_t longest_with_brokers(int32_t count)
{
    struct world w;
    int32_t known = 0;
    int64_t longest_ns;

    world_init(&w, 3);
    (void)say(&w, "a", 3);
    w.many = calloc((size_t)count, sizeof *w.many);
    ck_assert_ptr_nonnull(w.many);
    w.many_count = (size_t)count;
    for (int32_t i = 0; i < count; i++) {
        w.many[i] = w.brokers[i < 3 ? i : 0];
        w.many[i].node_id = i + 1;
    }
    wait_for(&w, "a");
    longest_ns = w.longest_ns;
    for (int32_t i = 1; i <= count; i++)
        known += kp__client_find(w.r.client, i) != NULL ? 1 : 0;
    ck_assert_int_ge(known, count < 10000 ? count : 10000);
    ck_assert_int_le(known, NODES_MAX);
    /* and then there are three again */
    free(w.many);
    w.many = NULL;
    w.asked = 0;
    kp__metadata_stale(w.m, fake_net_now_ns(w.r.net));
    run(&w, SEC);
    ck_assert_uint_ge(w.asked, 1);
    ck_leader(&w, "a", 2, 3, 5);
    world_fini(&w);
    return longest_ns;
}

/* C18: more brokers than anybody has: as many are known as the table may hold,
 * and the rest is passed over. */
START_TEST(brokers_without_end)
{
    int64_t small_ns = longest_with_brokers(3000), large_ns = INT64_MAX;

    for (int i = 0; i < RUNS && large_ns >= LINEAR * small_ns; i++)
        large_ns = longest_with_brokers(30000);
    ck_assert_int_lt(large_ns, LINEAR * small_ns);
}
END_TEST

/* -- from the beginning again -- */

/* N6 */
START_TEST(n6_all_brokers_gone_leads_back_to_the_bootstrap_address)
{
    struct world w;
    size_t before;
    double seconds = 20;

    memset(&w, 0, sizeof w);
    rig_init(&w.r, "kafka:9092");
    fake_net_name(w.r.net, "kafka", "10.0.0.1");
    add_broker(&w, 1, "10.0.0.1");
    add_broker(&w, 2, "10.0.0.2");
    create(&w);
    (void)say(&w, "a", 2);
    (void)get(&w, "a");
    /* the whole cluster moves; only its name knows where */
    for (int i = 0; i < 2; i++) {
        const char *host = i == 0 ? "10.0.0.1" : "10.0.0.2";
        struct fake_conn *c = fake_net_conn(w.r.net, host, 9092);
        fake_net_listen(w.r.net, host, 9092, FAKE_REFUSES);
        if (c != NULL)
            fake_conn_reset(c);
    }
    before = fake_net_attempts(w.r.net);
    kp__metadata_stale(w.m, fake_net_now_ns(w.r.net));
    run(&w, (int64_t)(seconds * (double)SEC));
    ck_assert(rig_logged(&w.r, "bootstrap"));
    /* three places, each with its backoff of 50 ms growing to 1 s */
    ck_assert_uint_le(fake_net_attempts(w.r.net) - before,
                      (size_t)(3 * (6 + seconds / 0.8)));
    w.broker_count = 0;
    add_broker(&w, 3, "10.0.0.3");
    w.says_count = 0;
    w.parts[0][0].leader_id = 3;
    (void)say(&w, "a", 2);
    w.parts[0][0].leader_id = w.parts[0][1].leader_id = 3;
    if (_i == 0)
        w.says[0].topic_id.b[0] = 44; /* another cluster */
    w.parts[0][0].leader_epoch = w.parts[0][1].leader_epoch = _i == 0 ? 0 : 8;
    fake_net_name(w.r.net, "kafka", "10.0.0.3");
    run(&w, 3 * SEC);
    ck_leader(&w, "a", 0, 3, _i == 0 ? 0 : 8);
    ck_leader(&w, "a", 1, 3, _i == 0 ? 0 : 8);
    world_fini(&w);
}
END_TEST

START_TEST(without_recovery_it_keeps_to_the_brokers_it_knows)
{
    struct world w;

    memset(&w, 0, sizeof w);
    rig_init(&w.r, "kafka:9092");
    w.r.settings.recovery = RECOVERY_NONE;
    fake_net_name(w.r.net, "kafka", "10.0.0.1");
    add_broker(&w, 1, "10.0.0.2");
    fake_net_listen(w.r.net, "10.0.0.1", 9092, FAKE_ACCEPTS);
    create(&w);
    settle(&w);
    fake_net_name(w.r.net, "kafka", "10.0.0.3");
    fake_net_listen(w.r.net, "10.0.0.3", 9092, FAKE_ACCEPTS);
    fake_net_listen(w.r.net, "10.0.0.2", 9092, FAKE_REFUSES);
    if (fake_net_conn(w.r.net, "10.0.0.2", 9092) != NULL)
        fake_conn_reset(fake_net_conn(w.r.net, "10.0.0.2", 9092));
    kp__metadata_stale(w.m, fake_net_now_ns(w.r.net));
    run(&w, 20 * SEC);
    ck_assert_ptr_null(fake_net_conn(w.r.net, "10.0.0.3", 9092));
    fake_net_listen(w.r.net, "10.0.0.2", 9092, FAKE_ACCEPTS);
    run(&w, 3 * SEC);
    ck_assert_ptr_nonnull(fake_net_conn(w.r.net, "10.0.0.2", 9092));
    world_fini(&w);
}
END_TEST

START_TEST(a_broker_can_send_us_back_to_the_beginning)
{
    struct world w;
    struct fake_request q;

    memset(&w, 0, sizeof w);
    rig_init(&w.r, "kafka:9092");
    fake_net_name(w.r.net, "kafka", "10.0.0.1");
    add_broker(&w, 1, "10.0.0.2");
    fake_net_listen(w.r.net, "10.0.0.1", 9092, FAKE_ACCEPTS);
    create(&w);
    settle(&w);
    ck_assert_uint_eq(w.asked, 1);
    fake_net_name(w.r.net, "kafka", "10.0.0.3");
    fake_net_listen(w.r.net, "10.0.0.3", 9092, FAKE_ACCEPTS);
    kp__metadata_stale(w.m, fake_net_now_ns(w.r.net));
    if (_i == 0) { /* in an answer to Metadata */
        w.error = KP_REBOOTSTRAP_REQUIRED;
        run(&w, 2 * SEC);
        ck_assert_ptr_nonnull(fake_net_conn(w.r.net, "10.0.0.3", 9092));
    } else { /* in the handshake: this is not the broker we meant */
        struct api_versions_response a;
        struct fake_conn *c;
        fake_net_advance_ns(w.r.net, SEC);
        for (int i = 0; i < 3; i++) { /* as turn(), but nobody answers */
            struct poll_event events[8];
            int64_t now_ns = fake_net_now_ns(w.r.net);
            int n = w.r.env.poller->wait(w.r.poller, now_ns, now_ns, events, 8);
            (void)kp__client_read(w.r.client, events, (size_t)n, now_ns);
            kp__client_timers(w.r.client, now_ns);
            kp__metadata_run(w.m, now_ns);
            (void)kp__client_write(w.r.client, now_ns);
        }
        c = fake_net_conn(w.r.net, "10.0.0.2", 9092);
        ck_assert_ptr_nonnull(c);
        ck_assert(fake_conn_request(c, &q));
        kp__schema_defaults(kp__api(API_API_VERSIONS)->response, &a);
        a.error_code = KP_REBOOTSTRAP_REQUIRED;
        fake_conn_answer(c, &q, &a);
        run(&w, 2 * SEC);
        ck_assert_ptr_null(fake_net_conn(w.r.net, "10.0.0.3", 9092));
        ck_assert_uint_ge(fake_net_attempts(w.r.net), 3);
    }
    ck_assert(rig_logged(&w.r, "going back to the bootstrap addresses"));
    world_fini(&w);
}
END_TEST

START_TEST(no_answer_for_the_trigger_time_leads_back_too)
{
    struct world w;

    memset(&w, 0, sizeof w);
    rig_init(&w.r, "kafka:9092");
    w.r.settings.rebootstrap_trigger_ns = 60 * SEC;
    fake_net_name(w.r.net, "kafka", "10.0.0.1");
    add_broker(&w, 1, "10.0.0.2");
    fake_net_listen(w.r.net, "10.0.0.1", 9092, FAKE_ACCEPTS);
    create(&w);
    settle(&w);
    fake_net_name(w.r.net, "kafka", "10.0.0.3");
    fake_net_listen(w.r.net, "10.0.0.3", 9092, FAKE_ACCEPTS);
    w.mute = true; /* they take the question, and say nothing */
    kp__metadata_stale(w.m, fake_net_now_ns(w.r.net));
    run(&w, 55 * SEC);
    ck_assert(!rig_logged(&w.r, "going back to the bootstrap addresses"));
    run(&w, 40 * SEC);
    ck_assert(rig_logged(&w.r, "going back to the bootstrap addresses"));
    w.mute = false;
    run(&w, 40 * SEC);
    ck_assert_uint_eq(w.m->failures, 0);
    world_fini(&w);
}
END_TEST

START_TEST(nobody_there_costs_little_and_heals)
{
    struct world w;
    struct topic_wait *t;
    uint32_t turns = 0;
    kp_error e;

    world_init(&w, 1);
    (void)say(&w, "a", 1);
    fake_net_listen(w.r.net, "10.0.0.1", 9092, FAKE_REFUSES);
    t = want(&w, "a");
    for (int64_t left_ns = 60 * SEC; left_ns > 0; turns++) {
        int64_t now_ns = fake_net_now_ns(w.r.net), next_ns = turn(&w);
        int64_t step_ns = next_ns > now_ns ? next_ns - now_ns : 0;
        if (step_ns > left_ns)
            step_ns = left_ns;
        /* a refusal is an event, which the poller would report now */
        if (fake_net_open_count(w.r.net) > 0)
            step_ns = 0;
        fake_net_advance_ns(w.r.net, step_ns);
        left_ns -= step_ns;
        ck_assert_uint_lt(turns, 600); /* no busy loop */
    }
    ck_assert_int_eq(kp__status_get(&w.r.status, NULL, 0, &e), KP_ECONNECT);
    ck_assert_ptr_nonnull(strstr(e.text, "10.0.0.1:9092"));
    fake_net_listen(w.r.net, "10.0.0.1", 9092, FAKE_ACCEPTS);
    run(&w, 2 * SEC);
    ck_assert_ptr_nonnull(find(&w, "a"));
    ck_assert_int_eq(kp__status_get(&w.r.status, NULL, 0, &e), KP_OK);
    unwant(&w, t);
    world_fini(&w);
}
END_TEST

/* Waiting does not help against a broker that is too old; an upgrade does. */
START_TEST(brokers_that_are_too_old_refuse_names_at_once)
{
    struct world w;
    struct topic_wait *t, *later;
    int64_t since_ns;
    kp_error e;

    world_init(&w, 1);
    (void)say(&w, "a", 1);
    (void)say(&w, "b", 1);
    w.version = -1; /* no Metadata at all */
    t = want(&w, "a");
    settle(&w);
    ck_assert_int_eq(kp__topics_wait_state(w.topics, t, &since_ns), KP_ENOTSUP);
    ck_assert_int_eq(kp__status_get(&w.r.status, "a", 1, &e), KP_ENOTSUP);
    ck_assert_ptr_nonnull(strstr(e.text, "Metadata"));
    run(&w, 5 * SEC);
    later = want(&w, "b");
    settle(&w);
    ck_assert_int_eq(kp__topics_wait_state(w.topics, later, &since_ns),
                     KP_ENOTSUP);
    /* gone: it may come back as another, so waiting makes sense again */
    fake_net_listen(w.r.net, "10.0.0.1", 9092, FAKE_REFUSES);
    run(&w, 5 * SEC);
    ck_assert_int_eq(kp__topics_wait_state(w.topics, t, &since_ns),
                     KP_ECONNECT);
    w.version = 13;
    fake_net_listen(w.r.net, "10.0.0.1", 9092, FAKE_ACCEPTS);
    run(&w, 3 * SEC);
    ck_assert_ptr_nonnull(find(&w, "a"));
    ck_assert_ptr_nonnull(find(&w, "b"));
    unwant(&w, t);
    unwant(&w, later);
    world_fini(&w);
}
END_TEST

#ifdef KP_FAILMALLOC
START_TEST(no_memory_at_any_moment)
{
    long live = kp__mem_live();

    for (long nth = 1; nth < 160; nth += 1) {
        struct world w;
        struct topic_wait *t;

        world_init(&w, 2);
        (void)say(&w, "a", 3);
        settle(&w);
        t = want(&w, "a");
        w.fail_nth = nth;
        run(&w, 5 * SEC);
        kp__metadata_want(w.m, "a", 1, fake_net_now_ns(w.r.net));
        run(&w, 5 * SEC);
        ck_assert_ptr_nonnull(find(&w, "a"));
        ck_leader(&w, "a", 2, 1, 5);
        unwant(&w, t);
        world_fini(&w);
    }
    ck_assert_int_eq(kp__mem_live(), live);
}
END_TEST
#endif

static Suite *metadata_suite(void)
{
    Suite *s = suite_create("metadata");
    TCase *t = tcase_create("knowing");

    tcase_add_test(t, first_of_all_it_asks_who_is_there);
    tcase_add_test(t, k3_an_unknown_topic_is_asked_about_once_and_at_once);
    tcase_add_test(t, new_names_while_one_is_asked_about_are_not_lost);
    tcase_add_loop_test(
        t, k4_a_missing_topic_is_asked_about_with_backoff_while_waited_for, 0,
        2);
    tcase_add_test(t, of_several_topics_in_trouble_each_is_named);
    tcase_add_test(t, a_name_nobody_waits_for_is_forgotten);
    tcase_add_loop_test(t, a_refused_name_is_remembered_and_asked_about_seldom,
                        0, 2);
    suite_add_tcase(s, t);

    t = tcase_create("keeping_up");
    tcase_add_test(t, stale_asks_about_all_in_use_after_the_backoff);
    tcase_add_test(t, stale_while_asking_asks_once_more);
    tcase_add_test(t, answers_without_news_slow_the_asking_down);
    tcase_add_test(t, n5_an_older_epoch_is_ignored_unless_the_topic_is_new);
    tcase_add_loop_test(t, an_epoch_that_its_leader_denies_is_given_up, 0, 2);
    tcase_add_loop_test(t, an_epoch_without_a_leader_is_given_up_later, 0, 2);
    tcase_add_test(t, an_epoch_that_is_borne_out_stays);
    tcase_add_test(t, a_topic_made_anew_may_be_smaller);
    tcase_add_test(t, epochs_of_old_brokers_are_not_trusted);
    tcase_add_loop_test(t, every_version_tells_topics_and_leaders, 1, 14);
    tcase_add_test(t, partitions_that_are_added_are_published);
    tcase_add_test(
        t, a_partition_that_is_waited_for_is_asked_about_until_it_comes);
    tcase_add_test(t, idle_topics_leave_and_come_back);
    tcase_add_test(t, a_partition_without_a_leader_is_asked_about_again);
    tcase_add_test(t, a_topic_in_use_that_is_refused_or_gone);
    tcase_add_test(t, hints_move_leaders_if_their_epoch_is_newer);
    suite_add_tcase(s, t);

    t = tcase_create("hostile");
    tcase_set_timeout(t, 120);
    tcase_add_test(t, n7_an_answer_without_brokers_has_failed);
    tcase_add_test(t, entries_that_cannot_be_are_passed_over);
    tcase_add_test(t, topics_nobody_asked_about_are_ignored);
    tcase_add_test(t, the_last_place_is_given_once);
    tcase_add_test(t, a_topic_named_by_its_id_is_found);
    tcase_add_test(t, spoilt_answers_do_no_harm);
    tcase_add_test(t, a_hundred_thousand_partitions);
    tcase_add_test(t, more_partitions_than_any_topic_has);
    tcase_add_test(t, brokers_without_end);
    suite_add_tcase(s, t);

    t = tcase_create("recovery");
    tcase_add_loop_test(
        t, n6_all_brokers_gone_leads_back_to_the_bootstrap_address, 0, 2);
    tcase_add_test(t, without_recovery_it_keeps_to_the_brokers_it_knows);
    tcase_add_loop_test(t, a_broker_can_send_us_back_to_the_beginning, 0, 2);
    tcase_add_test(t, no_answer_for_the_trigger_time_leads_back_too);
    tcase_add_test(t, nobody_there_costs_little_and_heals);
    tcase_add_test(t, brokers_that_are_too_old_refuse_names_at_once);
#ifdef KP_FAILMALLOC
    tcase_add_test(t, no_memory_at_any_moment);
#endif
    suite_add_tcase(s, t);
    return s;
}

KP_TEST_MAIN(metadata_suite)
