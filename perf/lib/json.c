/* SPDX-License-Identifier: BSD-2-Clause */
/* json.c - results and settings as one JSON object, a member a line.  The main
 * thread. */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>
#include <strings.h>

#include "perf/lib/output.h"

#define MB (1024.0 * 1024.0)

struct json {
    FILE *f;
    int depth;
    bool first; /* of its object */
};

static void text(FILE *f, const char *s)
{
    (void)fputc('"', f);
    for (; *s != '\0'; s++) {
        unsigned char c = (unsigned char)*s;

        if (c == '"' || c == '\\')
            (void)fprintf(f, "\\%c", c);
        else if (c < 0x20)
            (void)fprintf(f, "\\u%04x", c);
        else
            (void)fputc(c, f);
    }
    (void)fputc('"', f);
}

static void key(struct json *j, const char *name)
{
    (void)fprintf(j->f, "%s\n%*s", j->first ? "" : ",", 2 * j->depth, "");
    text(j->f, name);
    (void)fputs(": ", j->f);
    j->first = false;
}

static void put_text(struct json *j, const char *name, const char *value)
{
    key(j, name);
    if (value != NULL)
        text(j->f, value);
    else
        (void)fputs("null", j->f);
}

static void put_count(struct json *j, const char *name, uint64_t value)
{
    key(j, name);
    (void)fprintf(j->f, "%" PRIu64, value);
}

/* Negative or not finite: null, which is to say "not known". */
static void put_real(struct json *j, const char *name, double value)
{
    key(j, name);
    if (isfinite(value) && value >= 0)
        (void)fprintf(j->f, "%.3f", value);
    else
        (void)fputs("null", j->f);
}

static void put_bool(struct json *j, const char *name, bool value)
{
    key(j, name);
    (void)fputs(value ? "true" : "false", j->f);
}

static void open_object(struct json *j, const char *name)
{
    if (name != NULL)
        key(j, name);
    (void)fputc('{', j->f);
    j->depth++;
    j->first = true;
}

static void close_object(struct json *j)
{
    j->depth--;
    (void)fprintf(j->f, "\n%*s}", 2 * j->depth, "");
    j->first = false;
}

static double us_at(const struct latency *l, double at)
{
    int64_t ns = latency_percentile_ns(l, at);

    return ns < 0 ? -1 : (double)ns / 1e3;
}

static void put_latency(struct json *j, const struct latency *l)
{
    bool any = latency_count(l) > 0;

    put_count(j, "latency_samples", latency_count(l));
    put_real(j, "mean_us", any ? latency_mean_ns(l) / 1e3 : -1);
    put_real(j, "p50_us", us_at(l, 0.5));
    put_real(j, "p95_us", us_at(l, 0.95));
    put_real(j, "p99_us", us_at(l, 0.99));
    put_real(j, "p999_us", us_at(l, 0.999));
    put_real(j, "max_us", any ? (double)latency_max_ns(l) / 1e3 : -1);
}

static void put_costs(struct json *j, const struct run *run,
                      const struct outcome *r)
{
    const struct figures *u = &r->used;
    double n = r->measured > 0 ? (double)r->measured : NAN;
    double s = (double)u->at_ns / 1e9;
    double both = u->user_ns + u->system_ns;

    put_real(j, "elapsed_s", s);
    put_real(j, "records_per_s", s > 0 ? (double)r->measured / s : 0);
    put_real(j, "mb_per_s",
             s > 0 ? (double)r->measured * run->payload->mean_size / MB / s
                   : 0);
    put_real(j, "cpu_ns_per_record", u->cpu_ns / n);
    put_real(j, "cpu_user_share", both > 0 ? u->user_ns / both : -1);
    put_count(j, "voluntary_switches", (uint64_t)u->voluntary);
    put_count(j, "involuntary_switches", (uint64_t)u->involuntary);
    put_real(j, "rss_mb", u->peak_rss_bytes / MB);
    put_real(j, "requests", u->requests);
    put_real(j, "records_per_request", u->requests > 0 ? n / u->requests : -1);
}

/* Properties whose value must not be printed. */
static bool is_secret(const char *name)
{
    return strcasestr(name, "password") != NULL ||
           strcasestr(name, "secret") != NULL ||
           strcasestr(name, "jaas") != NULL ||
           strcasestr(name, "ssl.key") != NULL ||
           strcasestr(name, "keystore.key") != NULL;
}

static void put_properties(struct json *j, const struct options *o)
{
    open_object(j, "properties");
    for (size_t i = 0; i < o->property_count; i++) {
        const struct property *p = &o->properties[i];

        put_text(j, p->name, is_secret(p->name) ? "********" : p->value);
    }
    close_object(j);
}

static void put_settings(struct json *j, const struct run *run)
{
    const struct options *o = run->o;

    open_object(j, "settings");
    put_text(j, "bootstrap_server", o->bootstrap);
    put_text(j, "topic", o->topic);
    put_count(j, "num_records", (uint64_t)o->num_records);
    put_count(j, "warmup_records", (uint64_t)o->warmup_records);
    put_real(j, "record_size", run->payload->mean_size);
    put_text(j, "payload_file", o->payload_file);
    put_real(j, "throughput", o->throughput); /* null: no limit */
    put_bool(j, "paced", o->paced);
    put_text(j, "key_distribution", keys_name(o->keys));
    put_count(j, "record_key_range", o->key_range);
    put_count(j, "key_size", o->key_size);
    put_count(j, "random_seed", o->seed);
    put_count(j, "threads", o->threads);
    put_text(j, "reports", reports_name(o->reports));
    put_count(j, "outstanding", o->outstanding);
    put_count(j, "send_many", o->send_many);
    put_count(j, "latency_sampled_every", run->sample_every);
    put_text(j, "command_config", o->config_file);
    put_properties(j, o);
    close_object(j);
}

static void put_all(FILE *f, const struct run *run, const struct outcome *r)
{
    struct json j = {f, 0, true};

    open_object(&j, NULL);
    put_text(&j, "tool", TOOL);
    put_text(&j, "version", kp_version());
    put_text(&j, "features", kp_features());
    put_count(&j, "acked", r->acked);
    put_count(&j, "failed", r->failed);
    put_count(&j, "refused", r->refused);
    put_count(&j, "measured", r->measured);
    put_bool(&j, "interrupted", r->interrupted);
    put_costs(&j, run, r);
    put_latency(&j, &run->measured);
    put_settings(&j, run);
    close_object(&j);
    (void)fputc('\n', f);
}

bool output_json(const struct run *run, const struct outcome *r)
{
    const char *path = run->o->json;
    bool to_stdout = strcmp(path, "-") == 0;
    FILE *f = to_stdout ? stdout : fopen(path, "w");
    bool ok;

    if (f == NULL) {
        (void)fprintf(stderr, TOOL ": --json %s: %s\n", path, strerror(errno));
        return false;
    }
    put_all(f, run, r);
    ok = fflush(f) == 0 && ferror(f) == 0;
    if (!to_stdout && fclose(f) != 0)
        ok = false;
    if (!ok)
        (void)fprintf(stderr, TOOL ": --json %s: cannot be written: %s\n", path,
                      strerror(errno));
    return ok;
}
