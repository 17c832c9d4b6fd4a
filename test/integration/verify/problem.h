/* SPDX-License-Identifier: BSD-2-Clause */
/* problem.h - what is wrong, counted by kind; the first few of each printed. */
#ifndef KP_TEST_INTEGRATION_PROBLEM_H
#define KP_TEST_INTEGRATION_PROBLEM_H

#include <stdint.h>

/* `kind` is a literal.  The rest is as for printf. */
__attribute__((format(printf, 2, 3))) void problem(const char *kind,
                                                   const char *format, ...);
/* One line a kind; returns how many problems there were in all. */
uint64_t problems_print(void);

#endif
