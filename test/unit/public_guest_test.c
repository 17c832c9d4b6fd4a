/* SPDX-License-Identifier: BSD-2-Clause */
/* The library as a guest in a process that ends without a word, has next to no
 * address space, writes numbers with a comma, or loses its network for a while.
 * The ids are those of ../FAULTS.md. */
#include <errno.h>
#include <fcntl.h>
#include <locale.h>
#include <net/if.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "test/unit/public_fixture.h"

#include "test/support/main.h"

#define FAST \
    "linger.ms", "0", "request.timeout.ms", "300", "retry.backoff.ms", "5", \
        "retry.backoff.max.ms", "20", "reconnect.backoff.ms", "5", \
        "reconnect.backoff.max.ms", "20"

static void setup(void)
{
    setup_broker();
    make_topic("t", 1);
}

/* -- exit -- */

#if !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__)
#define CAN_FORK /* what is left at an exit is a leak to one, and new threads in
                    a child are the other's end */
#endif

#ifdef CAN_FORK
static int wait_for_child(pid_t child)
{
    int status = -1;

    while (waitpid(child, &status, 0) < 0 && errno == EINTR)
        continue;
    ck_assert_msg(WIFEXITED(status), "the child died: %d", status);
    return WEXITSTATUS(status);
}

/* Not 0 ends the child. */
static kp_producer *producer_of_child(const char *linger_ms)
{
    kp_config *c;
    kp_producer *p;

    (void)alarm(30);
    if (kp_config_create(&c) != KP_OK ||
        kp_config_set(c, "bootstrap.servers", kp_broker_bootstrap(broker),
                      NULL) != KP_OK ||
        kp_config_set(c, "linger.ms", linger_ms, NULL) != KP_OK ||
        kp_producer_create(&p, c, NULL) != KP_OK)
        _exit(1);
    kp_config_destroy(c);
    return p;
}

static _Atomic int sent;

static void *send_for_ever(void *arg)
{
    kp_record r = record_of("t", "v");

    while (kp_send(arg, &r, NULL) == KP_OK)
        (void)atomic_fetch_add(&sent, 1);
    return NULL;
}

/* O13: the process ends while threads send, without a close. */
static void exit_among_senders(void)
{
    kp_producer *p = producer_of_child("0");
    kp_record r = record_of("t", "v");
    pthread_t thread;

    if (deliver(p, &r, NULL) != KP_OK)
        _exit(4);
    for (int i = 0; i < 3; i++)
        if (pthread_create(&thread, NULL, send_for_ever, p) != 0)
            _exit(2);
    while (atomic_load(&sent) < 1000)
        pause_ms(1);
    exit(0);
}

START_TEST(exit_while_others_send_is_no_crash)
{
    for (int i = 0; i < 10; i++) {
        pid_t child = fork();

        ck_assert_int_ge(child, 0);
        if (child == 0)
            exit_among_senders();
        ck_assert_int_eq(wait_for_child(child), 0);
    }
    ck_assert_uint_ge(stored_count("t", 0), 10);
}
END_TEST

static kp_producer *left;

static void close_at_exit(void)
{
    if (kp_close(left, SOON_MS, NULL) != KP_OK ||
        kp_producer_destroy(left) != KP_OK)
        _exit(3);
}

/* O13: it is closed by what exit(3) runs, and delivers everything first. */
START_TEST(a_close_at_exit_delivers)
{
    pid_t child = fork();

    ck_assert_int_ge(child, 0);
    if (child == 0) {
        kp_record r = record_of("t", "v");

        left = producer_of_child("60000");
        if (atexit(close_at_exit) != 0)
            _exit(2);
        for (int i = 0; i < 100; i++)
            if (kp_send(left, &r, NULL) != KP_OK)
                _exit(4);
        exit(0);
    }
    ck_assert_int_eq(wait_for_child(child), 0);
    ck_assert_uint_eq(stored_count("t", 0), 100);
}
END_TEST

/* -- address space -- */

/* What the process has now, and `more`. */
static void limit_space(size_t more)
{
    struct rlimit l = {RLIM_INFINITY, RLIM_INFINITY};
    FILE *f = fopen("/proc/self/statm", "r");
    unsigned long pages = 0;

    if (f == NULL || fscanf(f, "%lu", &pages) != 1)
        _exit(10);
    (void)fclose(f);
    l.rlim_cur = pages * (unsigned long)sysconf(_SC_PAGESIZE) + more;
    if (setrlimit(RLIMIT_AS, &l) != 0)
        _exit(11);
}

