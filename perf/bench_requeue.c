/* SPDX-License-Identifier: BSD-2-Clause */
/* bench_requeue.c - batches that are refused and taken back while many more wait
 * in the same partition's queue: what a record costs, and how long a send is
 * held up meanwhile.
 *
 *   bench_requeue BOOTSTRAP TOPIC [--records N] [--threads N]
 *       [PROPERTY=VALUE]...
 *
 * The topic has one partition, and the broker refuses the first requests
 * (METHOD.md has the line for its script).  Threads send without a pause, and
 * memory is to be enough for all of it.  A send's time is the system's as well:
 * what it says of 1 in 10,000 holds, the longest may be that of a thread that
 * had no processor. */
#include <stdlib.h>

#include "perf/lib/bench.h"
#include "perf/lib/client.h"
#include "perf/lib/pace.h"

#define RECORD_SIZE 100

struct sender {
    struct client *client;
    int64_t records;
    int64_t *took_ns; /* each send */
    uint64_t refused;
};

static void send_all(void *arg)
{
    struct sender *s = arg;
    kp_record r = client_counted_record(s->client, RECORD_SIZE);

    for (int64_t i = 0; i < s->records; i++) {
        int64_t began_ns = pace_now_ns();

        if (kp_send(s->client->producer, &r, NULL) != KP_OK)
            s->refused++;
        s->took_ns[i] = pace_now_ns() - began_ns;
    }
}

static int by_value(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

    return (x > y) - (x < y);
}

int main(int argc, char **argv)
{
    struct client_option options[] = {
        {"records", 1000000}, {"threads", 4}, {NULL, 0}};
    static struct client c;
    struct client_spent spent;
    struct sender *senders;
    uint64_t refused = 0;
    int64_t *took_ns, began_ns;
    unsigned threads;
    double cpu_ns;
    size_t each, n;

    client_start(&c, options, argc, argv);
    threads = (unsigned)client_option(options, "threads");
    if (threads == 0)
        client_fail("--threads: at least 1");
    each = (size_t)client_option(options, "records") / threads;
    n = each * threads;
    if (n == 0)
        client_fail("--records: at least one a thread");
    senders = bench_need(calloc(threads, sizeof(*senders)));
    took_ns = bench_need(calloc(n, sizeof(*took_ns)));
    for (unsigned i = 0; i < threads; i++)
        senders[i] = (struct sender){.client = &c,
                                     .records = (int64_t)each,
                                     .took_ns = took_ns + i * each};
    cpu_ns = bench_cpu_ns();
    began_ns = pace_now_ns();
    client_run_threads(threads, send_all, senders, sizeof(*senders), &spent);
    if (kp_flush(c.producer, KP_FOREVER, NULL) != KP_OK)
        client_fail("a record was not acknowledged");
    cpu_ns = bench_cpu_ns() - cpu_ns;
    began_ns = pace_now_ns() - began_ns;
    for (unsigned i = 0; i < threads; i++)
        refused += senders[i].refused;
    qsort(took_ns, n, sizeof(*took_ns), by_value);
    {
        const struct client_figure figures[] = {
            {"records", (double)n},
            {"refused", (double)refused},
            {"failed", (double)c.failed},
            {"cpu_ns_per_record", cpu_ns / (double)n},
            {"seconds", (double)began_ns / 1e9},
            {"send_median_ns", (double)took_ns[n / 2]},
            {"send_9999_us", (double)took_ns[n - 1 - n / 10000] / 1e3},
            {"send_longest_ms", (double)took_ns[n - 1] / 1e6},
        };

        CLIENT_PRINT(figures);
    }
    free(senders);
    free(took_ns);
    client_end(&c);
    return 0;
}
