/* SPDX-License-Identifier: BSD-2-Clause */
/* flow.c - one direction of one proxied connection.  One thread.
 *
 * Invariant: pieces stand in the order in which they were read, and due times
 * never go back, so no byte overtakes another. */
#include "test/chaos/proxy/flow.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>

#define PIECE_SIZE ((size_t)65536)
#define HELD_MAX ((size_t)4 << 20) /* then the source feels it */

struct piece {
    struct piece *next;
    int64_t read_ns;
    size_t at, size;
    char bytes[];
};

bool flow_wants_read(const struct flow *f)
{
    return !f->ended && f->held_bytes < HELD_MAX;
}

/* The delay of now, not that of when it was read: a link that is restored
 * passes on at once. */
static int64_t due_ns(const struct flow *f)
{
    return f->first->read_ns + f->weather->delay_ns;
}

bool flow_wants_write(const struct flow *f, int64_t now_ns)
{
    if (f->weather->held || f->shut)
        return false;
    return f->first != NULL ? due_ns(f) <= now_ns : f->ended;
}

int64_t flow_due_ns(const struct flow *f, int64_t now_ns)
{
    if (f->weather->held || f->shut || f->first == NULL || due_ns(f) <= now_ns)
        return INT64_MAX;
    return due_ns(f);
}

void flow_read(struct flow *f, int from, int64_t now_ns)
{
    struct piece *p = malloc(sizeof *p + PIECE_SIZE);
    ssize_t n;

    if (p == NULL)
        abort();
    n = recv(from, p->bytes, PIECE_SIZE, MSG_DONTWAIT);
    if (n <= 0) {
        f->ended = n == 0 || (errno != EAGAIN && errno != EINTR);
        free(p);
        return;
    }
    *p = (struct piece){.read_ns = now_ns, .size = (size_t)n};
    if (f->last != NULL)
        f->last->next = p;
    else
        f->first = p;
    f->last = p;
    f->held_bytes += (size_t)n;
}

static void drop_first(struct flow *f)
{
    struct piece *p = f->first;

    f->first = p->next;
    if (f->first == NULL)
        f->last = NULL;
    free(p);
}

/* One send of the first piece, not past the cut. */
static ssize_t pass(struct flow *f, int to, int64_t cut)
{
    struct piece *p = f->first;
    size_t size = p->size - p->at;

    if (cut >= 0 && (size_t)cut < size)
        size = (size_t)cut;
    if (size == 0)
        return 0;
    return send(to, p->bytes + p->at, size, MSG_DONTWAIT | MSG_NOSIGNAL);
}

enum flow_result flow_write(struct flow *f, int to, int64_t now_ns,
                            int64_t *cut)
{
    while (f->first != NULL && flow_wants_write(f, now_ns)) {
        ssize_t n = pass(f, to, *cut);

        if (n < 0)
            return errno == EAGAIN || errno == EINTR ? FLOW_OK : FLOW_DEAD;
        f->held_bytes -= (size_t)n;
        f->first->at += (size_t)n;
        if (f->first->at == f->first->size)
            drop_first(f);
        if (*cut >= 0 && (*cut -= n) == 0) {
            *cut = -1;
            return FLOW_CUT;
        }
    }
    if (f->first == NULL && f->ended && !f->shut && !f->weather->held) {
        f->shut = true;
        (void)shutdown(to, SHUT_WR);
    }
    return FLOW_OK;
}

bool flow_done(const struct flow *f)
{
    return f->shut;
}

void flow_fini(struct flow *f)
{
    while (f->first != NULL)
        drop_first(f);
}
