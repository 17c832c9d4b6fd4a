/* SPDX-License-Identifier: BSD-2-Clause */
/* weather.c - what the network, the brokers and the machine do meanwhile.
 *
 * One function a feature, each with a generator of its own; it is called in
 * each step and throws its own dice, whether or not it may act. */
#include <stdio.h>
#include <string.h>

#include "io_thread/sender.h"
#include "test/sim/sim.h"

static int64_t now_ns(const struct sim *s)
{
    return world_now_ns(s->w);
}

static int32_t some_node(struct sim *s, struct rng *r)
{
    return 1 + (int32_t)kp__rng_below(r, (uint32_t)s->nodes);
}

static int32_t some_partition(struct sim *s, struct rng *r)
{
    int32_t n = kb_topic_partitions(s->w->cluster, "t");

    return (int32_t)kp__rng_below(r, n > 0 ? (uint32_t)n : 1);
}

/* -- the network -- */

static void do_cut(struct sim *s, struct rng *r)
{
    world_cut(s->w, sim_chance(r, 20) ? -1 : some_node(s, r),
              sim_chance(r, 50));
}

static void do_cut_at(struct sim *s, struct rng *r)
{
    struct world_link *l = world_link(s->w, some_node(s, r));

    l->cut_after = sim_chance(r, 60) ? SIZE_MAX : 10 + kp__rng_below(r, 3000);
    l->cut_loses = sim_chance(r, 50);
}

static void do_stall_to(struct sim *s, struct rng *r)
{
    struct world_link *l = world_link(s->w, some_node(s, r));

    l->stall_to = !l->stall_to;
}

static void do_stall_from(struct sim *s, struct rng *r)
{
    struct world_link *l = world_link(s->w, some_node(s, r));

    l->stall_from = !l->stall_from;
}

static void do_black_hole(struct sim *s, struct rng *r)
{
    int32_t node = some_node(s, r);
    struct world_link *l = world_link(s->w, node);

    l->silent = !l->silent;
    if (l->silent && sim_chance(r, 50))
        world_cut(s->w, node, true);
}

static void do_refuse(struct sim *s, struct rng *r)
{
    int32_t node = some_node(s, r);
    struct world_link *l = world_link(s->w, node);

    l->refuses = !l->refuses;
    if (l->refuses && sim_chance(r, 50))
        world_cut(s->w, node, true);
}

static void do_window(struct sim *s, struct rng *r)
{
    struct world_link *l = world_link(s->w, some_node(s, r));

    l->window = sim_chance(r, 50) ? 256 * 1024 : 60 + kp__rng_below(r, 2000);
}

static void do_dribble(struct sim *s, struct rng *r)
{
    struct world_link *l = world_link(s->w, some_node(s, r));

    l->write_step = sim_chance(r, 50) ? SIZE_MAX : 1 + kp__rng_below(r, 300);
    l->read_step = sim_chance(r, 50) ? SIZE_MAX : 1 + kp__rng_below(r, 50);
}

static void do_latency(struct sim *s, struct rng *r)
{
    struct world_link *l = world_link(s->w, some_node(s, r));

    l->to_ns = (1 + kp__rng_below(r, 50)) * MS;
    l->from_ns = (1 + kp__rng_below(r, 50)) * MS;
}

/* -- the brokers -- */

/* The topic takes records from the future: of a wall clock that jumped. */
static void any_stamp(struct sim *s)
{
    (void)kb_topic_set(world_cluster(s->w), "t",
                       "message.timestamp.after.max.ms", "9223372036854775807");
}

static void do_leader(struct sim *s, struct rng *r)
{
    int32_t p = some_partition(s, r), node = some_node(s, r);

    if (sim_chance(r, 15))
        node = -1;
    (void)kb_leader_move(world_cluster(s->w), "t", p, node, false, now_ns(s));
}

static int nodes_down(const struct sim *s)
{
    int n = 0;

    for (int i = 1; i <= s->nodes; i++)
        n += s->down[i];
    return n;
}

