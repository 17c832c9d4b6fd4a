/* SPDX-License-Identifier: BSD-2-Clause */
/* output.c - lines as kafka-producer-perf-test prints them, and below them what
 * it does not measure.  The main thread. */
#include "perf/lib/output.h"

#include <inttypes.h>

#define MB (1024.0 * 1024.0)
#define NS_PER_SEC 1e9
#define NS_PER_MS 1e6
#define NS_PER_US 1e3

/* Records done so far, as far as this run's threads can know. */
static uint64_t done_so_far(const struct run *run)
{
    uint64_t taken, refused;
    struct tally sum;

    reports_totals(run, &taken, &refused, &sum);
    /* Without reports nobody knows more than that they were taken. */
    return run->o->reports == REPORTS_NONE ? taken : counter_get(&sum.acked);
}

static double per_second(double count, double seconds)
{
    return seconds > 0 ? count / seconds : 0;
}

static double share(double a, double b)
{
    return b > 0 ? a / b : 0;
}

void progress_start(struct progress *p, FILE *out)
{
    p->out = out;
    p->window_start_ns = pace_now_ns();
    p->count = 0;
    p->samples = 0;
    p->sum_ns = 0;
}

static uint64_t larger(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

void progress_tick(struct progress *p, struct run *run)
{
    int64_t now = pace_now_ns(), elapsed_ns = now - p->window_start_ns;
    struct latency *a = &run->warm_up, *b = &run->measured;
    uint64_t count, samples, sum_ns, max_ns;
    double seconds = (double)elapsed_ns / NS_PER_SEC, rate;

    if (elapsed_ns < run->o->interval_ms * INT64_C(1000000))
        return;
    count = done_so_far(run);
    samples = latency_count(a) + latency_count(b);
    sum_ns = latency_sum_ns(a) + latency_sum_ns(b);
    max_ns = larger(latency_take_window_max(a), latency_take_window_max(b));
    rate = per_second((double)(count - p->count), seconds);
    (void)fprintf(
        p->out,
        "%" PRIu64 " records sent, %.1f records/sec (%.2f MB/sec), "
        "%.1f ms avg latency, %.1f ms max latency.\n",
        count - p->count, rate, rate * run->payload->mean_size / MB,
        share((double)(sum_ns - p->sum_ns), (double)(samples - p->samples)) /
            NS_PER_MS,
        (double)max_ns / NS_PER_MS);
    (void)fflush(p->out);
    p->window_start_ns = now;
    p->count = count;
    p->samples = samples;
    p->sum_ns = sum_ns;
}

static long long ms_at(const struct latency *l, double at)
{
    int64_t ns = latency_percentile_ns(l, at);

    return ns < 0 ? 0 : (long long)((double)ns / NS_PER_MS);
}

static void total_line(FILE *out, const struct run *run, uint64_t count,
                       const char *what, double seconds,
                       const struct latency *l)
{
    double rate = per_second((double)count, seconds);
    double mean_ns = latency_count(l) > 0 ? latency_mean_ns(l) : 0;

    (void)fprintf(out,
                  "%" PRIu64 "%s records sent, %f records/sec (%.2f MB/sec), "
                  "%.2f ms avg latency, %.2f ms max latency, %lld ms 50th, "
                  "%lld ms 95th, %lld ms 99th, %lld ms 99.9th.\n",
                  count, what, rate, rate * run->payload->mean_size / MB,
                  mean_ns / NS_PER_MS, (double)latency_max_ns(l) / NS_PER_MS,
                  ms_at(l, 0.5), ms_at(l, 0.95), ms_at(l, 0.99),
                  ms_at(l, 0.999));
}

static void latency_line(FILE *out, const struct latency *l)
{
    if (latency_count(l) == 0)
        return;
    (void)fprintf(out,
                  "Latency of %" PRIu64 " records: %.0f us 50th, %.0f us 95th, "
                  "%.0f us 99th, %.0f us 99.9th.\n",
                  latency_count(l),
                  (double)latency_percentile_ns(l, 0.5) / NS_PER_US,
                  (double)latency_percentile_ns(l, 0.95) / NS_PER_US,
                  (double)latency_percentile_ns(l, 0.99) / NS_PER_US,
                  (double)latency_percentile_ns(l, 0.999) / NS_PER_US);
}

static void cost_lines(FILE *out, const struct outcome *r)
{
    const struct figures *u = &r->used;
    double n = (double)r->measured;

    (void)fprintf(
        out, "CPU %.1f ns per record (%.0f %% user, %.0f %% system).\n",
        share(u->cpu_ns, n), 100 * share(u->user_ns, u->user_ns + u->system_ns),
        100 * share(u->system_ns, u->user_ns + u->system_ns));
    (void)fprintf(out,
                  "Voluntary context switches %" PRId64 ", involuntary "
                  "%" PRId64 ".\n",
                  u->voluntary, u->involuntary);
    (void)fprintf(out, "Peak memory (RSS) %.1f MB.\n", u->peak_rss_bytes / MB);
    if (u->requests >= 0)
        (void)fprintf(out, "Requests %.0f, %.1f records per request.\n",
                      u->requests, share(n, u->requests));
}

void output_summary(FILE *out, struct run *run, const struct outcome *r)
{
    if (r->interrupted)
        (void)fprintf(out, "Interrupted.\n");
    total_line(out, run, r->acked, "", r->whole_s, r->all);
    if (run->o->warmup_records > 0)
        total_line(out, run, r->measured, " steady state",
                   (double)r->used.at_ns / NS_PER_SEC, &run->measured);
    latency_line(out, &run->measured);
    cost_lines(out, r);
    (void)fflush(out);
}

void output_complaints(const struct run *run, const struct outcome *r)
{
    uint64_t missing = r->asked - r->acked - r->failed - r->refused;

    if (r->failed > 0)
        (void)fprintf(stderr, TOOL ": %" PRIu64 " records failed%s%s\n",
                      r->failed, run->failure.text[0] != '\0' ? ": " : "",
                      run->failure.text);
    if (r->refused > 0)
        (void)fprintf(stderr, TOOL ": %" PRIu64 " records were not taken%s%s\n",
                      r->refused, run->refusal.text[0] != '\0' ? ": " : "",
                      run->refusal.text);
    if (missing > 0)
        (void)fprintf(stderr,
                      TOOL ": %" PRIu64 " of %" PRIu64 " records were "
                           "not sent\n",
                      missing, r->asked);
}
