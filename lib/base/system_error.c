/* SPDX-License-Identifier: BSD-2-Clause */
/* system_error.c - the words for an errno value.  Any thread: nothing is kept.
 *
 * There are two functions called strerror_r, POSIX's and glibc's; which one is
 * declared depends on what was included first, so this takes either. */
#include "lib/base/system_error.h"

#include <string.h>

#include "lib/base/str.h"

static inline const char *posix_text(int result, const char *buffer)
{
    return result == 0 ? buffer : "";
}

static inline const char *glibc_text(const char *text, const char *buffer)
{
    (void)buffer;
    return text;
}

#define TEXT_OF(call, buffer) \
    _Generic((call), int : posix_text, char * : glibc_text)((call), (buffer))

void kp__system_error_text(int number, char *out, size_t capacity)
{
    char buffer[256] = "";
    const char *text =
        TEXT_OF(strerror_r(number, buffer, sizeof(buffer)), buffer);

    if (capacity == 0)
        return;
    if (text[0] != '\0')
        (void)kp__format(out, capacity, "%s", text);
    else
        (void)kp__format(out, capacity, "error %d", number);
}
