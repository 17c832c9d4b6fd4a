/* SPDX-License-Identifier: BSD-2-Clause */
/* bench_send_and_wait.c - many threads that each send a record, wait for its
 * report, and so on; and whether the process is idle when they are done.
 *
 *   bench_send_and_wait BOOTSTRAP TOPIC [--threads N] [--rounds N]
 *       [--record-size N] [PROPERTY=VALUE]... */
#include <stdlib.h>

#include "perf/lib/bench.h"
#include "perf/lib/client.h"
#include "perf/lib/pace.h"

#define AFTER_MS 1000 /* it has so long to become idle */
#define WATCH_MS 2000

struct sender {
    struct client *client;
    int64_t rounds;
    size_t size;
    int64_t longest_ns;
    uint64_t failed;
};

static void send_and_wait(void *arg)
{
    struct sender *s = arg;
    kp_record r = client_record(s->client, s->size);

    for (int64_t i = 0; i < s->rounds; i++) {
        int64_t began_ns = pace_now_ns();
        kp_future f;

        if (kp_send(s->client->producer, &r, &f) != KP_OK ||
            kp_future_wait(&f, KP_FOREVER, NULL) != KP_OK)
            s->failed++;
        kp_future_release(&f, 1);
        if (pace_now_ns() - began_ns > s->longest_ns)
            s->longest_ns = pace_now_ns() - began_ns;
    }
}

static double idle_percent(void)
{
    double cpu_ns;

    client_sleep_ms(AFTER_MS);
    cpu_ns = bench_cpu_ns();
    client_sleep_ms(WATCH_MS);
    return (bench_cpu_ns() - cpu_ns) / (WATCH_MS * 1e6) * 100;
}

int main(int argc, char **argv)
{
    struct client_option options[] = {
        {"threads", 1000}, {"rounds", 200}, {"record-size", 100}, {NULL, 0}};
    static struct client c;
    struct client_spent spent;
    struct sender *senders;
    unsigned threads;
    double records;
    uint64_t failed = 0;
    int64_t longest_ns = 0, rounds;

    client_start(&c, options, argc, argv);
    threads = (unsigned)client_option(options, "threads");
    rounds = client_option(options, "rounds");
    senders = bench_need(calloc(threads, sizeof(*senders)));
    (void)client_record(&c, (size_t)client_option(options, "record-size"));
    for (unsigned i = 0; i < threads; i++) {
        senders[i].client = &c;
        senders[i].rounds = rounds;
        senders[i].size = (size_t)client_option(options, "record-size");
    }
    client_run_threads(threads, send_and_wait, senders, sizeof(*senders),
                       &spent);
    for (unsigned i = 0; i < threads; i++) {
        failed += senders[i].failed;
        if (senders[i].longest_ns > longest_ns)
            longest_ns = senders[i].longest_ns;
    }
    records = (double)rounds * threads;
    {
        const struct client_figure figures[] = {
            {"threads", threads},
            {"records", records},
            {"failed", (double)failed},
            {"cpu_us_per_record", spent.cpu_ns / 1e3 / records},
            {"records_per_s", records * 1e9 / (double)spent.wall_ns},
            {"longest_ms", (double)longest_ns / 1e6},
            {"core_percent_after", idle_percent()},
        };

        CLIENT_PRINT(figures);
    }
    free(senders);
    client_end(&c);
    return 0;
}
