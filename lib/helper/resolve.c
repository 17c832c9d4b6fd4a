/* SPDX-License-Identifier: BSD-2-Clause */
/* resolve.c - names to addresses.
 *
 * Begin, poll and end run on the thread that wants to know (the I/O thread),
 * the look-up itself on a detached thread of its own.  The two share one
 * counted object and its state word.  Invariant: the helper touches the
 * wake-up only in state RINGING, and end() does not return while that state
 * lasts; so whoever ended a look-up may close the wake-up. */
#include "lib/helper/resolve.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdatomic.h>
#include <string.h>

#include "lib/base/mem.h"
#include "lib/base/str.h"
#include "lib/base/system_error.h"
#include "lib/base/thread.h"
#include "lib/base/wait.h"

/* A name with more addresses than this is cut. */
#define ADDRESSES_MAX 64

enum { LOOKING, RINGING, DONE, GIVEN_UP };

struct resolve {
    /* fixed at birth */
    char *host;
    uint16_t port;
    bool canonical;
    struct wakeup *wakeup;
    /* atomic */
    _Atomic uint32_t refs;  /* the asker's and the helper's */
    _Atomic uint32_t state; /* also a wait word */
    /* the helper's until RINGING, then constant */
    struct address *addresses;
    char **names;
    size_t count;
    kp_err err;
    char text[160];
};

static void unref(struct resolve *r)
{
    /* acq_rel: what the other side did to the object comes before its end */
    if (atomic_fetch_sub_explicit(&r->refs, 1, memory_order_acq_rel) != 1)
        return;
    for (size_t i = 0; r->names != NULL && i < r->count; i++)
        kp__free(r->names[i]);
    kp__free(r->names);
    kp__free(r->addresses);
    kp__free(r->host);
    kp__free(r);
}

static void fail(struct resolve *r, const char *why)
{
    char host[128];

    kp__str_escape(host, sizeof host, r->host, strlen(r->host));
    r->err = KP_ERESOLVE;
    kp__format(r->text, sizeof r->text, "no address for \"%s\": %s", host, why);
}

/* `room` is for the words of an errno value. */
static const char *reason(int rc, char *room, size_t size)
{
    if (rc != EAI_SYSTEM)
        return gai_strerror(rc);
    kp__system_error_text(errno, room, size);
    return room;
}

static void set_port(struct address *a, uint16_t port)
{
    if (a->sa.ss_family == AF_INET)
        ((struct sockaddr_in *)(void *)&a->sa)->sin_port = htons(port);
    else
        ((struct sockaddr_in6 *)(void *)&a->sa)->sin6_port = htons(port);
}

static bool seen(const struct resolve *r, const struct address *a)
{
    for (size_t i = 0; i < r->count; i++)
        if (kp__address_equal(&r->addresses[i], a))
            return true;
    return false;
}

static void take(struct resolve *r, const struct addrinfo *ai)
{
    struct address a;

    if ((ai->ai_family != AF_INET && ai->ai_family != AF_INET6) ||
        ai->ai_addrlen > sizeof a.sa || r->count == ADDRESSES_MAX)
        return;
    memset(&a, 0, sizeof a);
    memcpy(&a.sa, ai->ai_addr, ai->ai_addrlen);
    a.size = ai->ai_addrlen;
    set_port(&a, r->port);
    if (!seen(r, &a))
        r->addresses[r->count++] = a;
}

static void take_all(struct resolve *r, const struct addrinfo *list)
{
    r->addresses = kp__alloc_array(ADDRESSES_MAX, sizeof *r->addresses);
    if (r->addresses == NULL) {
        fail(r, "out of memory");
        return;
    }
    for (const struct addrinfo *ai = list; ai != NULL; ai = ai->ai_next)
        take(r, ai);
    if (r->count == 0)
        fail(r, "it has neither an IPv4 nor an IPv6 address");
}

/* True if there was an answer, good or bad; with AI_NUMERICHOST, a host that is
 * not a number is no answer. */
static bool look_up(struct resolve *r, int flags)
{
    struct addrinfo hints, *list = NULL;
    char words[128];
    int rc;

    memset(&hints, 0, sizeof hints);
    hints.ai_family = AF_UNSPEC;
    hints.ai_socktype = SOCK_STREAM;
    hints.ai_flags = flags;
    rc = getaddrinfo(r->host, NULL, &hints, &list);
    if (rc != 0 && flags != 0)
        return false;
    if (rc != 0) {
        fail(r, reason(rc, words, sizeof words));
        return true;
    }
    take_all(r, list);
    freeaddrinfo(list);
    return true;
}

