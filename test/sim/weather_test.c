/* SPDX-License-Identifier: BSD-2-Clause */
/* A client, three brokers and bad weather, decided by a seed: settings,
 * workload, leader moves, deaths, cuts, stalls, lost answers, refusals.  Then
 * the weather clears, everything is reported, and the reports are held against
 * the logs.
 *
 * KP_SIM_SEED=n runs one seed, KP_SIM_SEEDS=n so many (200). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/rand.h"
#include "test/support/main.h"
#include "test/support/world.h"
#include "test/support/world_state.h"

#define MS KP_NS_PER_MS
#define NODES 3
#define STEPS 300

#define CLAIMS 4

struct sim {
    struct world *w;
    struct rng rng;
    int32_t partitions;
    bool held;
    /* other threads that compress, slowly */
    struct {
        struct batch *batch;
        struct compressor *compressor;
    } claims[CLAIMS];
    bool down[NODES + 1], paused[NODES + 1], cut_off[NODES + 1];
};

static uint32_t below(struct sim *s, uint32_t n)
{
    return kp__rng_below(&s->rng, n);
}

static bool chance(struct sim *s, uint32_t percent)
{
    return below(s, 100) < percent;
}

static const char *pick(struct sim *s, const char *const *from, uint32_t n)
{
    return from[below(s, n)];
}
#define PICK(s, ...) \
    pick(s, (const char *const[]){__VA_ARGS__}, \
         (uint32_t)(sizeof((const char *const[]){__VA_ARGS__}) / \
                    sizeof(const char *)))

/* -- settings -- */

/* Sequence numbers that soon wrap, epochs that soon end. */
static void near_the_ends(struct sim *s)
{
    struct topic *t = kp__topics_find(s->w->p->topics, "t", 1);

    for (int32_t i = 0; i < s->partitions; i++) {
        struct ledger *l = &kp__topic_view(t)->queues[i]->sender->ledger;

        if (l->producer_id < 0)
            continue;
        if (chance(s, 20))
            l->next_sequence = INT32_MAX - (int32_t)below(s, 50);
        if (chance(s, 20))
            l->epoch = (int16_t)(INT16_MAX - (int)below(s, 3));
    }
}

static void begin(struct sim *s, uint64_t seed)
{
    const char *settings[40];
    int n = 0;
    const char *idempotent = PICK(s, "true", "true", "true", "false");
    bool plain = strcmp(idempotent, "false") == 0;

#define SET(name, value) \
    do { \
        settings[n++] = name; \
        settings[n++] = value; \
    } while (0)
    SET("enable.idempotence", idempotent);
    if (plain)
        SET("acks", PICK(s, "all", "1", "0"));
    SET("max.in.flight.requests.per.connection",
        plain ? "1" : PICK(s, "1", "2", "5"));
    SET("linger.ms", PICK(s, "0", "5", "20"));
    SET("batch.size", PICK(s, "0", "500", "2000", "16384"));
    SET("buffer.memory", PICK(s, "65536", "131072", "33554432"));
    SET("max.request.size", PICK(s, "3000", "10000", "1048576"));
    SET("compression.type",
        PICK(s, "none", "none", "gzip", "snappy", "lz4", "zstd"));
    SET("delivery.timeout.ms", PICK(s, "3000", "8000", "60000"));
    SET("request.timeout.ms", PICK(s, "500", "1500"));
    SET("retry.backoff.ms", PICK(s, "5", "50", "100"));
    SET("reconnect.backoff.max.ms", PICK(s, "50", "1000"));
    SET("max.block.ms", PICK(s, "100", "5000"));
    if (chance(s, 10))
        SET("retries", "2");
    settings[n] = NULL;
    s->partitions = 1 + (int32_t)below(s, chance(s, 20) ? 40 : 4);
    s->w = world_begin(&(struct world_options){
        .nodes = NODES,
        .partitions = s->partitions,
        .replication = NODES,
        .seed = seed,
        .latency_ns = (1 + below(s, 20)) * MS,
        .settings = settings,
    });
    near_the_ends(s);
}

