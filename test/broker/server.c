/* SPDX-License-Identifier: BSD-2-Clause */
/* server.c - the thread that runs the model on sockets.
 *
 * One turn: events, then whatever is due, then output.  The lock is held but
 * for the sleep in epoll; whoever holds it may change the model and settles
 * it before giving it back. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "lib/base/thread.h"
#include "test/broker/internal.h"
#include "test/broker/server.h"

#define EVENTS_A_TURN 64

static int64_t clock_ns(clockid_t id)
{
    struct timespec t;

    (void)clock_gettime(id, &t);
    return (int64_t)t.tv_sec * KP_NS_PER_SEC + t.tv_nsec;
}

int64_t kb_server_now(const struct broker_server *s)
{
    return clock_ns(CLOCK_MONOTONIC) - s->origin_ns;
}

void kp_broker_defaults(struct broker_options *o)
{
    memset(o, 0, sizeof(*o));
    kb_config_default(&o->config);
    o->ipv6 = true;
}

void kb_server_settle(struct broker_server *s)
{
    struct kb_conn *k;

    kb_advance(s->cluster, kb_server_now(s));
    kb_server_sync_listeners(s);
    while ((k = kb_next_ready(s->cluster)) != NULL)
        if (kb_conn_user(k) != NULL)
            kb_server_socket_flush(kb_conn_user(k));
}

static int timeout_ms(const struct broker_server *s)
{
    int64_t at_ns = kb_next_event_ns(s->cluster);
    int64_t ms;

    if (at_ns == INT64_MAX)
        return -1;
    ms = kp__ns_to_ms_up(at_ns - kb_server_now(s));
    if (ms < 0)
        return 0;
    return ms > 60000 ? 60000 : (int)ms;
}

static void handle(struct broker_server *s, const struct epoll_event *e)
{
    struct watched *w = e->data.ptr;
    uint64_t drained;

    if (w->kind == WATCHED_WAKE) {
        if (read(w->fd, &drained, sizeof(drained)) < 0 && errno != EAGAIN)
            kb_die("eventfd");
    } else if (w->kind == WATCHED_LISTENER) {
        kb_server_accept(s, (struct listener *)(void *)w);
    } else {
        kb_server_socket_event((struct client_socket *)(void *)w, e->events);
    }
}

static void *run(void *arg)
{
    struct broker_server *s = arg;
    struct epoll_event events[EVENTS_A_TURN];

    (void)pthread_mutex_lock(&s->lock);
    while (!s->stopping) {
        int wait_ms, i, n;

        kb_server_settle(s);
        (void)pthread_cond_broadcast(&s->turned);
        wait_ms = timeout_ms(s);
        (void)pthread_mutex_unlock(&s->lock);
        n = epoll_wait(s->epoll_fd, events, EVENTS_A_TURN, wait_ms);
        (void)pthread_mutex_lock(&s->lock);
        for (i = 0; i < n; i++)
            handle(s, &events[i]);
        kb_server_free_closed(s);
    }
    (void)pthread_mutex_unlock(&s->lock);
    return NULL;
}

static void wake(struct broker_server *s)
{
    uint64_t one = 1;

    if (write(s->wake.fd, &one, sizeof(one)) < 0 && errno != EAGAIN)
        kb_die("eventfd");
}

static void write_bootstrap(struct broker_server *s)
{
    int i, nodes = kb_node_count(s->cluster);
    /* a comma or the end, a colon and five digits with each */
    size_t room = (size_t)nodes * (strlen(s->options.config.host) + 7) + 1;
    size_t used = 0;

    s->bootstrap = kb_alloc(room);
    for (i = 0; i < nodes; i++)
        used += (size_t)snprintf(s->bootstrap + used, room - used, "%s%s:%d",
                                 i > 0 ? "," : "", s->options.config.host,
                                 kp_broker_port(s, kb_node_id(s->cluster, i)));
}

static bool open_fds(struct broker_server *s)
{
    struct epoll_event e = {.events = EPOLLIN, .data = {.ptr = &s->wake}};

    s->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    s->wake.kind = WATCHED_WAKE;
    s->wake.fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    return s->epoll_fd >= 0 && s->wake.fd >= 0 &&
           epoll_ctl(s->epoll_fd, EPOLL_CTL_ADD, s->wake.fd, &e) == 0 &&
           kb_server_listen(s);
}

static void destroy(struct broker_server *s)
{
    while (!kp__list_empty(&s->sockets))
        kb_server_socket_close(KP_CONTAINER(kp__list_first(&s->sockets),
                                            struct client_socket, in_server),
                               false);
    kb_server_free_closed(s);
    kb_server_close_listeners(s);
    if (s->wake.fd >= 0)
        (void)close(s->wake.fd);
    if (s->epoll_fd >= 0)
        (void)close(s->epoll_fd);
    kb_destroy(s->cluster);
    kb_free(s->scratch);
    kb_free(s->bootstrap);
    (void)pthread_mutex_destroy(&s->lock);
    (void)pthread_cond_destroy(&s->turned);
    kb_free(s);
}

static struct broker_server *create(const struct broker_options *o)
{
    struct broker_server *s = kb_alloc(sizeof(*s));
    pthread_condattr_t monotonic;

