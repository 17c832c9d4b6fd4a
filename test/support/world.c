/* SPDX-License-Identifier: BSD-2-Clause */
/* world.c - begin, end, and the loop of time.
 *
 * The I/O thread's loop is wait, turn, wait, turn.  A wait here ends at once
 * if the real one would; otherwise the thread is asleep until the bell is
 * rung, a socket has something, or the time comes that it asked to be woken
 * at. */
#include "test/support/world.h"

#include <check.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "io_thread/client.h"
#include "io_thread/sender.h"
#include "lib/api/producer.h"
#include "lib/shared/sticky.h"
#include "test/support/world_state.h"

#define BEGIN_NS (INT64_C(1000) * KP_NS_PER_SEC)
#define WALL_BASE_MS INT64_C(1700000000000)
#define SPINS_MAX 20000
#define SHORT_WRITES_MAX (9 * SPINS_MAX)
#define SETTLE_MAX_MS (3600 * 1000)

/* -- texts -- */

static void (*on_fail)(const struct world *w, const char *text);
static bool trace_all;

void world_on_fail(void (*fn)(const struct world *w, const char *text))
{
    on_fail = fn;
}

void world_trace_all(bool on)
{
    trace_all = on;
}

void world_fail(const struct world *w, const char *fmt, ...)
{
    char text[512];
    va_list args;

    va_start(args, fmt);
    (void)vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    if (on_fail != NULL)
        on_fail(w, text);
    ck_abort_msg("seed %llu, at %lld ms: %s", (unsigned long long)w->seed,
                 (long long)world_now_ms(w), text);
    abort();
}

void world_trace(const struct world *w, const char *fmt, ...)
{
    va_list args;

    if (!w->trace)
        return;
    (void)fprintf(stderr, "%12.6f ",
                  (double)(w->now_ns - w->begin_ns) / 1e6);
    va_start(args, fmt);
    (void)vfprintf(stderr, fmt, args);
    va_end(args);
    (void)fputc('\n', stderr);
}

static void on_log(void *arg, const kp_log *line)
{
    struct world *w = arg;

    world_trace(w, "  %s: %s", line->component, line->text);
    if (w->on_log != NULL)
        w->on_log(w, w->on_log_arg, line);
}

void world_on_log(struct world *w,
                  void (*fn)(struct world *w, void *arg, const kp_log *line),
                  void *arg)
{
    w->on_log = fn;
    w->on_log_arg = arg;
}

/* -- what happened, as one number -- */

void world_digest_add(struct world *w, uint64_t value)
{
    /* FNV-1a, by words */
    w->digest = (w->digest ^ value) * UINT64_C(0x100000001b3);
    w->digest = (w->digest ^ (uint64_t)(w->now_ns - w->begin_ns)) *
                UINT64_C(0x100000001b3);
}

uint64_t world_digest(const struct world *w)
{
    return w->digest;
}

/* -- clock -- */

static int64_t mono_ns(void *arg)
{
    return ((struct world *)arg)->now_ns;
}

int64_t world_wall_ms(const struct world *w)
{
    return WALL_BASE_MS + w->now_ns / KP_NS_PER_MS + w->wall_jump_ms;
}

static int64_t wall_ms(void *arg)
{
    return world_wall_ms(arg);
}

void world_jump_wall_ms(struct world *w, int64_t by_ms)
{
    w->wall_jump_ms += by_ms;
    w->wall_jumped = true;
}

int64_t world_now_ns(const struct world *w)
{
    return w->now_ns;
}

int64_t world_now_ms(const struct world *w)
{
    return (w->now_ns - w->begin_ns) / KP_NS_PER_MS;
}

/* -- memory -- */

#ifdef KP_FAILMALLOC
void world_enter(struct world *w)
{
    w->calls_before = kp__mem_calls();
    if (w->fails_gap < 0)
        kp__mem_fail_from(w->fails_in);
    else
        kp__mem_fail_at(w->fails_in);
}

void world_leave(struct world *w)
{
    long used = kp__mem_calls() - w->calls_before;

    kp__mem_fail_at(-1);
    w->allocations += used;
    if (w->fails_in < 0)
        return;
    if (used < w->fails_in)
        w->fails_in -= used;
    else
        w->fails_in = w->fails_gap > 0   ? w->fails_gap
                      : w->fails_gap < 0 ? 1
                                         : -1;
}
#else
void world_enter(struct world *w)
{
    (void)w;
}

void world_leave(struct world *w)
{
    (void)w;
}
#endif

void world_fail_memory(struct world *w, long nth, long gap)
{
    w->fails_in = nth;
    w->fails_gap = gap;
    w->fails_memory = w->fails_memory || nth >= 0;
}