static void start(struct sim *s, int32_t node, enum kb_start how)
{
    if (how != KB_KEEP_STATE)
        world_forgive(s->w, false, true);
    kb_node_start(world_cluster(s->w), node, how, now_ns(s));
    s->down[node] = false;
}

static void do_stop(struct sim *s, struct rng *r)
{
    int32_t node = some_node(s, r);
    bool clean = sim_chance(r, 50);

    if (s->paused[node])
        return; /* one thing at a time */
    if (s->down[node]) {
        start(s, node,
              sim_has(s, F_FORGET) && sim_chance(&s->of_feature[F_FORGET], 50)
                  ? KB_LOSE_PRODUCERS
                  : KB_KEEP_STATE);
    } else if (nodes_down(s) == 0) {
        kb_node_stop(world_cluster(s->w), node, clean, now_ns(s));
        s->down[node] = true;
    }
}

static void do_forget(struct sim *s, struct rng *r)
{
    world_forgive(s->w, false, true);
    kb_forget_producer(world_cluster(s->w), "t", some_partition(s, r), -1);
}

static void do_pause(struct sim *s, struct rng *r)
{
    int32_t node = some_node(s, r);

    if (s->down[node])
        return;
    s->paused[node] = !s->paused[node];
    kb_node_pause(world_cluster(s->w), node, s->paused[node], now_ns(s));
}

static void do_isolate(struct sim *s, struct rng *r)
{
    int32_t node = some_node(s, r);

    s->cut_off[node] = !s->cut_off[node];
    kb_node_isolate(world_cluster(s->w), node, s->cut_off[node], now_ns(s));
}

static void do_storage(struct sim *s, struct rng *r)
{
    int32_t node = some_node(s, r), p = some_partition(s, r);

    kb_storage_fail(world_cluster(s->w), "t", p, node, sim_chance(r, 50),
                    now_ns(s));
}

static void do_replicas(struct sim *s, struct rng *r)
{
    struct kb_cluster *c = world_cluster(s->w);

    (void)kb_set(c, "replication.delay.ms", SIM_PICK(r, "0", "0", "30"));
    (void)kb_set(c, "metadata.delay.ms", SIM_PICK(r, "0", "0", "200"));
    (void)kb_set(c, "session.timeout.ms", SIM_PICK(r, "0", "500"));
    (void)kb_set(c, "replica.lag.ms", SIM_PICK(r, "30000", "200"));
    if (s->nodes > 1)
        (void)kb_topic_set(c, "t", "min.insync.replicas",
                           SIM_PICK(r, "1", "1", "2"));
}

static void do_laggard(struct sim *s, struct rng *r)
{
    int32_t node = some_node(s, r), p = some_partition(s, r);

    kb_follower_stall(world_cluster(s->w), "t", p, node, sim_chance(r, 50),
                      now_ns(s));
}

static void do_trim(struct sim *s, struct rng *r)
{
    int32_t p = some_partition(s, r);
    struct kb_cluster *c = world_cluster(s->w);

    world_forgive(s->w, true, false);
    kb_trim(c, "t", p, kb_high_watermark(c, "t", p));
}

static void do_grow(struct sim *s, struct rng *r)
{
    int32_t n = kb_topic_partitions(s->w->cluster, "t");

    if (n < 14)
        (void)kb_topic_grow(world_cluster(s->w), "t",
                            n + 1 + (int32_t)kp__rng_below(r, 2), now_ns(s));
}

static void do_create(struct sim *s, struct rng *r)
{
    int32_t n = 1 + (int32_t)kp__rng_below(r, 3);

    if (s->later_made)
        return;
    s->later_made = true;
    (void)kb_topic_create(world_cluster(s->w), "later", n, 1, now_ns(s));
}

static void do_recreate(struct sim *s, struct rng *r)
{
    struct kb_cluster *c = world_cluster(s->w);
    int32_t n = s->partitions + (int32_t)kp__rng_below(r, 3);

    world_forgive(s->w, true, true);
    (void)kb_topic_delete(c, "t", now_ns(s));
    if (sim_chance(r, 50))
        world_run_ms(s->w, kp__rng_below(r, 500));
    (void)kb_topic_create(world_cluster(s->w), "t", n,
                          s->nodes < 3 ? s->nodes : 3, now_ns(s));
    any_stamp(s);
}

