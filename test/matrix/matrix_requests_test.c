/* SPDX-License-Identifier: BSD-2-Clause */
/* Every error code as the answer to the requests that carry no records:
 * InitProducerId, ApiVersions, and Metadata as a whole, of the topic and of its
 * partition; once and three times in a row, before the first record, in the
 * middle, at the last and during close.  What becomes of the records, what is
 * counted, how often is asked, and that the producer works afterwards. */
#include "test/matrix/run.h"

#define FAST \
    "retry.backoff.ms", "10", "retry.backoff.max.ms", "10", "linger.ms", "0", \
        "delivery.timeout.ms", "2000", "request.timeout.ms", "500", \
        "max.block.ms", "5000", "reconnect.backoff.ms", "10", \
        "reconnect.backoff.max.ms", "10"

enum what {
    ID,            /* InitProducerId */
    VERSIONS,      /* ApiVersions */
    METADATA,      /* the answer as a whole */
    TOPIC,         /* of the topic, without partitions */
    PARTITION,     /* of the partition, without a leader */
    LED_PARTITION, /* of the partition, with one all the same */
    WHATS
};

static const struct {
    const char *name, *rule;
    int api; /* for counting requests */
} whats[WHATS] = {
    {"InitProducerId", "api=init-producer-id count=%d error=%d", 22},
    {"ApiVersions", "api=api-versions count=%d error=%d", 18},
    {"Metadata", "api=metadata count=%d error=%d", 3},
    {"topic", "api=metadata topic=t count=%d error=%d", 3},
    {"partition", "api=metadata topic=t partition=0 count=%d error=%d", 3},
    {"partition with a leader",
     "api=metadata topic=t partition=0 count=%d error=%d append", 3},
};

struct run {
    struct world *w;
    enum what what;
    struct code code;
    enum moment moment;
    int times;
    struct world_record *r;
    struct world_call *close;
    int64_t asked; /* requests of its kind before it went wrong */
};

static kp_err shown(const struct run *run)
{
    /* a coordinator that calls the epoch old has fenced us */
    if (run->what == ID && run->code.code == KP_INVALID_PRODUCER_EPOCH)
        return KP_PRODUCER_FENCED;
    return code_shown(run->code.code);
}

static bool is_fatal(const struct run *run)
{
    return run->what == ID && run->code.id == REFUSED;
}

/* A name that brokers refuse is refused to its senders; a topic that is in use
 * keeps what is queued. */
static bool is_refused(const struct run *run)
{
    return run->what == TOPIC && run->code.topic == REFUSED;
}

static int64_t requests(const struct run *run)
{
    return kb_requests(world_cluster(run->w), -1,
                       (int16_t)whats[run->what].api);
}

/* -- what happens -- */

/* What makes the client ask in the middle of its work. */
static void provoke(struct run *run)
{
    if (run->what == ID)
        (void)world_rule(run->w, "api=produce count=1 error=47");
    else if (run->what != VERSIONS)
        (void)world_rule(run->w, "api=produce count=1 error=6");
}

static void go_wrong(struct run *run)
{
    size_t before = world_attempts(run->w);

    run->asked = requests(run);
    run_rule(run->w, whats[run->what].rule, run->times, run->code.code);
    if (run->moment != FIRST)
        provoke(run);
    run->r = world_send(run->w, 0);
    if (run->moment != FIRST)
        world_run_until_attempts(run->w, before + 1);
    if (run->moment == CLOSING)
        run->close = world_close(run->w, 60000);
    if (run->moment != FIRST && run->what == VERSIONS)
        world_cut(run->w, -1, true); /* a new connection says hello */
    world_settle(run->w);
}

/* -- what is expected -- */

static void expect_outcome(const struct run *run)
{
    kp_err err = shown(run);

    if (run->moment == FIRST && (is_fatal(run) || is_refused(run)))
        expect_refused(run->r, err); /* it still waits for its topic */
    else if (is_fatal(run))
        expect_report(run->r, err, KP_INVALID_PRODUCER_EPOCH, NO);
    else
        expect_report(run->r, KP_OK, KP_OK, YES);
}

