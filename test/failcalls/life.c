/* SPDX-License-Identifier: BSD-2-Clause */
/* life.c - a producer's whole life, of which one call may fail.
 *
 * One thread beside the library's own.  What must hold: each record that was
 * taken has one report, in time; YES is in the log once, NO and what was
 * refused are not in it; a call that fails says why; a producer that was made
 * delivers again afterwards; all memory, descriptors and threads are given
 * back; a life that takes too long ends the program with the call's name. */
#include "test/failcalls/life.h"

#include <check.h>
#include <dirent.h>
#include <kp/kp.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "lib/base/mem.h"
#include "test/failcalls/broker_process.h"

/* The system's own, past the doubles. */
int __real_poll(struct pollfd *fds, nfds_t count, int ms);

#define RECORDS 24
#define DELIVERY_MS 8000
#define LATE_MS 4000 /* what a loaded machine may add */
#define HANG_S 60
#define SPIN_CALLS 5000

enum route { BY_FUTURE, BY_CALLBACK, BY_QUEUE, ROUTES };

struct sent {
    uint32_t number;
    enum route route;
    kp_err refused; /* KP_OK: taken */
    char value[200];
    int64_t sent_ms;
    kp_future future;
    atomic_int reports;
    kp_err err;
    int32_t stored;
    int64_t reported_ms;
    unsigned in_log;
};

struct life {
    const struct kind_of_life *kind;
    int port;
    const struct failure *failure;
    unsigned *violations;
    char topic[40], path[64];
    kp_producer *p;
    kp_cq *q;
    struct sent sent[RECORDS + 1]; /* the last: when nothing fails any more */
    kp_error error;
};

/* -- what is broken -- */

