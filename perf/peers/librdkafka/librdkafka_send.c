/* SPDX-License-Identifier: BSD-2-Clause */
/* librdkafka_send.c - what multi_thread_send does, through librdkafka: the same
 * options, payloads and figures.  The main thread. */
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "perf/peers/librdkafka/run.h"

#define EXIT_SETUP 2

static double ns_of(struct timeval t)
{
    return (double)t.tv_sec * 1e9 + (double)t.tv_usec * 1e3;
}

void usage_take(struct usage *u, const struct run *run)
{
    struct rusage r;
    struct timespec t;

    (void)getrusage(RUSAGE_SELF, &r);
    u->user_ns = ns_of(r.ru_utime);
    u->system_ns = ns_of(r.ru_stime);
    u->voluntary = r.ru_nvcsw;
    u->involuntary = r.ru_nivcsw;
    u->peak_rss_bytes = (double)r.ru_maxrss * 1024;
    u->requests = atomic_load(&run->requests);
    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    u->cpu_ns = (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
    u->at_ns = pace_now_ns();
}

void usage_between(struct usage *d, const struct usage *from,
                   const struct usage *to)
{
    d->at_ns = to->at_ns - from->at_ns;
    d->cpu_ns = to->cpu_ns - from->cpu_ns;
    d->user_ns = to->user_ns - from->user_ns;
    d->system_ns = to->system_ns - from->system_ns;
    d->voluntary = to->voluntary - from->voluntary;
    d->involuntary = to->involuntary - from->involuntary;
    d->requests = to->requests - from->requests;
    d->peak_rss_bytes = to->peak_rss_bytes;
}

static bool phases(struct run *run, struct result *r)
{
    const struct options *o = run->o;
    struct usage begin, end;
    uint64_t warm_acked, unused;

    if (o->warmup_records > 0 &&
        !phase_run(run, o->warmup_records, &run->warm_up))
        return false;
    phase_totals(run, &warm_acked, &unused, &unused);
    usage_take(&begin, run);
    if (!phase_run(run, o->num_records - o->warmup_records, &run->measured))
        return false;
    usage_take(&end, run);
    usage_between(&r->used, &begin, &end);
    phase_totals(run, &r->acked, &r->failed, &r->refused);
    r->measured = r->acked - warm_acked;
    r->missing = (uint64_t)o->num_records - r->acked - r->failed - r->refused;
    return true;
}

/* 0 only if every record was acknowledged. */
static int measure(struct run *run)
{
    struct result r;
    bool to_stdout = run->o->json != NULL && strcmp(run->o->json, "-") == 0, ok;

    memset(&r, 0, sizeof(r));
    if (!phases(run, &r)) {
        (void)fprintf(stderr, TOOL ": --threads %u: not so many\n",
                      run->o->threads);
        return EXIT_SETUP;
    }
    result_print(to_stdout ? stderr : stdout, run, &r);
    ok = run->o->json == NULL || result_json(run, &r);
    return ok && r.acked == (uint64_t)run->o->num_records ? EXIT_SUCCESS
                                                          : EXIT_FAILURE;
}

/* The header and the library may be of different versions, as long as the
 * library is not the older one. */
static bool versions_fit(void)
{
    if (rd_kafka_version() >= RD_KAFKA_VERSION &&
        rd_kafka_version() >> 24 == RD_KAFKA_VERSION >> 24)
        return true;
    (void)fprintf(stderr,
                  TOOL ": compiled with a header of %#x, which does not go "
                       "with librdkafka %s\n",
                  RD_KAFKA_VERSION, rd_kafka_version_str());
    return false;
}

static bool does(const struct options *o)
{
    if (o->send_many != 0 || o->config_file != NULL || o->print_metrics)
        return options_wrong("--send-many, --command-config and "
                             "--print-metrics are multi_thread_send's alone");
    if (o->reports != REPORTS_CALLBACK && o->reports != REPORTS_FUTURE)
        return options_wrong("--reports %s: give callback or future",
                             reports_name(o->reports));
    if (o->reports == REPORTS_FUTURE && o->outstanding == 0)
        return options_wrong("--reports future needs --outstanding");
    return true;
}

int main(int argc, char **argv)
{
    static struct run run;
    struct options options;
    enum parsed parsed = options_parse(&options, argc, argv);
    int status = EXIT_SETUP;

    if (parsed == PARSED_HELP) {
        (void)puts("usage: " TOOL " [options of multi_thread_send, but for "
                   "--send-many,\n    --command-config and "
                   "--print-metrics]");
        status = EXIT_SUCCESS;
    }
    if (parsed == PARSED_RUN && does(&options) && versions_fit()) {
        if (setup(&run, &options))
            status = measure(&run);
        teardown(&run);
    }
    options_free(&options);
    return status;
}
