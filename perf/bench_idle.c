/* SPDX-License-Identifier: BSD-2-Clause */
/* bench_idle.c - what a producer costs that has nothing to do, after it has
 * sent to every partition of a topic.
 *
 *   bench_idle BOOTSTRAP TOPIC [--seconds N] [PROPERTY=VALUE]...
 *
 * A wake-up is a voluntary context switch of a thread other than the main one,
 * which sleeps. */
#include "perf/lib/bench.h"
#include "perf/lib/client.h"

#define SETTLE_MS 1500 /* after the last report */
#define RECORD_SIZE 100

static void use_all(struct client *c)
{
    kp_record r = client_counted_record(c, RECORD_SIZE);

    r.flags = KP_HAS_PARTITION;
    for (r.partition = 0; r.partition < c->partitions; r.partition++)
        client_must(c, "not taken", kp_send(c->producer, &r, NULL));
    client_must(c, "not acknowledged",
                kp_flush(c->producer, KP_FOREVER, NULL));
    if (c->acked != (uint64_t)c->partitions)
        client_fail("%llu of %d records were acknowledged",
                    (unsigned long long)c->acked, (int)c->partitions);
}

int main(int argc, char **argv)
{
    struct client_option options[] = {{"seconds", 60}, {NULL, 0}};
    static struct client c;
    double cpu_ns, seconds;
    int64_t sleeps;

    client_start(&c, options, argc, argv);
    seconds = (double)client_option(options, "seconds");
    use_all(&c);
    client_sleep_ms(SETTLE_MS);
    cpu_ns = bench_cpu_ns();
    sleeps = client_others_sleeps();
    client_sleep_ms((int64_t)(seconds * 1000));
    cpu_ns = bench_cpu_ns() - cpu_ns;
    sleeps = client_others_sleeps() - sleeps;
    {
        const struct client_figure figures[] = {
            {"partitions", c.partitions},
            {"seconds", seconds},
            {"wakeups_per_s", (double)sleeps / seconds},
            {"cpu_ms", cpu_ns / 1e6},
        };

        CLIENT_PRINT(figures);
    }
    client_end(&c);
    return 0;
}