long world_allocations(const struct world *w)
{
    return w->allocations;
}

/* -- locks -- */

static bool is_taken(void *arg)
{
    struct world *w = arg;

    if (w->taken_in > 0 && --w->taken_in == 0)
        return true;
    return w->taken_percent > 0 &&
           kp__rng_below(&w->taken_rng, 100) < w->taken_percent;
}

void world_find_taken(struct world *w, long nth, uint32_t percent)
{
    w->taken_in = nth;
    w->taken_percent = percent;
    kp__mutex_doubt(is_taken, w);
}

bool world_found_taken(const struct world *w)
{
    return w->taken_in == 0;
}

/* -- the I/O thread -- */

static void io_ended(struct world *w)
{
    w->over = true;
    atomic_store(&w->p->ended, 1);
    kp__ops_finish(&w->p->ops);
}

static bool wakes(const struct world *w)
{
    return !w->asleep || atomic_load(&w->p->bell.sleeps_until_ns) == 0 ||
           w->now_ns >= w->net.sleeps_until_ns || mem_net_has_events(&w->net);
}

static void turn(struct world *w)
{
    struct io_thread *io = w->p->io;

    w->turns++;
    kp__io_thread_become(w->p); /* so that a callback knows where it runs */
    world_enter(w);
    kp__io_thread_run_once(io, w->now_ns);
    world_leave(w);
    kp__io_thread_become(NULL);
#ifdef KP_DEBUG
    kp__pool_check(w->p->pool);
#endif
    world_known_run(w);
    world_collect(w);
    if (w->on_turn != NULL)
        w->on_turn(w, w->on_turn_arg);
    if (io->finished)
        io_ended(w);
}

void world_on_turn(struct world *w, void (*fn)(struct world *w, void *arg),
                   void *arg)
{
    w->on_turn = fn;
    w->on_turn_arg = arg;
}

/* What a turn does beside reading, and reports. */
static uint64_t deeds(const struct world *w)
{
    uint64_t n = w->p->io->client->request_count;

    for (int i = 0; i <= WORLD_NODES_MAX; i++)
        n += w->connects[i];
    return n;
}

/* Under pressure each turn seals some more. */
static bool may_do_more(const struct world *w)
{
    return kp__pool_pressure(w->p->pool, NULL) &&
           !kp__list_empty(&w->p->io->standing[STANDS_LINGERING]);
}

/* A sender has called another to the memory that it brought back: nobody wakes
 * the I/O thread for that, which looks at those who wait now and then. */
static bool was_called_since(const struct world *w)
{
    return w->p->io->relieve_at_ns == KP_NEVER &&
           kp__pool_is_held(w->p->pool);
}

static void look_twice(struct world *w)
{
    struct io_thread *io = w->p->io;
    struct rng chance = io->client->rng;
    int64_t until_ns = w->net.sleeps_until_ns;
    uint64_t before = deeds(w);

    if (may_do_more(w) || was_called_since(w))
        return;
    world_enter(w);
    kp__io_thread_run_once(io, w->now_ns);
    world_leave(w);
    io->client->rng = chance;
    if (io->progressed || deeds(w) != before)
        world_fail(w,
                   "P-sleep: the I/O thread goes to sleep, and had something "
                   "to do");
    if (kp__io_thread_next_timer(io) < until_ns)
        world_fail(w,
                   "P-sleep: the I/O thread sleeps longer than it would after "
                   "a turn more");
}

void world_look_twice(struct world *w, bool on)
{
    w->looks_twice = on;
}

/* True if a turn was run. */
static bool io_run(struct world *w)
{
    struct io_thread *io = w->p->io;
    bool woken = w->asleep;

    if (w->over || w->held || !wakes(w))
        return false;
    w->asleep = false;
    kp__io_thread_wait(io);
    if (!woken && io->event_count == 0 && w->net.sleeps_until_ns > w->now_ns) {
        w->asleep = true;
        if (w->looks_twice)
            look_twice(w);
        atomic_store(&w->p->bell.sleeps_until_ns, w->net.sleeps_until_ns);
        return false;
    }
    turn(w);
    return true;
}

/* -- time -- */

