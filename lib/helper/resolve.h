/* SPDX-License-Identifier: BSD-2-Clause */
/* resolve.h - names to addresses, on a detached helper thread a look-up.
 *
 * getaddrinfo(3) may take as long as it likes, so nobody ever joins that
 * thread: it owns its half of the look-up and touches nothing else.  An
 * address written as a number needs no thread. */
#ifndef KP_HELPER_RESOLVE_H
#define KP_HELPER_RESOLVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include "include/kp/kp.h"
#include "lib/base/wakeup.h"

struct address {
    struct sockaddr_storage sa;
    socklen_t size;
};

/* "127.0.0.1:9092", "[::1]:9092"; "?" for what is neither. */
#define ADDRESS_TEXT_SIZE 64
void kp__address_text(const struct address *a, char out[ADDRESS_TEXT_SIZE]);
bool kp__address_equal(const struct address *a, const struct address *b);

struct resolve; /* one look-up */
/* Begin; `wakeup` is set when it is done.  `canonical`: also ask for the
 * canonical name behind each address.  NULL: no memory or thread. */
struct resolve *kp__resolve_begin(void *arg, const char *host, uint16_t port,
                                  bool canonical, struct wakeup *wakeup);
/* False: not done.  Else *err KP_OK and the addresses (and names, or NULL) in
 * the system's order, or KP_ERESOLVE and a sentence in *text.  All of it is
 * lent until kp__resolve_end. */
bool kp__resolve_poll(struct resolve *r, const struct address **addresses,
                      const char *const **names, size_t *count, kp_err *err,
                      const char **text);
/* Done or not; `wakeup` is not touched any more when this returns. */
void kp__resolve_end(struct resolve *r);

#endif
