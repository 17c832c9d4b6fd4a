/* SPDX-License-Identifier: BSD-2-Clause */
/* calls.c - system calls that fail when a test wants them to.
 *
 * Any thread.  Counters are sequentially consistent, as nobody measures them;
 * exactly one call takes the number that fails. */
#include "test/failcalls/calls.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#ifdef HAVE_FUTEX
#include <linux/futex.h>
#endif

#define SHORT 100001
#define NOTHING 100002
#define DONE(e) (200000 + (e))

enum call {
#define CALL(name, group, ...) CALL_##name,
#include "test/failcalls/calls.def"
#undef CALL
    CALL_COUNT
};

#define WAYS_MAX 8
static const struct {
    const char *name;
    enum call_group group;
    int ways[WAYS_MAX]; /* 0 ends them */
} table[CALL_COUNT] = {
#define CALL(name, group, ...) {#name, group, {__VA_ARGS__}},
#include "test/failcalls/calls.def"
#undef CALL
};

static atomic_bool armed;
static atomic_ulong counted[CALL_GROUPS];
static atomic_ulong fail_at;
static atomic_uint closed_twice, fail_way;
static atomic_int more;
static atomic_int fail_group, failed = -1, failed_how;

static unsigned ways_of(enum call c)
{
    unsigned n = 0;

    while (n < WAYS_MAX && table[c].ways[n] != 0)
        n++;
    return n;
}

void calls_arm(const struct failure *f)
{
    for (int i = 0; i < CALL_GROUPS; i++)
        atomic_store(&counted[i], 0);
    atomic_store(&fail_group, (int)f->group);
    atomic_store(&fail_at, f->nth);
    atomic_store(&fail_way, f->way);
    atomic_store(&failed, -1);
    atomic_store(&more, (int)f->more);
    atomic_store(&closed_twice, 0);
    atomic_store(&armed, true);
}

void calls_disarm(void)
{
    atomic_store(&armed, false);
}

unsigned long calls_counted(enum call_group group)
{
    return atomic_load(&counted[group]);
}

static bool is_harmless(enum call c, int how)
{
    bool moves_bytes = c == CALL_recv || c == CALL_sendmsg;

    return how == EINTR || how == EAGAIN || how == SHORT ||
           how == DONE(EINTR) || (moves_bytes && how == ENOMEM) ||
           (moves_bytes && how == ENOBUFS) ||
           (c == CALL_futex_wait && how == NOTHING);
}

struct failed_call calls_failed(void)
{
    struct failed_call f = {0};
    int c = atomic_load(&failed);

    if (c < 0)
        return f;
    f.name = table[c].name;
    f.how = atomic_load(&failed_how);
    f.ways = ways_of((enum call)c);
    f.harmless = c != CALL_pthread_create && is_harmless((enum call)c, f.how);
    return f;
}

const char *calls_how(int how)
{
    static _Thread_local char text[64];

    if (how == SHORT)
        return "a part only";
    if (how == NOTHING)
        return "0";
    if (how < 0)
        return gai_strerror(how);
    (void)snprintf(text, sizeof(text), "%s%s",
                   how >= DONE(0) ? "done, but " : "",
                   strerrorname_np(how >= DONE(0) ? how - DONE(0) : how));
    return text;
}

unsigned calls_closed_twice(void)
{
    return atomic_load(&closed_twice);
}

/* 0: this one goes through; else how it fails. */
static int must_fail(enum call c)
{
    unsigned way;
    int how;

    if (!atomic_load(&armed))
        return 0;
    if (atomic_load(&failed) == (int)c && atomic_fetch_sub(&more, 1) > 0)
        return atomic_load(&failed_how);
    if (atomic_fetch_add(&counted[table[c].group], 1) + 1 !=
            atomic_load(&fail_at) ||
        (int)table[c].group != atomic_load(&fail_group))
        return 0;
    way = atomic_load(&fail_way) % ways_of(c);
    how = table[c].ways[way];
    atomic_store(&failed_how, how);
    atomic_store(&failed, (int)c);
    return how;
}

static int refuse(int how)
{
    errno = how >= DONE(0) ? how - DONE(0) : how;
    return -1;
}

/* -- the doubles: __wrap_x is what the library calls, __real_x the system -- */

#define DOUBLE(type, name, ...) \
    type __real_##name(__VA_ARGS__); \
    type __wrap_##name(__VA_ARGS__); \
    type __wrap_##name(__VA_ARGS__)

