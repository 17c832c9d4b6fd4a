/* SPDX-License-Identifier: BSD-2-Clause */
/* The library as a guest in a process: fork, signals, cancellation, small
 * stacks, descriptors that run out, threads and descriptors that come and go.
 * */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "test/unit/public_fixture.h"

#include "test/support/main.h"

static void setup(void)
{
    setup_broker();
    make_topic("t", 1);
}

/* -- looking at the process -- */

static int open_fds(void)
{
    DIR *d = opendir("/proc/self/fd");
    int n = 0;

    ck_assert_ptr_nonnull(d);
    while (readdir(d) != NULL)
        n++;
    (void)closedir(d);
    return n;
}

static void read_text(const char *path, char *out, size_t capacity)
{
    FILE *f = fopen(path, "r");
    size_t n = 0;

    if (f != NULL) {
        n = fread(out, 1, capacity - 1, f);
        (void)fclose(f);
    }
    out[n] = '\0';
}

/* The number of the thread with this name; 0: none. */
static long thread_named(const char *name)
{
    DIR *d = opendir("/proc/self/task");
    struct dirent *e;
    long found = 0;

    ck_assert_ptr_nonnull(d);
    while ((e = readdir(d)) != NULL && found == 0) {
        char path[300], text[64];

        (void)snprintf(path, sizeof(path), "/proc/self/task/%s/comm",
                       e->d_name);
        read_text(path, text, sizeof(text));
        text[strcspn(text, "\n")] = '\0';
        if (strcmp(text, name) == 0)
            found = strtol(e->d_name, NULL, 10);
    }
    (void)closedir(d);
    return found;
}

struct named {
    const char *name;
    long tid;
};

static bool thread_is_there(void *arg)
{
    struct named *n = arg;

    n->tid = thread_named(n->name);
    return n->tid != 0;
}

static bool thread_is_gone(void *name)
{
    return thread_named(name) == 0;
}

static long await_thread(const char *name)
{
    struct named n = {name, 0};

    ck_assert_msg(becomes_true(thread_is_there, &n), "no thread %s", name);
    return n.tid;
}

/* A "name:<tab>value" line of the thread's status. */
static unsigned long long status_of(long tid, const char *name, int base)
{
    char path[64], text[4096];
    const char *at;

    (void)snprintf(path, sizeof(path), "/proc/self/task/%ld/status", tid);
    read_text(path, text, sizeof(text));
    at = strstr(text, name);
    ck_assert_ptr_nonnull(at);
    return strtoull(at + strlen(name), NULL, base);
}

/* -- threads -- */

START_TEST(the_io_thread_has_a_name)
{
    kp_producer *p = MAKE_PRODUCER("client.id", "orders", NULL);
    kp_producer *q = MAKE_PRODUCER("client.id", "a-very-long-client-id", NULL);

    (void)await_thread("kp-io:orders");
    (void)await_thread("kp-io:a-very-lo"); /* the 15 bytes Linux keeps */
    ASSERT_OK(kp_producer_destroy(p));
    /* it was joined, and is listed for a moment yet */
    ck_assert(becomes_true(thread_is_gone, (char[]){"kp-io:orders"}));
    ASSERT_OK(kp_producer_destroy(q));
}
END_TEST

/* What a thread raises by going wrong: the program's handler is to see it. */
static bool is_a_fault(int sig)
{
    return sig == SIGSEGV || sig == SIGBUS || sig == SIGFPE || sig == SIGILL ||
           sig == SIGTRAP || sig == SIGABRT || sig == SIGSYS;
}

/* G2 */
START_TEST(our_threads_take_no_signals)
{
    kp_producer *p = MAKE_PRODUCER("client.id", "deaf", NULL);
    long tid = await_thread("kp-io:deaf");
    sigset_t before, after;
    unsigned long long blocked;

    (void)pthread_sigmask(SIG_SETMASK, NULL, &before);
    blocked = status_of(tid, "SigBlk:", 16);
    for (int sig = 1; sig < 32; sig++)
        if (sig != SIGKILL && sig != SIGSTOP)
            ck_assert_msg(((blocked & (1ull << (sig - 1))) != 0) !=
                              is_a_fault(sig),
                          "signal %d is blocked: %d", sig, !is_a_fault(sig));
    (void)pthread_sigmask(SIG_SETMASK, NULL, &after);
    for (int sig = 1; sig < 32; sig++)
        ck_assert_int_eq(sigismember(&before, sig), sigismember(&after, sig));
    ASSERT_OK(kp_producer_destroy(p));
}
END_TEST

START_TEST(one_thread_a_producer_and_none_is_left)
{
    int before = threads_at_rest();
    kp_producer *p[3];

    for (int i = 0; i < 3; i++) {
        p[i] = MAKE_PRODUCER(NULL);
        learn_topic(p[i], "t");
    }
    ck_assert_int_eq(threads_now(), before + 3);
    for (int i = 0; i < 3; i++)
        ASSERT_OK(kp_producer_destroy(p[i]));
    ck_assert(becomes_true(threads_are, &before));
}
END_TEST

/* UR-112: neither threads nor descriptors, nor what malloc gave (that is counted
 * when the program ends). */
