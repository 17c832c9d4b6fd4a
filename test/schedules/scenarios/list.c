/* SPDX-License-Identifier: BSD-2-Clause */
/* list.c - the table of scenarios: a line here for each. */
#include "test/schedules/scenarios.h"

#define SCENARIOS(X) \
    X(result_relay) \
    X(pool_line) \
    X(pool_close) \
    X(drain_and_bell) \
    X(cq_poll) \
    X(cq_fd) \
    X(cq_destroy) \
    X(ops_answer) \
    X(compressor_turn) \
    X(flush_turn) \
    X(topics) \
    X(topics_news) \
    X(topics_close) \
    X(queue) \
    X(queue_expire) \
    X(queue_flush) \
    X(client) \
    X(client_close_now)

#define DECLARE(name) extern const struct scenario scenario_##name;
#define ENTRY(name) &scenario_##name,

SCENARIOS(DECLARE)

const struct scenario *const scenarios[] = {SCENARIOS(ENTRY)};
const size_t scenario_count = sizeof scenarios / sizeof scenarios[0];
