/* SPDX-License-Identifier: BSD-2-Clause */
/* error.h - filling a kp_error.  `error` may be NULL everywhere. */
#ifndef KP_BASE_ERROR_H
#define KP_BASE_ERROR_H

#include "include/kp/kp.h"
#include "lib/base/check.h"

/* Write err, cause, its kind and the text; returns err, so that a refusal is
 * one line: return kp__error_set(error, KP_EINVAL, KP_OK, "..."). */
kp_err kp__error_set(kp_error *error, kp_err err, kp_err cause,
                     const char *fmt, ...) KP_PRINTF(4, 5);

#endif
