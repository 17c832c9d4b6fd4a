/* SPDX-License-Identifier: BSD-2-Clause */
/* client_fuzz.c - the whole client in virtual time, fed by a fuzzer.
 *
 * An input's first two bytes are settings; the rest says what becomes of each
 * answer on its way (fuzz_net.c).  Three rounds of records are sent, and the
 * producer is closed.
 *
 * Oracle: each record that was taken has one report, not later than
 * delivery.timeout.ms; the I/O thread goes to sleep; sockets and memory come
 * back.  If no answer was changed, only lost or late, what the reports say is
 * held against the logs.  An input without answers to spoil delivers
 * everything. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "io_thread/sender.h"
#include "lib/api/producer.h"
#include "lib/base/wait.h"
#include "lib/shared/sticky.h"
#include "test/fuzz/fuzz_net.h"
#include "test/support/golden.h"

#define ROUNDS 3
#define ROUND 4
#define RECORDS (ROUNDS * ROUND)
#define VALUE_SIZE 100
#define ROUND_MS 300
#define DELIVERY_MS 1500
#define TURNS_MAX 3000 /* without time going on */

struct fuzz_record {
    struct run *run;
    bool taken, given_up, reported;
    unsigned callbacks;
    int64_t taken_ns, reported_ns;
    kp_err err;
    int32_t stored;
    unsigned in_log;
    kp_future future;
};

struct run {
    struct fuzz_input input;
    struct fuzz_net *net;
    struct kp_producer *p;
    struct fuzz_record records[RECORDS];
    int64_t begin_ns, turned_ns;
    unsigned turns;
    bool over, acks_all, idempotent;
};

/* -- the producer -- */

static void set(kp_config *c, const char *name, const char *value)
{
    kp_error error;

    if (kp_config_set(c, name, value, &error) != KP_OK)
        fuzz_failed(__FILE__, __LINE__, error.text);
}

static void set_all(struct run *r, kp_config *c, unsigned a, unsigned b)
{
    static const char *const fixed[][2] = {
        {"bootstrap.servers", "10.0.0.1:9092,10.0.0.2:9092"},
        {"delivery.timeout.ms", "1500"},
        {"request.timeout.ms", "300"},
        {"metadata.max.age.ms", "350"},
        {"retry.backoff.ms", "20"},
        {"retry.backoff.max.ms", "100"},
        {"reconnect.backoff.ms", "10"},
        {"reconnect.backoff.max.ms", "100"},
        {"socket.connection.setup.timeout.ms", "200"},
        {"connections.max.idle.ms", "700"},
        {"buffer.memory", "100000"},
        {"client.id", "fuzz"}};
    bool plain = (a & 1) != 0;
    bool gzip = (a & 32) != 0 && strstr(kp_features(), "gzip") != NULL;

    for (size_t i = 0; i < sizeof(fixed) / sizeof(fixed[0]); i++)
        set(c, fixed[i][0], fixed[i][1]);
    r->idempotent = !plain;
    r->acks_all = !plain || (a & 6) != 2;
    set(c, "enable.idempotence", plain ? "false" : "true");
    set(c, "acks", r->acks_all ? "all" : (a & 8) != 0 ? "0" : "1");
    set(c, "linger.ms", (a & 16) != 0 ? "0" : "5");
    set(c, "compression.type", gzip ? "gzip" : "none");
    set(c, "batch.size", (b & 1) != 0 ? "150" : "1000");
    set(c, "metadata.recovery.strategy", (b & 2) != 0 ? "none" : "rebootstrap");
    set(c, "max.in.flight.requests.per.connection", (b & 4) != 0 ? "1" : "5");
}

static void begin(struct run *r, unsigned a, unsigned b)
{
    struct io_env env = fuzz_net_env(r->net);
    kp_config *c;
    kp_error error;

    FUZZ_CHECK(kp_config_create(&c) == KP_OK);
    set_all(r, c, a, b);
    FUZZ_CHECK(kp__producer_make(&r->p, c, &env.clock, &error) == KP_OK);
    FUZZ_CHECK(kp__io_thread_attach(r->p, &env, &error) == KP_OK);
    kp_config_destroy(c);
    r->begin_ns = r->net->now_ns;
}

/* -- records -- */

static void reported(struct fuzz_record *f, const kp_report *report)
{
    FUZZ_CHECK(!f->reported || f->err == report->err);
    FUZZ_CHECK(report->err != KP_PENDING);
    FUZZ_CHECK(report->err == KP_OK || report->stored != KP_STORED_YES);
    FUZZ_CHECK(report->err != KP_OK || !f->run->acks_all ||
               report->stored == KP_STORED_YES);
    if (!f->reported)
        f->reported_ns = f->run->net->now_ns;
    f->reported = true;
    f->err = report->err;
    f->stored = report->stored;
}