static void broken(struct life *l, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
static void broken(struct life *l, const char *fmt, ...)
{
    struct failed_call f = calls_failed();
    va_list args;

    ++*l->violations;
    (void)fprintf(stderr, "%s: call %lu way %u, %s%s%s: ", l->kind->name,
                  l->failure->nth, l->failure->way,
                  f.name != NULL ? f.name : "none", f.name != NULL ? ": " : "",
                  f.name != NULL ? calls_how(f.how) : "");
    va_start(args, fmt);
    (void)vfprintf(stderr, fmt, args);
    va_end(args);
    (void)fputc('\n', stderr);
}

/* A call that failed has a text, and an error that can be meant. */
static void must_say_why(struct life *l, const char *call, kp_err err)
{
    if (l->error.err != err || l->error.text[0] == '\0')
        broken(l, "%s: %s without a text", call, kp_err_name(err));
}

/* -- the watch -- */

static void hangs(int number)
{
    static const char text[] = ": this life does not end\n";
    struct failed_call f = calls_failed();

    (void)number;
    if (f.name != NULL)
        (void)!write(2, f.name, strlen(f.name));
    (void)!write(2, text, sizeof(text) - 1);
    abort();
}

static void watch(struct life *l)
{
    struct sigaction a = {.sa_handler = hangs};

    (void)sigaction(SIGALRM, &a, NULL);
    (void)alarm(l != NULL ? HANG_S : 0);
}

/* -- what a life leaves behind -- */

static unsigned open_fds(void)
{
    DIR *d = opendir("/proc/self/fd");
    unsigned n = 0;

    ck_assert_ptr_nonnull(d);
    while (readdir(d) != NULL)
        n++;
    (void)closedir(d);
    return n;
}

struct leftovers {
    long memory;
    unsigned fds;
};

static struct leftovers leftovers(void)
{
    return (struct leftovers){kp__mem_live(), open_fds()};
}

static void pause_ms(long ms)
{
    struct timespec t = {.tv_nsec = ms * 1000000};

    (void)nanosleep(&t, NULL);
}

/* A look-up that nobody waits for may still be under way. */
static void check_leftovers(struct life *l, struct leftovers before)
{
    int64_t until_ms = calls_now_ms() + 20000;
    struct leftovers now = leftovers();

    while ((now.memory != before.memory || now.fds != before.fds) &&
           calls_now_ms() < until_ms) {
        pause_ms(1);
        now = leftovers();
    }
    if (now.memory != before.memory)
        broken(l, "%ld allocations left", now.memory - before.memory);
    if (now.fds != before.fds)
        broken(l, "%u descriptors, before %u", now.fds, before.fds);
    if (calls_closed_twice() != 0)
        broken(l, "%u descriptors closed that were not open",
               calls_closed_twice());
}

/* -- reports -- */

static void take_report(struct sent *s, const kp_report *r)
{
    s->err = r->err;
    s->stored = (int32_t)r->stored;
    s->reported_ms = calls_now_ms();
    atomic_fetch_add(&s->reports, 1);
}

static void on_delivery(const kp_report *r)
{
    take_report(r->tag, r);
}

static void poll_queue(struct life *l)
{
    kp_report r[8];
    size_t n;

    while ((n = kp_cq_poll(l->q, r, 8, 0)) > 0)
        for (size_t i = 0; i < n; i++)
            take_report(r[i].tag, &r[i]);
}

static void collect(struct life *l)
{
    poll_queue(l);
    for (int i = 0; i <= RECORDS; i++) {
        struct sent *s = &l->sent[i];
        kp_report one;

        if (s->number != 0 && s->refused == KP_OK && s->route == BY_FUTURE &&
            atomic_load(&s->reports) == 0 &&
            kp_future_wait(&s->future, 0, &one) != KP_PENDING)
            take_report(s, &one);
    }
}

/* -- the life -- */

static void write_settings(struct life *l)
{
    FILE *f;

    (void)snprintf(l->path, sizeof(l->path), "/tmp/kp-failcalls-%ld",
                   (long)getpid());
    f = fopen(l->path, "w");
    ck_assert_ptr_nonnull(f);
    (void)fprintf(f,
                  "bootstrap.servers=%s:%d\n"
                  "delivery.timeout.ms=%d\n"
                  "request.timeout.ms=2500\nmax.block.ms=5000\nlinger.ms=1\n"
                  "batch.size=900\nretry.backoff.ms=5\n"
                  "reconnect.backoff.ms=5\nreconnect.backoff.max.ms=20\n"
                  "socket.connection.setup.timeout.ms=2500\n"
                  "buffer.memory=300000\nclient.id=unlucky\n%s",
                  l->kind->host, l->port, DELIVERY_MS, l->kind->settings);
    (void)fclose(f);
}

static kp_err configure(struct life *l, kp_config *c)
{
    kp_err err = kp_config_load(c, l->path, &l->error);

    if (err != KP_OK) {
        must_say_why(l, "kp_config_load", err);
        return err;
    }
    err = kp_producer_create(&l->p, c, &l->error);
    if (err != KP_OK)
        must_say_why(l, "kp_producer_create", err);
    return err;
}

static bool begin(struct life *l)
{
    kp_config *c = NULL;
    kp_err err = kp_config_create(&c);

    if (err == KP_OK)
        err = kp_cq_create(&l->q, &l->error);
    if (err == KP_OK)
        err = configure(l, c);
    kp_config_destroy(c);
    if (err != KP_OK && calls_failed().name == NULL)
        broken(l, "%s though nothing failed: %s", kp_err_name(err),
               l->error.text);
    return err == KP_OK;
}

static void send_one(struct life *l, int i)
{
    struct sent *s = &l->sent[i];
    kp_record r = {.topic = l->topic,
                   .partition = i % 2,
                   .flags = KP_HAS_PARTITION,
                   .tag = s};

    s->number = (uint32_t)i + 1;
    s->route = (enum route)(i % ROUTES);
    if (s->route == BY_QUEUE && l->kind->no_queue)
        s->route = BY_CALLBACK;
    memset(s->value, 'v', sizeof(s->value));
    memcpy(s->value, &s->number, sizeof(s->number));
    r.value = (kp_bytes){s->value, sizeof(s->value)};
    r.on_delivery = s->route == BY_CALLBACK ? on_delivery : NULL;
    r.queue = s->route == BY_QUEUE ? l->q : NULL;
    s->refused = kp_send(l->p, &r, s->route == BY_FUTURE ? &s->future : NULL);
    s->sent_ms = calls_now_ms();
}

static void count_one(void *arg, const kp_metric *m)
{
    (void)m;
    ++*(int *)arg;
}

static void note_closes(void *arg, const kp_metric *m)
{
    if (strcmp(m->name, "connection-close-total") == 0 && m->label_count == 1)
        *(double *)arg = m->value;
}

/* What a call's failure loses nothing by, costs no connection either. */
static void check_connections(struct life *l)
{
    double closes = -1;

    kp_metrics(l->p, note_closes, &closes);
    if (closes < 0)
        broken(l, "no count of connections");
    if (l->kind->closes >= 0 && closes > l->kind->closes &&
        calls_failed().harmless)
        broken(l, "%g connections were lost", closes - l->kind->closes);
}

/* The calls of a life that do not send. */
static void look_around(struct life *l)
{
    int32_t partitions = 0;
    int metrics = 0;
    kp_err err =
        kp_partitions_for(l->p, l->topic, DELIVERY_MS, &partitions, NULL, NULL);

    if (err == KP_OK && partitions != 2)
        broken(l, "the topic has %d partitions", (int)partitions);
    if (err != KP_OK && calls_failed().name == NULL)
        broken(l, "kp_partitions_for: %s", kp_err_name(err));
    kp_metrics(l->p, count_one, &metrics);
    if (metrics < 10)
        broken(l, "%d metrics", metrics);
}

/* An event loop would sleep for ever on a queue that does not say it has
 * something. */
static void wait_for_queue(struct life *l)
{
    struct pollfd fd = {.fd = kp_cq_fd(l->q), .events = POLLIN};
    int64_t until_ms = calls_now_ms() + DELIVERY_MS + LATE_MS;
    int missing;

    do {
        missing = 0;
        for (int i = 0; i < RECORDS; i++)
            missing += l->sent[i].route == BY_QUEUE &&
                       l->sent[i].refused == KP_OK &&
                       atomic_load(&l->sent[i].reports) == 0;
        if (missing > 0 && __real_poll(&fd, 1, DELIVERY_MS + LATE_MS) == 1)
            poll_queue(l);
    } while (missing > 0 && calls_now_ms() < until_ms);
    if (missing > 0)
        broken(l, "%d reports in the queue, and its descriptor is silent",
               missing);
}

static void send_and_flush(struct life *l)
{
    kp_err err;

    look_around(l);
    for (int i = 0; i < RECORDS; i++) {
        poll_queue(l); /* reports that wait there take memory */
        send_one(l, i);
        if (i == RECORDS / 2)
            pause_ms(3); /* so that batches leave by their linger too */
    }
    if (l->sent[0].route == BY_FUTURE && l->sent[0].refused == KP_OK &&
        kp_future_wait(&l->sent[0].future, DELIVERY_MS + LATE_MS, NULL) ==
            KP_PENDING)
        broken(l, "the first record's wait did not end");
    wait_for_queue(l);
    err = kp_flush(l->p, DELIVERY_MS + LATE_MS, &l->error);
    if (err == KP_PENDING)
        broken(l, "the flush did not end");
    else if (err != KP_OK)
        must_say_why(l, "kp_flush", err);
}

/* Nothing fails any more: whatever happened, it goes on. */
static void send_last(struct life *l)
{
    struct sent *s = &l->sent[RECORDS];
    kp_error why = {0};

    send_one(l, RECORDS);
    (void)kp_flush(l->p, DELIVERY_MS + LATE_MS, &l->error);
    collect(l);
    if (s->refused != KP_OK || s->err != KP_OK || s->stored != KP_STORED_YES) {
        (void)kp_status(l->p, NULL, &why);
        broken(l, "does not go on: send %s, report %s; %s",
               kp_err_name(s->refused), kp_err_name(s->err), why.text);
    }
}

/* A call that fails once must not make the I/O thread turn round and round. */
static void check_spin(struct life *l)
{
    unsigned long n = calls_counted(CALLS);

    if (n > SPIN_CALLS)
        broken(l, "%lu calls: it does not go to sleep", n);
}

static void check_record(struct life *l, struct sent *s)
{
    int reports = atomic_load(&s->reports);
    int64_t took_ms = s->reported_ms - s->sent_ms;

    if (s->refused != KP_OK) {
        if (reports != 0 || s->in_log != 0)
            broken(l, "record %u: refused with %s, %d reports, %u in the log",
                   s->number, kp_err_name(s->refused), reports, s->in_log);
        return;
    }
    if (reports != 1)
        broken(l, "record %u: %d reports", s->number, reports);
    else if (took_ms > DELIVERY_MS + LATE_MS)
        broken(l, "record %u: reported after %lld ms", s->number,
               (long long)took_ms);
    if ((s->stored == KP_STORED_YES && s->in_log == 0) ||
        (s->stored == KP_STORED_NO && s->in_log != 0) ||
        (s->in_log > 1 && l->kind->once))
        broken(l, "record %u: %s, stored %d, %u times in the log", s->number,
               kp_err_name(s->err), s->stored, s->in_log);
    if ((s->err == KP_OK) != (s->stored == KP_STORED_YES))
        broken(l, "record %u: %s, but stored %d", s->number,
               kp_err_name(s->err), s->stored);
}

static void check_records(struct life *l)
{
    uint32_t numbers[512], last[2] = {0, 0};
    size_t n = broker_process_take(l->topic, numbers, 512);

    for (size_t i = 0; i < n; i++) {
        uint32_t number = numbers[i], *before;

        if (number == 0 || number > RECORDS + 1) {
            broken(l, "a record in the log that nobody sent");
            continue;
        }
        before = &last[(number - 1) % 2];
        if (number <= *before && l->kind->once)
            broken(l, "record %u stands behind %u", number, *before);
        *before = number;
        l->sent[number - 1].in_log++;
    }
    for (int i = 0; i <= RECORDS; i++)
        check_record(l, &l->sent[i]);
}

static void end(struct life *l)
{
    kp_err err = kp_close(l->p, DELIVERY_MS + LATE_MS, &l->error);

    if (err != KP_OK)
        must_say_why(l, "kp_close", err);
    collect(l);
    if (kp_producer_destroy(l->p) != KP_OK)
        broken(l, "kp_producer_destroy failed");
    for (int i = 0; i <= RECORDS; i++)
        kp_future_release(&l->sent[i].future, 1);
}

static void live(struct life *l)
{
    if (!begin(l)) {
        calls_disarm();
        kp_cq_destroy(l->q);
        (void)broker_process_take(l->topic, (uint32_t[512]){0}, 512);
        return;
    }
    send_and_flush(l);
    if (!l->failure->until_end)
        calls_disarm();
    send_last(l);
    check_connections(l);
    end(l);
    calls_disarm();
    check_spin(l);
    check_records(l);
    kp_cq_destroy(l->q);
}

unsigned long life_live(const struct kind_of_life *kind, int port,
                        const struct failure *f, struct failed_call *failed,
                        unsigned *violations)
{
    static unsigned lives;
    struct life *l = calloc(1, sizeof(*l));
    struct leftovers before = leftovers();

    ck_assert_ptr_nonnull(l);
    l->kind = kind;
    l->port = port;
    l->failure = f;
    l->violations = violations;
    (void)snprintf(l->topic, sizeof(l->topic), "life-%u", ++lives);
    write_settings(l);
    broker_process_topic(l->topic, kind->rule);
    watch(l);
    calls_arm(f);
    live(l);
    watch(NULL);
    check_leftovers(l, before);
    *failed = calls_failed();
    (void)unlink(l->path);
    free(l);
    return calls_counted(f->group);
}
