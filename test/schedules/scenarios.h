/* SPDX-License-Identifier: BSD-2-Clause */
/* scenarios.h - everything that is explored. */
#ifndef KP_TEST_SCHEDULES_SCENARIOS_H
#define KP_TEST_SCHEDULES_SCENARIOS_H

#include "test/schedules/explore.h"

extern const struct scenario *const scenarios[];
extern const size_t scenario_count;

#endif