static void on_delivery(const kp_report *report)
{
    struct fuzz_record *f = report->tag;

    FUZZ_CHECK(f->taken && ++f->callbacks == 1);
    reported(f, report);
}

static bool has_future(size_t i)
{
    return i % 2 == 0;
}

static void send_record(struct run *r, size_t i)
{
    struct fuzz_record *f = &r->records[i];
    char value[VALUE_SIZE];
    kp_record record = {.topic = "t",
                        .value = {value, sizeof(value)},
                        .flags = KP_NOWAIT,
                        .tag = f};

    memset(value, 'a' + (char)i, sizeof(value));
    f->run = r;
    f->taken = true;
    f->taken_ns = r->net->now_ns;
    if (i % 3 != 0) {
        record.flags |= KP_HAS_PARTITION;
        record.partition = (int32_t)i % 2;
    }
    if (!has_future(i))
        record.on_delivery = on_delivery;
    f->taken =
        kp_send(r->p, &record, has_future(i) ? &f->future : NULL) == KP_OK;
    if (!f->taken && has_future(i))
        kp_future_release(&f->future, 1);
}

static void look(struct run *r)
{
    for (size_t i = 0; i < RECORDS; i++) {
        struct fuzz_record *f = &r->records[i];
        kp_report report;

        if (f->taken && !f->reported && has_future(i) &&
            kp_future_wait(&f->future, 0, &report) != KP_PENDING)
            reported(f, &report);
        if (f->taken && !f->reported && !r->over)
            FUZZ_CHECK(r->net->now_ns <=
                       f->taken_ns + DELIVERY_MS * KP_NS_PER_MS);
    }
}

static int64_t due_ns(const struct run *r, size_t i)
{
    return r->begin_ns + (int64_t)(i / ROUND) * ROUND_MS * KP_NS_PER_MS;
}

/* What is due and was refused is tried again for a round's time. */
static void send_due(struct run *r)
{
    for (size_t i = 0; i < RECORDS; i++) {
        struct fuzz_record *f = &r->records[i];

        if (f->taken || f->given_up || due_ns(r, i) > r->net->now_ns)
            continue;
        if (r->net->now_ns > due_ns(r, i) + 2 * ROUND_MS * KP_NS_PER_MS)
            f->given_up = true;
        else
            send_record(r, i);
    }
}

static bool settled(const struct run *r)
{
    for (size_t i = 0; i < RECORDS; i++)
        if (!r->records[i].given_up && !r->records[i].reported)
            return false;
    return true;
}

/* -- time -- */

static void turn(struct run *r)
{
    struct io_thread *io = r->p->io;

    if (r->turned_ns != r->net->now_ns)
        r->turns = 0;
    r->turned_ns = r->net->now_ns;
    FUZZ_CHECK(++r->turns < TURNS_MAX);
    kp__io_thread_become(r->p);
    kp__io_thread_run_once(io, r->net->now_ns);
    kp__io_thread_become(NULL);
#ifdef KP_DEBUG
    kp__pool_check(r->p->pool);
#endif
    look(r);
    if (!io->finished)
        return;
    r->over = true;
    atomic_store(&r->p->ended, 1);
    kp__ops_finish(&r->p->ops);
}

static void step(struct run *r)
{
    int64_t next_ns = r->net->now_ns + 20 * KP_NS_PER_MS;
    int64_t net_ns, sleeps_until_ns;

    fuzz_net_run(r->net);
    kp__io_thread_wait(r->p->io);
    sleeps_until_ns = r->net->mem.sleeps_until_ns;
    if (r->p->io->event_count > 0 || sleeps_until_ns <= r->net->now_ns) {
        turn(r);
        return;
    }
    net_ns = fuzz_net_next_ns(r->net);
    next_ns = sleeps_until_ns < next_ns ? sleeps_until_ns : next_ns;
    next_ns = net_ns > r->net->now_ns && net_ns < next_ns ? net_ns : next_ns;
    r->net->now_ns = next_ns;
}

/* -- the end -- */

static void end(struct run *r, bool forced)
{
    struct op *op = kp__close_begin(r->p, forced ? 0 : 200);
    struct pool_stats stats;

    FUZZ_CHECK(op != NULL);
    while (!r->over)
        step(r);
    FUZZ_CHECK(kp__op_is_done(op));
    kp__op_unref(op);
    look(r);
    for (size_t i = 0; i < RECORDS; i++) {
        FUZZ_CHECK(!r->records[i].taken || r->records[i].reported);
        if (r->records[i].taken && has_future(i))
            kp_future_release(&r->records[i].future, 1);
    }
    /* what is still on a wire comes back with the connections */
    (void)kp_close(r->p, 0, NULL);
    kp__pool_stats(r->p->pool, &stats);
    FUZZ_CHECK(stats.available_bytes == stats.total_bytes);
    FUZZ_CHECK(kp_producer_destroy(r->p) == KP_OK);
}