/* Asked until it was answered, and no more. */
static void expect_asked(const struct run *run)
{
    int64_t n = requests(run) - run->asked;

    if (is_fatal(run) || (is_refused(run) && run->moment == FIRST)) {
        EXPECT_INT(n, 1);
    } else if (run->what == ID) {
        EXPECT_INT(n, run->code.code == 0 ? 1 : run->times + 1);
    } else {
        ck_assert_msg(n >= 1 && n <= run->times + 3, "%s: asked %d times",
                      run_name, (int)n);
    }
}

static void expect_counted(const struct run *run)
{
    struct counters c = run_counters(run->w);

    EXPECT_INT(c.errors, is_fatal(run) && run->moment != FIRST ? 1 : 0);
    EXPECT_INT(c.retries, is_fatal(run) || run->moment == FIRST ? 0 : 1);
}

/* A topic that was refused is asked about again a little later. */
static struct world_record *send_when_taken(const struct run *run)
{
    struct world_record *r = send_and_settle(run->w);

    for (int i = 0; i < 40 && is_refused(run) && r->state == WORLD_REFUSED;
         i++) {
        expect_refused(r, shown(run));
        world_run_ms(run->w, 1000);
        r = send_and_settle(run->w);
    }
    return r;
}

static void expect_it_works(const struct run *run)
{
    for (int i = 0; i < moments[run->moment].after; i++) {
        if (is_fatal(run)) {
            expect_refused(send_and_settle(run->w), shown(run));
            EXPECT_INT(kp_status(world_producer(run->w), NULL, NULL),
                       shown(run));
            continue;
        }
        expect_report(send_when_taken(run), KP_OK, KP_OK, YES);
        world_run_ms(run->w, 1000); /* metadata has been asked for again */
        EXPECT_INT(kp_status(world_producer(run->w), NULL, NULL), KP_OK);
    }
}

static void expect_the_end(struct run *run)
{
    kp_err fatal = is_fatal(run) ? shown(run) : KP_OK;

    if (run->close == NULL)
        run->close = world_close(run->w, 60000);
    world_settle(run->w);
    EXPECT_INT(run->close->done, 1);
    EXPECT_INT(run->close->err, fatal);
    expect_refused(world_send(run->w, 0), fatal != KP_OK ? fatal : KP_ECLOSED);
}

static void one_run(struct run *run)
{
    RUN_NAME("%s: code %d, %s, %d times", whats[run->what].name, run->code.code,
             moments[run->moment].name, run->times);
    run->w = world_begin(&(struct world_options){
        .settings = WORLD_SETTINGS(FAST), .no_wait = true});
    for (int i = 0; i < moments[run->moment].before; i++)
        expect_report(send_and_settle(run->w), KP_OK, KP_OK, YES);
    go_wrong(run);
    expect_outcome(run);
    expect_asked(run);
    if (run->moment != LAST && run->moment != CLOSING)
        expect_it_works(run);
    expect_counted(run);
    expect_the_end(run);
    world_check(run->w);
    world_end(run->w);
}

/* One case a kind of answer and a moment. */
START_TEST(every_code)
{
    for (int i = 0; i < 2 * CODES; i++)
        one_run(&(struct run){.code = code_at(i / 2),
                              .what = (enum what)(_i / MOMENTS),
                              .moment = (enum moment)(_i % MOMENTS),
                              .times = i % 2 == 0 ? 1 : 3});
}
END_TEST

static Suite *requests_suite(void)
{
    Suite *s = suite_create("matrix_requests");
    TCase *t = tcase_create("matrix_requests");

    tcase_set_timeout(t, 180);
    tcase_add_loop_test(t, every_code, 0, WHATS * MOMENTS);
    suite_add_tcase(s, t);
    return s;
}

KP_TEST_MAIN(requests_suite)
