/* SPDX-License-Identifier: BSD-2-Clause */
/* bench_blocked.c - many threads that wait for memory: what it costs to serve
 * one of them, and how evenly they are served.
 *
 *   bench_blocked BOOTSTRAP TOPIC [--threads N] [--rounds N] [--record-size N]
 *       [PROPERTY=VALUE]...
 *
 * A record takes a chunk of its own, and buffer.memory is small, so that nearly
 * every send waits and each grant lets one go on.  Sends of the first and the
 * last rounds are not counted: not all threads are there. */
#include <stdlib.h>

#include "perf/lib/bench.h"
#include "perf/lib/client.h"
#include "perf/lib/pace.h"

#define EDGE_ROUNDS 3

struct sender {
    struct client *client;
    int64_t rounds;
    size_t size;
    int64_t *waits_ns; /* of each send */
    uint64_t refused;
};

static void send_all(void *arg)
{
    struct sender *s = arg;
    kp_record r = client_counted_record(s->client, s->size);

    for (int64_t i = 0; i < s->rounds; i++) {
        int64_t began_ns = pace_now_ns();

        if (kp_send(s->client->producer, &r, NULL) != KP_OK)
            s->refused++;
        s->waits_ns[i] = pace_now_ns() - began_ns;
    }
}

static int by_value(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

    return (x > y) - (x < y);
}

/* The waits of the rounds between the edges, sorted; returns how many. */
static size_t middle(const struct sender *senders, unsigned threads,
                     int64_t *out)
{
    size_t n = 0;

    for (unsigned i = 0; i < threads; i++)
        for (int64_t k = EDGE_ROUNDS; k < senders[i].rounds - EDGE_ROUNDS; k++)
            out[n++] = senders[i].waits_ns[k];
    qsort(out, n, sizeof(*out), by_value);
    return n;
}

int main(int argc, char **argv)
{
    struct client_option options[] = {
        {"threads", 2000}, {"rounds", 40}, {"record-size", 12000}, {NULL, 0}};
    static struct client c;
    struct client_spent spent;
    struct sender *senders;
    int64_t *waits_ns, rounds;
    unsigned threads;
    size_t n, size;
    uint64_t refused = 0;
    double sends;

    client_start(&c, options, argc, argv);
    threads = (unsigned)client_option(options, "threads");
    rounds = client_option(options, "rounds");
    size = (size_t)client_option(options, "record-size");
    if (rounds <= 2 * EDGE_ROUNDS)
        client_fail("--rounds: give 6 at most");
    senders = bench_need(calloc(threads, sizeof(*senders)));
    waits_ns =
        bench_need(calloc(2 * threads * (size_t)rounds, sizeof(*waits_ns)));
    (void)client_record(&c, size);
    for (unsigned i = 0; i < threads; i++) {
        senders[i].client = &c;
        senders[i].rounds = rounds;
        senders[i].size = size;
        senders[i].waits_ns = waits_ns + (threads + i) * (size_t)rounds;
    }
    client_run_threads(threads, send_all, senders, sizeof(*senders), &spent);
    client_must(&c, "not acknowledged",
                kp_flush(c.producer, KP_FOREVER, NULL));
    for (unsigned i = 0; i < threads; i++)
        refused += senders[i].refused;
    n = middle(senders, threads, waits_ns);
    sends = (double)threads * (double)rounds;
    {
        const struct client_figure figures[] = {
            {"threads", threads},
            {"sends", sends},
            {"refused", (double)refused},
            {"failed", (double)c.failed},
            {"cpu_us_per_grant", spent.cpu_ns / 1e3 / sends},
            {"grants_per_s", sends * 1e9 / (double)spent.wall_ns},
            {"median_wait_ms", (double)waits_ns[n / 2] / 1e6},
            {"longest_wait_ms", (double)waits_ns[n - 1] / 1e6},
            {"longest_to_median",
             (double)waits_ns[n - 1] / (double)waits_ns[n / 2]},
            {"shortest_wait_ms", (double)waits_ns[0] / 1e6},
        };

        CLIENT_PRINT(figures);
    }
    free(senders);
    free(waits_ns);
    client_end(&c);
    return 0;
}