static void do_limit(struct sim *s, struct rng *r)
{
    (void)kb_topic_set(world_cluster(s->w), "t", "max.message.bytes",
                       SIM_PICK(r, "300", "700", "1000000", "1000000"));
}

static void do_versions(struct sim *s, struct rng *r)
{
    struct kb_cluster *c = world_cluster(s->w);
    int32_t node = some_node(s, r);

    s->w->old_versions = true;
    /* a broker changes its versions only by a restart */
    world_cut(s->w, node, sim_chance(r, 50));
    kb_node_versions(c, node, API_PRODUCE, 0,
                     (int16_t)(3 + (int)kp__rng_below(r, 11)));
    kb_node_versions(c, node, API_METADATA, 0,
                     (int16_t)(1 + (int)kp__rng_below(r, 13)));
}

/* -- answers -- */

static void produce_rule(struct sim *s, struct rng *r, const char *what)
{
    char line[128];

    (void)snprintf(line, sizeof(line), "api=produce skip=%u count=%u %s",
                   kp__rng_below(r, 4), 1 + kp__rng_below(r, 3), what);
    (void)world_rule(s->w, line);
}

static void do_produce(struct sim *s, struct rng *r)
{
    const char *what = SIM_PICK(
        r, "error=6", "error=6 append", "error=3 append", "error=7",
        "error=7 append", "error=19", "error=20 append", "error=5", "error=56",
        "error=56 append", "error=10", "error=18", "error=87", "error=2",
        "error=45", "error=47", "error=59", "error=14", "error=999", "omit");

    /* with acks=1 a leader answers these before it appends */
    if (s->acks == 1 && strstr(what, "append") != NULL &&
        (strncmp(what, "error=6", 7) == 0 || strncmp(what, "error=3", 7) == 0))
        return;
    produce_rule(s, r, what);
}

static void do_answer(struct sim *s, struct rng *r)
{
    produce_rule(
        s, r,
        SIM_PICK(r, "answer=close", "answer=reset", "answer=none",
                 "ignore answer=close", "ignore answer=none", "answer=stall",
                 "answer=twice", "answer=garbage", "answer=short at=9",
                 "answer=cut at=13", "answer=cut at=30", "answer_ms=300",
                 "process_ms=300", "answer=dribble", "answer=wrong-id",
                 "answer=huge", "answer=negative", "answer=tiny",
                 "answer=unasked", "answer=other-api", "answer=half-close",
                 "answer=close-after", "repeat", "stranger", "answer_ms=1500"));
}

/* Of an epoch that is past, or is none yet, or of a broker that nobody knows. */
static void do_lies(struct sim *s, struct rng *r)
{
    int32_t p = some_partition(s, r), node = some_node(s, r);
    int32_t epoch = kb_leader_epoch(world_cluster(s->w), "t", p);
    char what[80];

    if (sim_chance(r, 40))
        node = 77;
    epoch += node == 77 ? 1 + (int32_t)kp__rng_below(r, 3)
                        : (int32_t)kp__rng_below(r, 6) - 2;
    (void)snprintf(what, sizeof(what),
                   "partition=%d hint=%d hint_epoch=%d %s", (int)p, (int)node,
                   (int)epoch, SIM_PICK(r, "error=6", "error=6", ""));
    produce_rule(s, r, what);
}

static void do_throttle(struct sim *s, struct rng *r)
{
    produce_rule(s, r,
                 SIM_PICK(r, "throttle_ms=200", "throttle_ms=50",
                          "throttle_ms=-5", "throttle_ms=900"));
}

static void do_trouble(struct sim *s, struct rng *r)
{
    const char *api =
        SIM_PICK(r, "metadata", "metadata", "api-versions", "init-producer-id");
    const char *what =
        SIM_PICK(r, "answer=close", "answer=none", "answer=stall",
                 "answer=garbage", "answer_ms=400", "error=5", "error=3",
                 "throttle_ms=300", "error=14", "answer=cut at=20");
    char line[128];

    if (strcmp(api, "api-versions") == 0 && strstr(what, "error") != NULL)
        return;
    (void)snprintf(line, sizeof(line), "api=%s count=%u %s", api,
                   1 + kp__rng_below(r, 3), what);
    (void)world_rule(s->w, line);
}