static int64_t min_ns(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t next_ns(const struct world *w)
{
    int64_t at_ns = min_ns(world_net_next_ns(w), world_actors_next_ns(w));

    if (!w->over && !w->held && w->asleep)
        at_ns = min_ns(at_ns, w->net.sleeps_until_ns);
    return at_ns;
}

/* A link that takes a few bytes a turn needs a turn for each of its writes, and
 * without latency all of a large request's are in one instant. */
static void count_spin(struct world *w)
{
    uint32_t may = SPINS_MAX;

    if (w->spin_at_ns != w->now_ns)
        w->spins = w->short_writes = 0;
    w->spin_at_ns = w->now_ns;
    may += w->short_writes < SHORT_WRITES_MAX ? w->short_writes
                                              : SHORT_WRITES_MAX;
    if (++w->spins > may)
        world_fail(w, "I-39: the I/O thread does not go to sleep");
}

/* One thing happens; false: nothing before or at until_ns, which it is now. */
static bool step(struct world *w, int64_t until_ns)
{
    bool any = world_net_run(w);
    int64_t at_ns;

    if (io_run(w)) {
        count_spin(w);
        any = true;
    }
    any = world_actors_run(w) || any;
    if (any)
        return true;
    at_ns = next_ns(w);
    if (at_ns > until_ns) {
        if (until_ns > w->now_ns && until_ns != KP_NEVER)
            w->now_ns = until_ns;
        return false;
    }
    if (at_ns > w->now_ns)
        w->now_ns = at_ns;
    return true;
}

void world_run_until_ns(struct world *w, int64_t at_ns)
{
    while (step(w, at_ns))
        ;
}

void world_run_ms(struct world *w, int64_t ms)
{
    world_run_until_ns(w, w->now_ns + ms * KP_NS_PER_MS);
}

bool world_run_until(struct world *w, bool (*done)(struct world *w, void *arg),
                     void *arg, int64_t limit_ms)
{
    int64_t until_ns = w->now_ns + limit_ms * KP_NS_PER_MS;

    while (!done(w, arg))
        if (!step(w, until_ns))
            return done(w, arg);
    return true;
}

bool world_send_returned(struct world *w, void *record)
{
    (void)w;
    return ((struct world_record *)record)->state != WORLD_WAITING;
}

static bool settled(struct world *w, void *arg)
{
    (void)arg;
    return world_is_settled(w);
}

void world_settle(struct world *w)
{
    if (!world_run_until(w, settled, NULL, SETTLE_MAX_MS))
        world_fail(w, "I-01: %u sends wait and %u reports are missing", w->waiting,
                   w->unreported);
}

static bool enough_attempts(struct world *w, void *arg)
{
    return w->attempt_count >= *(size_t *)arg;
}

void world_run_until_attempts(struct world *w, size_t n)
{
    if (!world_run_until(w, enough_attempts, &n, SETTLE_MAX_MS))
        world_fail(w, "%zu batches were sent, not %zu", w->attempt_count, n);
}

void world_hold(struct world *w, bool on)
{
    if (w->held == on)
        return;
    if (on)
        w->held_since_ns = w->now_ns;
    else
        w->held_ns += w->now_ns - w->held_since_ns;
    w->held = on;
}

uint64_t world_turns(const struct world *w)
{
    return w->turns;
}

/* -- begin -- */

static void make_cluster(struct world *w, const struct world_options *o)
{
    struct kb_config c;
    char host[32];

    if (o->broker != NULL)
        c = *o->broker;
    else
        kb_config_default(&c);
    if (o->broker == NULL)
        c.auto_create = false;
    c.nodes = o->nodes > 0 ? o->nodes : 1;
    c.wall_base_ms = WALL_BASE_MS;
    if (c.nodes > WORLD_NODES_MAX)
        abort();
    w->cluster = kb_create(&c);
    kb_advance(w->cluster, w->now_ns);
    kb_on_verdict(w->cluster, world_seen_verdict, w);
    for (int i = 1; i <= c.nodes; i++) {
        (void)snprintf(host, sizeof(host), "10.0.0.%d", i);
        kb_node_address(w->cluster, i, host, 9092);
    }
    if (o->partitions >= 0 &&
        kb_topic_create(w->cluster, "t", o->partitions > 0 ? o->partitions : 1,
                        o->replication > 0 ? o->replication : 1,
                        w->now_ns) != 0)
        abort();
}

static void set(kp_config *config, const char *name, const char *value)
{
    kp_error error;

    if (kp_config_set(config, name, value, &error) != KP_OK)
        ck_abort_msg("%s=%s: %s", name, value, error.text);
}

static void make_producer(struct world *w, const struct world_options *o)
{
    struct clock clock = {mono_ns, mono_ns, wall_ms, w};
    struct io_env env = {clock, w->seed, &w->transport, &w->net.poller,
                         &w->net.resolver};
    char bootstrap[WORLD_NODES_MAX * 24] = "";
    kp_config *config;
    kp_error error;

    if (kp_config_create(&config) != KP_OK)
        abort();
    for (int i = 1; i <= kb_node_count(w->cluster); i++)
        (void)snprintf(bootstrap + strlen(bootstrap),
                       sizeof(bootstrap) - strlen(bootstrap),
                       "%s10.0.0.%d:9092", i > 1 ? "," : "", i);
    set(config, "bootstrap.servers",
        o->bootstrap != NULL ? o->bootstrap : bootstrap);
    set(config, "client.id", "world");
    for (const char *const *s = o->settings; s != NULL && *s != NULL; s += 2)
        set(config, s[0], s[1]);
    if (o->partitioner != NULL)
        kp_config_set_partitioner(config, o->partitioner, NULL);
    if (w->trace || o->watches_log)
        kp_config_on_log(config, KP_LOG_DEBUG, on_log, w);
    if (kp__producer_make(&w->p, config, &clock, &error) != KP_OK ||
        kp__io_thread_attach(w->p, &env, &error) != KP_OK)
        ck_abort_msg("%s", error.text);
    kp_config_destroy(config);
    w->idempotent = w->p->settings.idempotence;
}

static bool ready(struct world *w, void *arg)
{
    struct topic *t = kp__topics_find(w->p->topics, "t", 1);

    (void)arg;
    return t != NULL &&
           (!w->idempotent || w->p->io->producer_id >= 0);
}

/* The topic is known, an id is there and nothing else happens any more. */
static void get_ready(struct world *w)
{
    if (!kp__producer_post(w->p, OP_WANT_TOPIC, "t", 1))
        abort();
    if (!world_run_until(w, ready, NULL, 60000))
        world_fail(w, "the client does not get ready");
    world_run_ms(w, 10);
}

struct world *world_begin(const struct world_options *o)
{
    struct world *w = world_must(calloc(1, sizeof(*w)));
    int64_t latency_ns = o->latency_ns > 0 ? o->latency_ns : KP_NS_PER_MS;

    w->now_ns = w->begin_ns = BEGIN_NS;
    w->seed = o->seed;
    kp__rng_seed(&w->taken_rng, o->seed);
    kp__hop = (struct hop){0};
    kp__thread_rng_seed(o->seed); /* this thread is every sender */
    w->trace = trace_all || getenv("KP_WORLD_TRACE") != NULL;
    w->digest = UINT64_C(0xcbf29ce484222325);
    w->poll_queue = true;
    w->watches_wire = o->watches_wire;
    w->split_ns = -1;
    w->fails_in = -1;
    kp__map_init(&w->names);
    world_net_init(w);
    for (int i = 0; i <= WORLD_NODES_MAX; i++)
        w->links[i].to_ns = w->links[i].from_ns = latency_ns;
    make_cluster(w, o);
    make_producer(w, o);
    if (!o->no_wait && o->partitions >= 0)
        get_ready(w);
    return w;
}

/* -- end -- */

static void check_memory(struct world *w)
{
    struct pool_stats stats;

    world_poll_now(w, SIZE_MAX);
    kp__pool_stats(w->p->pool, &stats);
    if (stats.available_bytes != stats.total_bytes)
        world_fail(w, "I-27: %zu bytes of buffer.memory were not given back",
                   stats.total_bytes - stats.available_bytes);
    if (stats.waiting_threads != 0)
        world_fail(w, "I-28: %u threads still wait for memory",
                   stats.waiting_threads);
}

void world_end(struct world *w)
{
    if (!w->over) {
        (void)world_close(w, 0);
        world_settle(w);
    }
    /* Closed by a callback, perhaps: joined by nobody yet. */
    (void)kp_close(w->p, KP_FOREVER, NULL);
    check_memory(w);
    if (kp_producer_destroy(w->p) != KP_OK)
        world_fail(w, "destroy failed");
    kp__mutex_doubt(NULL, NULL);
    world_actors_fini(w);
    world_net_fini(w);
    kb_destroy(w->cluster);
    world_seen_fini(w);
    free(w);
}

struct kb_cluster *world_cluster(struct world *w)
{
    kb_advance(w->cluster, w->now_ns);
    return w->cluster;
}

kp_producer *world_producer(struct world *w)
{
    return w->p;
}

struct world_link *world_link(struct world *w, int32_t node)
{
    return &w->links[node];
}

int world_rule(struct world *w, const char *line)
{
    struct kb_rule rule;
    const char *wrong = kb_rule_parse(line, &rule);

    if (wrong != NULL)
        world_fail(w, "%s: %s", line, wrong);
    return kb_rule_add(w->cluster, &rule);
}

void world_rule_remove(struct world *w, int id)
{
    kb_rule_remove(w->cluster, id);
}
