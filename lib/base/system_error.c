/* SPDX-License-Identifier: BSD-2-Clause */
/* system_error.c - the words for an errno value.  Any thread: nothing is kept.
 *
 * glibc has two functions called strerror_r, and this asks for POSIX's. */
#undef _GNU_SOURCE
#undef _POSIX_C_SOURCE
#define _POSIX_C_SOURCE 200809L

#include "lib/base/system_error.h"

#include <string.h>

#include "lib/base/str.h"

void kp__system_error_text(int number, char *out, size_t capacity)
{
    if (capacity == 0)
        return;
    out[0] = '\0';
    if (strerror_r(number, out, capacity) != 0 || out[0] == '\0')
        (void)kp__format(out, capacity, "error %d", number);
}
