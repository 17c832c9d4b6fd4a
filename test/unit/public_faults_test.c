/* SPDX-License-Identifier: BSD-2-Clause */
/* Faults on real sockets: answers that are late, lost, cut, doubled or nonsense,
 * requests cut at any byte, brokers that do not read, that speak other versions
 * or say of the cluster what cannot be.  The ids are those of ../FAULTS.md. */
#include "test/unit/public_fixture.h"

#include "test/support/main.h"

/* For answers that come: a machine that stands still must not make them late. */
#define PATIENT \
    "linger.ms", "0", "retry.backoff.ms", "5", "retry.backoff.max.ms", "20", \
        "reconnect.backoff.ms", "5", "reconnect.backoff.max.ms", "20"
/* For those that never do.  Any other may be late as well, then. */
#define FAST \
    PATIENT, "request.timeout.ms", "300", \
        "socket.connection.setup.timeout.ms", "300", \
        "socket.connection.setup.timeout.max.ms", "300"
#define PLAIN "enable.idempotence", "false", "acks", "all"

static void setup(void)
{
    setup_broker();
    make_topic("t", 1);
}

static void setup_two(void)
{
    memset(&error, 0, sizeof(error));
    broker = start_broker(2, false, 1);
    make_topic("t", 2);
    make_topic("u", 2);
}

static struct kb_cluster *lock(void)
{
    return kp_broker_lock(broker);
}

static void unlock(void)
{
    kp_broker_unlock(broker);
}

static int64_t connects(void)
{
    int64_t n = kb_connects(lock(), -1);

    unlock();
    return n;
}

static void send_to(kp_producer *p, const char *topic, int32_t partition,
                    const char *value, kp_report *report)
{
    kp_record r = record_of(topic, value);

    r.flags = KP_HAS_PARTITION;
    r.partition = partition;
    ASSERT_OK(deliver(p, &r, report));
    ck_assert_int_eq(report->stored, KP_STORED_YES);
}

static void end(kp_producer *p)
{
    ASSERT_OK(kp_close(p, SOON_MS, &error));
    ASSERT_OK(kp_producer_destroy(p));
}

/* Values "0", "1", ... each once, in order. */
static void expect_log(const char *topic, int32_t partition, size_t count)
{
    struct stored *all = calloc(count + 1, sizeof(*all));

    ck_assert_ptr_nonnull(all);
    ck_assert_uint_eq(read_log(topic, partition, all, count), count);
    for (size_t i = 0; i < count; i++) {
        char want[32];

        (void)snprintf(want, sizeof(want), "%zu", i);
        ck_assert_str_eq(all[i].value, want);
    }
    free(all);
}

static bool has_all(struct kb_cluster *c, void *arg)
{
    return kb_log_end(c, "t", 0) == *(const int64_t *)arg;
}

/* Until it is told that one is stored; returns how many it took. */
static size_t send_until_told(kp_producer *p, const char *value)
{
    kp_record r = record_of("t", value);
    int64_t until = now_ms() + SOON_MS;
    size_t n = 1;

    for (; deliver(p, &r, NULL) != KP_OK; n++)
        ck_assert_msg(now_ms() < until, "nothing goes through any more");
    return n;
}

/* -- answers -- */

static const char *const apis[] = {"produce", "metadata", "api-versions",
                                   "init-producer-id"};

struct spoilt {
    const char *id, *what;
    bool told; /* the client hears what it has to hear all the same */
};

static const struct spoilt spoilt[] = {
    {"A08", "answer=close", false},
    {"A08", "answer=reset", false},
    {"A09", "answer=cut at=0", false},
    {"A09", "answer=cut at=3", false},
    {"A09", "answer=cut at=4", false},
    {"A09", "answer=cut at=9", false},
    {"A09", "answer=cut-reset at=9", false},
    {"A10", "answer=half-close", true},
    {"A12", "answer=dribble dribble_ms=1", true},
    {"A12", "answer=dribble dribble_ms=100", false},
    {"A16", "answer=none", false},
    {"A05", "answer=stall", false},
    {"late", "answer_ms=10000", false},
    {"slow", "process_ms=100", true},
    {"A22", "answer=close-after", true},
    {"B01", "answer=negative", false},
    {"B02", "answer=tiny", false},
    {"B03", "answer=huge", false},
    {"B04", "answer=cut at=12", false},
    {"B04", "answer=cut-stall at=12", false},
    {"B05", "answer=lie at=12", false},
    {"B04", "answer=lie at=5000", false},
    {"B06", "answer=wrong-id", false},
    {"B08", "answer=twice", true},
    {"B09", "answer=unasked", false},
    {"B10", "answer=other-api", false},
    {"B11", "answer=short at=6", false},
    {"B11", "answer=short at=9", false},
    {"B12", "answer=flip at=2", false},
    {"B11", "answer=garbage", false},
};
#define SPOILT ((int)(sizeof(spoilt) / sizeof(spoilt[0])))