    s->options = *o;
    s->origin_ns = clock_ns(CLOCK_MONOTONIC);
    s->options.config.wall_base_ms = clock_ns(CLOCK_REALTIME) / KP_NS_PER_MS;
    s->epoll_fd = s->wake.fd = -1;
    (void)pthread_mutex_init(&s->lock, NULL);
    (void)pthread_condattr_init(&monotonic);
    (void)pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    (void)pthread_cond_init(&s->turned, &monotonic);
    (void)pthread_condattr_destroy(&monotonic);
    kp__list_init(&s->sockets);
    kp__list_init(&s->closed);
    s->scratch = kb_alloc(SCRATCH_SIZE);
    s->cluster = kb_create(&s->options.config);
    return s;
}

static _Thread_local char start_error[200];

const char *kp_broker_start_error(void)
{
    return start_error;
}

static const char *remedy(const struct broker_server *s, int err)
{
    if (err == EADDRINUSE)
        return "end the program that has it, or choose another with --port "
               "(0: any that is free)";
    if (err == EACCES)
        return "ports below 1024 are the system's; choose another with --port";
    if (err == EMFILE || err == ENFILE)
        return "raise the number of open files: ulimit -n";
    return s->refused_port > 0 ? "choose another with --port"
                               : "free memory, threads or descriptors";
}

static void note_error(const struct broker_server *s, int err)
{
    char where[40] = "";

    if (s->refused_port > 0)
        (void)snprintf(where, sizeof(where), "127.0.0.1:%d: ", s->refused_port);
    (void)snprintf(start_error, sizeof(start_error), "%s%s; %s", where,
                   strerror(err), remedy(s, err));
}

struct broker_server *kp_broker_start(const struct broker_options *o)
{
    struct broker_options defaults;
    struct broker_server *s;
    int err;

    kp_broker_defaults(&defaults);
    s = create(o != NULL ? o : &defaults);
    err = open_fds(s) ? 0 : errno;
    if (err == 0) {
        write_bootstrap(s);
        err = kp__thread_start(&s->thread, "kp-broker", run, s);
    }
    if (err == 0)
        return s;
    note_error(s, err);
    destroy(s);
    errno = err;
    return NULL;
}

void kp_broker_stop(struct broker_server *s)
{
    if (s == NULL)
        return;
    (void)pthread_mutex_lock(&s->lock);
    s->stopping = true;
    (void)pthread_mutex_unlock(&s->lock);
    wake(s);
    (void)pthread_join(s->thread, NULL);
    destroy(s);
}

const char *kp_broker_bootstrap(const struct broker_server *s)
{
    return s->bootstrap;
}

int kp_broker_port(const struct broker_server *s, int32_t node_id)
{
    const struct kb_node *n = kb_node_by_id(s->cluster, node_id);

    return n == NULL ? -1 : n->port;
}

struct kb_cluster *kp_broker_lock(struct broker_server *s)
{
    (void)pthread_mutex_lock(&s->lock);
    kb_advance(s->cluster, kb_server_now(s));
    return s->cluster;
}

void kp_broker_unlock(struct broker_server *s)
{
    kb_server_settle(s);
    (void)pthread_cond_broadcast(&s->turned);
    (void)pthread_mutex_unlock(&s->lock);
    wake(s); /* it may have to sleep for another time now */
}

void kp_broker_with(struct broker_server *s,
                    void (*fn)(struct kb_cluster *c, void *arg), void *arg)
{
    fn(kp_broker_lock(s), arg);
    kp_broker_unlock(s);
}

bool kp_broker_wait(struct broker_server *s,
                    bool (*fn)(struct kb_cluster *c, void *arg), void *arg,
                    int64_t limit_ms)
{
    int64_t until_ns = clock_ns(CLOCK_MONOTONIC) + limit_ms * KP_NS_PER_MS;
    struct timespec until = {.tv_sec = until_ns / KP_NS_PER_SEC,
                             .tv_nsec = until_ns % KP_NS_PER_SEC};
    struct kb_cluster *c = kp_broker_lock(s);
    bool done = fn(c, arg);

    while (!done && clock_ns(CLOCK_MONOTONIC) < until_ns) {
        (void)pthread_cond_timedwait(&s->turned, &s->lock, &until);
        done = fn(c, arg);
    }
    kp_broker_unlock(s);
    return done;
}

int16_t kp_broker_create_topic(struct broker_server *s, const char *name,
                               int32_t partitions, int32_t replication)
{
    struct kb_cluster *c = kp_broker_lock(s);
    int16_t error =
        kb_topic_create(c, name, partitions, replication, kb_now_ns(c));

    kp_broker_unlock(s);
    return error;
}

void kp_broker_stop_node(struct broker_server *s, int32_t node_id)
{
    struct kb_cluster *c = kp_broker_lock(s);

    kb_node_stop(c, node_id, false, kb_now_ns(c));
    kp_broker_unlock(s);
}

void kp_broker_start_node(struct broker_server *s, int32_t node_id)
{
    struct kb_cluster *c = kp_broker_lock(s);

    kb_node_start(c, node_id, KB_KEEP_STATE, kb_now_ns(c));
    kp_broker_unlock(s);
}

int kp_broker_add_rule(struct broker_server *s, const char *line)
{
    struct kb_rule r;
    int id;

    if (kb_rule_parse(line, &r) != NULL)
        return -1;
    id = kb_rule_add(kp_broker_lock(s), &r);
    kp_broker_unlock(s);
    return id;
}
