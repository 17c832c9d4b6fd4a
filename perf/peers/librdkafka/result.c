/* SPDX-License-Identifier: BSD-2-Clause */
/* result.c - the figures for a person, and as the same JSON members that
 * multi_thread_send writes.  The main thread, after the run. */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "perf/peers/librdkafka/run.h"

#define MB (1024.0 * 1024.0)

void result_print(FILE *out, const struct run *run, const struct result *r)
{
    double n = (double)r->measured;

    (void)fprintf(out,
                  "librdkafka %s: %" PRIu64 " records acknowledged, %.0f "
                  "records/sec, CPU %.1f ns per record.\n",
                  rd_kafka_version_str(), r->acked,
                  n * 1e9 / (double)r->used.at_ns, r->used.cpu_ns / n);
    if (r->failed > 0)
        (void)fprintf(stderr, TOOL ": %" PRIu64 " records failed: %s\n",
                      r->failed, run->failure);
    if (r->missing > 0)
        (void)fprintf(stderr,
                      TOOL ": void: %" PRIu64 " records have no report\n",
                      r->missing);
}

/* Not finite or negative: not known. */
static void real(FILE *f, const char *name, double value)
{
    if (isfinite(value) && value >= 0)
        (void)fprintf(f, ",\n  \"%s\": %.3f", name, value);
    else
        (void)fprintf(f, ",\n  \"%s\": null", name);
}

static void number(FILE *f, const char *name, uint64_t value)
{
    (void)fprintf(f, ",\n  \"%s\": %" PRIu64, name, value);
}

static void latencies(FILE *f, const struct latency *l)
{
    static const struct {
        const char *name;
        double share;
    } at[] = {{"p50_us", 0.5},
              {"p95_us", 0.95},
              {"p99_us", 0.99},
              {"p999_us", 0.999}};
    bool any = latency_count(l) > 0;

    number(f, "latency_samples", latency_count(l));
    real(f, "mean_us", any ? latency_mean_ns(l) / 1e3 : -1);
    for (size_t i = 0; i < 4; i++)
        real(f, at[i].name,
             any ? (double)latency_percentile_ns(l, at[i].share) / 1e3 : -1);
    real(f, "max_us", any ? (double)latency_max_ns(l) / 1e3 : -1);
}

static void costs(FILE *f, const struct run *run, const struct result *r)
{
    const struct usage *u = &r->used;
    double n = (double)r->measured, s = (double)u->at_ns / 1e9;

    real(f, "elapsed_s", s);
    real(f, "records_per_s", n / s);
    real(f, "mb_per_s", n * run->payload.mean_size / MB / s);
    real(f, "cpu_ns_per_record", u->cpu_ns / n);
    real(f, "cpu_user_share", u->user_ns / (u->user_ns + u->system_ns));
    number(f, "voluntary_switches", (uint64_t)u->voluntary);
    number(f, "involuntary_switches", (uint64_t)u->involuntary);
    real(f, "rss_mb", u->peak_rss_bytes / MB);
    number(f, "requests", u->requests);
    real(f, "records_per_request",
         u->requests > 0 ? n / (double)u->requests : -1);
}

static void settings(FILE *f, const struct run *run)
{
    const struct options *o = run->o;

    (void)fprintf(f, ",\n  \"settings\": {\n    \"topic\": \"%s\"", o->topic);
    number(f, "num_records", (uint64_t)o->num_records);
    number(f, "warmup_records", (uint64_t)o->warmup_records);
    real(f, "record_size", run->payload.mean_size);
    real(f, "throughput", o->throughput);
    (void)fprintf(f, ",\n  \"key_distribution\": \"%s\"", keys_name(o->keys));
    number(f, "record_key_range", o->key_range);
    number(f, "key_size", o->key_size);
    number(f, "threads", o->threads);
    (void)fprintf(f, ",\n  \"reports\": \"%s\"", reports_name(o->reports));
    number(f, "outstanding", o->outstanding);
    number(f, "latency_sampled_every", run->sample_every);
    (void)fprintf(f, "\n  }");
}

static void all(FILE *f, const struct run *run, const struct result *r)
{
    (void)fprintf(f, "{\n  \"tool\": \"" TOOL "\",\n  \"version\": \"%s\"",
                  rd_kafka_version_str());
    number(f, "acked", r->acked);
    number(f, "failed", r->failed);
    number(f, "refused", r->refused);
    number(f, "missing", r->missing);
    number(f, "measured", r->measured);
    (void)fprintf(f, ",\n  \"interrupted\": false");
    costs(f, run, r);
    latencies(f, &run->measured);
    settings(f, run);
    (void)fprintf(f, "\n}\n");
}

bool result_json(const struct run *run, const struct result *r)
{
    const char *path = run->o->json;
    bool to_stdout = strcmp(path, "-") == 0, ok;
    FILE *f = to_stdout ? stdout : fopen(path, "w");

    if (f == NULL)
        return options_wrong("--json %s: %s", path, strerror(errno));
    all(f, run, r);
    ok = fflush(f) == 0 && ferror(f) == 0;
    if (!to_stdout && fclose(f) != 0)
        ok = false;
    return ok || options_wrong("--json %s: cannot be written", path);
}
