/* SPDX-License-Identifier: BSD-2-Clause */
/* bench_outage.c - what a producer costs while records are queued and no broker
 * answers.
 *
 *   bench_outage BOOTSTRAP TOPIC [--seconds N] [--records N] [PROPERTY=VALUE]...
 *
 * When it knows the topic it prints "known" and waits for a line: meanwhile the
 * brokers are stopped.  Then it queues the records, lets the first attempts
 * pass, and measures. */
#include <stdio.h>

#include "perf/lib/bench.h"
#include "perf/lib/client.h"

#define SETTLE_MS 2000
#define RECORD_SIZE 100

/* Connections exist, as in a program that has run for a while. */
static void use_all(struct client *c)
{
    kp_record r = client_counted_record(c, RECORD_SIZE);

    r.flags = KP_HAS_PARTITION;
    for (r.partition = 0; r.partition < c->partitions; r.partition++)
        client_must(c, "not taken", kp_send(c->producer, &r, NULL));
    client_must(c, "not acknowledged",
                kp_flush(c->producer, KP_FOREVER, NULL));
}

static void queue(struct client *c, int64_t records)
{
    kp_record r = client_counted_record(c, RECORD_SIZE);

    for (int64_t i = 0; i < records; i++)
        client_must(c, "not taken", kp_send(c->producer, &r, NULL));
}

int main(int argc, char **argv)
{
    struct client_option options[] = {
        {"seconds", 30}, {"records", 100000}, {NULL, 0}};
    static struct client c;
    uint64_t before;
    double cpu_ns, seconds;
    int64_t sleeps, records;

    client_start(&c, options, argc, argv);
    seconds = (double)client_option(options, "seconds");
    records = client_option(options, "records");
    use_all(&c);
    before = c.acked + c.failed;
    (void)puts("known");
    (void)fflush(stdout);
    (void)getchar();
    queue(&c, records);
    client_sleep_ms(SETTLE_MS);
    cpu_ns = bench_cpu_ns();
    sleeps = client_others_sleeps();
    client_sleep_ms((int64_t)(seconds * 1000));
    cpu_ns = bench_cpu_ns() - cpu_ns;
    sleeps = client_others_sleeps() - sleeps;
    {
        const struct client_figure figures[] = {
            {"records", (double)records},
            {"still_queued",
             (double)(before + (uint64_t)records - c.acked - c.failed)},
            {"seconds", seconds},
            {"wakeups_per_s", (double)sleeps / seconds},
            {"core_percent", cpu_ns / 1e7 / seconds},
        };

        CLIENT_PRINT(figures);
    }
    (void)kp_close(c.producer, 0, NULL);
    (void)kp_producer_destroy(c.producer);
    return 0;
}
