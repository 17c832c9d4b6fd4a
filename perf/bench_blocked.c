/* SPDX-License-Identifier: BSD-2-Clause */
/* bench_blocked.c - many threads that wait for memory: what it costs to serve
 * one of them, and how evenly they are served.
 *
 *   bench_blocked BOOTSTRAP TOPIC [--threads N] [--rounds N] [--record-size N]
 *       [PROPERTY=VALUE]...
 *
 * A record takes a chunk of its own, and buffer.memory is small, so that nearly
 * every send waits and each grant lets one go on.  Waits are not counted while
 * not all threads are there: those that began before each had made its first
 * send (the first to start are many rounds ahead by then), and the last of each
 * thread. */
#include <stdlib.h>

#include "perf/lib/bench.h"
#include "perf/lib/client.h"
#include "perf/lib/pace.h"

#define EDGE_ROUNDS 3

struct sender {
    struct client *client;
    int64_t rounds;
    size_t size;
    int64_t *waits_ns, *ends_ns; /* of each send */
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
        s->ends_ns[i] = pace_now_ns();
        s->waits_ns[i] = s->ends_ns[i] - began_ns;
    }
}

static int by_value(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

    return (x > y) - (x < y);
}

static int64_t all_there_ns(const struct sender *senders, unsigned threads)
{
    int64_t at_ns = 0;

    for (unsigned i = 0; i < threads; i++)
        if (senders[i].ends_ns[0] > at_ns)
            at_ns = senders[i].ends_ns[0];
    return at_ns;
}

/* The waits while all are there, sorted; returns how many. */
static size_t middle(const struct sender *senders, unsigned threads,
                     int64_t *out)
{
    int64_t from_ns = all_there_ns(senders, threads);
    size_t n = 0;

    for (unsigned i = 0; i < threads; i++) {
        const struct sender *s = &senders[i];

        for (int64_t k = EDGE_ROUNDS; k < s->rounds - EDGE_ROUNDS; k++)
            if (s->ends_ns[k] - s->waits_ns[k] >= from_ns)
                out[n++] = s->waits_ns[k];
    }
    if (n == 0)
        client_fail("not all threads were there at a time: more --rounds");
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
        client_fail("--rounds: give more than 6");
    senders = bench_need(calloc(threads, sizeof(*senders)));
    waits_ns =
        bench_need(calloc(3 * threads * (size_t)rounds, sizeof(*waits_ns)));
    (void)client_record(&c, size);
    for (unsigned i = 0; i < threads; i++) {
        senders[i].client = &c;
        senders[i].rounds = rounds;
        senders[i].size = size;
        senders[i].waits_ns = waits_ns + (threads + 2 * i) * (size_t)rounds;
        senders[i].ends_ns = senders[i].waits_ns + rounds;
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
            {"waits_counted", (double)n},
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
