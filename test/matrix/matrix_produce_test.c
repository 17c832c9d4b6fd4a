/* SPDX-License-Identifier: BSD-2-Clause */
/* Every error code as the answer to a Produce request: once and for ever, in
 * the first request, in the middle, in the last and during close, for each
 * acks.  What the report says, how often the record is tried and under which
 * numbers, what is counted, and that the producer works afterwards. */
#include "test/matrix/run.h"

enum mode { ACKS_0, ACKS_1, ACKS_ALL, IDEMPOTENT, MODES };

#define FAST \
    "retry.backoff.ms", "10", "retry.backoff.max.ms", "10", "linger.ms", "0", \
        "delivery.timeout.ms", "200", "request.timeout.ms", "100"

static const struct {
    const char *name;
    const char *const *settings;
} modes[MODES] = {
    {"acks=0", WORLD_SETTINGS(FAST, "acks", "0")},
    {"acks=1", WORLD_SETTINGS(FAST, "acks", "1")},
    {"acks=all", WORLD_SETTINGS(FAST, "enable.idempotence", "false")},
    {"idempotent", WORLD_SETTINGS(FAST)},
};

struct run {
    struct world *w;
    struct code code;
    enum produce_rule rule; /* of this mode */
    enum mode mode;
    enum moment moment;
    bool always;
    struct world_record *r;
    struct world_call *close;
};

static enum produce_rule rule_of(const struct code *c, enum mode mode)
{
    if (mode == ACKS_0)
        return STORED; /* nobody hears of anything else */
    if (mode != IDEMPOTENT && (c->produce == BUMP || c->produce == NEW_ID ||
                               c->produce == FORGOTTEN || c->produce == TWIN))
        return FINAL;
    return c->produce;
}

static bool tries_again(const struct run *run)
{
    return run->rule != STORED && run->rule != FINAL && run->rule != FATAL &&
           run->rule != TWIN;
}

static bool is_delivered(const struct run *run)
{
    return run->rule == STORED || (tries_again(run) && !run->always);
}

/* -- what happens -- */

static void go_wrong(struct run *run)
{
    size_t before = world_attempts(run->w);

    /* a broker that says 0 has appended */
    run_rule(run->w,
             run->code.code == 0 ? "api=produce count=%d error=%d append"
                                 : "api=produce count=%d error=%d",
             run->always ? -1 : 1, run->code.code);
    run->r = world_send(run->w, 0);
    if (run->moment == CLOSING) {
        world_run_until_attempts(run->w, before + 1);
        run->close = world_close(run->w, 60000);
    }
    world_settle(run->w);
    world_rule_remove(run->w, -1);
}

/* -- what is expected -- */

static void expect_outcome(const struct run *run)
{
    const struct code *c = &run->code;
    kp_err err = code_shown(c->code);
    int32_t stored = run->mode == ACKS_1 ? c->one : c->all;

    if (run->mode == ACKS_0)
        expect_report(run->r, KP_OK, KP_OK, MAYBE);
    else if (is_delivered(run))
        expect_report(run->r, KP_OK, KP_OK, YES);
    else if (run->rule == THRICE)
        expect_report(run->r, err, KP_OK, stored);
    else if (tries_again(run))
        expect_report(run->r, KP_ETIMEDOUT, err, stored);
    else
        expect_report(run->r, err, KP_OK, stored);
}

/* How often it was tried, and what the second attempt was called. */
static void expect_attempts(const struct run *run)
{
    size_t before = (size_t)moments[run->moment].before;
    size_t n = world_attempts(run->w) - before;
    const struct record_batch_header *a, *b;

    if (!tries_again(run)) {
        EXPECT_INT(n, 1);
        return;
    }
    if (!run->always)
        EXPECT_INT(n, 2);
    else if (run->rule == THRICE)
        EXPECT_INT(n, 3);
    else /* 200 ms of backoffs of 10, more or less, and answers */
        ck_assert_msg(n >= 8 && n <= 20, "%s: %zu attempts", run_name, n);
    a = &world_attempt(run->w, before)->header;
    b = &world_attempt(run->w, before + 1)->header;
    if (run->mode != IDEMPOTENT) {
        EXPECT_INT(b->producer_id, -1);
        return;
    }
    EXPECT_INT(b->producer_id == a->producer_id, run->rule != NEW_ID);
    if (run->rule == NEW_ID || run->rule == BUMP)
        EXPECT_INT(b->base_sequence, 0);
    else
        EXPECT_INT(b->base_sequence, a->base_sequence);
    if (run->rule != NEW_ID)
        EXPECT_INT(b->producer_epoch,
                   a->producer_epoch + (run->rule == BUMP ? 1 : 0));
}

