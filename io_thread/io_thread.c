/* SPDX-License-Identifier: BSD-2-Clause */
/* io_thread.c - the one thread: its state, its turn, its sleep.
 *
 * kp__io_thread_run_once is a function of the state and the time it is given;
 * time, chance, sockets and names come through io_env, so a test can be the
 * world. Java: Sender.runOnce, KafkaProducer's ioThread. */
#include "io_thread/sender.h"

#include "lib/base/error.h"
#include "lib/base/str.h"
#include "lib/base/thread.h"


/* -- edges from the network and the metadata -- */

/* A node may be able to take a request, perhaps after this turn's asking for
 * one. */
static void node_can_send(void *arg, struct node *n)
{
    struct io_thread *io = arg;

    (void)n;
    io->id_no_node = false;
    kp__metadata_look_again(io->metadata);
    io->progressed = true;
}

static void node_ready(void *arg, struct node *n)
{
    struct io_thread *io = arg;
    struct sender_node *sn = kp__sn_get(io, n);

    kp__pool_set_any_reachable(io->p->pool, true);
    if (sn != NULL)
        kp__sn_reachable(io, sn, true);
    node_can_send(io, n);
}

static void node_down(void *arg, struct node *n, kp_err err)
{
    struct io_thread *io = arg;
    struct sender_node *sn = kp__sn_get(io, n);

    io->last_network_err = err;
    if (sn != NULL)
        kp__sn_reachable(io, sn, !kp__client_is_unreachable(n));
    kp__pool_set_any_reachable(io->p->pool,
                               kp__client_any_reachable(io->client));
    kp__metadata_stale(io->metadata, io->now_ns);
}

/* A topic is no idle one while records for it wait, however long. */
static void keep_topics_in_use(struct io_thread *io)
{
    struct list_node *n = kp__list_first(&io->active);

    for (; n != NULL; n = kp__list_next(&io->active, n))
        kp__metadata_used(
            io->metadata,
            KP_CONTAINER(n, struct sender_partition, active_link)->queue->topic,
            io->now_ns);
}

static void metadata_updated(void *arg)
{
    struct io_thread *io = arg;

    keep_topics_in_use(io);

    /* Leaders that are new have said so; one that there was no memory for then
     * is looked for again. */
    kp__plan_all(io, STANDS_NO_LEADER);
    io->progressed = true;
}

/* -- making and ending -- */

static void lists_init(struct io_thread *io)
{
    for (int i = 0; i < STANDING_COUNT; i++)
        kp__list_init(&io->standing[i]);
    kp__list_init(&io->nodes_with_data);
    kp__list_init(&io->active);
    kp__list_init(&io->done);
    kp__list_init(&io->to_report);
    kp__list_init(&io->to_weigh);
    kp__heap_init(&io->timers);
    kp__heap_init(&io->lingers);
    kp__heap_init(&io->deadlines);
    kp__arena_init(&io->scratch);
    kp__arena_init(&io->answers);
}

static void io_free(struct io_thread *io)
{
    if (io == NULL)
        return;
    /* The client first: it ends every request, which tells the metadata. */
    if (io->client != NULL)
        kp__client_destroy(io->client);
    if (io->metadata != NULL)
        kp__metadata_destroy(io->metadata);
    kp__partitions_free(io);
    if (io->poller != NULL)
        io->env.poller->destroy(io->poller);
    kp__arena_fini(&io->scratch);
    kp__arena_fini(&io->answers);
    kp__free(io->taken.batches);
    kp__split_fini(io);
    kp__free(io);
}

static kp_err no_memory(kp_error *error)
{
    return kp__error_set(error, KP_ENOMEM, KP_OK,
                         "no memory for the I/O thread's state");
}

static kp_err make_network(struct io_thread *io, kp_error *error)
{
    struct kp_producer *p = io->p;
    struct client_events on_client = {node_ready, node_can_send, node_down, io};
    struct metadata_events on_metadata = {kp__sp_leader, metadata_updated, io,
                                          kp__weights_first};

    io->poller = io->env.poller->create(io->env.poller->arg, &p->bell.wakeup);
    if (io->poller == NULL)
        return kp__error_set(error, KP_ENOMEM, KP_OK,
                             "the system gave no poller: too many open "
                             "files? see ulimit -n");
    io->client = kp__client_create(io->settings, &io->env, p->log, p->metrics,
                                   &p->status, &on_client);
    if (io->client == NULL)
        return no_memory(error);
    kp__client_attach(io->client, io->poller, &p->bell.wakeup);
    io->metadata = kp__metadata_create(io->settings, io->client, p->topics,
                                       &p->status, p->log, p->metrics,
                                       kp__rng_next(&io->rng), &on_metadata,
                                       io->now_ns);
    if (io->metadata == NULL)
        return no_memory(error);
    return KP_OK;
}

#define TAKEN_AT_FIRST 64

/* What sending and splitting must not fail to get when they need it. */
static bool make_room(struct io_thread *io)
{
    struct taken *t = &io->taken;

    t->batches = kp__alloc_array(TAKEN_AT_FIRST, sizeof(struct batch *));
    t->capacity = TAKEN_AT_FIRST;
    return kp__split_init(io) && t->batches != NULL;
}

