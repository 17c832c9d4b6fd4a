/* SPDX-License-Identifier: BSD-2-Clause */
/* system_error.h - the words for an errno value, for messages.  Any thread, as
 * strerror(3) is not. */
#ifndef KP_BASE_SYSTEM_ERROR_H
#define KP_BASE_SYSTEM_ERROR_H

#include <stddef.h>

/* "No such file or directory", or "error 4711" where there are no words. */
void kp__system_error_text(int number, char *out, size_t capacity);

#endif
