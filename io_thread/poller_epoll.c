/* SPDX-License-Identifier: BSD-2-Clause */
/* poller_epoll.c - which sockets can be read or written, by epoll(7).  I/O
 * thread only.
 *
 * Level-triggered: what is not dealt with is reported again. */
#include "io_thread/env.h"

#ifdef HAVE_EPOLL

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "lib/base/mem.h"
#include "lib/base/wait.h"

#define EVENTS_MAX 256

struct poller {
    int fd;
    struct wakeup *wakeup;
    bool coarse; /* this kernel has no epoll_pwait2(2) */
    struct epoll_event events[EVENTS_MAX];
};

static uint32_t to_epoll(uint32_t want)
{
    uint32_t e = 0;

    if ((want & POLL_READ) != 0)
        e |= EPOLLIN | EPOLLRDHUP;
    if ((want & POLL_WRITE) != 0)
        e |= EPOLLOUT;
    return e;
}

static uint32_t from_epoll(uint32_t e)
{
    uint32_t events = 0;

    if ((e & (EPOLLERR | EPOLLHUP)) != 0)
        return POLL_READ | POLL_WRITE;
    if ((e & (EPOLLIN | EPOLLRDHUP)) != 0)
        events |= POLL_READ;
    if ((e & EPOLLOUT) != 0)
        events |= POLL_WRITE;
    return events;
}

static int control(struct poller *p, int op, int fd, uint32_t events,
                   void *owner)
{
    struct epoll_event e;

    memset(&e, 0, sizeof e);
    e.events = events;
    e.data.ptr = owner;
    return epoll_ctl(p->fd, op, fd, &e) == 0 ? 0 : errno;
}

static void epoll_destroy(struct poller *p)
{
    if (p->fd >= 0)
        (void)close(p->fd);
    kp__free(p);
}

static struct poller *epoll_make(void *arg, struct wakeup *wakeup)
{
    struct poller *p = kp__zalloc(sizeof *p);

    (void)arg;
    if (p == NULL)
        return NULL;
    p->wakeup = wakeup;
    p->fd = epoll_create1(EPOLL_CLOEXEC);
    if (p->fd < 0 ||
        control(p, EPOLL_CTL_ADD, wakeup->read_fd, EPOLLIN, NULL) != 0) {
        epoll_destroy(p);
        return NULL;
    }
    return p;
}

static int epoll_add(struct poller *p, struct transport *t,
                     const struct transport_ops *ops, uint32_t want,
                     void *owner)
{
    return control(p, EPOLL_CTL_ADD, ops->fd(t), to_epoll(want), owner);
}

static int epoll_change(struct poller *p, struct transport *t,
                        const struct transport_ops *ops, uint32_t want,
                        void *owner)
{
    return control(p, EPOLL_CTL_MOD, ops->fd(t), to_epoll(want), owner);
}

static void epoll_remove(struct poller *p, struct transport *t,
                         const struct transport_ops *ops)
{
    (void)control(p, EPOLL_CTL_DEL, ops->fd(t), 0, NULL);
}

/* epoll_wait(2) in whole milliseconds, rounded up: late by one at most. */
static int wait_coarse(struct poller *p, int64_t left_ns, int max)
{
    int timeout = -1;

    if (left_ns != KP_NEVER) {
        int64_t ms = kp__ns_to_ms_up(left_ns);
        timeout = ms > INT32_MAX ? INT32_MAX : (int)ms;
    }
    return epoll_wait(p->fd, p->events, max, timeout);
}

static int wait_raw(struct poller *p, int64_t left_ns, int max)
{
#ifdef SYS_epoll_pwait2
    if (!p->coarse && left_ns != 0) {
        struct timespec t = {
            .tv_sec = (time_t)(left_ns / KP_NS_PER_SEC),
            .tv_nsec = (long)(left_ns % KP_NS_PER_SEC),
        };
        int n = (int)syscall(SYS_epoll_pwait2, p->fd, p->events, max,
                             left_ns == KP_NEVER ? NULL : &t, NULL, 0);
        if (n >= 0 || errno == EINTR)
            return n;
        /* ENOSYS, or what a sandbox that does not know the call says instead:
         * EPERM and others.  An error that is none of those comes again. */
        p->coarse = true;
    }
#endif
    return wait_coarse(p, left_ns, max);
}

static int epoll_wait_until(struct poller *p, int64_t now_ns,
                            int64_t deadline_ns, struct poll_event *out,
                            int max)
{
    int64_t left_ns = deadline_ns == KP_NEVER ? KP_NEVER
                      : deadline_ns > now_ns  ? deadline_ns - now_ns
                                              : 0;
    int n = wait_raw(p, left_ns, max < EVENTS_MAX ? max : EVENTS_MAX);

    if (n < 0)
        return errno == EINTR ? 0 : -1;
    for (int i = 0; i < n; i++) {
        out[i].owner = p->events[i].data.ptr;
        out[i].events = from_epoll(p->events[i].events);
        if (out[i].owner == NULL)
            kp__wakeup_clear(p->wakeup);
    }
    return n;
}

const struct poller_ops kp__system_poller = {
    .create = epoll_make,
    .destroy = epoll_destroy,
    .add = epoll_add,
    .change = epoll_change,
    .remove = epoll_remove,
    .wait = epoll_wait_until,
    .pause = kp__poller_pause,
    .arg = NULL,
};

#else
/* a translation unit is not empty */
extern const struct poller_ops kp__system_poller;
#endif