START_TEST(producers_come_and_go_without_a_trace)
{
    int before = 0, threads = threads_at_rest();

    for (int i = 0; i < 300; i++) {
        kp_producer *p = MAKE_PRODUCER("linger.ms", "0", NULL);
        kp_record r = record_of("t", "v");
        kp_cq *q;

        if (i == 1)
            before = open_fds(); /* the first may open what stays */
        ASSERT_OK(kp_cq_create(&q, &error));
        r.queue = q;
        ASSERT_OK(i % 3 == 0 ? deliver(p, &r, NULL) : kp_send(p, &r, NULL));
        ASSERT_OK(kp_producer_destroy(p));
        kp_cq_destroy(q);
    }
    /* The broker closes its ends when it sees ours closed. */
    for (int i = 0; i < SOON_MS && open_fds() > before; i++)
        pause_ms(1);
    ck_assert_int_le(open_fds(), before);
    ck_assert(becomes_true(threads_are, &threads));
}
END_TEST

/* F5: a line of a producer that is gone would find no program to go to. */
static _Atomic int alive, lines_seen, lines_too_late;

static void while_alive(void *arg, const kp_log *line)
{
    (void)arg;
    (void)line;
    atomic_fetch_add(&lines_seen, 1);
    if (atomic_load(&alive) == 0)
        atomic_fetch_add(&lines_too_late, 1);
}

START_TEST(no_log_line_comes_after_the_end)
{
    atomic_store(&lines_seen, 0);
    atomic_store(&lines_too_late, 0);
    for (int i = 0; i < 300; i++) {
        /* a broker, a closed port, a name that takes a look-up */
        kp_config *c = make_config(i % 3 == 0   ? kp_broker_bootstrap(broker)
                                   : i % 3 == 1 ? "127.0.0.1:1"
                                                : "localhost:1",
                                   "linger.ms", "0", NULL);
        kp_record r = record_of("t", "v");
        kp_producer *p;

        kp_config_on_log(c, KP_LOG_DEBUG, while_alive, NULL);
        atomic_store(&alive, 1);
        p = start_producer(c);
        r.flags = KP_NOWAIT;
        for (int k = 0; k < i % 5; k++) {
            (void)kp_send(p, &r, NULL);
            pause_ms(k % 3);
        }
        ASSERT_OK(kp_producer_destroy(p));
        atomic_store(&alive, 0);
    }
    pause_ms(50);
    ck_assert_int_gt(atomic_load(&lines_seen), 300);
    ck_assert_int_eq(atomic_load(&lines_too_late), 0);
}
END_TEST

START_TEST(every_descriptor_is_closed_on_exec)
{
    kp_producer *p = MAKE_PRODUCER(NULL);
    kp_record r = record_of("t", "v");
    kp_cq *q;
    bool was_there[256];

    (void)kp_producer_destroy(p);
    for (int fd = 0; fd < 256; fd++)
        was_there[fd] = fcntl(fd, F_GETFD) >= 0;
    p = MAKE_PRODUCER(NULL);
    ASSERT_OK(kp_cq_create(&q, &error));
    (void)kp_cq_fd(q);
    ASSERT_OK(deliver(p, &r, NULL));
    for (int fd = 0; fd < 256; fd++) {
        int flags = fcntl(fd, F_GETFD);

        ck_assert_msg(flags < 0 || was_there[fd] || (flags & FD_CLOEXEC) != 0,
                      "descriptor %d stays open", fd);
    }
    ASSERT_OK(kp_producer_destroy(p));
    kp_cq_destroy(q);
}
END_TEST

START_TEST(two_producers_share_nothing)
{
    kp_producer *p = MAKE_PRODUCER("linger.ms", "60000", NULL);
    kp_producer *q = MAKE_PRODUCER("linger.ms", "0", NULL);
    kp_record r = record_of("t", "v");
    kp_future f;

    learn_topic(p, "t");
    ASSERT_OK(kp_send(p, &r, &f));
    ASSERT_OK(deliver(q, &r, NULL));
    ASSERT_OK(kp_close(q, KP_FOREVER, &error));
    ASSERT_ERR(kp_send(q, &r, NULL), KP_ECLOSED);
    ASSERT_OK(kp_send(p, &r, NULL));
    ASSERT_OK(kp_producer_destroy(q));
    ASSERT_OK(kp_flush(p, SOON_MS, &error));
    ASSERT_OK(kp_future_wait(&f, 0, NULL));
    kp_future_release(&f, 1);
    ASSERT_OK(kp_producer_destroy(p));
    ck_assert_uint_eq(stored_count("t", 0), 3);
}
END_TEST

static unsigned long long wakes_of(long tid)
{
    return status_of(tid, "\nvoluntary_ctxt_switches:", 10);
}

/* Until it has slept for 300 ms: what follows a first record is over. */
static void await_sleep(long tid)
{
    int64_t until = now_ms() + SOON_MS;
    unsigned long long seen;

    do {
        ck_assert_msg(now_ms() < until, "it does not go to sleep");
        seen = wakes_of(tid);
        pause_ms(300);
    } while (wakes_of(tid) != seen);
}

START_TEST(an_idle_producer_does_not_wake)
{
    kp_producer *p = MAKE_PRODUCER("client.id", "idler", NULL);
    kp_record r = record_of("t", "v");
    long tid = await_thread("kp-io:idler");
    unsigned long long before, woken;
    int tries = 0;

    ASSERT_OK(deliver(p, &r, NULL));
    do { /* who stops a process and lets it go on wakes its threads, too */
        await_sleep(tid);
        before = wakes_of(tid);
        pause_ms(2000);
        woken = wakes_of(tid) - before;
    } while (woken > 4 && ++tries < 5);
    ck_assert_msg(woken <= 4, "woke %llu times in 2 s", woken);
    ASSERT_OK(kp_producer_destroy(p));
}
END_TEST