/* Whatever becomes of one answer of one kind, each record is stored once. */
START_TEST(a_spoilt_answer_costs_an_attempt)
{
    const struct spoilt *s = &spoilt[_i / 4];
    char line[120], value[8];
    kp_producer *p;
    kp_report report;
    int id;

    (void)snprintf(line, sizeof(line), "api=%s count=1 %s", apis[_i % 4],
                   s->what);
    id = kp_broker_add_rule(broker, line);
    ck_assert_int_ge(id, 0);
    p = MAKE_PRODUCER(FAST, NULL);
    for (int i = 0; i < 5; i++) {
        (void)snprintf(value, sizeof(value), "%d", i);
        send_to(p, "t", 0, value, &report);
        ck_assert_int_eq(report.offset, i);
    }
    ck_assert_msg(kb_rule_hits(lock(), id) == 1, "%s: not asked", line);
    unlock();
    expect_log("t", 0, 5);
    end(p);
}
END_TEST

/* Without another attempt: stored it is, and known it is if it was told. */
START_TEST(a_spoilt_answer_is_no_no)
{
    const struct spoilt *s = &spoilt[_i];
    kp_record r = record_of("t", "0");
    int64_t one = 1;
    kp_producer *p;
    kp_report report;
    char line[120];
    size_t more;
    kp_err err;

    (void)snprintf(line, sizeof(line), "api=produce count=1 %s", s->what);
    add_rule(line);
    p = MAKE_PRODUCER(FAST, PLAIN, "retries", "0", "request.timeout.ms",
                      s->told ? "30000" : "300", NULL);
    err = deliver(p, &r, &report);
    ck_assert_msg((err == KP_OK) == s->told, "%s: %s", line, kp_err_name(err));
    ck_assert_int_eq(report.stored, s->told ? KP_STORED_YES : KP_STORED_MAYBE);
    /* the broker may be later than the report */
    ck_assert(kp_broker_wait(broker, has_all, &one, SOON_MS));
    remove_rules();
    more = send_until_told(p, "1");
    if (more == 1)
        expect_log("t", 0, 2);
    else
        ck_assert_str_eq(last_stored("t", 0).value, "1");
    end(p);
}
END_TEST

/* B16 to B19: a partition left out, told twice, told though not asked about, and
 * with an offset that cannot be. */
static const char *const contents[] = {
    "omit", "repeat", "stranger", "offset=-7", "offset=9223372036854775807"};

START_TEST(what_an_answer_says_is_looked_at)
{
    char line[80];
    kp_producer *p;
    kp_report report;

    (void)snprintf(line, sizeof(line), "api=produce count=1 %s", contents[_i]);
    add_rule(line);
    p = MAKE_PRODUCER(PATIENT, NULL);
    send_to(p, "t", 0, "0", &report);
    ck_assert_int_eq(report.offset, 0);
    send_to(p, "t", 0, "1", &report);
    ck_assert_int_eq(report.offset, 1);
    expect_log("t", 0, 2);
    end(p);
}
END_TEST

/* B22: a code of nobody. */
START_TEST(an_unknown_code_is_shown_and_may_be_stored)
{
    kp_record r = record_of("t", "v");
    kp_producer *p = MAKE_PRODUCER(PATIENT, NULL);
    kp_report report;

    add_rule("api=produce count=1 error=999 append");
    ASSERT_ERR(deliver(p, &r, &report), 999);
    ck_assert_int_eq(report.stored, KP_STORED_MAYBE);
    ck_assert_uint_eq(stored_count("t", 0), 1);
    add_rule("api=produce count=1 error=-2");
    ASSERT_ERR(deliver(p, &r, &report), KP_UNKNOWN_SERVER_ERROR);
    ck_assert_int_eq(report.stored, KP_STORED_MAYBE);
    ASSERT_OK(deliver(p, &r, &report));
    end(p);
}
END_TEST

static bool is_plain(const char *text)
{
    for (; *text != '\0'; text++)
        if ((unsigned char)*text < 0x20 || (unsigned char)*text > 0x7e)
            return false;
    return true;
}

/* B23: control characters for an error's text, as many as a text can have. */
static char shown[2000];

static void keep_text(const kp_report *report)
{
    (void)snprintf(shown, sizeof(shown), "%s", report->text);
    keep_report(report);
}

START_TEST(a_hostile_text_is_short_and_plain)
{
    kp_config *c = make_config(kp_broker_bootstrap(broker), PATIENT, NULL);
    kp_record r = record_of("t", "v");
    struct seen seen = {0};
    kp_producer *p;

    lines.count = 0;
    kp_config_on_log(c, KP_LOG_DEBUG, keep_line, &lines);
    p = start_producer(c);
    add_rule("api=produce count=1 error=44 text=32767");
    r.on_delivery = keep_text;
    r.tag = &seen;
    ASSERT_OK(kp_send(p, &r, NULL));
    await_seen(&seen);
    ck_assert_int_eq(seen.report.err, KP_POLICY_VIOLATION);
    ck_assert_uint_gt(strlen(shown), 20);
    ck_assert_uint_lt(strlen(shown), 300);
    ck_assert_msg(is_plain(shown), "%s", shown);
    ck_assert_ptr_null(strchr(shown, '\n'));
    end(p);
    ck_assert_int_gt(lines.count, 0);
    for (int i = 0; i < lines.count; i++)
        ck_assert_msg(is_plain(lines.line[i].text), "%s", lines.line[i].text);
}
END_TEST

/* ... and a megabyte of them, which no text can have: the answer is none, and
 * the record is sent again. */
