/* SPDX-License-Identifier: BSD-2-Clause */
/* stats.h - times out of the journals, for tests that bound them. */
#ifndef KP_TEST_INTEGRATION_STATS_H
#define KP_TEST_INTEGRATION_STATS_H

#include "test/integration/verify/known.h"

/* Prints
 *   blocked-ms MEDIAN MAX      in kp_send, taken or not
 *   report-ms MEDIAN MAX       from the send's return to the report
 *   outstanding MAX            taken and not yet reported, at one moment
 *   gap PARTITION MS COUNT     longest time between two acknowledgements, and
 *                              how many there were, for each partition */
void stats_print(const struct known_list *known);

#endif