/* -- work -- */

static void send_some(struct sim *s)
{
    uint32_t n = 1 + below(s, chance(s, 10) ? 40 : 6);

    for (uint32_t i = 0; i < n; i++) {
        struct world_what what = {
            .partition = chance(s, 20)
                             ? -1
                             : (int32_t)below(s, (uint32_t)s->partitions),
            .size = 9 + (int32_t)below(s, chance(s, 5) ? 2500 : 200),
            .flags = WORLD_FUTURE | WORLD_CALLBACK,
        };

        if (chance(s, 20))
            what.flags = WORLD_CALLBACK;
        if (chance(s, 20))
            what.flags = WORLD_QUEUE;
        if (chance(s, 30))
            what.flags |= WORLD_NOWAIT;
        if (chance(s, 50))
            what.flags |= WORLD_RANDOM;
        (void)world_send_what(s->w, &what);
    }
}

/* -- weather -- */

static void new_rule(struct sim *s)
{
    char line[128];
    const char *what = PICK(
        s, "answer=close", "answer=reset", "answer=none",
        "ignore answer=close", "ignore answer=none", "answer=stall",
        "error=6", "error=6 append", "error=3 append", "error=7",
        "error=7 append", "error=19", "error=20 append", "error=5", "error=56",
        "error=10", "error=18", "error=87", "error=2", "error=45",
        "error=47", "error=59", "omit", "answer=twice", "answer=garbage",
        "answer=short at=9", "answer=cut at=13", "answer_ms=300",
        "process_ms=300", "throttle_ms=200", "answer=dribble");

    /* with acks=1 a leader answers these before it appends */
    if (s->w->p->settings.acks == 1 &&
        (strcmp(what, "error=6 append") == 0 ||
         strcmp(what, "error=3 append") == 0))
        return;
    (void)snprintf(line, sizeof(line), "api=produce skip=%u count=%u %s",
                   below(s, 4), 1 + below(s, 3), what);
    (void)world_rule(s->w, line);
}

static int nodes_down(const struct sim *s)
{
    int n = 0;

    for (int i = 1; i <= NODES; i++)
        n += s->down[i];
    return n;
}

/* A thread that was sending is compressing, and takes its time. */
static void claim(struct sim *s)
{
    struct topic *t = kp__topics_find(s->w->p->topics, "t", 1);
    uint32_t i = below(s, CLAIMS), p = below(s, (uint32_t)s->partitions);
    struct partition_queue *q = kp__topic_view(t)->queues[p];

    if (s->claims[i].batch != NULL ||
        kp__queue_claim(q, true, &s->claims[i].batch) != QUEUE_OK)
        return;
    s->claims[i].compressor = kp__compressors_take(&s->w->p->compressors);
    if (s->claims[i].compressor != NULL)
        return;
    kp__queue_unclaim(q, s->claims[i].batch);
    kp__drain_push(&s->w->p->accumulator, q);
    kp__io_wake(&s->w->p->bell, 0);
    s->claims[i].batch = NULL;
}

static void finish_claim(struct sim *s, uint32_t i)
{
    if (s->claims[i].batch == NULL)
        return;
    kp__compress_and_finish(&s->w->p->accumulator, s->claims[i].batch,
                            s->claims[i].compressor);
    kp__io_wake(&s->w->p->bell, 0);
    s->claims[i].batch = NULL;
}

static void hold(struct sim *s)
{
    s->held = !s->held;
    world_hold(s->w, s->held);
}

static void metadata_trouble(struct sim *s)
{
    char line[128];

    (void)snprintf(line, sizeof(line), "api=%s count=%u %s",
                   PICK(s, "metadata", "metadata", "api-versions",
                        "init-producer-id"),
                   1 + below(s, 3),
                   PICK(s, "answer=close", "answer=none", "answer=stall",
                        "answer=garbage", "answer_ms=400", "error=5",
                        "error=3", "throttle_ms=300"));
    if (strstr(line, "api-versions") == NULL || strstr(line, "error") == NULL)
        (void)world_rule(s->w, line);
}

