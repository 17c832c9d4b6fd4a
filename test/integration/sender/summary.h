/* SPDX-License-Identifier: BSD-2-Clause */
/* summary.h - one line of counts out of a journal. */
#ifndef KP_TEST_INTEGRATION_SUMMARY_H
#define KP_TEST_INTEGRATION_SUMMARY_H

#include "test/integration/sender/journal.h"

/* Prints "calls N taken N acked N failed N ...", and the error names.  True:
 * each record taken has exactly one report, and no other record has one. */
bool summary_print(const struct journal *j);

#endif
