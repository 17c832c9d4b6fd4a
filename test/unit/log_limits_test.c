/* SPDX-License-Identifier: BSD-2-Clause */
/* What a broker can make the library say again and again is said once in ten
 * seconds for each broker, partition or client; two brokers that take turns
 * change nothing about that. */
#include <string.h>

#include "test/support/main.h"
#include "test/support/world.h"

#define FAST \
    "retry.backoff.ms", "10", "retry.backoff.max.ms", "50", "linger.ms", "0", \
        "reconnect.backoff.ms", "10", "reconnect.backoff.max.ms", "50"

struct heard {
    const char *what;
    int lines;
};

static void hear(struct world *w, void *arg, const kp_log *line)
{
    struct heard *h = arg;

    (void)w;
    if (line->level <= KP_LOG_WARN && strstr(line->text, h->what) != NULL)
        h->lines++;
}

static struct world *begin(struct heard *h, const char *what)
{
    struct world *w =
        world_begin(&(struct world_options){.nodes = 2,
                                            .partitions = 2,
                                            .watches_log = true,
                                            .settings = WORLD_SETTINGS(FAST)});

    *h = (struct heard){.what = what};
    world_on_log(w, hear, h);
    return w;
}

/* Ten times, a record to each broker. */
static void take_turns(struct world *w)
{
    for (int i = 0; i < 10; i++) {
        (void)world_send(w, 0);
        (void)world_send(w, 1);
        world_settle(w);
    }
}

/* Two brokers that answer so each time. */
static void brokers_answer(const char *rule, const char *what)
{
    struct heard h;
    struct world *w = begin(&h, what);
    int64_t began_ms = world_now_ms(w);
    int id = world_rule(w, rule);

    take_turns(w);
    ck_assert_int_lt(world_now_ms(w) - began_ms, 5000);
    ck_assert_int_eq(h.lines, 2);
    world_run_ms(w, 10000);
    world_rule_remove(w, id);
    (void)world_rule(w, rule);
    take_turns(w);
    ck_assert_int_eq(h.lines, 4); /* it is not forgotten */
    world_rule_remove(w, -1);
    world_end(w);
}

START_TEST(answers_for_strangers)
{
    brokers_answer("api=produce count=20 stranger",
                   "answered for a partition that was not in the request");
}
END_TEST

START_TEST(answers_that_cannot_be_read)
{
    brokers_answer("api=produce count=20 answer=short at=9",
                   "sent a Produce response that cannot be read");
}
END_TEST

/* Another line between two of them, as there is with several partitions. */
START_TEST(duplicates_that_are_none)
{
    struct heard h;
    struct world *w = begin(&h, "a batch sent once was called a duplicate");

    (void)world_rule(w, "api=produce count=20 error=46");
    take_turns(w);
    ck_assert_int_eq(h.lines, 2);
    world_end(w);
}
END_TEST

START_TEST(a_topic_made_anew_again_and_again)
{
    struct heard h;
    struct world *w = begin(&h, "was deleted and created anew");

    for (int i = 0; i < 5; i++) {
        struct kb_cluster *c = world_cluster(w);

        ck_assert_int_eq(kb_topic_delete(c, "t", world_now_ns(w)), 0);
        ck_assert_int_eq(kb_topic_create(c, "t", 2, 1, world_now_ns(w)), 0);
        (void)world_send(w, 0);
        world_settle(w);
        (void)world_rule(w, "api=produce answer=garbage");
        (void)world_send(w, 1); /* which makes it say something else */
        world_settle(w);
    }
    ck_assert_int_eq(h.lines, 1);
    world_forgive(w, true, true);
    world_end(w);
}
END_TEST

static Suite *log_limits_suite(void)
{
    Suite *s = suite_create("log_limits");
    TCase *t = tcase_create("log_limits");

    tcase_add_test(t, answers_for_strangers);
    tcase_add_test(t, answers_that_cannot_be_read);
    tcase_add_test(t, duplicates_that_are_none);
    tcase_add_test(t, a_topic_made_anew_again_and_again);
    suite_add_tcase(s, t);
    return s;
}

KP_TEST_MAIN(log_limits_suite)