START_TEST(without_a_broker_it_hardly_wakes)
{
    kp_producer *p;
    kp_record r = record_of("t", "v");
    long tid;
    unsigned long long before, woken;
    int64_t began;
    kp_future f;

    p = MAKE_PRODUCER("client.id", "lonely", NULL);
    tid = await_thread("kp-io:lonely");
    ASSERT_OK(deliver(p, &r, NULL));
    kp_broker_stop_node(broker, 1);
    ASSERT_OK(kp_send(p, &r, &f));
    pause_ms(1000);
    began = now_ms();
    before = wakes_of(tid);
    pause_ms(2000);
    woken = wakes_of(tid) - before;
    ck_assert_msg(woken * 1000 <= 30 * (uint64_t)(now_ms() - began),
                  "woke %llu times in %lld ms", woken,
                  (long long)(now_ms() - began));
    kp_future_release(&f, 1);
    ASSERT_OK(kp_producer_destroy(p));
}
END_TEST

/* The descriptors that epoll(7) made, as bits; those past 63 are nobody's. */
static uint64_t epoll_fds(void)
{
    uint64_t found = 0;

    for (int fd = 0; fd < 64; fd++) {
        char path[32], to[64] = "";

        (void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
        if (readlink(path, to, sizeof(to) - 1) > 0 &&
            strstr(to, "eventpoll") != NULL)
            found |= UINT64_C(1) << fd;
    }
    return found;
}

/* Since it had woken so often. */
struct woken {
    long tid;
    unsigned long long from;
};

static unsigned long long woken_since(const struct woken *w)
{
    return wakes_of(w->tid) +
           status_of(w->tid, "\nnonvoluntary_ctxt_switches:", 10) - w->from;
}

static bool woke_ten_times(void *arg)
{
    return woken_since(arg) >= 10;
}

/* A poller that stays broken, as when somebody closed its descriptor: the
 * producer is fatal, its reports come, and nothing spins. */
START_TEST(without_its_poller_it_hardly_wakes)
{
    uint64_t before = epoll_fds(), mine;
    kp_producer *p = MAKE_PRODUCER("client.id", "blind", NULL);
    kp_record r = record_of("t", "v");
    struct woken w = {.tid = await_thread("kp-io:blind")};
    unsigned long long woken;
    int64_t began;
    kp_future f;
    int nowhere;

    ASSERT_OK(deliver(p, &r, NULL));
    mine = epoll_fds() & ~before;
    if (mine == 0) {
        ASSERT_OK(kp_producer_destroy(p));
        return; /* a build without epoll */
    }
    nowhere = open("/dev/null", O_RDONLY | O_CLOEXEC);
    ck_assert_int_ge(nowhere, 0);
    ck_assert_int_ge(dup2(nowhere, __builtin_ctzll(mine)), 0);
    (void)close(nowhere);
    if (kp_send(p, &r, &f) == KP_OK)
        (void)kp_future_wait(&f, SOON_MS, NULL); /* it has a report either way */
    kp_future_release(&f, 1);
    (void)kp_send(p, &r, NULL); /* whoever slept through that is woken by now */
    ASSERT_ERR(kp_send(p, &r, NULL), KP_ECONNECT);
    ASSERT_ERR(kp_status(p, NULL, &error), KP_ECONNECT);
    ASSERT_SAYS("poller");
    began = now_ms();
    w.from = woken_since(&w);
    pause_ms(1000);
    ck_assert(becomes_true(woke_ten_times, &w));
    woken = woken_since(&w);
    ck_assert_msg(woken * 1000 <= 150 * (uint64_t)(now_ms() - began),
                  "woke %llu times in %lld ms", woken,
                  (long long)(now_ms() - began));
    ASSERT_ERR(kp_close(p, KP_FOREVER, &error), KP_ECONNECT);
    ASSERT_OK(kp_producer_destroy(p));
}
END_TEST

/* -- fork -- */

struct family {
    kp_producer *p;
    kp_cq *q;
    kp_future pending, done;
};

/* In the child: 0, or the number of the step that failed. */
static int child_of(struct family *f)
{
    kp_record r = record_of("t", "child");
    kp_report report;
    kp_future fresh = {0};
    size_t taken = 9;
    int32_t count;
    kp_error e;

    if (kp_send(f->p, &r, &fresh) != KP_EFORK)
        return 1;
    if (kp_future_wait(&fresh, KP_FOREVER, NULL) != KP_EFORK)
        return 2;
    if (kp_send_many(f->p, &r, 1, NULL, &taken) != KP_EFORK || taken != 0)
        return 3;
    if (kp_flush(f->p, KP_FOREVER, &e) != KP_EFORK || e.err != KP_EFORK ||
        strstr(e.text, "fork") == NULL)
        return 4;
    if (kp_close(f->p, KP_FOREVER, &e) != KP_EFORK)
        return 5;
    if (kp_status(f->p, NULL, &e) != KP_EFORK)
        return 6;
    if (kp_partitions_for(f->p, "t", KP_FOREVER, &count, NULL, NULL) !=
        KP_EFORK)
        return 7;
    if (kp_future_wait(&f->pending, KP_FOREVER, &report) != KP_EFORK)
        return 8;
    if (kp_future_wait(&f->done, KP_FOREVER, &report) != KP_EFORK)
        return 9;
    if (kp_future_wait_all(&f->pending, 1, KP_FOREVER) != KP_EFORK)
        return 10;
    if (kp_cq_poll(f->q, &report, 1, KP_FOREVER) != 0)
        return 11;
    kp_cq_wakeup(f->q);
    kp_metrics(f->p, NULL, NULL);
    kp_future_release(&f->pending, 1);
    kp_future_release(&f->done, 1);
    if (kp_producer_destroy(f->p) != KP_OK)
        return 12;
    kp_cq_destroy(f->q);
    return 0;
}

static int wait_for_child(pid_t child)
{
    int status = -1;

    while (waitpid(child, &status, 0) < 0 && errno == EINTR)
        continue;
    ck_assert_msg(WIFEXITED(status), "the child died: %d", status);
    return WEXITSTATUS(status);
}

static void make_family(struct family *f)
{
    kp_record r = record_of("t", "v"), queued = record_of("t", "v");

    f->p = MAKE_PRODUCER("linger.ms", "60000", NULL);
    ASSERT_OK(kp_cq_create(&f->q, &error));
    (void)kp_cq_fd(f->q);
    queued.queue = f->q;
    ASSERT_OK(kp_send(f->p, &queued, &f->done));
    ASSERT_OK(kp_flush(f->p, SOON_MS, &error));
    ASSERT_OK(kp_send(f->p, &r, &f->pending));
}

START_TEST(a_child_of_fork_is_told_so_by_every_call)
{
    struct family f;
    kp_record r = record_of("t", "parent");
    kp_report report;
    int64_t connects, after;
    pid_t child;

    make_family(&f);
    connects = kb_connects(kp_broker_lock(broker), -1);
    kp_broker_unlock(broker);
    child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        (void)alarm(20);
        _exit(child_of(&f));
    }
    ck_assert_int_eq(wait_for_child(child), 0);
    /* The parent goes on as if nothing had been, on the same connections. */
    for (int i = 0; i < 50; i++)
        ASSERT_OK(kp_send(f.p, &r, NULL));
    ASSERT_OK(kp_flush(f.p, SOON_MS, &error));
    ASSERT_OK(kp_future_wait(&f.pending, 0, &report));
    ck_assert_uint_eq(kp_cq_poll(f.q, &report, 1, 0), 1);
    after = kb_connects(kp_broker_lock(broker), -1);
    kp_broker_unlock(broker);
    ck_assert_int_eq(after, connects);
    ck_assert_uint_eq(stored_count("t", 0), 52);
    ck_assert_uint_eq(kp_cq_poll(f.q, &report, 1, 0), 0);
    kp_future_release(&f.pending, 1);
    kp_future_release(&f.done, 1);
    ASSERT_OK(kp_producer_destroy(f.p));
    kp_cq_destroy(f.q);
}
END_TEST