START_TEST(a_text_that_cannot_be_ends_the_connection)
{
    kp_config *c = make_config(kp_broker_bootstrap(broker), PATIENT, NULL);
    kp_producer *p = start_producer(c);
    kp_record r = record_of("t", "v");
    struct seen seen = {0};

    add_rule("api=produce count=1 error=44 text=1000000");
    r.on_delivery = keep_report;
    r.tag = &seen;
    ASSERT_OK(kp_send(p, &r, NULL));
    await_seen(&seen);
    ASSERT_OK(seen.report.err);
    ck_assert_int_eq(seen.report.offset, 0);
    end(p);
}
END_TEST

/* B26: longer than any throttle, and a negative one. */
START_TEST(a_senseless_throttle_time_is_ignored)
{
    kp_producer *p = MAKE_PRODUCER(PATIENT, NULL);
    kp_report report;
    int64_t began;

    add_rule("api=produce count=1 throttle_ms=-2147483648");
    send_to(p, "t", 0, "0", &report);
    began = now_ms();
    send_to(p, "t", 0, "1", &report);
    ck_assert_int_lt(now_ms() - began, SOON_MS / 2);
    end(p);
}
END_TEST

/* O19: a log function that asks and sends, on whatever thread it is. */
static kp_producer *_Atomic asked;
static _Atomic int answers;

static void log_that_asks(void *arg, const kp_log *line)
{
    kp_producer *p = atomic_load(&asked);
    kp_record r = record_of("t", "from the log");

    (void)arg;
    (void)line;
    if (p == NULL)
        return;
    r.flags = KP_NOWAIT;
    (void)kp_status(p, NULL, NULL);
    (void)kp_send(p, &r, NULL);
    (void)kp_flush(p, 0, NULL);
    (void)atomic_fetch_add(&answers, 1);
}

START_TEST(a_log_function_may_ask)
{
    kp_config *c = make_config(kp_broker_bootstrap(broker), PATIENT, NULL);
    kp_producer *p;
    kp_report report;

    atomic_store(&answers, 0);
    kp_config_on_log(c, KP_LOG_DEBUG, log_that_asks, NULL);
    p = start_producer(c);
    learn_topic(p, "t");
    atomic_store(&asked, p);
    add_rule("api=produce count=2 answer=close");
    send_to(p, "t", 0, "0", &report);
    ck_assert_int_gt(atomic_load(&answers), 0);
    atomic_store(&asked, NULL);
    end(p);
}
END_TEST

static _Atomic int log_may_go, log_waits;

static void log_that_blocks(void *arg, const kp_log *line)
{
    (void)arg;
    (void)line;
    while (!atomic_load(&log_may_go)) {
        atomic_store(&log_waits, 1);
        pause_ms(1);
    }
    atomic_store(&log_waits, 0);
}

static bool log_is_waiting(void *arg)
{
    return atomic_load((_Atomic int *)arg) != 0;
}

static void count_metrics(void *arg, const kp_metric *m)
{
    (void)m;
    ++*(int *)arg;
}

/* O19: one that blocks holds up the I/O thread that calls it, and nobody else: it
 * holds no lock. */
START_TEST(a_log_function_may_block)
{
    kp_config *c = make_config(kp_broker_bootstrap(broker), PATIENT, NULL);
    kp_record r = record_of("t", "0");
    kp_producer *p;
    kp_future f[11];
    int metrics = 0;

    atomic_store(&log_may_go, 1);
    kp_config_on_log(c, KP_LOG_DEBUG, log_that_blocks, NULL);
    p = start_producer(c);
    send_to(p, "t", 0, "0", &(kp_report){0});
    atomic_store(&log_may_go, 0);
    add_rule("api=produce count=1 answer=close");
    r.value = kp_str("1");
    ASSERT_OK(kp_send(p, &r, &f[0]));
    ck_assert(becomes_true(log_is_waiting, &log_waits));
    for (int i = 1; i < 11; i++) {
        char value[8];

        (void)snprintf(value, sizeof(value), "%d", i + 1);
        r.value = kp_str(value);
        ASSERT_OK(kp_send(p, &r, &f[i]));
    }
    ASSERT_ERR(kp_future_wait(&f[10], 50, NULL), KP_PENDING);
    ASSERT_ERR(kp_flush(p, 50, NULL), KP_PENDING);
    (void)kp_status(p, NULL, NULL);
    kp_metrics(p, count_metrics, &metrics);
    ck_assert_int_gt(metrics, 10);
    ck_assert_int_eq(atomic_load(&log_waits), 1);
    atomic_store(&log_may_go, 1);
    for (int i = 0; i < 11; i++)
        ASSERT_OK(kp_future_wait(&f[i], SOON_MS, NULL));
    kp_future_release(f, 11);
    expect_log("t", 0, 12);
    end(p);
}
END_TEST

/* -- connecting -- */

/* A01: one bootstrap address refuses, the other serves. */
START_TEST(a_refused_address_is_passed_over)
{
    kp_producer *p;
    kp_report report;
    int64_t began;
    int32_t partition;

    partition = kb_leader(lock(), "t", 0) == 2 ? 0 : 1;
    unlock();
    kp_broker_stop_node(broker, 1);
    began = now_ms();
    p = MAKE_PRODUCER(PATIENT, "reconnect.backoff.ms", "15000",
                      "reconnect.backoff.max.ms", "15000", NULL);
    send_to(p, "t", partition, "0", &report);
    /* at once, not after a backoff: less a fifth that would be 12 s */
    ck_assert_int_lt(now_ms() - began, 10000);
    expect_log("t", partition, 1);
    end(p);
}
END_TEST