static void expect_counted(const struct run *run, size_t attempts)
{
    struct counters c = run_counters(run->w);

    EXPECT_INT(c.errors, is_delivered(run) ? 0 : 1);
    EXPECT_INT(c.retries, tries_again(run) ? (long long)attempts - 1 : 0);
}

/* Numbers that a refused batch had are gone with it. */
static void expect_next_numbers(const struct run *run, size_t at)
{
    const struct record_batch_header *a = &world_attempt(run->w, at)->header;
    const struct record_batch_header *b =
        &world_attempt(run->w, at + 1)->header;

    if (run->mode != IDEMPOTENT)
        return;
    if (is_delivered(run)) {
        EXPECT_INT(b->base_sequence, a->base_sequence + 1);
        return;
    }
    EXPECT_INT(b->base_sequence, 0);
    ck_assert_msg(b->producer_epoch != a->producer_epoch ||
                      b->producer_id != a->producer_id,
                  "%s: numbers are used again", run_name);
}

static void expect_it_works(const struct run *run)
{
    size_t at = world_attempts(run->w) - 1;

    for (int i = 0; i < moments[run->moment].after; i++) {
        struct world_record *r = send_and_settle(run->w);

        if (run->rule == FATAL) {
            expect_refused(r, run->code.code);
            EXPECT_INT(kp_status(world_producer(run->w), NULL, NULL),
                       run->code.code);
            continue;
        }
        expect_report(r, KP_OK, KP_OK, run->mode == ACKS_0 ? MAYBE : YES);
        if (i == 0 && run->mode != ACKS_0)
            expect_next_numbers(run, at);
    }
}

static void expect_the_end(struct run *run)
{
    kp_err fatal = run->rule == FATAL ? run->code.code : KP_OK;

    if (run->close == NULL)
        run->close = world_close(run->w, 60000);
    world_settle(run->w);
    EXPECT_INT(run->close->done, 1);
    EXPECT_INT(run->close->err, fatal);
    expect_refused(world_send(run->w, 0), fatal != KP_OK ? fatal : KP_ECLOSED);
}

static void one_run(struct run *run)
{
    size_t attempts;

    RUN_NAME("code %d, %s, %s, %s", run->code.code, modes[run->mode].name,
             moments[run->moment].name, run->always ? "for ever" : "once");
    run->rule = rule_of(&run->code, run->mode);
    run->w = world_begin(
        &(struct world_options){.settings = modes[run->mode].settings});
    for (int i = 0; i < moments[run->moment].before; i++)
        expect_report(send_and_settle(run->w), KP_OK, KP_OK,
                      run->mode == ACKS_0 ? MAYBE : YES);
    go_wrong(run);
    expect_outcome(run);
    if (run->mode != ACKS_0)
        expect_attempts(run);
    attempts = world_attempts(run->w) - (size_t)moments[run->moment].before;
    expect_it_works(run);
    expect_counted(run, attempts);
    expect_the_end(run);
    world_check(run->w);
    world_end(run->w);
}

/* One case a mode and moment. */
START_TEST(every_code)
{
    for (int i = 0; i < 2 * CODES; i++)
        one_run(&(struct run){.code = code_at(i / 2),
                              .mode = (enum mode)(_i / MOMENTS),
                              .moment = (enum moment)(_i % MOMENTS),
                              .always = i % 2 == 1});
}
END_TEST

START_TEST(the_table_has_each_code_once)
{
    ck_assert_int_eq(CODES, 138 + 2);
    for (int code = -1; code <= 136; code++) {
        int n = 0;

        for (int i = 0; i < CODES; i++)
            n += code_at(i).code == code ? 1 : 0;
        ck_assert_msg(n == 1, "code %d stands there %d times", code, n);
    }
}
END_TEST

static Suite *produce_suite(void)
{
    Suite *s = suite_create("matrix_produce");
    TCase *t = tcase_create("matrix_produce");

    tcase_set_timeout(t, 180);
    tcase_add_test(t, the_table_has_each_code_once);
    tcase_add_loop_test(t, every_code, 0, MODES * MOMENTS);
    suite_add_tcase(s, t);
    return s;
}

KP_TEST_MAIN(produce_suite)