static void no_limit(void)
{
    struct rlimit l = {RLIM_INFINITY, RLIM_INFINITY};

    if (setrlimit(RLIMIT_AS, &l) != 0)
        _exit(12);
}

/* In the child: no producer, a text that says so, and one that works when there
 * is room again. */
static int create_without_space(void)
{
    kp_config *c;
    kp_producer *p = NULL;
    kp_record r = record_of("t", "v");
    kp_error e;

    (void)alarm(30);
    if (kp_config_create(&c) != KP_OK ||
        kp_config_set(c, "bootstrap.servers", kp_broker_bootstrap(broker),
                      NULL) != KP_OK)
        return 1;
    limit_space(0);
    if (kp_producer_create(&p, c, &e) != KP_ENOMEM || p != NULL ||
        e.err != KP_ENOMEM || e.text[0] == '\0')
        return 2;
    no_limit();
    if (kp_producer_create(&p, c, &e) != KP_OK ||
        deliver(p, &r, NULL) != KP_OK || kp_producer_destroy(p) != KP_OK)
        return 3;
    kp_config_destroy(c);
    return 0;
}

#define BIG 10000

/* In the child: sends until there is no more, and each that was taken is stored
 * when there is. */
static int send_without_space(int *taken)
{
    static char value[BIG];
    kp_producer *p = producer_of_child("60000");
    kp_record r = {.topic = "t", .value = {value, BIG}, .flags = KP_NOWAIT};
    int32_t count;
    kp_err err = KP_OK;

    if (kp_partitions_for(p, "t", SOON_MS, &count, NULL, NULL) != KP_OK)
        return 1;
    limit_space(1 << 20);
    for (*taken = 0; *taken < 20000 && err == KP_OK; ++*taken)
        err = kp_send(p, &r, NULL);
    --*taken;
    if (err != KP_ENOMEM && err != KP_EBUFFER)
        return 2;
    if (kp_send(p, &r, NULL) == KP_OK)
        ++*taken; /* there may be room for one again */
    no_limit();
    if (kp_flush(p, SOON_MS, NULL) != KP_OK)
        return 3;
    r.flags = 0;
    if (kp_send(p, &r, NULL) != KP_OK || kp_close(p, SOON_MS, NULL) != KP_OK)
        return 4;
    ++*taken;
    return kp_producer_destroy(p) == KP_OK ? 0 : 5;
}

/* O16 */
START_TEST(a_process_without_address_space)
{
    int pipes[2], taken = -1;
    pid_t child;

    ck_assert_int_eq(pipe(pipes), 0);
    child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        int rc = _i == 0 ? create_without_space() : send_without_space(&taken);

        if (write(pipes[1], &taken, sizeof(taken)) != (ssize_t)sizeof(taken))
            _exit(13);
        _exit(rc);
    }
    ck_assert_int_eq(wait_for_child(child), 0);
    ck_assert_int_eq(read(pipes[0], &taken, sizeof(taken)), sizeof(taken));
    ck_assert_uint_eq(stored_count("t", 0), _i == 0 ? 1 : (size_t)taken);
    (void)close(pipes[0]);
    (void)close(pipes[1]);
}
END_TEST
#endif

/* -- a config that goes on changing -- */

/* J10: what is set after the producer was made is the next one's. */
START_TEST(a_config_changed_after_creation)
{
    kp_config *c =
        make_config(kp_broker_bootstrap(broker), "linger.ms", "60000", NULL);
    kp_record r = record_of("t", "v");
    kp_producer *p = NULL;
    kp_future f;

    lines.count = 0;
    ASSERT_OK(kp_producer_create(&p, c, &error));
    ASSERT_OK(kp_config_set(c, "linger.ms", "0", &error));
    ASSERT_OK(kp_config_set(c, "acks", "0", &error));
    ASSERT_OK(kp_config_set(c, "bootstrap.servers", "127.0.0.1:1", &error));
    kp_config_on_log(c, KP_LOG_DEBUG, keep_line, &lines);
    ASSERT_OK(kp_send(p, &r, &f));
    ASSERT_ERR(kp_future_wait(&f, 200, NULL), KP_PENDING); /* it lingers */
    kp_config_destroy(c);
    ASSERT_OK(kp_flush(p, SOON_MS, &error));
    ASSERT_OK(kp_future_wait(&f, 0, NULL));
    kp_future_release(&f, 1);
    ASSERT_OK(kp_close(p, SOON_MS, &error));
    ASSERT_OK(kp_producer_destroy(p));
    ck_assert_int_eq(lines.count, 0);
    ck_assert_uint_eq(stored_count("t", 0), 1);
}
END_TEST

/* -- a locale with other numbers -- */