static void read_log(struct run *r, int32_t partition)
{
    struct kb_log *log = kb_log_open(r->net->cluster, "t", partition);
    struct kb_record record;

    FUZZ_CHECK(log != NULL);
    while (kb_log_next(log, &record)) {
        size_t i = (size_t)record.value[0] - 'a';

        FUZZ_CHECK(record.value_size == VALUE_SIZE && i < RECORDS);
        r->records[i].in_log++;
    }
    kb_log_close(log);
}

static void check_truth(struct run *r)
{
    /* what a broker had taken before the end it still does */
    kb_advance(r->net->cluster, r->net->now_ns + 1000 * KP_NS_PER_SEC);
    read_log(r, 0);
    read_log(r, 1);
    for (size_t i = 0; i < RECORDS; i++) {
        const struct fuzz_record *f = &r->records[i];

        FUZZ_CHECK(f->in_log <= 1 || !r->idempotent);
        FUZZ_CHECK(f->in_log == 0 || (f->taken && f->stored != KP_STORED_NO));
        FUZZ_CHECK(f->in_log > 0 || f->stored != KP_STORED_YES);
    }
}

static void all_delivered(const struct run *r)
{
    for (size_t i = 0; i < RECORDS; i++)
        FUZZ_CHECK(r->records[i].taken && r->records[i].err == KP_OK);
}

void fuzz_client(const uint8_t *data, size_t size)
{
    struct fuzz_memory memory = fuzz_memory_begin();
    struct run *r = calloc(1, sizeof(*r));
    unsigned a, b;

    FUZZ_CHECK(r != NULL);
    r->input = (struct fuzz_input){data, data + size};
    a = fuzz_byte(&r->input);
    b = fuzz_byte(&r->input);
    kp__thread_rng_seed(a);
    r->net = fuzz_net_create(&r->input, (enum fuzz_ending)(b / 16 % ENDINGS));
    begin(r, a, b);
    while (!settled(r) && !((b & 8) != 0 && r->input.at == r->input.end)) {
        send_due(r);
        step(r);
    }
    if (size <= 2 && b / 16 % ENDINGS == ENDS_HONEST && (b & 8) == 0)
        all_delivered(r);
    end(r, (a & 64) != 0);
    if (!r->net->lied)
        check_truth(r);
    fuzz_net_destroy(r->net);
    free(r);
    fuzz_memory_end(&memory);
}

/* -- to begin with: each way to spoil each of the first answers -- */

static void give_spoilt(fuzz_seed_fn fn, void *arg)
{
    for (uint8_t way = 0; way < 10; way++)
        for (uint8_t at = 0; at < 8; at++) {
            uint8_t bytes[32] = {(uint8_t)(way * 16 + at), at};

            bytes[2 + at] = way;
            bytes[3 + at] = 3;
            bytes[4 + at] = 17;
            fn(arg, "spoilt", bytes, 16);
        }
}

/* Answers of Kafka's own classes in place of honest ones. */
static void give_bodies(const char *file, const char *title, size_t honest,
                        fuzz_seed_fn fn, void *arg)
{
    struct golden_file f;

    golden_open(&f, file);
    for (size_t i = 0; i < f.count; i++) {
        uint8_t input[1024] = {0, 0};
        size_t size, front = 2 + honest;
        uint8_t *body;

        if (strncmp(f.cases[i].title, title, strlen(title)) != 0)
            continue;
        body = golden_bytes(golden_get(&f.cases[i], "body"), &size);
        if (size < sizeof(input) - front - 4) {
            input[front] = 2; /* OTHER_BODY */
            input[front + 1] = (uint8_t)((size + 1) >> 8);
            input[front + 2] = (uint8_t)(size + 1);
            /* the header's tags */
            memcpy(input + front + 4, body, size);
            fn(arg, f.cases[i].title, input, front + 4 + size);
        }
        free(body);
    }
    golden_close(&f);
}

void fuzz_client_seeds(fuzz_seed_fn fn, void *arg)
{
    fn(arg, "honest", "\0\0", 2);
    fn(arg, "plain", "\x03\x04", 2);
    give_spoilt(fn, arg);
    for (size_t honest = 1; honest < 6; honest++) {
        give_bodies("metadata.txt", "message METADATA response 13", honest, fn,
                    arg);
        give_bodies("produce.txt", "message PRODUCE response 13", honest, fn,
                    arg);
        give_bodies("init_producer_id.txt",
                    "message INIT_PRODUCER_ID response 6", honest, fn, arg);
    }
    give_bodies("api_versions.txt", "message API_VERSIONS response 4", 0, fn,
                arg);
}