#ifndef __SANITIZE_THREAD__ /* it cannot follow new threads into a child */
/* In the child: a producer of its own works, and takes no queue of the
 * parent's, whose lock may be held for ever. */
static int own_producer(kp_cq *inherited)
{
    kp_config *c;
    kp_producer *p;
    kp_record r = record_of("t", "child"), wrong = r;
    kp_future f;

    wrong.queue = inherited; /* or NULL: there is none */
    if (kp_config_create(&c) != KP_OK ||
        kp_config_set(c, "bootstrap.servers", kp_broker_bootstrap(broker),
                      NULL) != KP_OK ||
        kp_producer_create(&p, c, NULL) != KP_OK)
        return 1;
    if (kp_send(p, &r, &f) != KP_OK ||
        kp_future_wait(&f, SOON_MS, NULL) != KP_OK)
        return 2;
    if (inherited != NULL && (kp_send(p, &wrong, &f) != KP_EFORK ||
                              kp_future_wait(&f, 0, NULL) != KP_EFORK))
        return 4;
    if (kp_close(p, KP_FOREVER, NULL) != KP_OK ||
        kp_producer_destroy(p) != KP_OK)
        return 3;
    return 0;
}

/* -- forked in a callback -- */

struct nest {
    _Atomic int callbacks;
    _Atomic pid_t child;
    bool returns; /* in the child; else it uses a producer of its own */
};

static void fork_once(const kp_report *report)
{
    struct nest *n = report->tag;
    pid_t child;

    if (atomic_fetch_add(&n->callbacks, 1) != 3)
        return;
    child = fork();
    if (child != 0) {
        atomic_store(&n->child, child);
        return;
    }
    (void)alarm(30);
    if (!n->returns)
        _exit(own_producer(NULL));
}

/* A child that was forked in a callback may do what any other may; and if the
 * callback returns in it, it does not go on as a second I/O thread on the
 * parent's connections, but ends. */
