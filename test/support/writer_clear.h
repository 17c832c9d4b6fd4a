/* SPDX-License-Identifier: BSD-2-Clause */
/* writer_clear.h - a writer that is used again. */
#ifndef KP_TEST_SUPPORT_WRITER_CLEAR_H
#define KP_TEST_SUPPORT_WRITER_CLEAR_H

#include "lib/wire/writer.h"

/* Forget what was written, and a failure; keep the memory. */
static inline void writer_clear(struct writer *w)
{
    kp__buf_clear(&w->buf);
    w->splice_count = 0;
    w->external_size = 0;
}

#endif