static const char *const doors[] = {"close", "reset"};

static bool knocked_thrice(void *before)
{
    return connects() >= *(const int64_t *)before + 3;
}

/* A04, A06: taken and thrown out at once, for ever: the pace is that of the
 * backoff, which an accepted connection does not reset. */
START_TEST(a_door_that_shuts_is_knocked_at_slowly)
{
    char line[80];
    kp_producer *p;
    kp_record r = record_of("t", "0");
    kp_future f;
    kp_report report;
    int64_t n, began, knocks;

    (void)snprintf(line, sizeof(line), "api=connect count=-1 answer=%s",
                   doors[_i]);
    p = MAKE_PRODUCER("reconnect.backoff.ms", "20", "reconnect.backoff.max.ms",
                      "200", PLAIN, "retries", "0", "retry.backoff.ms", "5",
                      NULL);
    learn_topic(p, "t");
    add_rule(line);
    kp_broker_stop_node(broker, 1);
    kp_broker_start_node(broker, 1);
    began = now_ms();
    n = connects();
    ASSERT_OK(kp_send(p, &r, &f));
    ck_assert(becomes_true(knocked_thrice, &n));
    ASSERT_ERR(kp_future_wait(&f, 1500, NULL), KP_PENDING);
    knocks = connects() - n;
    /* 20, 40, 80, 160, 200, ... less a fifth, to two addresses at most */
    ck_assert_int_le(knocks, 2 * (5 + (now_ms() - began) / 160));
    remove_rules();
    /* it was never sent: not an attempt that counts */
    ASSERT_OK(kp_future_wait(&f, SOON_MS, &report));
    ck_assert_int_eq(report.stored, KP_STORED_YES);
    kp_future_release(&f, 1);
    expect_log("t", 0, 1);
    end(p);
}
END_TEST

static bool was_hit_twice(void *id)
{
    int64_t hits = kb_rule_hits(lock(), *(const int *)id);

    unlock();
    return hits >= 2;
}

/* A05: taken, and then nothing, for as long as it lasts: the records of the other
 * broker go, those of this one when it speaks. */
START_TEST(a_silent_broker_is_left_for_another)
{
    int32_t silent = kb_leader(lock(), "t", 0) == 1 ? 0 : 1;
    kp_record r = record_of("t", "0");
    kp_producer *p;
    kp_report report;
    kp_future f;
    int id;

    unlock();
    id = kp_broker_add_rule(broker, "api=connect node=1 answer=stall count=-1");
    p = MAKE_PRODUCER(FAST, NULL);
    for (int i = 0; i < 3; i++) {
        char value[8];

        (void)snprintf(value, sizeof(value), "%d", i);
        send_to(p, "t", 1 - silent, value, &report);
    }
    r.flags = KP_HAS_PARTITION;
    r.partition = silent;
    ASSERT_OK(kp_send(p, &r, &f));
    ck_assert(becomes_true(was_hit_twice, &id)); /* it was tried again */
    ASSERT_ERR(kp_future_wait(&f, 100, NULL), KP_PENDING);
    remove_rules();
    ASSERT_OK(kp_future_wait(&f, SOON_MS, NULL));
    kp_future_release(&f, 1);
    expect_log("t", 1 - silent, 3);
    expect_log("t", silent, 1);
    end(p);
}
END_TEST

/* -- requests cut at any byte -- */

#define BYTES_OF_ALL_REQUESTS 420
#define STRIPES 6

/* A07, with retries: once each, whatever byte was the last. */
START_TEST(a_request_cut_anywhere_is_sent_again)
{
    for (int n = 1 + _i; n < BYTES_OF_ALL_REQUESTS; n += STRIPES) {
        kp_producer *p;
        kp_report report;
        char line[80], topic[16];

        (void)snprintf(topic, sizeof(topic), "t%d", n);
        make_topic(topic, 1);
        (void)snprintf(line, sizeof(line),
                       "api=connect count=2 take=%d answer=%s", n,
                       n % 4 < 2 ? "reset" : "close");
        add_rule(line);
        p = MAKE_PRODUCER(FAST, NULL);
        send_to(p, topic, 0, "0", &report);
        ck_assert_int_eq(report.offset, 0);
        remove_rules();
        send_to(p, topic, 0, "1", &report);
        expect_log(topic, 0, 2);
        end(p);
    }
}
END_TEST

static void expect_truth(kp_err err, const kp_report *report, size_t count)
{
    if (err == KP_OK)
        ck_assert_int_eq(report->stored, KP_STORED_YES);
    if (report->stored == KP_STORED_YES)
        ck_assert_uint_eq(count, 1);
    else if (report->stored == KP_STORED_NO)
        ck_assert_uint_eq(count, 0);
    else
        ck_assert_uint_le(count, 1);
}

/* A07, without: what is said of the log is true. */
START_TEST(a_request_cut_anywhere_is_told_truly)
{
    kp_producer *p = MAKE_PRODUCER(FAST, PLAIN, "retries", "0", NULL);
    int told[3] = {0, 0, 0};

    for (int n = 1; n < 180; n += 2) {
        kp_record r = {.value = kp_str("0")};
        kp_report report;
        char line[80], topic[16];
        kp_err err;

        (void)snprintf(topic, sizeof(topic), "t%d", n);
        make_topic(topic, 1);
        learn_topic(p, topic);
        (void)snprintf(line, sizeof(line),
                       "api=connect count=1 take=%d answer=reset", 60 + n);
        add_rule(line);
        /* the connection after this one is cut */
        kp_broker_stop_node(broker, 1);
        kp_broker_start_node(broker, 1);
        r.topic = topic;
        err = deliver(p, &r, &report);
        expect_truth(err, &report, stored_count(topic, 0));
        told[report.stored]++;
        remove_rules();
    }
    ck_assert_int_gt(told[KP_STORED_YES] + told[KP_STORED_MAYBE], 0);
    end(p);
}
END_TEST