kp_err kp__io_thread_attach(struct kp_producer *p, const struct io_env *env,
                            kp_error *error)
{
    struct io_thread *io = kp__zalloc(sizeof(*io));
    kp_err err;

    if (io == NULL)
        return no_memory(error);
    io->p = p;
    io->settings = &p->settings;
    io->env = *env;
    io->now_ns = kp__now_ns(&env->clock);
    io->producer_id = -1;
    io->id_wanted = io->settings->idempotence;
    io->close_at_ns = KP_NEVER;
    io->relieve_at_ns = KP_NEVER;
    kp__rng_seed(&io->rng, env->seed);
    lists_init(io);
    err = make_room(io) ? make_network(io, error) : no_memory(error);
    if (err != KP_OK) {
        io_free(io);
        return err;
    }
    p->io = io;
    return KP_OK;
}

/* Whose I/O thread this one is.  The state itself cannot be asked: another
 * closer may be freeing it. */
static _Thread_local const struct kp_producer *mine;

void kp__io_thread_become(const struct kp_producer *p)
{
    mine = p;
}

static void *io_main(void *arg)
{
    struct io_thread *io = arg;

    kp__io_thread_become(io->p);
    while (!io->finished && !io->forked) {
        kp__io_thread_wait(io);
        kp__io_thread_run_once(io, kp__now_ns(&io->env.clock));
    }
    if (io->forked)
        return NULL; /* the connections are the parent's, and nobody else here */
    /* seq_cst: an op posted after this is seen to by who posted it, one posted
     * before by us. */
    atomic_store(&io->p->ended, 1);
    kp__ops_finish(&io->p->ops);
    return NULL;
}

kp_err kp__io_thread_start(struct kp_producer *p, kp_error *error)
{
    struct io_env env = {
        .clock = p->clock,
        .seed = kp__rng_system_seed(),
        .transport = &kp__tcp_transport,
        .poller = &kp__system_poller,
        .resolver = &kp__system_resolver,
    };
    kp_err err = kp__io_thread_attach(p, &env, error);
    char name[64];
    int sys;

    if (err != KP_OK)
        return err;
    (void)kp__format(name, sizeof(name), "kp-io:%s", p->settings.client_id);
    sys = kp__thread_start(&p->io->thread, name, io_main, p->io);
    if (sys != 0) {
        io_free(p->io);
        p->io = NULL;
        return kp__error_set(error, KP_ENOMEM, KP_OK,
                             "the system started no thread (errno %d): see "
                             "ulimit -u",
                             sys);
    }
    p->io->threaded = true;
    return KP_OK;
}

void kp__io_thread_stop(struct kp_producer *p)
{
    if (p->io == NULL)
        return;
    if (p->io->threaded)
        (void)pthread_join(p->io->thread, NULL);
    io_free(p->io);
    p->io = NULL;
}

bool kp__io_thread_is_me(const struct kp_producer *p)
{
    return mine == p;
}

void kp__io_thread_abandon(struct kp_producer *p)
{
    struct io_thread *io = p->io;

    if (io == NULL)
        return;
    /* The state stays: the thread that was changing it is not here. */
    kp__client_abandon(io->client);
    io->env.poller->destroy(io->poller);
    p->io = NULL;
}

/* -- the turn -- */

static void judge(struct io_thread *io)
{
    if (kp__client_read(io->client, io->events, io->event_count,
                        io->now_ns) > 0)
        io->progressed = true;
    io->event_count = 0;
    kp__client_timers(io->client, io->now_ns);
    /* Deadlines after the answers that had already come. */
    kp__expire_due(io);
    kp__serve_close_due(io);
}

/* A sender that was called for its memory and does not come (it is in a signal's
 * handler, or has no processor) keeps nobody else from theirs.  Whoever brings
 * back what is held for it does not wake us: so while there is a line it is
 * looked at now and then. */
#define HELD_NS KP_NS_PER_MS
#define LINE_NS (100 * KP_NS_PER_MS)

static void relieve(struct io_thread *io)
{
    if (!kp__pool_is_held(io->p->pool)) {
        io->relieve_at_ns = KP_NEVER;
    } else if (io->relieve_at_ns == KP_NEVER) {
        io->relieve_at_ns = kp__ns_add(io->now_ns, HELD_NS);
    } else if (io->relieve_at_ns <= io->now_ns) {
        kp__pool_relieve(io->p->pool);
        io->relieve_at_ns = kp__ns_add(io->now_ns, HELD_NS);
    }
}

static void plan(struct io_thread *io)
{
    relieve(io);
    (void)kp__plan_drain(io);
    kp__plan_timers(io);
    kp__plan_split(io);
    kp__plan_pressure(io);
    kp__plan_compress(io);
    kp__metadata_run(io->metadata, io->now_ns);
    kp__id_run(io);
    kp__send_ready(io);
    kp__plan_busy(io);
}