/* -- the machine -- */

static void do_wall(struct sim *s, struct rng *r)
{
    static const int64_t jumps[] = {1000, -1000, 3600 * 1000, -3600 * 1000};

    any_stamp(s);
    world_jump_wall_ms(s->w, jumps[kp__rng_below(r, 4)]);
}

static void do_hold(struct sim *s, struct rng *r)
{
    (void)r;
    s->held = !s->held;
    world_hold(s->w, s->held);
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

/* A thread that was sending compresses, and takes its time. */
static void do_claim(struct sim *s, struct rng *r)
{
    struct topic *t = kp__topics_find(s->w->p->topics, "t", 1);
    uint32_t i = kp__rng_below(r, SIM_CLAIMS), p = kp__rng_below(r, 64);
    struct partition_queue *q;

    if (s->claims[i].batch != NULL) {
        finish_claim(s, i);
        return;
    }
    if (s->w->over)
        return;
    q = kp__topic_view(t)->queues[p % (uint32_t)kp__topic_view(t)->count];
    if (kp__queue_claim(q, true, &s->claims[i].batch) != QUEUE_OK) {
        s->claims[i].batch = NULL;
        return;
    }
    s->claims[i].compressor = kp__compressors_take(&s->w->p->compressors);
    if (s->claims[i].compressor != NULL)
        return;
    kp__queue_unclaim(q, s->claims[i].batch);
    kp__io_wake(&s->w->p->bell, 0);
    s->claims[i].batch = NULL;
}

/* Senders write while the I/O thread looks. */
static void do_taken(struct sim *s, struct rng *r)
{
    world_find_taken(s->w, 0, sim_chance(r, 30) ? 0 : kp__rng_below(r, 60));
}

/* -- all of it -- */

static const struct {
    enum feature feature;
    uint32_t often; /* percent of the plan's badness; 100: as bad as it is */
    void (*fn)(struct sim *s, struct rng *r);
} weather[] = {
    {F_CUT, 60, do_cut},
    {F_CUT_AT, 50, do_cut_at},
    {F_STALL_TO, 60, do_stall_to},
    {F_STALL_FROM, 60, do_stall_from},
    {F_BLACK_HOLE, 40, do_black_hole},
    {F_REFUSE, 40, do_refuse},
    {F_WINDOW, 60, do_window},
    {F_DRIBBLE, 60, do_dribble},
    {F_LATENCY, 60, do_latency},
    {F_LEADER, 100, do_leader},
    {F_STOP, 60, do_stop},
    {F_FORGET, 20, do_forget},
    {F_PAUSE, 40, do_pause},
    {F_ISOLATE, 40, do_isolate},
    {F_STORAGE, 60, do_storage},
    {F_REPLICAS, 60, do_replicas},
    {F_LAGGARD, 60, do_laggard},
    {F_TRIM, 30, do_trim},
    {F_GROW, 20, do_grow},
    {F_CREATE, 30, do_create},
    {F_RECREATE, 10, do_recreate},
    {F_LIMIT, 60, do_limit},
    {F_VERSIONS, 20, do_versions},
    {F_PRODUCE, 150, do_produce},
    {F_ANSWER, 100, do_answer},
    {F_THROTTLE, 60, do_throttle},
    {F_TROUBLE, 60, do_trouble},
    {F_WALL, 60, do_wall},
    {F_HOLD, 30, do_hold},
    {F_CLAIM, 200, do_claim},
    {F_TAKEN, 60, do_taken},
    {F_LIES, 60, do_lies},
};

void sim_weather_step(struct sim *s)
{
    for (size_t i = 0; i < sizeof(weather) / sizeof(weather[0]); i++) {
        enum feature f = weather[i].feature;
        struct rng *r = &s->of_feature[f];

        if (!sim_has(s, f) ||
            kp__rng_below(r, 10000) >= s->how_bad * weather[i].often)
            continue;
        if (++s->faults > s->limits.faults)
            continue;
        world_trace(s->w, "-- %s", sim_feature_name(f));
        weather[i].fn(s, r);
    }
}

static void clear_link(struct world_link *l)
{
    l->refuses = l->silent = l->stall_to = l->stall_from = false;
    l->window = 256 * 1024;
    l->write_step = l->read_step = l->cut_after = SIZE_MAX;
    l->to_ns = l->from_ns = MS;
}

static void clear_node(struct sim *s, int32_t node)
{
    struct kb_cluster *c = world_cluster(s->w);

    clear_link(world_link(s->w, node));
    if (s->paused[node])
        kb_node_pause(c, node, false, now_ns(s));
    if (s->cut_off[node])
        kb_node_isolate(c, node, false, now_ns(s));
    if (s->down[node])
        start(s, node, KB_KEEP_STATE);
    s->paused[node] = s->cut_off[node] = false;
    if (sim_has(s, F_VERSIONS)) {
        world_cut(s->w, node, true);
        kb_node_versions(c, node, API_PRODUCE, 0, 13);
        kb_node_versions(c, node, API_METADATA, 0, 13);
    }
    for (int32_t p = 0; p < kb_topic_partitions(c, "t"); p++) {
        kb_storage_fail(c, "t", p, node, false, now_ns(s));
        kb_follower_stall(c, "t", p, node, false, now_ns(s));
    }
}

static void print_partitions(struct sim *s, const char *name)
{
    struct topic *t = kp__topics_find(s->w->p->topics, name, strlen(name));
    const struct topic_view *v = t != NULL ? kp__topic_view(t) : NULL;

    for (int32_t p = 0; p < kb_topic_partitions(s->w->cluster, name); p++) {
        const struct sender_partition *sp =
            v != NULL && p < v->count ? v->queues[p]->sender : NULL;

        world_trace(s->w,
                    "-- %s [%d]: leader %d, epoch %d; the client thinks %s, "
                    "epoch %d",
                    name, (int)p, (int)kb_leader(s->w->cluster, name, p),
                    (int)kb_leader_epoch(s->w->cluster, name, p),
                    sp != NULL && sp->leader != NULL
                        ? kp__node_name(sp->leader->node)
                        : "none",
                    sp != NULL ? (int)sp->leader_epoch : -1);
    }
}

/* Every partition has a leader again. */
static void give_leaders(struct sim *s)
{
    struct kb_cluster *c = world_cluster(s->w);

    for (int32_t p = 0; p < kb_topic_partitions(c, "t"); p++)
        for (int32_t n = 1; n <= s->nodes && kb_leader(c, "t", p) < 0; n++)
            (void)kb_leader_move(c, "t", p, n, false, now_ns(s));
}

void sim_weather_clear(struct sim *s)
{
    struct kb_cluster *c = world_cluster(s->w);

    world_trace(s->w, "-- the weather clears");
    world_fail_memory(s->w, -1, 0);
    world_hold(s->w, false);
    world_find_taken(s->w, 0, 0);
    for (uint32_t i = 0; i < SIM_CLAIMS; i++)
        finish_claim(s, i);
    world_rule_remove(s->w, -1);
    world_uncut(s->w);
    (void)kb_set(c, "replication.delay.ms", "0");
    (void)kb_set(c, "metadata.delay.ms", "0");
    (void)kb_set(c, "session.timeout.ms", "0");
    (void)kb_topic_set(c, "t", "max.message.bytes", "1000000");
    (void)kb_topic_set(c, "t", "min.insync.replicas", "1");
    if (!s->later_made && sim_has(s, F_CREATE))
        (void)kb_topic_create(c, "later", 1, 1, now_ns(s));
    s->later_made = true;
    for (int32_t i = 1; i <= s->nodes; i++)
        clear_node(s, i);
    if (kb_topic_partitions(c, "t") <= 0)
        (void)kb_topic_create(c, "t", s->partitions, 1, now_ns(s));
    any_stamp(s);
    give_leaders(s);
    world_poll_queue(s->w, true);
    print_partitions(s, "t");
    print_partitions(s, "later");
}
