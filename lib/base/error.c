/* SPDX-License-Identifier: BSD-2-Clause */
/* error.c - filling a kp_error.  Any thread.  The text is always terminated
 * and never ends in half of a UTF-8 character. */
#include "lib/base/error.h"

#include <stdarg.h>
#include <stdio.h>

#include "lib/base/str.h"

kp_err kp__error_set(kp_error *error, kp_err err, kp_err cause,
                     const char *fmt, ...)
{
    char text[sizeof(error->text)];
    va_list args;

    if (error == NULL)
        return err;
    /* Aside first: the arguments may point into the old text. */
    va_start(args, fmt);
    (void)vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    memset(error, 0, sizeof(*error));
    error->err = err;
    error->cause = cause;
    error->kind = kp_err_kind(err);
    memcpy(error->text, text, kp__str_whole(text, strlen(text)));
    return err;
}