/* -- brokers that do not read -- */

#define BIG 60000
enum { FIRST = 20, OTHER = 10 };

static void fill_value(char *value, const char *topic, int number)
{
    memset(value, topic[0], BIG);
    (void)snprintf(value, 32, "%s:%06d:", topic, number);
}

static void expect_whole(const char *topic, size_t at_most)
{
    char want[32];
    struct kb_log *l = kb_log_open(lock(), topic, 0);
    struct kb_record r;
    size_t n = 0;
    int last = -1, number;

    while (l != NULL && kb_log_next(l, &r)) {
        ck_assert_uint_eq(r.value_size, BIG);
        (void)snprintf(want, sizeof(want), "%s:", topic);
        ck_assert_mem_eq(r.value, want, strlen(want));
        number = atoi((const char *)r.value + strlen(want));
        ck_assert_int_gt(number, last);
        last = number;
        for (size_t i = 32; i < BIG; i++)
            ck_assert_int_eq(r.value[i], topic[0]);
        n++;
    }
    if (l != NULL)
        kb_log_close(l);
    unlock();
    ck_assert_uint_le(n, at_most);
}

static void pause_node(bool on)
{
    struct kb_cluster *c = lock();

    kb_node_pause(c, 1, on, kb_now_ns(c));
    unlock();
}

struct stuck {
    const char *ids;
    const char *delivery_timeout_ms;
    bool reset;  /* the connections, before it goes on */
    kp_err want; /* of what was sent while nobody read */
};

static const struct stuck stuck[] = {
    {"A21", "60000", false, KP_OK},
    {"A27", "60000", true, KP_OK},
    {"A21 D19", "3000", false, KP_ETIMEDOUT},
    {"A27 D19", "3000", true, KP_ETIMEDOUT},
};

/* A21, A27, D19: a request is half written when the broker stops reading.  It
 * is sent again in time; or it ends at its deadline, and then the memory of its
 * bytes is not another topic's before the socket is done with them. */
START_TEST(a_broker_that_does_not_read)
{
    const struct stuck *s = &stuck[_i];
    struct broker_options o;
    kp_producer *p;
    kp_future f[FIRST + OTHER];
    kp_report report;
    char value[BIG];
    kp_record r = {.topic = "first", .value = {value, BIG}};

    kp_broker_defaults(&o);
    o.receive_buffer = 65536;
    broker = kp_broker_start(&o);
    make_topic("first", 1);
    make_topic("other", 1);
    p = MAKE_PRODUCER(FAST, "batch.size", "262144", "send.buffer.bytes",
                      "65536", "delivery.timeout.ms", s->delivery_timeout_ms,
                      "buffer.memory", "8000000", NULL);
    learn_topic(p, "first");
    learn_topic(p, "other");
    fill_value(value, "first", 0);
    ASSERT_OK(deliver(p, &r, &report));
    pause_node(true);
    for (int i = 0; i < FIRST; i++) {
        fill_value(value, "first", i + 1);
        ASSERT_OK(kp_send(p, &r, &f[i]));
    }
    if (s->want == KP_OK)
        ASSERT_ERR(kp_future_wait(&f[0], 700, NULL), KP_PENDING);
    for (int i = 0; i < FIRST && s->want != KP_OK; i++) {
        ASSERT_ERR(kp_future_wait(&f[i], SOON_MS, &report), s->want);
        ck_assert_int_ne(report.stored, KP_STORED_YES);
    }
    r.topic = "other";
    for (int i = FIRST; i < FIRST + OTHER; i++) {
        fill_value(value, "other", i);
        ASSERT_OK(kp_send(p, &r, &f[i]));
    }
    if (s->reset)
        kp_broker_stop_node(broker, 1);
    pause_node(false);
    if (s->reset)
        kp_broker_start_node(broker, 1);
    for (int i = s->want == KP_OK ? 0 : FIRST; i < FIRST + OTHER; i++)
        ASSERT_OK(kp_future_wait(&f[i], SOON_MS, &report));
    kp_future_release(f, FIRST + OTHER);
    expect_whole("first", 1 + FIRST);
    expect_whole("other", OTHER);
    end(p);
    teardown_broker();
}
END_TEST

/* A11, A12: sockets of two kilobytes, as small as the kernel makes them: requests
 * go in pieces. */
