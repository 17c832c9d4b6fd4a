/* SPDX-License-Identifier: BSD-2-Clause */
/* status.c - kp_status.  Any thread; never waits. */
#include <string.h>

#include "lib/base/error.h"
#include "lib/base/thread.h"
#include "lib/shared/producer.h"

kp_err kp_status(kp_producer *p, const char *topic, kp_error *error)
{
    kp_error found;
    kp_err err;

    if (p == NULL)
        return kp__error_set(error, KP_EINVAL, KP_OK,
                             "kp_status: the producer is NULL: give what "
                             "kp_producer_create made");
    if (p->fork_generation != kp__fork_generation())
        return kp__error_set(error, KP_EFORK, KP_OK,
                             "kp_status: the producer belongs to the parent "
                             "process; make one after fork");
    err = kp__status_get(&p->status, topic, topic != NULL ? strlen(topic) : 0,
                         &found);
    if (err != KP_OK) {
        if (error != NULL)
            *error = found;
        return err;
    }
    if (atomic_load(&p->accumulator.taking) == TAKING_CLOSED)
        return kp__error_set(error, KP_ECLOSED, KP_OK,
                             "the producer is closed: it takes no more "
                             "records; make another");
    return KP_OK;
}
