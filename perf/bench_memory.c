/* SPDX-License-Identifier: BSD-2-Clause */
/* bench_memory.c - the resident memory of a buffered record, when
 * buffer.memory is full and no broker answers.
 *
 *   bench_memory BOOTSTRAP TOPIC [--record-size N] [PROPERTY=VALUE]...
 *
 * When it knows the topic it prints "known" and waits for a line: meanwhile the
 * brokers are made silent. */
#include <stdio.h>

#include "perf/lib/client.h"

int main(int argc, char **argv)
{
    struct client_option options[] = {{"record-size", 100}, {NULL, 0}};
    static struct client c;
    kp_record r;
    double before, after;
    uint64_t count = 0;
    kp_err err;

    client_start(&c, options, argc, argv);
    (void)puts("known");
    (void)fflush(stdout);
    (void)getchar();
    r = client_counted_record(&c,
                              (size_t)client_option(options, "record-size"));
    r.flags = KP_NOWAIT;
    before = client_rss_bytes();
    while ((err = kp_send(c.producer, &r, NULL)) == KP_OK)
        count++;
    if (err != KP_EBUFFER)
        client_must(&c, "not taken", err);
    after = client_rss_bytes();
    {
        const struct client_figure figures[] = {
            {"records", (double)count},
            {"buffered", (double)(count - c.acked - c.failed)},
            {"rss_before_mb", before / 1048576},
            {"rss_full_mb", after / 1048576},
            {"bytes_per_record", (after - before) / (double)count},
            {"bytes_per_record_in_all", after / (double)count},
        };

        CLIENT_PRINT(figures);
    }
    (void)kp_close(c.producer, 0, NULL);
    (void)kp_producer_destroy(c.producer);
    return 0;
}
