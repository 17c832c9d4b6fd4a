/* SPDX-License-Identifier: BSD-2-Clause */
/* producer.h - posting ops from application threads. */
#ifndef KP_API_PRODUCER_H
#define KP_API_PRODUCER_H

#include "lib/shared/producer.h"

/* A producer without its I/O thread, for kp__io_thread_start or _attach. */
kp_err kp__producer_make(struct kp_producer **out, const kp_config *config,
                         const struct clock *clock, kp_error *error);
/* Post an op that nobody waits for.  False: no memory. */
bool kp__producer_post(struct kp_producer *p, enum op_kind kind,
                       const char *topic, size_t size);
/* Post op (the caller keeps its own reference) and see that it is served even
 * if the I/O thread has just ended. */
void kp__producer_post_op(struct kp_producer *p, struct op *op);
/* The half of kp_close that does not wait: take no more, post the op that the
 * I/O thread answers when everything is reported.  NULL: no memory. */
struct op *kp__close_begin(struct kp_producer *p, int64_t timeout_ms);
/* The failures that nobody watched since the last call: KP_OK, or the first
 * one's err with a text in `error`. */
kp_err kp__producer_take_unwatched(struct kp_producer *p, kp_error *error);
/* KP_OK, or the err that a fatal producer says from now on, with its text. */
kp_err kp__producer_fatal(struct kp_producer *p, kp_error *error);
/* A call that waits, by the thread and process that makes it: KP_OK, KP_EINVAL,
 * KP_EFORK or KP_EDEADLK with a text. `what` names the call. */
kp_err kp__check_waiting_call(const struct kp_producer *p, const char *what,
                              int64_t timeout_ms, kp_error *error);

#endif