/* An address without a name keeps its number for one, as Java does. */
static void look_up_names(struct resolve *r)
{
    char name[NI_MAXHOST];

    r->names = kp__alloc_array(r->count, sizeof *r->names);
    if (r->names == NULL)
        return;
    for (size_t i = 0; i < r->count; i++) {
        const struct address *a = &r->addresses[i];
        const struct sockaddr *sa = (const void *)&a->sa;
        if (getnameinfo(sa, a->size, name, sizeof name, NULL, 0, 0) != 0 &&
            getnameinfo(sa, a->size, name, sizeof name, NULL, 0,
                        NI_NUMERICHOST) != 0)
            name[0] = 0;
        r->names[i] = kp__strdup(name[0] != 0 ? name : r->host);
    }
}

static void *helper(void *arg)
{
    struct resolve *r = arg;
    uint32_t looking = LOOKING;

    (void)look_up(r, 0);
    if (r->err == KP_OK && r->canonical)
        look_up_names(r);
    /* acq_rel on success: the results are written before the state says so;
     * relaxed on failure: nothing of the asker's is read */
    if (atomic_compare_exchange_strong_explicit(&r->state, &looking, RINGING,
                                                memory_order_acq_rel,
                                                memory_order_relaxed)) {
        kp__wakeup_set(r->wakeup);
        /* release: the wake-up was used before end() may return */
        atomic_store_explicit(&r->state, DONE, memory_order_release);
        kp__wake(&r->state, 1);
    }
    unref(r);
    return NULL;
}

static struct resolve *create(const char *host, uint16_t port, bool canonical,
                              struct wakeup *wakeup)
{
    struct resolve *r = kp__zalloc(sizeof *r);

    if (r == NULL)
        return NULL;
    r->host = kp__strdup(host);
    r->port = port;
    r->canonical = canonical;
    r->wakeup = wakeup;
    atomic_init(&r->refs, 1);
    atomic_init(&r->state, LOOKING);
    if (r->host == NULL) {
        unref(r);
        return NULL;
    }
    return r;
}

struct resolve *kp__resolve_begin(void *arg, const char *host, uint16_t port,
                                  bool canonical, struct wakeup *wakeup)
{
    struct resolve *r = create(host, port, canonical, wakeup);

    (void)arg;
    if (r == NULL)
        return NULL;
    if (!canonical && look_up(r, AI_NUMERICHOST)) {
        /* relaxed: no other thread has this object */
        atomic_store_explicit(&r->state, DONE, memory_order_relaxed);
        return r;
    }
    /* relaxed: starting the thread orders it */
    atomic_store_explicit(&r->refs, 2, memory_order_relaxed);
    if (kp__thread_start_detached("kp-resolve", helper, r) != 0) {
        /* relaxed: there is no helper */
        atomic_store_explicit(&r->refs, 1, memory_order_relaxed);
        unref(r);
        return NULL;
    }
    return r;
}

bool kp__resolve_poll(struct resolve *r, const struct address **addresses,
                      const char *const **names, size_t *count, kp_err *err,
                      const char **text)
{
    /* acquire: pairs with the helper's move to RINGING, after its results */
    if (atomic_load_explicit(&r->state, memory_order_acquire) == LOOKING)
        return false;
    *addresses = r->addresses;
    *names = (const char *const *)r->names;
    *count = r->count;
    *err = r->err;
    *text = r->text;
    return true;
}

void kp__resolve_end(struct resolve *r)
{
    uint32_t seen_state = LOOKING;

    /* acq_rel: either the helper finds GIVEN_UP and rings nobody, or what it
     * did is seen here */
    if (!atomic_compare_exchange_strong_explicit(&r->state, &seen_state,
                                                 GIVEN_UP, memory_order_acq_rel,
                                                 memory_order_acquire)) {
        while (seen_state == RINGING) { /* one write to an eventfd long */
            (void)kp__wait(&r->state, RINGING, KP_NEVER);
            /* acquire: the wake-up was used before */
            seen_state = atomic_load_explicit(&r->state, memory_order_acquire);
        }
    }
    unref(r);
}

bool kp__address_equal(const struct address *a, const struct address *b)
{
    return a->size == b->size && memcmp(&a->sa, &b->sa, a->size) == 0;
}

void kp__address_text(const struct address *a, char out[ADDRESS_TEXT_SIZE])
{
    char host[INET6_ADDRSTRLEN];
    const void *sa = &a->sa;

    if (a->sa.ss_family == AF_INET) {
        const struct sockaddr_in *v4 = sa;
        if (inet_ntop(AF_INET, &v4->sin_addr, host, sizeof host) != NULL) {
            kp__format(out, ADDRESS_TEXT_SIZE, "%s:%u", host,
                       (unsigned)ntohs(v4->sin_port));
            return;
        }
    } else if (a->sa.ss_family == AF_INET6) {
        const struct sockaddr_in6 *v6 = sa;
        if (inet_ntop(AF_INET6, &v6->sin6_addr, host, sizeof host) != NULL) {
            kp__format(out, ADDRESS_TEXT_SIZE, "[%s]:%u", host,
                       (unsigned)ntohs(v6->sin6_port));
            return;
        }
    }
    kp__format(out, ADDRESS_TEXT_SIZE, "?");
}
