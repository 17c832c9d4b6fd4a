/* SPDX-License-Identifier: BSD-2-Clause */
/* produce_call.h - one Produce request and the batches that ride in it. */
#ifndef KP_IO_PRODUCE_CALL_H
#define KP_IO_PRODUCE_CALL_H

#include "io_thread/state.h"

#define PRODUCE_NAMES_MAX 12 /* the last version that names topics */

struct produce_call {
    struct io_thread *io;
    struct sender_node *node; /* it was sent to */
    struct request *request;
    size_t count;
    struct batch *batches[]; /* by topic and partition; NULL once judged */
};

#endif