START_TEST(a_child_of_a_callback)
{
    kp_producer *p = MAKE_PRODUCER("linger.ms", "5", NULL);
    kp_record r = record_of("t", "v");
    struct nest n = {.returns = _i == 1};
    int64_t until = now_ms() + SOON_MS;

    r.on_delivery = fork_once;
    r.tag = &n;
    for (int i = 0; i < 200; i++)
        ASSERT_OK(kp_send(p, &r, NULL));
    ASSERT_OK(kp_flush(p, SOON_MS, &error));
    while (atomic_load(&n.child) == 0 && now_ms() < until)
        pause_ms(1);
    ck_assert_int_gt(atomic_load(&n.child), 0);
    ck_assert_int_eq(wait_for_child(atomic_load(&n.child)), 0);
    for (int i = 0; i < 200; i++)
        ASSERT_OK(kp_send(p, &r, NULL));
    ASSERT_OK(kp_flush(p, SOON_MS, &error));
    ck_assert_int_eq(atomic_load(&n.callbacks), 400);
    ck_assert_uint_eq(stored_count("t", 0), n.returns ? 400 : 401);
    ASSERT_OK(kp_close(p, KP_FOREVER, &error));
    ASSERT_OK(kp_producer_destroy(p));
}
END_TEST

START_TEST(a_child_may_make_its_own)
{
    struct family f;
    pid_t child;

    make_family(&f);
    child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        (void)alarm(30);
        _exit(own_producer(f.q));
    }
    ck_assert_int_eq(wait_for_child(child), 0);
    kp_future_release(&f.pending, 1);
    kp_future_release(&f.done, 1);
    ASSERT_OK(kp_close(f.p, KP_FOREVER, &error));
    ASSERT_OK(kp_producer_destroy(f.p));
    kp_cq_destroy(f.q);
    ck_assert_uint_eq(stored_count("t", 0), 3);
}
END_TEST
#endif

static void *send_all_the_time(void *arg)
{
    kp_producer *p = arg;
    kp_err err;

    do {
        kp_record r = record_of("t", "v");

        err = kp_send(p, &r, NULL);
    } while (err == KP_OK);
    return NULL;
}

#if !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__)
/* What is left is a leak to one and a new thread in a child to the other. */
/* In the child: a producer that is never closed, and exit(3). */
static void exit_without_close(void)
{
    kp_config *c;
    kp_producer *p;
    kp_record r = record_of("t", "lost");

    if (kp_config_create(&c) != KP_OK ||
        kp_config_set(c, "bootstrap.servers", kp_broker_bootstrap(broker),
                      NULL) != KP_OK ||
        kp_config_set(c, "linger.ms", "60000", NULL) != KP_OK ||
        kp_producer_create(&p, c, NULL) != KP_OK)
        _exit(1);
    kp_config_destroy(c);
    for (int i = 0; i < 100; i++)
        if (kp_send(p, &r, NULL) != KP_OK)
            _exit(2);
    exit(0);
}

START_TEST(exit_without_close_is_no_crash)
{
    pid_t child = fork();

    ck_assert_int_ge(child, 0);
    if (child == 0) {
        (void)alarm(30);
        exit_without_close();
    }
    ck_assert_int_eq(wait_for_child(child), 0);
    ck_assert_uint_eq(stored_count("t", 0), 0);
}
END_TEST

/* In the child: three threads send, and a fourth ends the program. */
static void exit_while_sending(int number)
{
    kp_config *c;
    kp_producer *p;
    pthread_t sender;

    if (kp_config_create(&c) != KP_OK ||
        kp_config_set(c, "bootstrap.servers", kp_broker_bootstrap(broker),
                      NULL) != KP_OK ||
        kp_config_set(c, "linger.ms", "0", NULL) != KP_OK ||
        kp_producer_create(&p, c, NULL) != KP_OK)
        _exit(1);
    for (int i = 0; i < 3; i++)
        if (pthread_create(&sender, NULL, send_all_the_time, p) != 0)
            _exit(2);
    pause_ms(number % 20);
    exit(0);
}

/* F4: it ends at once, and not by a signal: the alarm would be one. */
START_TEST(exit_while_threads_send_is_no_crash)
{
    for (int i = 0; i < 100; i++) {
        pid_t child = fork();

        ck_assert_int_ge(child, 0);
        if (child == 0) {
            (void)alarm(30);
            exit_while_sending(i);
        }
        ck_assert_int_eq(wait_for_child(child), 0);
    }
}
END_TEST
#endif

START_TEST(forks_in_the_middle_of_work_are_harmless)
{
    kp_producer *p = MAKE_PRODUCER("linger.ms", "0", "batch.size", "100", NULL);
    pthread_t senders[3];

    for (int i = 0; i < 3; i++)
        ck_assert_int_eq(
            pthread_create(&senders[i], NULL, send_all_the_time, p), 0);
    for (int i = 0; i < 30; i++) {
        pid_t child = fork();

        ck_assert_int_ge(child, 0);
        if (child == 0) {
            kp_record r = record_of("t", "v");

            (void)alarm(20);
            if (kp_send(p, &r, NULL) != KP_EFORK)
                _exit(1);
            _exit(kp_producer_destroy(p) == KP_OK ? 0 : 2);
        }
        ck_assert_int_eq(wait_for_child(child), 0);
    }
    ASSERT_OK(kp_close(p, KP_FOREVER, &error));
    for (int i = 0; i < 3; i++)
        (void)pthread_join(senders[i], NULL);
    ASSERT_OK(kp_producer_destroy(p));
}
END_TEST

/* -- signals -- */

static _Atomic int signals;

static void note_signal(int sig)
{
    (void)sig;
    atomic_fetch_add(&signals, 1);
}

struct storm {
    pthread_t targets[4];
    _Atomic int stop;
};

