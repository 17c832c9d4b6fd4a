/* SPDX-License-Identifier: BSD-2-Clause */
/* wakeup.h - an fd that another thread can make readable: eventfd, or a pipe
 * where there is none (or with --disable-eventfd). */
#ifndef KP_BASE_WAKEUP_H
#define KP_BASE_WAKEUP_H

#include <stdbool.h>

struct wakeup {
    int read_fd, write_fd; /* the same for an eventfd */
};

int kp__wakeup_init(struct wakeup *w); /* 0 or an errno value */
void kp__wakeup_fini(struct wakeup *w);
void kp__wakeup_set(struct wakeup *w);   /* any thread; never blocks */
void kp__wakeup_clear(struct wakeup *w); /* never blocks */

#endif
