/* SPDX-License-Identifier: BSD-2-Clause */
/* wakeup.c - an fd that another thread can make readable.  kp__wakeup_set: any
 * thread; the rest: its owner.
 *
 * Set any number of times, cleared once, it is not readable. */
#include "lib/base/wakeup.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <unistd.h>

#include "lib/base/thread.h"

/* close(2) is a cancellation point, and none of our calls is.  -1: there is
 * none. */
static void close_quietly(int fd)
{
    int saved = errno, cancel_state = kp__cancel_off();

    if (fd >= 0)
        (void)close(fd);
    kp__cancel_on(cancel_state);
    errno = saved;
}

#ifdef HAVE_EVENTFD

#include <sys/eventfd.h>
#include <sys/syscall.h>

int kp__wakeup_init(struct wakeup *w)
{
    int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);

    if (fd < 0)
        return errno;
    w->read_fd = fd;
    w->write_fd = fd;
    return 0;
}

void kp__wakeup_fini(struct wakeup *w)
{
    close_quietly(w->read_fd);
}

/* read(2) and write(2) are cancellation points; the bare calls are not. */
void kp__wakeup_set(struct wakeup *w)
{
    const uint64_t one = 1;
    int saved = errno;

    /* It never waits, so it is not interrupted; full means already readable. */
    (void)syscall(SYS_write, w->write_fd, &one, sizeof(one));
    errno = saved;
}

void kp__wakeup_clear(struct wakeup *w)
{
    uint64_t count;
    int saved = errno;

    (void)syscall(SYS_read, w->read_fd, &count, sizeof(count));
    errno = saved;
}

#else

int kp__wakeup_init(struct wakeup *w)
{
    int fds[2];

    if (pipe2(fds, O_CLOEXEC | O_NONBLOCK) != 0)
        return errno;
    w->read_fd = fds[0];
    w->write_fd = fds[1];
    return 0;
}

void kp__wakeup_fini(struct wakeup *w)
{
    close_quietly(w->read_fd);
    close_quietly(w->write_fd);
}

/* read(2) and write(2) are cancellation points as well. */
void kp__wakeup_set(struct wakeup *w)
{
    const char byte = 0;
    int saved = errno, cancel_state = kp__cancel_off();

    while (write(w->write_fd, &byte, 1) < 0 && errno == EINTR)
        continue; /* a full pipe is readable already */
    kp__cancel_on(cancel_state);
    errno = saved;
}

void kp__wakeup_clear(struct wakeup *w)
{
    char bytes[256];
    ssize_t n;
    int saved = errno, cancel_state = kp__cancel_off();

    do
        n = read(w->read_fd, bytes, sizeof(bytes));
    while (n == (ssize_t)sizeof(bytes) || (n < 0 && errno == EINTR));
    kp__cancel_on(cancel_state);
    errno = saved;
}

#endif
