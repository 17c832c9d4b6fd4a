/* SPDX-License-Identifier: BSD-2-Clause */
/* poller_poll.c - which sockets can be read or written, by poll(2).  I/O thread
 * only.  For systems without epoll(7); tested everywhere.
 *
 * Invariant: slot 0 is the wake-up; slot i watches owners[i]. */
#include "io_thread/env.h"

#include <errno.h>
#include <poll.h>

#include "lib/base/mem.h"
#include "lib/base/wait.h"

#define NO_MEMORY_PAUSE_NS (10 * KP_NS_PER_MS)

struct poller {
    struct wakeup *wakeup;
    struct pollfd *fds;
    void **owners;
    size_t count, capacity;
    size_t next; /* where to begin to report, so that all get their turn */
};

static short to_poll(uint32_t want)
{
    int e = 0;

    if ((want & POLL_READ) != 0)
        e |= POLLIN;
    if ((want & POLL_WRITE) != 0)
        e |= POLLOUT;
    return (short)e;
}

static uint32_t from_poll(int e)
{
    uint32_t events = 0;

    if ((e & (POLLERR | POLLHUP | POLLNVAL)) != 0)
        return POLL_READ | POLL_WRITE;
    if ((e & POLLIN) != 0)
        events |= POLL_READ;
    if ((e & POLLOUT) != 0)
        events |= POLL_WRITE;
    return events;
}

static bool grow(struct poller *p)
{
    size_t n = p->capacity == 0 ? 8 : p->capacity * 2;
    struct pollfd *fds;
    void **owners;

    if (p->count < p->capacity)
        return true;
    fds = kp__realloc(p->fds, n * sizeof *fds);
    if (fds == NULL)
        return false;
    p->fds = fds;
    owners = kp__realloc(p->owners, n * sizeof *owners);
    if (owners == NULL)
        return false;
    p->owners = owners;
    p->capacity = n;
    return true;
}

static int watch(struct poller *p, int fd, uint32_t want, void *owner)
{
    if (!grow(p))
        return ENOMEM;
    p->fds[p->count] = (struct pollfd){.fd = fd, .events = to_poll(want)};
    p->owners[p->count] = owner;
    p->count++;
    return 0;
}

static size_t slot_of(const struct poller *p, int fd)
{
    size_t i = 1;

    while (i < p->count && p->fds[i].fd != fd)
        i++;
    return i;
}

static void poll_destroy(struct poller *p)
{
    kp__free(p->fds);
    kp__free(p->owners);
    kp__free(p);
}

static struct poller *poll_make(void *arg, struct wakeup *wakeup)
{
    struct poller *p = kp__zalloc(sizeof *p);

    (void)arg;
    if (p == NULL)
        return NULL;
    p->wakeup = wakeup;
    if (watch(p, wakeup->read_fd, POLL_READ, NULL) != 0) {
        poll_destroy(p);
        return NULL;
    }
    return p;
}

static int poll_add(struct poller *p, struct transport *t,
                    const struct transport_ops *ops, uint32_t want, void *owner)
{
    return watch(p, ops->fd(t), want, owner);
}

static int poll_change(struct poller *p, struct transport *t,
                       const struct transport_ops *ops, uint32_t want,
                       void *owner)
{
    size_t i = slot_of(p, ops->fd(t));

    if (i == p->count)
        return ENOENT;
    p->fds[i].events = to_poll(want);
    p->owners[i] = owner;
    return 0;
}

static void poll_remove(struct poller *p, struct transport *t,
                        const struct transport_ops *ops)
{
    size_t i = slot_of(p, ops->fd(t));

    if (i == p->count)
        return;
    p->count--;
    p->fds[i] = p->fds[p->count];
    p->owners[i] = p->owners[p->count];
}

static int timeout_ms(int64_t now_ns, int64_t deadline_ns)
{
    int64_t ms;

    if (deadline_ns == KP_NEVER)
        return -1;
    if (deadline_ns <= now_ns)
        return 0;
    ms = kp__ns_to_ms_up(deadline_ns - now_ns);
    return ms > INT32_MAX ? INT32_MAX : (int)ms;
}

static int collect(struct poller *p, struct poll_event *out, int max)
{
    size_t first = p->next < p->count ? p->next : 0;
    int n = 0;

    for (size_t k = 0; k < p->count && n < max; k++) {
        size_t i = (first + k) % p->count;
        if (p->fds[i].revents == 0)
            continue;
        out[n].owner = p->owners[i];
        out[n].events = from_poll(p->fds[i].revents);
        if (out[n].owner == NULL)
            kp__wakeup_clear(p->wakeup);
        n++;
        p->next = i + 1;
    }
    return n;
}

void kp__poller_pause(struct poller *p, int64_t until_ns)
{
    _Atomic uint32_t nobodys = 0;

    (void)p;
    (void)kp__wait(&nobodys, 0, until_ns);
}

static int poll_wait(struct poller *p, int64_t now_ns, int64_t deadline_ns,
                     struct poll_event *out, int max)
{
    int n = poll(p->fds, (nfds_t)p->count, timeout_ms(now_ns, deadline_ns));

    if (n > 0)
        return collect(p, out, max);
    if (n == 0 || errno == EINTR)
        return 0;
    if (errno != EAGAIN && errno != ENOMEM)
        return -1;
    /* The system had no memory for its own tables just now. */
    if (deadline_ns > now_ns)
        kp__poller_pause(p, deadline_ns < now_ns + NO_MEMORY_PAUSE_NS
                                ? deadline_ns
                                : now_ns + NO_MEMORY_PAUSE_NS);
    return 0;
}

#define POLL_OPS \
    { \
        .create = poll_make, .destroy = poll_destroy, .add = poll_add, \
        .change = poll_change, .remove = poll_remove, .wait = poll_wait, \
        .pause = kp__poller_pause, .arg = NULL \
    }

const struct poller_ops kp__poll_poller = POLL_OPS;
#ifndef HAVE_EPOLL
const struct poller_ops kp__system_poller = POLL_OPS;
#endif
