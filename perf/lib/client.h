/* SPDX-License-Identifier: BSD-2-Clause */
/* client.h - what the benchmarks of states share (waiting, idle, cut off,
 * full): one producer, one topic that it knows, counted callbacks, and figures
 * as one JSON object.  Functions that cannot do their work end the program. */
#ifndef KP_PERF_CLIENT_H
#define KP_PERF_CLIENT_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include <kp/kp.h>

struct client {
    kp_producer *producer;
    const char *topic;
    int32_t partitions;
    /* by callbacks, on the I/O thread */
    _Atomic uint64_t acked, failed;
};

/* An option of a benchmark: --NAME VALUE, a number. */
struct client_option {
    const char *name;
    int64_t value; /* until the command line says another */
};

/* argv: BOOTSTRAP TOPIC [--NAME VALUE]... [PROPERTY=VALUE]...; options[] ends
 * with a name that is NULL.  Returns when the topic is known. */
void client_start(struct client *c, struct client_option *options, int argc,
                  char **argv);
int64_t client_option(const struct client_option *options, const char *name);
/* A record with `size` bytes that look like JSON; it is not counted. */
kp_record client_record(const struct client *c, size_t size);
/* The same, counted in acked or failed when it is reported. */
kp_record client_counted_record(struct client *c, size_t size);
/* Closes and destroys. */
void client_end(struct client *c);

struct client_spent {
    double cpu_ns; /* all threads of the process */
    int64_t wall_ns;
};
/* Run `count` threads with small stacks; each calls fn(args + i * size).
 * *spent gets what was used from the moment when all of them were there to the
 * last one's return: not what it takes to start and end threads. */
void client_run_threads(unsigned count, void (*fn)(void *arg), void *args,
                        size_t size, struct client_spent *spent);
_Noreturn void client_fail(const char *fmt, ...)
    __attribute__((format(printf, 1, 2)));
/* What a call of ours said is not KP_OK: the program ends with that. */
void client_must(const struct client *c, const char *what, kp_err err);

double client_rss_bytes(void);
/* Voluntary context switches of the process but for the calling thread: how
 * often its threads went to sleep, and so were woken. */
int64_t client_others_sleeps(void);
void client_sleep_ms(int64_t ms);

struct client_figure {
    const char *name;
    double value; /* not finite: null */
};
/* One line of JSON on stdout. */
void client_print(const struct client_figure *figures, size_t count);
#define CLIENT_PRINT(figures) \
    client_print(figures, sizeof(figures) / sizeof((figures)[0]))

#endif
