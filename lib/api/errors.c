/* SPDX-License-Identifier: BSD-2-Clause */
/* errors.c - kp_err_name, kp_err_text, kp_err_kind.  Constant; any thread, in a
 * callback and after a fork as well. */
#include "lib/wire/errors.h"

const char *kp_err_name(kp_err err)
{
    return kp__error_info(err)->name;
}

const char *kp_err_text(kp_err err)
{
    return kp__error_info(err)->text;
}

kp_kind kp_err_kind(kp_err err)
{
    return kp__error_info(err)->kind;
}
