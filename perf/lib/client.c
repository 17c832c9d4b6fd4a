/* SPDX-License-Identifier: BSD-2-Clause */
/* client.c - see client.h.  The main thread, but for the callback. */
#include "perf/lib/client.h"

#include <math.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "perf/lib/bench.h"
#include "perf/lib/gate.h"
#include "perf/lib/pace.h"

#define AWAIT_MS 100
#define STACK_SIZE ((size_t)64 * 1024)
#define VALUE_MAX ((size_t)1 << 20)
#define CLOSE_MS 30000
#define METADATA_MS 60000

_Noreturn void client_fail(const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    (void)vfprintf(stderr, fmt, args);
    va_end(args);
    (void)fputs("\n", stderr);
    exit(2);
}

void client_must(const struct client *c, const char *what, kp_err err)
{
    kp_error status = {0};

    if (err == KP_OK)
        return;
    (void)kp_status(c->producer, c->topic, &status);
    client_fail("%s: topic %s: %s: %s%s%s", what, c->topic, kp_err_name(err),
                kp_err_text(err), status.text[0] != '\0' ? "; " : "",
                status.text);
}

static _Noreturn void fail_with(const char *what, const kp_error *error)
{
    (void)fprintf(stderr, "%s: %s: %s\n", what, kp_err_name(error->err),
                  error->text);
    exit(2);
}

/* -- starting -- */

static void set(kp_config *config, const char *name, const char *value)
{
    kp_error error;

    if (kp_config_set(config, name, value, &error) != KP_OK)
        fail_with(name, &error);
}

static void set_property(kp_config *config, const char *word)
{
    const char *equals = strchr(word, '=');
    char name[100];

    if (equals == NULL || (size_t)(equals - word) >= sizeof(name))
        client_fail("%s: write PROPERTY=VALUE, for example linger.ms=5", word);
    memcpy(name, word, (size_t)(equals - word));
    name[equals - word] = '\0';
    set(config, name, equals + 1);
}

static _Noreturn void no_such_option(const struct client_option *options,
                                     const char *name)
{
    (void)fprintf(stderr, "--%s: no such option; there are:", name);
    for (; options->name != NULL; options++)
        (void)fprintf(stderr, " --%s", options->name);
    client_fail("%s", "");
}

static void set_option(struct client_option *options, const char *name,
                       const char *value)
{
    const struct client_option *all = options;
    char *end;

    for (; options->name != NULL; options++) {
        if (strcmp(options->name, name) != 0)
            continue;
        options->value = strtoll(value, &end, 10);
        if (end == value || *end != '\0')
            client_fail("--%s %s: give a whole number", name, value);
        return;
    }
    no_such_option(all, name);
}

static void await_topic(struct client *c, const char *servers)
{
    int64_t end_ns = pace_now_ns() + METADATA_MS * INT64_C(1000000);
    kp_err err;

    do {
        err = kp_partitions_for(c->producer, c->topic, 1000, &c->partitions,
                                NULL, NULL);
    } while ((err == KP_PENDING || err == KP_EMETADATA) &&
             pace_now_ns() < end_ns);
    if (err == KP_OK)
        return;
    (void)fprintf(stderr, "not there after %d s at %s; create it, or check "
                          "BOOTSTRAP\n",
                  METADATA_MS / 1000, servers);
    client_must(c, "no topic", err);
}

void client_start(struct client *c, struct client_option *options, int argc,
                  char **argv)
{
    kp_config *config;
    kp_error error;

    memset(c, 0, sizeof(*c));
    if (argc < 3)
        client_fail("usage: %s BOOTSTRAP TOPIC [--OPTION N]... "
                    "[PROPERTY=VALUE]...",
                    argv[0]);
    if (kp_config_create(&config) != KP_OK)
        client_fail("no memory for a configuration");
    set(config, "bootstrap.servers", argv[1]);
    c->topic = argv[2];
    for (int i = 3; i < argc; i++) {
        if (strncmp(argv[i], "--", 2) != 0) {
            set_property(config, argv[i]);
            continue;
        }
        if (i + 1 == argc)
            client_fail("%s: a value is missing; give a whole number", argv[i]);
        set_option(options, argv[i] + 2, argv[i + 1]);
        i++;
    }
    if (kp_producer_create(&c->producer, config, &error) != KP_OK)
        fail_with("the producer cannot start", &error);
    kp_config_destroy(config);
    await_topic(c, argv[1]);
}

int64_t client_option(const struct client_option *options, const char *name)
{
    const struct client_option *all = options;

    for (; options->name != NULL; options++)
        if (strcmp(options->name, name) == 0)
            return options->value;
    no_such_option(all, name);
}

void client_end(struct client *c)
{
    (void)kp_close(c->producer, CLOSE_MS, NULL);
    (void)kp_producer_destroy(c->producer);
}

