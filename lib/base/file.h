/* SPDX-License-Identifier: BSD-2-Clause */
/* file.h - a whole file into memory.  No cancellation point. */
#ifndef KP_BASE_FILE_H
#define KP_BASE_FILE_H

#include <stddef.h>

#include "include/kp/kp.h"
#include "lib/base/buf.h"

/* Append what `path` holds to `out`, at most `max` bytes.  May wait for a disk
 * or a pipe.  KP_EINVAL, with the path and the system's reason in `error`, or
 * KP_ENOMEM; `out` then holds what was read so far. */
kp_err kp__file_read(const char *path, size_t max, struct buf *out,
                     kp_error *error);

#endif
