/* SPDX-License-Identifier: BSD-2-Clause */
/* fuzz_net.h - a network in virtual time whose answers a fuzzer may spoil.
 *
 * Behind every address stands a broker of the model, which answers honestly;
 * on its way each answer is left alone, changed, cut, doubled, held back, lost
 * or replaced, as the next bytes of the input say.  One thread. */
#ifndef KP_TEST_FUZZ_FUZZ_NET_H
#define KP_TEST_FUZZ_FUZZ_NET_H

#include "io_thread/env.h"
#include "lib/base/buf.h"
#include "test/broker/model.h"
#include "test/fuzz/fuzz.h"
#include "test/support/mem_net.h"

#define FUZZ_CONNS_MAX 256 /* more attempts than that are refused */

/* What happens to answers when the input is used up. */
enum fuzz_ending { ENDS_HONEST, ENDS_SILENT, ENDS_CLOSED, ENDINGS };

struct fuzz_conn {
    struct transport socket;
    struct fuzz_net *net;
    struct kb_conn *k; /* NULL: gone */
    struct buf in, out;
    size_t out_at; /* of the first byte not yet read */
    int64_t readable_ns;
    bool fin, reset, connected;
};

struct fuzz_net {
    struct mem_net mem;
    int64_t now_ns;
    struct kb_cluster *cluster;
    struct fuzz_input *input;
    enum fuzz_ending ending;
    bool lied; /* an answer said what no broker said */
    struct fuzz_conn conns[FUZZ_CONNS_MAX];
    size_t count;
    struct transport_ops transport;
};

/* Two brokers at 10.0.0.1:9092 and 10.0.0.2:9092, with topic "t" of two
 * partitions. */
struct fuzz_net *fuzz_net_create(struct fuzz_input *input,
                                 enum fuzz_ending ending);
/* Checks that the client closed all sockets. */
void fuzz_net_destroy(struct fuzz_net *n);
struct io_env fuzz_net_env(struct fuzz_net *n);
/* Let the brokers work at now_ns. */
void fuzz_net_run(struct fuzz_net *n);
/* When something happens by itself, after now_ns; KP_NEVER. */
int64_t fuzz_net_next_ns(const struct fuzz_net *n);

#endif
