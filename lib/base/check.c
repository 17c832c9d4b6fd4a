/* SPDX-License-Identifier: BSD-2-Clause */
/* check.c - where a broken invariant of ours ends, in debug builds.
 * Any thread. */
#include "lib/base/check.h"

#ifdef KP_DEBUG
#include <stdio.h>
#include <stdlib.h>

void kp__check_failed(const char *file, int line, const char *what)
{
    (void)fprintf(stderr, "libkp: %s:%d: broken: %s\n", file, line, what);
    abort();
}
#else
/* An empty file is not C. */
extern int kp__check_nothing;
#endif
