/* SPDX-License-Identifier: BSD-2-Clause */
/* resolver_system.c - the system's resolver as the I/O thread's environment has
 * it.  Constant. */
#include "io_thread/env.h"
#include "lib/helper/resolve.h"

const struct resolver_ops kp__system_resolver = {
    .begin = kp__resolve_begin,
    .poll = kp__resolve_poll,
    .end = kp__resolve_end,
    .arg = NULL,
};