/* One that has no way to fail but to return -1. */
#define PLAIN(type, name, args, ...) \
    DOUBLE(type, name, __VA_ARGS__) \
    { \
        int how = must_fail(CALL_##name); \
        return how != 0 ? (type)refuse(how) : __real_##name args; \
    }

PLAIN(int, socket, (family, type, protocol), int family, int type, int protocol)
PLAIN(int, setsockopt, (fd, level, name, value, size), int fd, int level,
      int name, const void *value, socklen_t size)
PLAIN(int, getsockopt, (fd, level, name, value, size), int fd, int level,
      int name, void *value, socklen_t *size)
PLAIN(int, getpeername, (fd, to, size), int fd, struct sockaddr *to,
      socklen_t *size)
PLAIN(int, getsockname, (fd, to, size), int fd, struct sockaddr *to,
      socklen_t *size)
PLAIN(int, epoll_create1, (flags), int flags)
PLAIN(int, epoll_ctl, (fd, op, to, event), int fd, int op, int to,
      struct epoll_event *event)
PLAIN(int, epoll_wait, (fd, out, max, ms), int fd, struct epoll_event *out,
      int max, int ms)
PLAIN(int, eventfd, (count, flags), unsigned count, int flags)
PLAIN(int, poll, (fds, count, ms), struct pollfd *fds, nfds_t count, int ms)
PLAIN(int, pipe2, (fds, flags), int fds[2], int flags)
PLAIN(int, madvise, (at, size, advice), void *at, size_t size, int advice)
PLAIN(long, sysconf, (name), int name)
PLAIN(ssize_t, getrandom, (to, size, flags), void *to, size_t size,
      unsigned flags)
PLAIN(int, clock_gettime, (id, to), clockid_t id, struct timespec *to)

/* Those that return what is wrong. */
#define TELLING(name, args, ...) \
    DOUBLE(int, name, __VA_ARGS__) \
    { \
        int how = must_fail(CALL_##name); \
        return how != 0 ? how : __real_##name args; \
    }
TELLING(pthread_create, (out, attr, fn, arg), pthread_t *out,
        const pthread_attr_t *attr, void *(*fn)(void *), void *arg)
TELLING(pthread_attr_init, (attr), pthread_attr_t *attr)
TELLING(getnameinfo, (sa, size, host, host_size, port, port_size, flags),
        const struct sockaddr *sa, socklen_t size, char *host,
        socklen_t host_size, char *port, socklen_t port_size, int flags)

DOUBLE(int, getaddrinfo, const char *host, const char *port,
       const struct addrinfo *hints, struct addrinfo **out)
{
    int how = must_fail(CALL_getaddrinfo);

    if (how == EAI_SYSTEM)
        errno = EMFILE;
    return how != 0 ? how : __real_getaddrinfo(host, port, hints, out);
}

DOUBLE(int, connect, int fd, const struct sockaddr *to, socklen_t size)
{
    int how = must_fail(CALL_connect);

    if (how == 0)
        return __real_connect(fd, to, size);
    if (how >= DONE(0) && __real_connect(fd, to, size) != 0 &&
        errno != EINPROGRESS)
        return -1;
    return refuse(how);
}

DOUBLE(ssize_t, recv, int fd, void *to, size_t size, int flags)
{
    int how = must_fail(CALL_recv);

    if (how == SHORT)
        size = size > 0;
    else if (how != 0)
        return how == NOTHING ? 0 : refuse(how);
    return __real_recv(fd, to, size, flags);
}

DOUBLE(ssize_t, sendmsg, int fd, const struct msghdr *m, int flags)
{
    int how = must_fail(CALL_sendmsg);
    struct msghdr part = *m;
    struct iovec first = m->msg_iov[0];

    if (how == 0)
        return __real_sendmsg(fd, m, flags);
    if (how != SHORT)
        return refuse(how);
    first.iov_len = first.iov_len > 0;
    part.msg_iov = &first;
    part.msg_iovlen = 1;
    return __real_sendmsg(fd, &part, flags);
}

DOUBLE(int, close, int fd)
{
    int how = must_fail(CALL_close);
    int result = __real_close(fd);

    if (result != 0 && errno == EBADF)
        atomic_fetch_add(&closed_twice, 1);
    return how != 0 ? refuse(how) : result;
}

DOUBLE(void *, mmap, void *at, size_t size, int prot, int flags, int fd,
       off_t offset)
{
    int how = must_fail(CALL_mmap);

    if (how == 0)
        return __real_mmap(at, size, prot, flags, fd, offset);
    (void)refuse(how);
    return MAP_FAILED;
}

int __real_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...)
{
    int how = must_fail(CALL_open);
    va_list args;
    mode_t mode;

    va_start(args, flags);
    mode = (flags & O_CREAT) != 0 ? va_arg(args, mode_t) : 0;
    va_end(args);
    return how != 0 ? refuse(how) : __real_open(path, flags, mode);
}

DOUBLE(ssize_t, read, int fd, void *to, size_t size)
{
    int how = must_fail(CALL_read);

    if (how == SHORT)
        size = size > 0;
    else if (how != 0)
        return refuse(how);
    return __real_read(fd, to, size);
}

DOUBLE(ssize_t, write, int fd, const void *from, size_t size)
{
    int how = must_fail(CALL_write);

    return how != 0 ? refuse(how) : __real_write(fd, from, size);
}

/* -- bare calls -- */

static int bare(long number, long a[6])
{
    (void)a;
#ifdef SYS_epoll_pwait2
    if (number == SYS_epoll_pwait2)
        return must_fail(CALL_epoll_pwait2);
#endif
    if (number == SYS_read)
        return must_fail(CALL_eventfd_read);
#ifdef HAVE_FUTEX
    if (number == SYS_futex && (a[1] & FUTEX_CMD_MASK) == FUTEX_WAIT_BITSET)
        return must_fail(CALL_futex_wait);
#endif
    return 0; /* a wake-up, and a write to an eventfd, do not fail */
}

long __real_syscall(long number, ...);
long __wrap_syscall(long number, ...);
long __wrap_syscall(long number, ...)
{
    long a[6];
    va_list args;
    int how;

    va_start(args, number);
    for (int i = 0; i < 6; i++)
        a[i] = va_arg(args, long);
    va_end(args);
    how = bare(number, a);
    if (how != 0)
        return how == NOTHING ? 0 : refuse(how);
    return __real_syscall(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

int64_t calls_now_ms(void)
{
    struct timespec t;

    (void)__real_clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}
