/* SPDX-License-Identifier: BSD-2-Clause */
/* env.h - everything about the world that the I/O thread is given, so that a
 * test can be the world: time, chance, sockets, names.
 *
 * All of it is called by the I/O thread only, except `wake`. */
#ifndef KP_IO_ENV_H
#define KP_IO_ENV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "include/kp/kp.h"
#include "lib/base/clock.h"
#include "lib/base/wakeup.h"
#include "lib/helper/resolve.h"

/* What became of a read or write. */
enum io_result { IO_DONE, IO_AGAIN, IO_CLOSED, IO_ERROR };

/* One byte stream; the TCP one is transport_tcp.c. */
struct transport;
struct transport_ops {
    /* Begin to connect.  *out is written on KP_OK only; KP_ECONNECT with the
     * errno value in *sys_errno.  EMFILE and friends are KP_ECONNECT too. */
    kp_err (*connect)(void *arg, const struct address *to, int32_t send_buffer,
                      int32_t receive_buffer, int64_t user_timeout_ns,
                      struct transport **out, int *sys_errno);
    /* After the poller said writable: IO_DONE connected, IO_AGAIN not yet. */
    enum io_result (*finish)(struct transport *t, int *sys_errno);
    enum io_result (*writev)(struct transport *t, const struct iovec *iov,
                             int count, size_t *written, int *sys_errno);
    enum io_result (*read)(struct transport *t, void *buf, size_t size,
                           size_t *got, int *sys_errno);
    int (*fd)(const struct transport *t); /* for the poller */
    void (*close)(struct transport *t);   /* and free */
    void *arg;
};

#define POLL_READ 1u
#define POLL_WRITE 2u
struct poll_event {
    void *owner; /* as given to add; NULL: the wake-up fd */
    uint32_t events; /* both for an error or hang-up */
};

struct poller;
struct poller_ops {
    struct poller *(*create)(void *arg, struct wakeup *wakeup);
    void (*destroy)(struct poller *p);
    /* 0 or an errno value. */
    int (*add)(struct poller *p, struct transport *t,
               const struct transport_ops *ops, uint32_t want, void *owner);
    int (*change)(struct poller *p, struct transport *t,
                  const struct transport_ops *ops, uint32_t want, void *owner);
    void (*remove)(struct poller *p, struct transport *t,
                   const struct transport_ops *ops);
    /* Wait until deadline_ns (by now_ns) at most; returns how many events.
     * Clears the wake-up.  EINTR is an early return of 0. -1: the poller is
     * broken, and has not waited. */
    int (*wait)(struct poller *p, int64_t now_ns, int64_t deadline_ns,
                struct poll_event *out, int max);
    /* Sleep until then and watch nothing, the wake-up neither: between the
     * tries of a poller that stays broken. */
    void (*pause)(struct poller *p, int64_t until_ns);
    void *arg;
};

/* Name look-up; the system's is lib/helper/resolve.  What a struct resolve
 * holds is the resolver's own affair. */
struct resolver_ops {
    /* Begin; the wake-up is set when it is done.  NULL: no memory or thread. */
    struct resolve *(*begin)(void *arg, const char *host, uint16_t port,
                             bool canonical, struct wakeup *wakeup);
    /* False: not done. Else *count addresses (owned by the look-up until
     * end), or err KP_ERESOLVE and a text; canonical: also the canonical
     * names. */
    bool (*poll)(struct resolve *r, const struct address **addresses,
                 const char *const **names, size_t *count, kp_err *err,
                 const char **text);
    void (*end)(struct resolve *r); /* done or not: it may go on by itself */
    void *arg;
};

struct io_env {
    struct clock clock;
    uint64_t seed;
    const struct transport_ops *transport;
    const struct poller_ops *poller;
    const struct resolver_ops *resolver;
};

extern const struct transport_ops kp__tcp_transport;
extern const struct poller_ops kp__system_poller; /* epoll, else poll(2) */
extern const struct poller_ops kp__poll_poller;   /* poll(2) everywhere */
/* What both have as `pause`.  In poller_poll.c. */
void kp__poller_pause(struct poller *p, int64_t until_ns);
extern const struct resolver_ops kp__system_resolver;

#endif
