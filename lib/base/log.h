/* SPDX-License-Identifier: BSD-2-Clause */
/* log.h - lines for the application's log function.
 *
 * Silent without one.  Identical lines in a row are held back for ten seconds
 * and counted.  Never called with a lock held; never given secrets or record
 * contents.  Any thread. */
#ifndef KP_BASE_LOG_H
#define KP_BASE_LOG_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "include/kp/kp.h"
#include "lib/base/check.h"
#include "lib/base/clock.h"

struct logger;

/* NULL if there is no memory.  fn NULL: silent. */
struct logger *kp__logger_create(kp_level level, kp_log_fn fn, void *arg,
                                 const char *client_id,
                                 const struct clock *clock);
/* Nobody uses l any more: what was held back is shown.  l may be NULL. */
void kp__logger_destroy(struct logger *l);
/* l may be NULL. */
void kp__log(struct logger *l, kp_level level, const char *component,
             const char *fmt, ...) KP_PRINTF(4, 5);
/* At most one line every interval for this site: `limit` is the site's own,
 * zero at first.  Says how many were held back.  False: this one is. */
struct log_limit {
    _Atomic int64_t next_ns;
    _Atomic uint32_t held;
};
bool kp__log_limited(struct logger *l, struct log_limit *limit,
                     int64_t interval_ns, kp_level level,
                     const char *component, const char *fmt, ...)
    KP_PRINTF(6, 7);

#endif