/* -- records -- */

static const char *json_like(size_t size)
{
    static char text[VALUE_MAX];
    size_t used = strlen(text);

    if (size > sizeof(text) - 1)
        client_fail("a record of %zu bytes: %zu is the most", size,
                    sizeof(text) - 1);
    while (used < size) {
        char word[40];
        int n = snprintf(word, sizeof(word), "{\"id\":%zu,\"state\":\"paid\"},",
                         used * 2654435761U % 1000003);

        for (int i = 0; i < n && used < sizeof(text) - 1; i++)
            text[used++] = word[i];
    }
    return text;
}

kp_record client_record(const struct client *c, size_t size)
{
    kp_record r;

    memset(&r, 0, sizeof(r));
    r.topic = c->topic;
    r.topic_size = strlen(c->topic);
    r.value.data = json_like(size);
    r.value.size = size;
    return r;
}

static void count_report(const kp_report *report)
{
    struct client *c = report->tag;

    /* Relaxed: whoever waits for all of them flushes first. */
    (void)atomic_fetch_add_explicit(
        report->err == KP_OK ? &c->acked : &c->failed, 1, memory_order_relaxed);
}

kp_record client_counted_record(struct client *c, size_t size)
{
    kp_record r = client_record(c, size);

    r.tag = c;
    r.on_delivery = count_report;
    return r;
}

/* -- threads -- */

enum { PHASE_RUN = 1, PHASE_END };

struct crowd {
    struct gate gate;
    void (*fn)(void *arg);
};

struct member {
    struct crowd *crowd;
    void *arg;
    pthread_t thread;
};

static void *member_main(void *arg)
{
    struct member *m = arg;

    gate_arrive(&m->crowd->gate);
    gate_wait_open(&m->crowd->gate, PHASE_RUN);
    m->crowd->fn(m->arg);
    gate_arrive(&m->crowd->gate);
    gate_wait_open(&m->crowd->gate, PHASE_END);
    return NULL;
}

static void start_members(struct member *members, unsigned count)
{
    pthread_attr_t attr;

    (void)pthread_attr_init(&attr);
    (void)pthread_attr_setstacksize(&attr, STACK_SIZE);
    for (unsigned i = 0; i < count; i++)
        if (pthread_create(&members[i].thread, &attr, member_main,
                           &members[i]) != 0)
            client_fail("%u threads: the system starts no more than %u; ask for "
                        "fewer",
                        count, i);
    (void)pthread_attr_destroy(&attr);
}

static void await(struct gate *g, unsigned arrivals)
{
    while (!gate_wait_arrived(g, arrivals, AWAIT_MS))
        ;
}

void client_run_threads(unsigned count, void (*fn)(void *arg), void *args,
                        size_t size, struct client_spent *spent)
{
    struct member *members = bench_need(calloc(count, sizeof(*members)));
    struct crowd crowd;

    gate_init(&crowd.gate);
    crowd.fn = fn;
    for (unsigned i = 0; i < count; i++) {
        members[i].crowd = &crowd;
        members[i].arg = (char *)args + i * size;
    }
    start_members(members, count);
    await(&crowd.gate, count);
    spent->cpu_ns = bench_cpu_ns();
    spent->wall_ns = pace_now_ns();
    gate_open(&crowd.gate);
    await(&crowd.gate, 2 * count);
    spent->cpu_ns = bench_cpu_ns() - spent->cpu_ns;
    spent->wall_ns = pace_now_ns() - spent->wall_ns;
    gate_open(&crowd.gate);
    for (unsigned i = 0; i < count; i++)
        (void)pthread_join(members[i].thread, NULL);
    gate_fini(&crowd.gate);
    free(members);
}

/* -- what the process uses -- */

double client_rss_bytes(void)
{
    FILE *f = fopen("/proc/self/statm", "r");
    long pages = 0;

    if (f == NULL || fscanf(f, "%*d %ld", &pages) != 1)
        client_fail("/proc/self/statm cannot be read");
    (void)fclose(f);
    return (double)pages * (double)sysconf(_SC_PAGESIZE);
}

int64_t client_others_sleeps(void)
{
    struct rusage all, mine;

    (void)getrusage(RUSAGE_SELF, &all);
    (void)getrusage(RUSAGE_THREAD, &mine);
    return all.ru_nvcsw - mine.ru_nvcsw;
}

void client_sleep_ms(int64_t ms)
{
    struct timespec t = pace_timespec(pace_now_ns() + ms * 1000000);

    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL) != 0)
        ;
}

void client_print(const struct client_figure *figures, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        (void)printf("%s\"%s\": ", i == 0 ? "{" : ", ", figures[i].name);
        if (isfinite(figures[i].value))
            (void)printf("%.3f", figures[i].value);
        else
            (void)printf("null");
    }
    (void)printf("}\n");
    (void)fflush(stdout);
}