/* Debian's C.utf8, with a comma where its point is: no other may be there. */
static bool make_locale(const char *folder)
{
    uint8_t data[4096];
    char path[200];
    FILE *f = fopen("/usr/lib/locale/C.utf8/LC_NUMERIC", "rb");
    size_t n = f != NULL ? fread(data, 1, sizeof(data), f) : 0;
    bool ok;

    if (f != NULL)
        (void)fclose(f);
    for (size_t i = 8 + 6 * 4; i < n; i++)
        if (data[i] == '.')
            data[i] = ',';
    (void)snprintf(path, sizeof(path), "%s/comma", folder);
    if (n == 0 || mkdir(path, 0700) != 0)
        return false;
    (void)snprintf(path, sizeof(path), "%s/comma/LC_NUMERIC", folder);
    f = fopen(path, "wb");
    ok = f != NULL && fwrite(data, 1, n, f) == n;
    if (f != NULL)
        ok = fclose(f) == 0 && ok;
    return ok;
}

static void remove_locale(const char *folder)
{
    char path[200];

    (void)snprintf(path, sizeof(path), "%s/comma/LC_NUMERIC", folder);
    (void)unlink(path);
    (void)snprintf(path, sizeof(path), "%s/comma", folder);
    (void)rmdir(path);
    (void)rmdir(folder);
}

static bool use_comma(const char *folder)
{
    static const char *const known[] = {"de_DE.UTF-8", "fr_FR.UTF-8",
                                        "tr_TR.UTF-8", "ru_RU.UTF-8"};

    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
        if (setlocale(LC_ALL, known[i]) != NULL)
            return true;
    return make_locale(folder) && setenv("LOCPATH", folder, 1) == 0 &&
           setlocale(LC_NUMERIC, "comma") != NULL;
}

static void show_linger(void *arg, const kp_property *p)
{
    if (strcmp(p->name, "linger.ms") == 0)
        (void)snprintf(arg, 100, "%s", p->value);
}

/* O20: settings, texts and records are as ever. */
START_TEST(a_locale_with_a_comma)
{
    char folder[] = "/tmp/kp-locale-XXXXXX", shown[100] = "";
    kp_config *c;
    kp_producer *p;
    kp_record r = record_of("t", "v");
    kp_report report;
    bool have;

    ck_assert_ptr_nonnull(mkdtemp(folder));
    have = use_comma(folder);
    if (!have) { /* a system with one locale, and not Debian's */
        remove_locale(folder);
        return;
    }
    (void)snprintf(shown, sizeof(shown), "%.1f", 0.5);
    ck_assert_str_eq(shown, "0,5");
    c = make_config(kp_broker_bootstrap(broker), "linger.ms", "12",
                    "enable.idempotence", "TRUE", NULL);
    kp_config_properties(c, show_linger, shown);
    ck_assert_str_eq(shown, "12");
    ASSERT_ERR(kp_config_set(c, "linger.ms", "1,5", &error), KP_EINVAL);
    ASSERT_SAYS("1,5");
    ASSERT_ERR(kp_config_set(c, "linger.ms", "1.5", &error), KP_EINVAL);
    ASSERT_ERR(kp_config_set(c, "buffer.memory", "1.000.000", &error),
               KP_EINVAL);
    p = start_producer(c);
    for (int i = 0; i < 1234; i++)
        ASSERT_OK(kp_send(p, &r, NULL));
    ASSERT_OK(deliver(p, &r, &report));
    ck_assert_int_eq(report.offset, 1234);
    r.partition = 1234567;
    r.flags = KP_HAS_PARTITION;
    r.max_wait_ms = 10;
    ASSERT_ERR(kp_send(p, &r, NULL), KP_EMETADATA);
    ASSERT_OK(kp_close(p, SOON_MS, &error));
    ASSERT_OK(kp_producer_destroy(p));
    (void)setlocale(LC_ALL, "C");
    (void)unsetenv("LOCPATH");
    remove_locale(folder);
}
END_TEST

/* -- the network -- */

/* This thread's own network, and that of all it starts; its loopback interface
 * is the only one. */
static int enter_network(void)
{
    int before = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);

    if (before >= 0 && unshare(CLONE_NEWNET) == 0)
        return before;
    if (before >= 0)
        (void)close(before);
    return -1;
}

static void leave_network(int before)
{
    ck_assert_int_eq(setns(before, CLONE_NEWNET), 0);
    (void)close(before);
}