static void one_event(struct sim *s)
{
    struct world *w = s->w;
    struct kb_cluster *c = world_cluster(w);
    int32_t node = 1 + (int32_t)below(s, NODES);
    int32_t partition = (int32_t)below(s, (uint32_t)s->partitions);
    struct world_link *l = world_link(w, node);

    switch (below(s, 21)) {
    case 0:
    case 1:
    case 2:
        new_rule(s);
        break;
    case 3:
        (void)kb_leader_move(c, "t", partition, node, false, world_now_ns(w));
        break;
    case 4:
        world_cut(w, node, chance(s, 50));
        break;
    case 5:
        l->stall_to = !l->stall_to;
        break;
    case 6:
        l->stall_from = !l->stall_from;
        break;
    case 7:
        if (s->paused[node]) {
            break; /* one thing at a time */
        } else if (s->down[node]) {
            kb_node_start(c, node, KB_KEEP_STATE, world_now_ns(w));
            s->down[node] = false;
        } else if (nodes_down(s) == 0) {
            kb_node_stop(c, node, chance(s, 50), world_now_ns(w));
            s->down[node] = true;
        }
        break;
    case 8:
        l->window = chance(s, 50) ? 256 * 1024 : 100 + below(s, 3000);
        break;
    case 9:
        l->write_step = chance(s, 50) ? SIZE_MAX : 1 + below(s, 300);
        l->read_step = chance(s, 50) ? SIZE_MAX : 1 + below(s, 50);
        break;
    case 10:
        l->to_ns = l->from_ns = (1 + below(s, 50)) * MS;
        break;
    case 11:
        (void)kb_topic_set(c, "t", "max.message.bytes",
                           PICK(s, "300", "700", "1000000", "1000000"));
        break;
    case 12:
        l->cut_after = chance(s, 60) ? SIZE_MAX : 60 + below(s, 5000);
        l->cut_loses = chance(s, 50);
        break;
    case 13:
        if (s->down[node])
            break;
        s->paused[node] = !s->paused[node];
        kb_node_pause(c, node, s->paused[node], world_now_ns(w));
        break;
    case 14:
        s->cut_off[node] = !s->cut_off[node];
        kb_node_isolate(c, node, s->cut_off[node], world_now_ns(w));
        break;
    case 15:
        kb_storage_fail(c, "t", partition, node, chance(s, 50),
                        world_now_ns(w));
        break;
    case 16:
        claim(s);
        break;
    case 17:
        finish_claim(s, below(s, CLAIMS));
        break;
    case 18:
        hold(s);
        break;
    case 19:
        metadata_trouble(s);
        break;
    default:
        (void)kb_set(c, "replication.delay.ms", PICK(s, "0", "0", "30"));
        (void)kb_set(c, "metadata.delay.ms", PICK(s, "0", "0", "200"));
        (void)kb_set(c, "session.timeout.ms", PICK(s, "0", "500"));
        break;
    }
}

static void clear_up(struct sim *s)
{
    struct world *w = s->w;

    world_fail_memory(w, -1, 0);
    world_hold(w, false);
    for (uint32_t i = 0; i < CLAIMS; i++)
        finish_claim(s, i);
    for (int32_t p = 0; p < s->partitions; p++)
        for (int i = 1; i <= NODES; i++)
            kb_storage_fail(world_cluster(w), "t", p, i, false,
                            world_now_ns(w));
    world_rule_remove(w, -1);
    (void)kb_set(world_cluster(w), "replication.delay.ms", "0");
    (void)kb_topic_set(world_cluster(w), "t", "max.message.bytes", "1000000");
    for (int i = 1; i <= NODES; i++) {
        struct world_link *l = world_link(w, i);

        l->stall_to = l->stall_from = false;
        l->window = 256 * 1024;
        l->write_step = l->read_step = l->cut_after = SIZE_MAX;
        l->to_ns = l->from_ns = MS;
        if (s->paused[i])
            kb_node_pause(world_cluster(w), i, false, world_now_ns(w));
        if (s->cut_off[i])
            kb_node_isolate(world_cluster(w), i, false, world_now_ns(w));
        if (s->down[i])
            kb_node_start(world_cluster(w), i, KB_KEEP_STATE,
                          world_now_ns(w));
        s->down[i] = s->paused[i] = s->cut_off[i] = false;
    }
}