START_TEST(a_receive_buffer_of_a_few_bytes)
{
    static char value[BIG], want[BIG];
    const size_t size = 8000;
    kp_record r = {.topic = "t", .value = {value, size}};
    struct broker_options o;
    struct kb_log *l;
    struct kb_record stored;
    kp_producer *p;
    kp_report report;
    int n = 0;

    kp_broker_defaults(&o);
    o.receive_buffer = 1; /* the kernel makes it two kilobytes */
    o.send_buffer = 1;
    broker = kp_broker_start(&o);
    make_topic("t", 1);
    p = MAKE_PRODUCER("linger.ms", "0", "send.buffer.bytes", "1", NULL);
    for (int i = 0; i < 2; i++) {
        fill_value(value, "t", i);
        ASSERT_OK(deliver(p, &r, &report));
        ck_assert_int_eq(report.offset, i);
    }
    l = kb_log_open(lock(), "t", 0);
    for (; kb_log_next(l, &stored); n++) {
        fill_value(want, "t", n);
        ck_assert_uint_eq(stored.value_size, size);
        ck_assert_mem_eq(stored.value, want, size);
    }
    kb_log_close(l);
    unlock();
    ck_assert_int_eq(n, 2);
    end(p);
    teardown_broker();
}
END_TEST

/* -- idle connections -- */

static const char *const some_acks[] = {"1", "all"};

static void keep_connections(void *arg, const kp_metric *m)
{
    if (strcmp(m->name, "connection-count") == 0)
        *(double *)arg = m->value;
}

static bool has_no_connection(void *producer)
{
    double connections = -1;

    kp_metrics(producer, keep_connections, &connections);
    return connections == 0;
}

/* A22: the broker hangs up after each answer; nobody but the next send cares.
 * Metadata is asked for anew after a connection that ended, once the backoff
 * allows it: later than this ends, or the broker would hang up on that. */
START_TEST(a_connection_closed_while_idle_is_no_error)
{
    kp_config *c = make_config(kp_broker_bootstrap(broker), PATIENT, "acks",
                               some_acks[_i], "retry.backoff.ms", "300000",
                               "retry.backoff.max.ms", "300000", NULL);
    char value[8];
    kp_producer *p;
    kp_report report;
    int64_t n;

    lines.count = 0;
    kp_config_on_log(c, KP_LOG_WARN, keep_line, &lines);
    p = start_producer(c);
    learn_topic(p, "t");
    add_rule("api=produce count=-1 answer=close-after");
    n = connects();
    for (int i = 0; i < 10; i++) {
        (void)snprintf(value, sizeof(value), "%d", i);
        send_to(p, "t", 0, value, &report);
        ck_assert(becomes_true(has_no_connection, p));
    }
    ck_assert_int_ge(connects() - n, 9);
    expect_log("t", 0, 10);
    ASSERT_OK(kp_status(p, NULL, &error));
    ck_assert_int_eq(lines_with("connection", ""), 0);
    end(p);
    ck_assert_int_eq(lines.count, _i == 0 ? 1 : 0); /* acks=1 orders less */
}
END_TEST

/* UR-065: nobody answers, and yet all that was taken arrives. */
START_TEST(a_close_after_acks_0_loses_nothing)
{
    char value[100];
    kp_record r = {.topic = "t", .value = {value, sizeof(value)}};
    int64_t sent = 0;

    memset(value, 'v', sizeof(value));
    for (int i = 0; i < 30; i++) {
        kp_producer *p = MAKE_PRODUCER("acks", "0", "linger.ms",
                                       i % 2 == 0 ? "0" : "5", NULL);

        for (int k = 0; k < 100; k++, sent++)
            ASSERT_OK(kp_send(p, &r, NULL));
        ASSERT_OK(kp_close(p, SOON_MS, &error));
        ASSERT_OK(kp_producer_destroy(p));
        ck_assert(kp_broker_wait(broker, has_all, &sent, SOON_MS));
    }
}
END_TEST

/* -- versions -- */

static void speaks(int32_t node, int16_t api, int16_t min, int16_t max)
{
    kb_node_versions(lock(), node, api, min, max);
    unlock();
}

/* C01, C02: an ApiVersions that the broker does not know, or dies of. */
static const char *const hellos[] = {"error=35", "answer=close", "answer=reset",
                                     "answer=stall"};

START_TEST(an_old_hello_is_tried)
{
    char line[80];
    kp_producer *p;
    kp_report report;

    (void)snprintf(line, sizeof(line), "api=api-versions count=1 %s",
                   hellos[_i]);
    add_rule(line);
    p = MAKE_PRODUCER(FAST, NULL);
    send_to(p, "t", 0, "0", &report);
    expect_log("t", 0, 1);
    end(p);
}
END_TEST

/* C04 */
START_TEST(no_producer_ids_is_fatal_and_says_what_to_do)
{
    kp_record r = record_of("t", "0");
    kp_producer *p;
    kp_err err;

    speaks(1, API_INIT_PRODUCER_ID, 0, -1);
    p = MAKE_PRODUCER(FAST, NULL);
    err = deliver(p, &r, NULL);
    ASSERT_ERR(err, KP_UNSUPPORTED_VERSION);
    ASSERT_ERR(kp_status(p, NULL, &error), KP_UNSUPPORTED_VERSION);
    ck_assert_int_eq(error.kind, KP_KIND_FATAL);
    ASSERT_SAYS("enable.idempotence");
    ck_assert_uint_eq(stored_count("t", 0), 0);
    ASSERT_OK(kp_producer_destroy(p));
}
END_TEST

/* C05, and C03: too old for us, and a range from nine to two. */
static const int16_t too_old[][2] = {{0, 2}, {9, 2}};