static void *rain(void *arg)
{
    struct storm *s = arg;

    while (atomic_load(&s->stop) == 0) {
        for (int i = 0; i < 4; i++)
            (void)pthread_kill(s->targets[i], SIGUSR1);
        (void)kill(getpid(), SIGUSR1);
        pause_ms(1);
    }
    return NULL;
}

struct worker {
    kp_producer *p;
    kp_cq *q;
    int failures;
    _Atomic int may_end;
};

static void *work(void *arg)
{
    struct worker *w = arg;

    for (int i = 0; i < 100; i++) {
        kp_record r = record_of("t", "v");
        kp_report report;

        if (deliver(w->p, &r, &report) != KP_OK)
            w->failures++;
        if (kp_flush(w->p, SOON_MS, NULL) != KP_OK)
            w->failures++;
        r.queue = w->q;
        if (kp_send(w->p, &r, NULL) != KP_OK ||
            kp_cq_poll(w->q, &report, 1, SOON_MS) != 1)
            w->failures++;
        errno = 4711;
        (void)kp_send(w->p, &r, NULL);
        if (errno != 4711)
            w->failures++;
        if (kp_cq_poll(w->q, &report, 1, SOON_MS) != 1)
            w->failures++;
    }
    while (atomic_load(&w->may_end) == 0)
        pause_ms(1); /* it can still be sent signals */
    return NULL;
}

/* A21, B8: what C has in place of an interrupt: a signal, which ends no wait. */
START_TEST(interruptions_never_surface)
{
    struct sigaction action = {0}; /* without SA_RESTART */
    struct worker w[4];
    struct storm s = {.stop = 0};
    pthread_t thread;

    action.sa_handler = note_signal;
    ck_assert_int_eq(sigaction(SIGUSR1, &action, NULL), 0);
    for (int i = 0; i < 4; i++) {
        memset(&w[i], 0, sizeof(w[i]));
        w[i].p = MAKE_PRODUCER("linger.ms", "1", NULL);
        ASSERT_OK(kp_cq_create(&w[i].q, &error));
        ck_assert_int_eq(pthread_create(&s.targets[i], NULL, work, &w[i]), 0);
    }
    ck_assert_int_eq(pthread_create(&thread, NULL, rain, &s), 0);
    pause_ms(300);
    for (int i = 0; i < 4; i++)
        while (stored_count("t", 0) < 1200)
            pause_ms(5);
    atomic_store(&s.stop, 1);
    (void)pthread_join(thread, NULL);
    for (int i = 0; i < 4; i++) {
        atomic_store(&w[i].may_end, 1);
        (void)pthread_join(s.targets[i], NULL);
    }
    for (int i = 0; i < 4; i++) {
        ck_assert_int_eq(w[i].failures, 0);
        ASSERT_OK(kp_producer_destroy(w[i].p));
        kp_cq_destroy(w[i].q);
    }
    ck_assert_int_gt(atomic_load(&signals), 10);
}
END_TEST

START_TEST(a_dying_broker_raises_no_sigpipe)
{
    kp_producer *p = MAKE_PRODUCER("linger.ms", "0", "reconnect.backoff.ms",
                                   "1", "reconnect.backoff.max.ms", "5",
                                   "retry.backoff.ms", "1", NULL);
    struct sigaction was;

    ck_assert_int_eq(sigaction(SIGPIPE, NULL, &was), 0);
    (void)signal(SIGPIPE, SIG_DFL);
    add_rule("api=produce answer=reset skip=3 count=10");
    add_rule("api=produce answer=close skip=20 count=10");
    for (int i = 0; i < 300; i++) {
        kp_record r = record_of("t", "v");

        ASSERT_OK(kp_send(p, &r, NULL));
        if (i % 50 == 49) {
            kp_broker_stop_node(broker, 1);
            for (int k = 0; k < 20; k++)
                ASSERT_OK(kp_send(p, &r, NULL));
            kp_broker_start_node(broker, 1);
        }
    }
    ASSERT_OK(kp_flush(p, SOON_MS, &error));
    (void)sigaction(SIGPIPE, &was, NULL);
    ck_assert_uint_eq(stored_count("t", 0), 300 + 6 * 20);
    ASSERT_OK(kp_producer_destroy(p));
}
END_TEST

/* -- cancellation -- */

struct doomed {
    kp_producer *p;
    kp_cq *q;
    _Atomic int steps, started, go;
    bool after_calls;
};

static void *call_while_cancelled(void *arg)
{
    struct doomed *d = arg;
    kp_record r = record_of("t", "v");
    kp_report report;
    kp_future f;
    int32_t count;
    kp_error e;

    atomic_store(&d->started, 1);
    while (atomic_load(&d->go) == 0)
        continue; /* the request is pending from here on */
    if (kp_send(d->p, &r, &f) == KP_OK &&
        kp_future_wait(&f, SOON_MS, NULL) == KP_OK)
        atomic_fetch_add(&d->steps, 1);
    kp_future_release(&f, 1);
    r.queue = d->q;
    if (kp_send(d->p, &r, NULL) == KP_OK &&
        kp_cq_poll(d->q, &report, 1, SOON_MS) == 1)
        atomic_fetch_add(&d->steps, 1);
    if (kp_flush(d->p, SOON_MS, &e) == KP_OK)
        atomic_fetch_add(&d->steps, 1);
    if (kp_partitions_for(d->p, "nope", 50, &count, NULL, NULL) == KP_EMETADATA)
        atomic_fetch_add(&d->steps, 1);
    (void)kp_cq_poll(d->q, &report, 1, 10);
    kp_cq_wakeup(d->q);
    if (kp_status(d->p, "t", &e) == KP_OK)
        atomic_fetch_add(&d->steps, 1);
    if (kp_close(d->p, SOON_MS, &e) == KP_OK)
        atomic_fetch_add(&d->steps, 1);
    if (kp_producer_destroy(d->p) == KP_OK)
        atomic_fetch_add(&d->steps, 1);
    pthread_testcancel();
    d->after_calls = true; /* not reached */
    return NULL;
}

