/* SPDX-License-Identifier: BSD-2-Clause */
/* fake_net.h - a network in memory, for whatever takes an io_env: sockets, a
 * poller, names and a clock that only a test moves.
 *
 *     struct fake_net *net = fake_net_create();
 *     struct io_env env = fake_net_env(net, 1);
 *     fake_net_listen(net, "10.0.0.1", 9092, FAKE_ACCEPTS);
 *     ... the client connects and writes ...
 *     struct fake_conn *c = fake_net_conn(net, "10.0.0.1", 9092);
 *     struct fake_request q;
 *     while (fake_conn_request(c, &q))
 *         fake_conn_answer(c, &q, &response);
 *
 * The test is the server.  Addresses are IPv4 or IPv6 numbers; everything that
 * nobody listens on refuses.  Nothing sleeps; one thread. */
#ifndef KP_TEST_SUPPORT_FAKE_NET_H
#define KP_TEST_SUPPORT_FAKE_NET_H

#include "io_thread/env.h"
#include "lib/wire/api.h"

struct fake_net;
struct fake_conn; /* the server's end; lives until fake_net_destroy */

struct fake_net *fake_net_create(void); /* at 1 s */
void fake_net_destroy(struct fake_net *net);
struct io_env fake_net_env(struct fake_net *net, uint64_t seed);

/* -- time -- */
int64_t fake_net_now_ns(const struct fake_net *net);
void fake_net_advance_ns(struct fake_net *net, int64_t ns);

/* -- what an attempt to connect meets, from now on -- */
enum fake_listener {
    FAKE_REFUSES, /* ECONNREFUSED, a little later */
    FAKE_ACCEPTS,
    FAKE_SILENT,      /* never anything */
    FAKE_UNREACHABLE, /* ENETUNREACH at once */
    FAKE_NO_ROUTE,    /* EHOSTUNREACH, a little later */
    FAKE_NO_ADDRESS,  /* EADDRNOTAVAIL at once */
    FAKE_FORBIDDEN,   /* EACCES at once */
    FAKE_NO_SOCKET    /* EMFILE at once */
};
void fake_net_listen(struct fake_net *net, const char *host, uint16_t port,
                     enum fake_listener how);
/* Every attempt since the start, in order: "10.0.0.1:9092". */
size_t fake_net_attempts(const struct fake_net *net);
const char *fake_net_attempt(const struct fake_net *net, size_t i);
int64_t fake_net_attempt_ns(const struct fake_net *net, size_t i);
size_t fake_net_open_count(const struct fake_net *net); /* client's sockets */

/* -- names -- */
/* What `name` means: numbers with blanks between; NULL: nothing. */
void fake_net_name(struct fake_net *net, const char *name,
                   const char *addresses);
/* Look-ups of it stay undone until this is called with false. */
void fake_net_hold_name(struct fake_net *net, const char *name, bool hold);
/* The canonical name of an address. */
void fake_net_canonical(struct fake_net *net, const char *address,
                        const char *name);
size_t fake_net_lookups(const struct fake_net *net);

/* -- connections -- */
/* The newest connection to this address that the client has open; NULL. */
struct fake_conn *fake_net_conn(struct fake_net *net, const char *host,
                                uint16_t port);
bool fake_conn_is_open(const struct fake_conn *c); /* by the client */
/* What the client wrote and nobody took. */
const uint8_t *fake_conn_received(const struct fake_conn *c, size_t *size);
void fake_conn_take(struct fake_conn *c, size_t size);
void fake_conn_send(struct fake_conn *c, const void *data, size_t size);
void fake_conn_close(struct fake_conn *c); /* FIN after what was sent */
void fake_conn_reset(struct fake_conn *c); /* RST after what was sent */
/* At most so many bytes a call, and so many in all until set again; SIZE_MAX:
 * no limit. */
void fake_conn_limit_writes(struct fake_conn *c, size_t step, size_t room);
void fake_conn_limit_reads(struct fake_conn *c, size_t step);
/* So many times the poller cannot change what it watches: ENOMEM. */
void fake_net_fail_changes(struct fake_net *net, int times);
/* From now on a write fails with EPIPE, although reading goes on. */
void fake_conn_break_writes(struct fake_conn *c);

/* -- Kafka on top -- */
struct fake_request {
    struct request_header header;
    const uint8_t *body; /* until the next fake_conn_request */
    size_t body_size;
};
/* The next whole request; false: none yet. */
bool fake_conn_request(struct fake_conn *c, struct fake_request *out);
/* Decode its body into the C struct of its API. */
bool fake_request_decode(const struct fake_request *q, struct arena *a,
                         void *out);
/* Answer with the C struct of its API, in the version it was asked in. */
void fake_conn_answer(struct fake_conn *c, const struct fake_request *q,
                      const void *response);
/* The same as bytes, whole frame: for tests that spoil it. */
void fake_answer_bytes(const struct fake_request *q, const void *response,
                       struct writer *out);
/* ApiVersions with all we speak; and with one range changed (api_key -1:
 * none). */
void fake_conn_answer_versions(struct fake_conn *c,
                               const struct fake_request *q, int16_t api_key,
                               int16_t min, int16_t max);

#endif