START_TEST(a_broker_too_old_is_said_at_once)
{
    kp_record r = record_of("t", "0");
    kp_producer *p;
    int64_t began = now_ms();

    speaks(1, API_PRODUCE, too_old[_i][0], too_old[_i][1]);
    p = MAKE_PRODUCER(FAST, NULL);
    ASSERT_ERR(kp_send(p, &r, NULL), KP_ENOTSUP);
    ck_assert_int_lt(now_ms() - began, SOON_MS);
    ASSERT_ERR(kp_status(p, NULL, &error), KP_ENOTSUP);
    ASSERT_SAYS("Produce");
    (void)kp_producer_destroy(p);
}
END_TEST

/* C06: each connection speaks what its broker does. */
START_TEST(brokers_of_one_cluster_differ)
{
    kp_producer *p;
    kp_report report;

    speaks(1, API_PRODUCE, 3, 7);
    speaks(1, API_METADATA, 0, 5);
    p = MAKE_PRODUCER(FAST, NULL);
    for (int32_t i = 0; i < 2; i++) {
        send_to(p, "t", i, "0", &report);
        send_to(p, "t", i, "1", &report);
        expect_log("t", i, 2);
    }
    end(p);
}
END_TEST

/* C08: topic ids in Produce, and no Metadata that would tell them. */
START_TEST(produce_by_id_needs_ids)
{
    kp_producer *p;
    kp_report report;

    speaks(1, API_METADATA, 0, 9);
    p = MAKE_PRODUCER(FAST, NULL);
    send_to(p, "t", 0, "0", &report);
    ck_assert_int_eq(kb_version_seen(lock(), API_PRODUCE), 12);
    unlock();
    end(p);
}
END_TEST

/* -- what Metadata says -- */

static void address(int32_t node, int32_t port)
{
    kb_node_address(lock(), node, "127.0.0.1", port);
    unlock();
}

/* B24: a broker at a port that is none, and all that it leads waits. */
static const int32_t ports[] = {0, -1, 70000};

START_TEST(a_port_that_is_none_is_passed_over)
{
    int32_t leader, port;
    kp_producer *p;
    kp_report report;
    kp_record r = record_of("t", "0");
    kp_future f;

    leader = kb_leader(lock(), "t", 0);
    unlock();
    port = kp_broker_port(broker, leader);
    address(leader, ports[_i]);
    p = MAKE_PRODUCER(FAST, NULL);
    send_to(p, "t", 1, "0", &report);
    r.flags = KP_HAS_PARTITION;
    ASSERT_OK(kp_send(p, &r, &f));
    ASSERT_ERR(kp_future_wait(&f, 100, NULL), KP_PENDING);
    address(leader, port);
    ASSERT_OK(kp_future_wait(&f, SOON_MS, &report));
    kp_future_release(&f, 1);
    expect_log("t", 0, 1);
    end(p);
}
END_TEST

/* B25 */
START_TEST(metadata_without_brokers_changes_nothing)
{
    kp_producer *p;
    kp_report report;

    add_rule("api=metadata count=2 no_brokers");
    p = MAKE_PRODUCER(FAST, NULL);
    send_to(p, "t", 0, "0", &report);
    add_rule("api=metadata count=3 no_brokers");
    add_rule("api=produce count=1 error=6");
    send_to(p, "t", 0, "1", &report);
    expect_log("t", 0, 2);
    end(p);
}
END_TEST

static bool was_asked_to_produce(void *arg)
{
    (void)arg;
    return requests_of(API_PRODUCE) > 0;
}

/* A23: two brokers have changed their addresses, and the client does not know: it
 * asks the wrong one, which tells who it is when asked its versions, or, if it is
 * too old for that, that it does not lead; the right one gets the record. */
START_TEST(another_broker_answers_at_the_address)
{
    int port1 = kp_broker_port(broker, 1), port2 = kp_broker_port(broker, 2);
    kp_producer *p;
    kp_report report;
    kp_record r = record_of("t", "0");
    kp_future f;

    for (int32_t node = 1; node <= 2 && _i == 1; node++)
        speaks(node, API_API_VERSIONS, 0, 4);
    address(1, port2);
    address(2, port1);
    p = MAKE_PRODUCER(FAST, NULL);
    learn_topic(p, "t");
    r.flags = KP_HAS_PARTITION;
    ASSERT_OK(kp_send(p, &r, &f));
    if (_i == 1)
        ck_assert(becomes_true(was_asked_to_produce, NULL));
    ASSERT_ERR(kp_future_wait(&f, 300, NULL), KP_PENDING);
    ck_assert(was_asked_to_produce(NULL) == (_i == 1));
    ck_assert_uint_eq(stored_count("t", 0), 0);
    address(1, port1);
    address(2, port2);
    ASSERT_OK(kp_future_wait(&f, SOON_MS, &report));
    kp_future_release(&f, 1);
    expect_log("t", 0, 1);
    end(p);
}
END_TEST

/* C15: no leader for a while. */
START_TEST(a_partition_without_a_leader_waits)
{
    struct kb_cluster *c = lock();
    int32_t leader = kb_leader(c, "t", 0);
    kp_producer *p;
    kp_record r = record_of("t", "0");
    kp_report report;
    kp_future f;

    unlock();
    p = MAKE_PRODUCER(FAST, NULL);
    learn_topic(p, "t");
    c = lock();
    ck_assert(kb_leader_move(c, "t", 0, -1, false, kb_now_ns(c)));
    unlock();
    r.flags = KP_HAS_PARTITION;
    ASSERT_OK(kp_send(p, &r, &f));
    ASSERT_ERR(kp_future_wait(&f, 300, NULL), KP_PENDING);
    c = lock();
    ck_assert(kb_leader_move(c, "t", 0, leader, true, kb_now_ns(c)));
    unlock();
    ASSERT_OK(kp_future_wait(&f, SOON_MS, &report));
    kp_future_release(&f, 1);
    expect_log("t", 0, 1);
    end(p);
}
END_TEST