/* kp_flush would return now. */
static void all_reported(struct sim *s)
{
    for (uint32_t i = 0; i < world_record_count(s->w); i++) {
        const struct world_record *r = world_record(s->w, i);

        if (r->state == WORLD_TAKEN && !r->reported)
            world_fail(s->w,
                       "record %u has no report, and kp_flush would return",
                       i);
    }
}

/* After all that it must simply work again. */
static void works_again(struct sim *s)
{
    struct world_record *r[8];

    for (int i = 0; i < 8; i++)
        r[i] = world_send(s->w, i % s->partitions);
    world_settle(s->w);
    for (int i = 0; i < 8; i++) {
        if (s->w->p->settings.acks == 0)
            ck_assert_int_eq(r[i]->report.err, KP_OK);
        else
            world_expect(r[i], KP_OK, KP_OK, KP_STORED_YES,
                         WORLD_ANY_OFFSET);
    }
}

/* ... and then be still: a minute of it. */
static void is_idle(struct sim *s)
{
    uint64_t turns;

    world_run_ms(s->w, 5000);
    turns = world_turns(s->w);
    world_run_ms(s->w, 60000);
    if (world_turns(s->w) - turns > 100)
        world_fail(s->w, "%llu turns in an idle minute",
                   (unsigned long long)(world_turns(s->w) - turns));
}

static void run(uint64_t seed, bool short_of_memory)
{
    struct sim s = {0};
    uint32_t how_bad;

    kp__rng_seed(&s.rng, seed);
    begin(&s, seed);
    how_bad = 2 + below(&s, 30);
    if (short_of_memory)
        world_fail_memory(s.w, 1 + (long)below(&s, 100),
                          2 + (long)below(&s, 300));
    for (int i = 0; i < STEPS; i++) {
        if (chance(&s, 60))
            send_some(&s);
        if (chance(&s, how_bad))
            one_event(&s);
        if (chance(&s, 2))
            (void)world_flush(s.w, below(&s, 2000));
        world_run_until_ns(s.w, world_now_ns(s.w) +
                                    (int64_t)below(&s, 20000) * 1000);
        if (chance(&s, 10))
            world_check(s.w);
        if (world_nothing_left(s.w))
            all_reported(&s);
    }
    clear_up(&s);
    if (chance(&s, 30)) {
        (void)world_close(s.w, chance(&s, 50) ? KP_FOREVER : below(&s, 3000));
        world_settle(s.w);
    } else {
        world_settle(s.w);
        world_check(s.w);
        works_again(&s);
        is_idle(&s);
    }
    world_check(s.w);
    world_end(s.w);
}

static uint64_t first_seed;

START_TEST(weather)
{
    run(first_seed + (uint64_t)_i, false);
}
END_TEST

START_TEST(weather_without_memory)
{
    run(first_seed + (uint64_t)_i, true);
}
END_TEST

static Suite *weather_suite(void)
{
    Suite *s = suite_create("weather");
    TCase *t = tcase_create("weather");
    const char *one = getenv("KP_SIM_SEED"), *many = getenv("KP_SIM_SEEDS");
    int n = many != NULL ? atoi(many) : 200;

    if (one != NULL) {
        first_seed = strtoull(one, NULL, 10);
        n = many != NULL ? n : 1;
    }
    tcase_add_loop_test(t, weather, 0, n);
    tcase_add_loop_test(t, weather_without_memory, 0, n);
    suite_add_tcase(s, t);
    return s;
}

KP_TEST_MAIN(weather_suite)