START_TEST(no_call_is_a_cancellation_point)
{
    struct doomed d = {0};
    pthread_t thread;
    void *result;

    teardown_broker();
    broker = start_broker(1, false, 1);
    make_topic("t", 1);
    d.p = MAKE_PRODUCER("linger.ms", "1", NULL);
    ASSERT_OK(kp_cq_create(&d.q, &error));
    ck_assert_int_eq(pthread_create(&thread, NULL, call_while_cancelled, &d),
                     0);
    while (atomic_load(&d.started) == 0)
        pause_ms(1);
    ck_assert_int_eq(pthread_cancel(thread), 0);
    atomic_store(&d.go, 1);
    (void)pthread_join(thread, &result);
    ck_assert(result == PTHREAD_CANCELED);
    ck_assert_int_eq(atomic_load(&d.steps), 7);
    ck_assert(!d.after_calls);
    kp_cq_destroy(d.q);
}
END_TEST

/* -- small stacks -- */

struct small {
    const char *codec;
    int failed_at;
};

static int on_a_small_stack(const char *codec)
{
    static const char *const colours[] = {"red", "green", "blue"};
    kp_config *c;
    kp_producer *p;
    kp_cq *q;
    kp_future f;
    kp_report report;
    int32_t count;
    char value[200];

    if (kp_config_create(&c) != KP_OK ||
        kp_config_set(c, "bootstrap.servers", kp_broker_bootstrap(broker),
                      NULL) != KP_OK ||
        kp_config_set(c, "compression.type", codec, NULL) != KP_OK ||
        kp_config_set(c, "lingr.ms", "1", NULL) != KP_EINVAL ||
        kp_config_load(c, "/dev/null", NULL) != KP_OK)
        return 1;
    kp_config_on_log(c, KP_LOG_DEBUG, keep_line, &lines);
    if (kp_producer_create(&p, c, NULL) != KP_OK ||
        kp_cq_create(&q, NULL) != KP_OK)
        return 2;
    kp_config_destroy(c);
    if (kp_partitions_for(p, "t", SOON_MS, &count, NULL, NULL) != KP_OK)
        return 3;
    for (int i = 0; i < 2000; i++) {
        kp_record r = {.topic = "t"};

        (void)snprintf(value, sizeof(value), "%s %d %s", colours[i % 3], i,
                       colours[(i + 1) % 3]);
        r.value = kp_str(value);
        if (kp_send(p, &r, NULL) != KP_OK)
            return 4;
    }
    if (kp_flush(p, SOON_MS, NULL) != KP_OK)
        return 5;
    {
        kp_record r = record_of("t", "v");

        r.queue = q;
        if (kp_send(p, &r, &f) != KP_OK ||
            kp_future_wait(&f, SOON_MS, &report) != KP_OK ||
            kp_cq_poll(q, &report, 1, SOON_MS) != 1)
            return 6;
        kp_future_release(&f, 1);
        r.partition = -2;
        if (kp_send(p, &r, NULL) != KP_EPARTITION)
            return 7;
    }
    kp_metrics(p, NULL, NULL);
    if (kp_status(p, NULL, &(kp_error){0}) != KP_OK)
        return 8;
    if (kp_close(p, SOON_MS, NULL) != KP_OK || kp_producer_destroy(p) != KP_OK)
        return 9;
    kp_cq_destroy(q);
    return 0;
}

static void *run_small(void *arg)
{
    struct small *s = arg;

    s->failed_at = on_a_small_stack(s->codec);
    return NULL;
}

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define STACK_SIZE ((size_t)512 * 1024) /* they need many times as much */
#else
#define STACK_SIZE ((size_t)64 * 1024)
#endif

START_TEST(callers_may_have_64_kib_of_stack)
{
    static const char *const codecs[] = {"none", "gzip", "snappy", "lz4",
                                         "zstd"};
    struct small s = {codecs[_i], -1};
    pthread_attr_t attr;
    pthread_t thread;

    if (_i > 0 && strstr(kp_features(), s.codec) == NULL)
        return; /* not in this build */
    (void)pthread_attr_init(&attr);
    ck_assert_int_eq(pthread_attr_setstacksize(&attr, STACK_SIZE), 0);
    ck_assert_int_eq(pthread_create(&thread, &attr, run_small, &s), 0);
    (void)pthread_join(thread, NULL);
    (void)pthread_attr_destroy(&attr);
    ck_assert_int_eq(s.failed_at, 0);
    ck_assert_uint_eq(stored_count("t", 0), 2001);
}
END_TEST

/* -- descriptors run out -- */

static int hoard[4096];
static int hoarded;