/* C11: the topic is gone for good, and the report says whose word that is. */
START_TEST(a_topic_deleted_under_way_ends_at_the_deadline)
{
    struct kb_cluster *c;
    kp_producer *p = MAKE_PRODUCER(FAST, "delivery.timeout.ms", "3000", NULL);
    kp_record r = record_of("t", "1");
    kp_report report;
    int64_t began;

    r.flags = KP_HAS_PARTITION;
    send_to(p, "t", 0, "0", &report);
    c = lock();
    ck_assert_int_eq(kb_topic_delete(c, "t", kb_now_ns(c)), 0);
    unlock();
    began = now_ms();
    ASSERT_ERR(deliver(p, &r, &report), KP_ETIMEDOUT);
    ck_assert_int_ge(now_ms() - began, 2990);
    ck_assert(report.cause == KP_UNKNOWN_TOPIC_OR_PARTITION ||
              report.cause == KP_UNKNOWN_TOPIC_ID);
    ck_assert_int_ne(report.stored, KP_STORED_YES);
    send_to(p, "u", 0, "0", &report);
    end(p);
}
END_TEST

/* C12: deleted, and made again with more partitions. */
START_TEST(a_topic_made_again_is_written_to)
{
    struct kb_cluster *c;
    kp_producer *p = MAKE_PRODUCER(FAST, NULL);
    kp_report report;

    send_to(p, "t", 0, "x", &report);
    c = lock();
    ck_assert_int_eq(kb_topic_delete(c, "t", kb_now_ns(c)), 0);
    ck_assert_int_eq(kb_topic_create(c, "t", 4, 1, kb_now_ns(c)), 0);
    unlock();
    send_to(p, "t", 0, "0", &report);
    ck_assert_int_eq(report.offset, 0);
    send_to(p, "t", 3, "0", &report);
    expect_log("t", 0, 1);
    expect_log("t", 3, 1);
    end(p);
}
END_TEST

static Suite *public_faults_suite(void)
{
    Suite *s = suite_create("public faults");
    TCase *t = tcase_create("one node");

    tcase_set_timeout(t, 120);
    tcase_add_checked_fixture(t, setup, teardown_broker);
    tcase_add_loop_test(t, a_spoilt_answer_costs_an_attempt, 0, 4 * SPOILT);
    tcase_add_loop_test(t, a_spoilt_answer_is_no_no, 0, SPOILT);
    tcase_add_loop_test(t, what_an_answer_says_is_looked_at, 0, 5);
    tcase_add_test(t, an_unknown_code_is_shown_and_may_be_stored);
    tcase_add_test(t, a_hostile_text_is_short_and_plain);
    tcase_add_test(t, a_text_that_cannot_be_ends_the_connection);
    tcase_add_test(t, a_senseless_throttle_time_is_ignored);
    tcase_add_test(t, a_log_function_may_ask);
    tcase_add_test(t, a_log_function_may_block);
    tcase_add_loop_test(t, a_door_that_shuts_is_knocked_at_slowly, 0, 2);
    tcase_add_loop_test(t, a_request_cut_anywhere_is_sent_again, 0, STRIPES);
    tcase_add_test(t, a_request_cut_anywhere_is_told_truly);
    tcase_add_loop_test(t, a_connection_closed_while_idle_is_no_error, 0, 2);
    tcase_add_test(t, a_close_after_acks_0_loses_nothing);
    tcase_add_loop_test(t, an_old_hello_is_tried, 0, 4);
    tcase_add_test(t, no_producer_ids_is_fatal_and_says_what_to_do);
    tcase_add_loop_test(t, a_broker_too_old_is_said_at_once, 0, 2);
    tcase_add_test(t, produce_by_id_needs_ids);
    tcase_add_test(t, metadata_without_brokers_changes_nothing);
    suite_add_tcase(s, t);
    t = tcase_create("two nodes");
    tcase_set_timeout(t, 120);
    tcase_add_checked_fixture(t, setup_two, teardown_broker);
    tcase_add_test(t, a_refused_address_is_passed_over);
    tcase_add_test(t, a_silent_broker_is_left_for_another);
    tcase_add_test(t, brokers_of_one_cluster_differ);
    tcase_add_loop_test(t, a_port_that_is_none_is_passed_over, 0, 3);
    tcase_add_loop_test(t, another_broker_answers_at_the_address, 0, 2);
    tcase_add_test(t, a_partition_without_a_leader_waits);
    tcase_add_test(t, a_topic_deleted_under_way_ends_at_the_deadline);
    tcase_add_test(t, a_topic_made_again_is_written_to);
    suite_add_tcase(s, t);
    t = tcase_create("small buffers");
    tcase_set_timeout(t, 120);
    tcase_add_loop_test(t, a_broker_that_does_not_read, 0, 4);
    tcase_add_test(t, a_receive_buffer_of_a_few_bytes);
    suite_add_tcase(s, t);
    return s;
}

KP_TEST_MAIN(public_faults_suite)