void kp__io_thread_run_once(struct io_thread *io, int64_t now_ns)
{
    io->now_ns = now_ns;
    io->progressed = false;
    /* seq_cst: before anything is looked at.  An exchange, so that what was
     * published before it was asked for is seen; what is asked for later is seen
     * by the last look before the sleep. */
    (void)atomic_exchange(&io->p->bell.look, 0);
    kp__serve_ops(io);
    judge(io);
    plan(io);
    if (kp__client_write(io->client, io->now_ns))
        io->progressed = true;
    kp__report_all(io);
    if (io->forked)
        return;
    relieve(io); /* memory has come back since */
    kp__serve_pending(io);
    kp__weights_update(io);
    if (kp__nothing_left(io))
        atomic_store(&io->p->busy, 0);
#ifdef KP_DEBUG
    kp__plan_check(io);
    kp__client_check(io->client);
#endif
}

/* -- the sleep -- */

#define BROKEN_PAUSE_NS (10 * KP_NS_PER_MS)

static int64_t earlier(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t heap_at(const struct heap *h)
{
    const struct heap_node *n = kp__heap_first(h);

    return n != NULL ? n->at_ns : KP_NEVER;
}

/* Is there anything that another turn could do at once?  Asked only after
 * progress: else we would spin. */
static bool work_left(const struct io_thread *io)
{
    const struct list *nodes = &io->nodes_with_data;
    const struct list_node *n;

    if (!kp__list_empty(&io->standing[STANDS_BUSY]) ||
        !kp__list_empty(&io->standing[STANDS_SEALED]) ||
        !kp__list_empty(&io->done) || !kp__list_empty(&io->to_report) ||
        (io->closing && io->forced))
        return true;
    for (n = kp__list_first(nodes); n != NULL; n = kp__list_next(nodes, n)) {
        const struct sender_node *sn =
            KP_CONTAINER(n, const struct sender_node, link);

        /* One that became ready after this turn's sending has not been
         * connected to yet. */
        if (kp__client_can_send(io->client, sn->node, io->now_ns) ||
            kp__client_is_idle(sn->node))
            return true;
    }
    return false;
}

int64_t kp__io_thread_next_timer(const struct io_thread *io)
{
    int64_t at_ns = heap_at(&io->timers);

    at_ns = earlier(at_ns, heap_at(&io->lingers));
    at_ns = earlier(at_ns, heap_at(&io->deadlines));
    at_ns = earlier(at_ns, kp__client_next_timer(io->client));
    at_ns = earlier(at_ns, kp__metadata_next_timer(io->metadata, io->now_ns));
    at_ns = earlier(at_ns, kp__id_next_timer(io));
    at_ns = earlier(at_ns, kp__serve_next_timer(io));
    at_ns = earlier(at_ns, io->relieve_at_ns);
    if (kp__pool_has_line(io->p->pool))
        at_ns = earlier(at_ns, kp__ns_add(io->now_ns, LINE_NS));
    if (!kp__list_empty(&io->to_weigh))
        at_ns = earlier(at_ns, io->weights_at_ns);
    if (io->progressed && work_left(io))
        at_ns = io->now_ns;
    return at_ns;
}

static void record_sleep(struct io_thread *io, int64_t began_ns,
                         int64_t woke_ns)
{
    struct metrics *m = io->p->metrics;

    kp__metrics_record(m, SENSOR_SELECTS, 1, woke_ns);
    kp__metrics_record(m, SENSOR_IO_WAIT_NS, (double)(woke_ns - began_ns),
                       woke_ns);
    kp__metrics_record(m, SENSOR_IO_NS, (double)(began_ns - io->now_ns),
                       began_ns);
}

/* The first turn after it fails what there is and makes the reports; then there
 * is little left to do, and nothing that would hold us up. */
static void poller_failed(struct io_thread *io, int64_t again_ns)
{
    kp__fatal(io, KP_ECONNECT,
              "the system's poller failed: nothing can be sent or received any "
              "more; make another producer");
    if (io->poller_broken)
        io->env.poller->pause(io->poller, again_ns);
}

void kp__io_thread_wait(struct io_thread *io)
{
    struct io_bell *bell = &io->p->bell;
    int64_t began_ns = kp__now_ns(&io->env.clock);
    int64_t until_ns = kp__io_thread_next_timer(io);
    int n;

    if (until_ns > began_ns) {
        /* seq_cst: stored before the last look; a sender pushes before it
         * loads. So either we see its push or it sees that we sleep. */
        atomic_store(&bell->sleeps_until_ns, until_ns);
        if (!kp__drain_empty(&io->p->accumulator) ||
            !kp__ops_empty(&io->p->ops) || atomic_load(&bell->look) != 0)
            until_ns = began_ns;
    }
    n = io->env.poller->wait(io->poller, began_ns, until_ns, io->events,
                             (int)(sizeof(io->events) /
                                   sizeof(io->events[0])));
    atomic_store(&bell->sleeps_until_ns, 0);
    if (n < 0)
        poller_failed(io, earlier(until_ns, began_ns + BROKEN_PAUSE_NS));
    io->poller_broken = n < 0;
    if (n < 0)
        n = 0;
    io->event_count = (size_t)n;
    record_sleep(io, began_ns, kp__now_ns(&io->env.clock));
}
