/* SPDX-License-Identifier: BSD-2-Clause */
/* str.h - small helpers for text. */
#ifndef KP_BASE_STR_H
#define KP_BASE_STR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/check.h"

/* snprintf that always terminates and returns what was really written. */
size_t kp__format(char *out, size_t capacity, const char *fmt, ...)
    KP_PRINTF(3, 4);
/* Copy at most capacity - 1 bytes, never half of a UTF-8 character, with
 * control characters and invalid UTF-8 shown as \xNN: for text from a network
 * or a caller that goes into a message. */
void kp__str_escape(char *out, size_t capacity, const void *s, size_t size);
/* The same for a path, of which the end tells most: of one longer than `most`
 * bytes "..." and the last of them.  `capacity` counts the dots in any case. */
void kp__str_escape_path(char *out, size_t capacity, const char *path,
                         size_t most);
/* size, less what an end in the middle of a UTF-8 character leaves of it: for
 * text that was cut. */
size_t kp__str_whole(const char *s, size_t size);
bool kp__str_ieq(const char *a, const char *b); /* ASCII, case ignored */
/* The candidate nearest to `word`, or NULL if none is near enough to suggest.
 * */
const char *kp__str_nearest(const char *word, const char *const *candidates,
                            size_t count);
/* A whole decimal number, blanks around allowed.  False: not one, or out of
 * int64's range. */
bool kp__str_to_i64(const char *s, int64_t *out);

#endif