static void take_all_fds(void)
{
    struct rlimit l;
    int fd;

    ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &l), 0);
    l.rlim_cur = l.rlim_max < 256 ? l.rlim_max : 256;
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &l), 0);
    hoarded = 0;
    while (hoarded < 4096 && (fd = open("/dev/null", O_RDONLY)) >= 0)
        hoard[hoarded++] = fd;
    ck_assert_int_gt(hoarded, 0);
    ck_assert_int_eq(errno, EMFILE);
}

static void give_fds(int count)
{
    while (count-- > 0 && hoarded > 0)
        (void)close(hoard[--hoarded]);
}

START_TEST(creation_without_descriptors_is_a_clear_error)
{
    kp_config *c = make_config(kp_broker_bootstrap(broker), NULL);
    kp_producer *p = NULL;
    kp_cq *q = NULL;
    int threads = threads_at_rest();

    take_all_fds();
    memset(&error, 0, sizeof(error));
    ASSERT_ERR(kp_cq_create(&q, &error), KP_ENOMEM);
    ASSERT_SAYS("ulimit -n");
    ck_assert_ptr_null(q);
    for (int left = 0; left < 2; left++) {
        memset(&error, 0, sizeof(error));
        ASSERT_ERR(kp_producer_create(&p, c, &error), KP_ENOMEM);
        ck_assert_msg(strstr(error.text, "ulimit -n") != NULL ||
                          strstr(error.text, "open files") != NULL,
                      "%s", error.text);
        ck_assert_ptr_null(p);
        give_fds(1);
    }
    give_fds(4096);
    ck_assert(becomes_true(threads_are, &threads));
    ASSERT_OK(kp_producer_create(&p, c, &error));
    ASSERT_OK(kp_producer_destroy(p));
    kp_config_destroy(c);
}
END_TEST

/* Asked for again and again, as nobody else wants anything of the cluster. */
static bool cannot_connect(void *producer)
{
    kp_record r = record_of("t", "v");

    r.flags = KP_NOWAIT;
    return kp_send(producer, &r, NULL) == KP_EMETADATA &&
           kp_status(producer, NULL, NULL) == KP_ECONNECT;
}

START_TEST(a_producer_without_descriptors_recovers)
{
    kp_producer *p;
    kp_record r = record_of("t", "v");

    take_all_fds();
    give_fds(2); /* what a producer itself needs: no socket is to be had */
    p = MAKE_PRODUCER("max.block.ms", "20000", "reconnect.backoff.max.ms",
                      "100", "reconnect.backoff.ms", "10", NULL);
    r.max_wait_ms = 200;
    ASSERT_ERR(kp_send(p, &r, NULL), KP_EMETADATA);
    ck_assert(becomes_true(cannot_connect, p));
    give_fds(4096);
    r.max_wait_ms = 0;
    ASSERT_OK(deliver(p, &r, NULL));
    ASSERT_OK(kp_producer_destroy(p));
}
END_TEST

static Suite *public_process_suite(void)
{
    Suite *s = suite_create("public process");
    TCase *t = tcase_create("threads");

    tcase_add_checked_fixture(t, setup, teardown_broker);
    tcase_add_test(t, the_io_thread_has_a_name);
    tcase_add_test(t, our_threads_take_no_signals);
    tcase_add_test(t, one_thread_a_producer_and_none_is_left);
    tcase_add_test(t, producers_come_and_go_without_a_trace);
    tcase_add_test(t, no_log_line_comes_after_the_end);
    tcase_add_test(t, every_descriptor_is_closed_on_exec);
    tcase_add_test(t, two_producers_share_nothing);
    tcase_add_test(t, an_idle_producer_does_not_wake);
    tcase_add_test(t, without_a_broker_it_hardly_wakes);
    tcase_add_test(t, without_its_poller_it_hardly_wakes);
    suite_add_tcase(s, t);
    t = tcase_create("fork");
    tcase_add_checked_fixture(t, setup, teardown_broker);
    tcase_add_test(t, a_child_of_fork_is_told_so_by_every_call);
#ifndef __SANITIZE_THREAD__
    tcase_add_test(t, a_child_may_make_its_own);
#ifdef __SANITIZE_ADDRESS__ /* what the child leaves is no leak */
    tcase_add_loop_test(t, a_child_of_a_callback, 0, 1);
#else
    tcase_add_loop_test(t, a_child_of_a_callback, 0, 2);
#endif
#endif
#if !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__)
    tcase_add_test(t, exit_without_close_is_no_crash);
    tcase_add_test(t, exit_while_threads_send_is_no_crash);
#endif
    tcase_add_test(t, forks_in_the_middle_of_work_are_harmless);
    suite_add_tcase(s, t);
    t = tcase_create("signals");
    tcase_add_checked_fixture(t, setup, teardown_broker);
    tcase_add_test(t, interruptions_never_surface);
    tcase_add_test(t, a_dying_broker_raises_no_sigpipe);
    tcase_add_test(t, no_call_is_a_cancellation_point);
    suite_add_tcase(s, t);
    t = tcase_create("limits");
    tcase_add_checked_fixture(t, setup, teardown_broker);
    tcase_add_loop_test(t, callers_may_have_64_kib_of_stack, 0, 5);
    tcase_add_test(t, creation_without_descriptors_is_a_clear_error);
    tcase_add_test(t, a_producer_without_descriptors_recovers);
    suite_add_tcase(s, t);
    return s;
}

KP_TEST_MAIN(public_process_suite)
