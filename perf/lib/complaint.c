/* SPDX-License-Identifier: BSD-2-Clause */
/* complaint.c - remembers the first of many alike.  Any thread. */
#include <stdarg.h>
#include <stdio.h>

#include "perf/lib/run.h"

void complaint_init(struct complaint *c)
{
    (void)pthread_mutex_init(&c->mutex, NULL);
    c->text[0] = '\0';
}

void complaint_fini(struct complaint *c)
{
    (void)pthread_mutex_destroy(&c->mutex);
}

void complaint_note(struct complaint *c, const char *fmt, ...)
{
    va_list ap;

    (void)pthread_mutex_lock(&c->mutex);
    if (c->text[0] == '\0') {
        va_start(ap, fmt);
        (void)vsnprintf(c->text, sizeof(c->text), fmt, ap);
        va_end(ap);
    }
    (void)pthread_mutex_unlock(&c->mutex);
}