static void loopback(bool on)
{
    struct ifreq r = {0};
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

    ck_assert_int_ge(fd, 0);
    (void)snprintf(r.ifr_name, sizeof(r.ifr_name), "lo");
    ck_assert_int_eq(ioctl(fd, SIOCGIFFLAGS, &r), 0);
    r.ifr_flags = (short)(on ? r.ifr_flags | IFF_UP : r.ifr_flags & ~IFF_UP);
    ck_assert_int_eq(ioctl(fd, SIOCSIFFLAGS, &r), 0);
    (void)close(fd);
}

static bool is_in_trouble(void *producer)
{
    return kp_status(producer, NULL, NULL) != KP_OK;
}

/* A28: the interface and its addresses go away for longer than a request may
 * take, and come back: all is delivered, once and in order, over new
 * connections.  Where that is not permitted, nothing is asked; then it is
 * link_fault_test's alone. */
START_TEST(the_interface_goes_and_comes_back)
{
    int before = enter_network();
    kp_producer *p;
    kp_future f[10];
    kp_report report;
    int64_t connects;
    char value[8];

    if (before < 0)
        return;
    loopback(true);
    setup();
    p = MAKE_PRODUCER(FAST, NULL);
    learn_topic(p, "t");
    for (int i = 0; i < 10; i++) {
        kp_record r = {.topic = "t"};

        (void)snprintf(value, sizeof(value), "%d", i);
        r.value = kp_str(value);
        ASSERT_OK(kp_send(p, &r, &f[i]));
        if (i == 0) {
            ASSERT_OK(kp_future_wait(&f[0], SOON_MS, NULL));
            loopback(false);
        }
        pause_ms(i == 0 ? 0 : 100);
    }
    ck_assert(becomes_true(is_in_trouble, p));
    ASSERT_ERR(kp_future_wait(&f[1], 0, NULL), KP_PENDING);
    connects = kb_connects(kp_broker_lock(broker), -1);
    kp_broker_unlock(broker);
    loopback(true);
    for (int i = 0; i < 10; i++) {
        ASSERT_OK(kp_future_wait(&f[i], SOON_MS, &report));
        ck_assert_int_eq(report.offset, i);
    }
    ck_assert_int_gt(kb_connects(kp_broker_lock(broker), -1), connects);
    kp_broker_unlock(broker);
    ck_assert_uint_eq(stored_count("t", 0), 10);
    kp_future_release(f, 10);
    ASSERT_OK(kp_close(p, SOON_MS, &error));
    ASSERT_OK(kp_producer_destroy(p));
    teardown_broker();
    leave_network(before);
}
END_TEST

/* A26: a cluster whose only addresses are IPv6. */
START_TEST(a_cluster_of_ipv6_alone)
{
    struct broker_options o;
    kp_producer *p;
    kp_record r = record_of("t", "v");
    kp_report report;
    char bootstrap[64];
    int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int port;

    kp_broker_defaults(&o);
    o.ipv6 = true;
    o.config.host = "::1";
    broker = kp_broker_start(&o);
    ck_assert_ptr_nonnull(broker);
    make_topic("t", 1);
    port = kp_broker_port(broker, 1);
    if (fd >= 0)
        (void)close(fd);
    if (fd < 0 || access("/proc/net/if_inet6", R_OK) != 0) {
        teardown_broker(); /* no IPv6 here */
        return;
    }
    (void)snprintf(bootstrap, sizeof(bootstrap), "[::1]:%d", port);
    p = start_producer(make_config(bootstrap, FAST, NULL));
    ASSERT_OK(deliver(p, &r, &report));
    ck_assert_int_eq(report.offset, 0);
    ASSERT_OK(kp_close(p, SOON_MS, &error));
    ASSERT_OK(kp_producer_destroy(p));
    teardown_broker();
}
END_TEST

static Suite *public_guest_suite(void)
{
    Suite *s = suite_create("public guest");
    TCase *t = tcase_create("process");

    tcase_set_timeout(t, 120);
    tcase_add_checked_fixture(t, setup, teardown_broker);
#ifdef CAN_FORK
    tcase_add_test(t, exit_while_others_send_is_no_crash);
    tcase_add_test(t, a_close_at_exit_delivers);
    tcase_add_loop_test(t, a_process_without_address_space, 0, 2);
#endif
    tcase_add_test(t, a_config_changed_after_creation);
    tcase_add_test(t, a_locale_with_a_comma);
    suite_add_tcase(s, t);
    t = tcase_create("network");
    tcase_set_timeout(t, 120);
    tcase_add_test(t, the_interface_goes_and_comes_back);
    tcase_add_test(t, a_cluster_of_ipv6_alone);
    suite_add_tcase(s, t);
    return s;
}

KP_TEST_MAIN(public_guest_suite)
