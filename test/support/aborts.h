/* SPDX-License-Identifier: BSD-2-Clause */
/* aborts.h - whether a function ends its process by abort(3), as KP_CHECK does
 * in debug builds.  Runs it in a child, so it also works with CK_FORK=no. */
#ifndef KP_TEST_SUPPORT_ABORTS_H
#define KP_TEST_SUPPORT_ABORTS_H

#include <stdbool.h>

bool test_aborts(void (*fn)(void *arg), void *arg);

#endif
