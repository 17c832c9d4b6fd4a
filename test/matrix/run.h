/* SPDX-License-Identifier: BSD-2-Clause */
/* run.h - what the runs of the matrix share: the moments, the name of the run
 * for a message, and the two counters. */
#ifndef KP_TEST_MATRIX_RUN_H
#define KP_TEST_MATRIX_RUN_H

#include <stdio.h>
#include <string.h>

#include "test/matrix/codes.h"
#include "test/support/main.h"
#include "test/support/world.h"

/* The moment at which the one request goes wrong. */
enum moment { FIRST, MIDDLE, LAST, CLOSING, MOMENTS };

static const struct {
    const char *name;
    int before, after; /* records sent, one after the other */
} moments[MOMENTS] = {
    {"the first", 0, 3},
    {"in the middle", 2, 2},
    {"the last", 3, 0},
    {"during close", 2, 0},
};

/* The run, for messages. */
static char run_name[160];

#define RUN_NAME(...) \
    do { \
        (void)snprintf(run_name, sizeof(run_name), __VA_ARGS__); \
        if (getenv("KP_MATRIX_TRACE") != NULL) \
            (void)fprintf(stderr, "%s\n", run_name); \
    } while (0)

#define EXPECT_INT(got, want) \
    do { \
        long long got_ = (long long)(got), want_ = (long long)(want); \
        ck_assert_msg(got_ == want_, "%s: %s is %lld, not %lld", run_name, \
                      #got, got_, want_); \
    } while (0)

static inline void run_rule(struct world *w, const char *fmt, int count,
                            int16_t code)
{
    char line[120];

    (void)snprintf(line, sizeof(line), fmt, count, code);
    (void)world_rule(w, line);
}

struct counters {
    long long errors, retries;
};

static inline void count_one(void *arg, const kp_metric *m)
{
    struct counters *c = arg;

    if (strcmp(m->group, "producer-metrics") != 0)
        return;
    if (strcmp(m->name, "record-error-total") == 0)
        c->errors = (long long)m->value;
    if (strcmp(m->name, "record-retry-total") == 0)
        c->retries = (long long)m->value;
}

static inline struct counters run_counters(struct world *w)
{
    struct counters c = {-1, -1};

    kp_metrics(world_producer(w), count_one, &c);
    return c;
}

static inline void expect_report(const struct world_record *r, kp_err err,
                                 kp_err cause, int32_t stored)
{
    ck_assert_msg(r->reported, "%s: no report, refused with %s", run_name,
                  kp_err_name(r->refused));
    ck_assert_msg(r->report.err == err && r->report.cause == cause &&
                      r->report.stored == stored,
                  "%s: %s, cause %s, stored %d; not %s, %s, %d", run_name,
                  kp_err_name(r->report.err), kp_err_name(r->report.cause),
                  (int)r->report.stored, kp_err_name(err), kp_err_name(cause),
                  (int)stored);
    EXPECT_INT(r->report.kind, err == KP_OK ? KP_KIND_NONE : kp_err_kind(err));
}

static inline void expect_refused(const struct world_record *r, kp_err err)
{
    ck_assert_msg(r->state == WORLD_REFUSED && r->refused == err,
                  "%s: state %d, refused with %s; not with %s", run_name,
                  (int)r->state, kp_err_name(r->refused), kp_err_name(err));
}

static inline struct world_record *send_and_settle(struct world *w)
{
    struct world_record *r = world_send(w, 0);

    world_settle(w);
    return r;
}

#endif
