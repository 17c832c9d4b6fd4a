/* SPDX-License-Identifier: BSD-2-Clause */
/* status.h - what now stands between topics and their brokers, for kp_status.
 *
 * The I/O thread writes, any thread reads; one small lock, never on a send's
 * way to success. */
#ifndef KP_SHARED_STATUS_H
#define KP_SHARED_STATUS_H

#include "include/kp/kp.h"
#include "lib/base/check.h"
#include "lib/base/map.h"
#include "lib/base/mutex.h"

struct status {
    struct mutex lock;
    kp_error fatal;   /* err KP_OK: none */
    kp_error cluster; /* no broker can be reached, and why */
    struct map topics; /* name -> kp_error *, only those in trouble */
};

void kp__status_init(struct status *s);
void kp__status_fini(struct status *s);
/* err KP_OK clears.  Texts are truncated to kp_error's. */
void kp__status_cluster(struct status *s, kp_err err, kp_err cause,
                        const char *fmt, ...) KP_PRINTF(4, 5);
void kp__status_topic(struct status *s, const char *topic, size_t size,
                      kp_err err, kp_err cause, const char *fmt, ...)
    KP_PRINTF(6, 7);
/* Once and for ever. */
void kp__status_fatal(struct status *s, kp_err err, const char *fmt, ...)
    KP_PRINTF(3, 4);
/* fatal, else the topic's (NULL: any), else the cluster's, else KP_OK. */
kp_err kp__status_get(struct status *s, const char *topic, size_t size,
                      kp_error *out);

#endif
