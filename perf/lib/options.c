/* SPDX-License-Identifier: BSD-2-Clause */
/* options.c - reads the command line of multi_thread_send.  The main thread,
 * before anything else runs. */
#include "perf/lib/options.h"

#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    OPT_BOOTSTRAP = 256,
    OPT_TOPIC,
    OPT_NUM_RECORDS,
    OPT_RECORD_SIZE,
    OPT_PAYLOAD_FILE,
    OPT_PAYLOAD_DELIMITER,
    OPT_THROUGHPUT,
    OPT_WARMUP,
    OPT_PROPERTY,
    OPT_CONFIG,
    OPT_PRINT_METRICS,
    OPT_INTERVAL,
    OPT_KEY_RANGE,
    OPT_KEYS,
    OPT_SEED,
    OPT_THREADS,
    OPT_REPORTS,
    OPT_OUTSTANDING,
    OPT_KEY_SIZE,
    OPT_PACED,
    OPT_SEND_MANY,
    OPT_JSON,
    OPT_HELP
};

static const struct option table[] = {
    {"bootstrap-server", required_argument, NULL, OPT_BOOTSTRAP},
    {"topic", required_argument, NULL, OPT_TOPIC},
    {"num-records", required_argument, NULL, OPT_NUM_RECORDS},
    {"record-size", required_argument, NULL, OPT_RECORD_SIZE},
    {"payload-file", required_argument, NULL, OPT_PAYLOAD_FILE},
    {"payload-delimiter", required_argument, NULL, OPT_PAYLOAD_DELIMITER},
    {"throughput", required_argument, NULL, OPT_THROUGHPUT},
    {"warmup-records", required_argument, NULL, OPT_WARMUP},
    {"command-property", required_argument, NULL, OPT_PROPERTY},
    {"producer-props", required_argument, NULL, OPT_PROPERTY},
    {"command-config", required_argument, NULL, OPT_CONFIG},
    {"producer.config", required_argument, NULL, OPT_CONFIG},
    {"print-metrics", no_argument, NULL, OPT_PRINT_METRICS},
    {"reporting-interval", required_argument, NULL, OPT_INTERVAL},
    {"record-key-range", required_argument, NULL, OPT_KEY_RANGE},
    {"key-distribution", required_argument, NULL, OPT_KEYS},
    {"random-seed", required_argument, NULL, OPT_SEED},
    {"threads", required_argument, NULL, OPT_THREADS},
    {"reports", required_argument, NULL, OPT_REPORTS},
    {"outstanding", required_argument, NULL, OPT_OUTSTANDING},
    {"key-size", required_argument, NULL, OPT_KEY_SIZE},
    {"paced", no_argument, NULL, OPT_PACED},
    {"send-many", required_argument, NULL, OPT_SEND_MANY},
    {"json", required_argument, NULL, OPT_JSON},
    {"help", no_argument, NULL, OPT_HELP},
    {NULL, 0, NULL, 0},
};

/* An option whose value is a whole number. */
struct number {
    int id;
    int64_t min, max;
    const char *what;
};

#define BYTES_MAX (INT64_C(1) << 30)

static const struct number numbers[] = {
    {OPT_NUM_RECORDS, 1, INT64_MAX / 2, "how many records to send"},
    {OPT_RECORD_SIZE, 1, BYTES_MAX, "bytes of a record's value"},
    {OPT_WARMUP, 0, INT64_MAX / 2,
     "how many of the records come first, "
     "unmeasured"},
    {OPT_INTERVAL, 1, INT64_C(86400000), "milliseconds between two lines"},
    {OPT_KEY_RANGE, 1, INT64_C(1) << 24, "how many different keys"},
    {OPT_SEED, INT64_MIN, INT64_MAX, "any number"},
    {OPT_THREADS, 1, THREADS_MAX, "how many threads send"},
    {OPT_OUTSTANDING, 1, INT64_C(1) << 26,
     "records to send before waiting "
     "for all their reports"},
    {OPT_KEY_SIZE, 1, INT64_C(1) << 16, "bytes of a key"},
    {OPT_SEND_MANY, 1, INT64_C(1) << 16, "records in one call"},
};

static const char *name_of(int id)
{
    for (const struct option *o = table; o->name != NULL; o++)
        if (o->val == id)
            return o->name;
    return "?";
}

static bool parse_number(int id, const char *text, int64_t *out)
{
    const struct number *n = numbers;
    char *end;
    long long v;

    while (n->id != id)
        n++;
    errno = 0;
    v = strtoll(text, &end, 10);
    if (errno != 0 || end == text || *end != '\0' || v < n->min || v > n->max)
        return options_wrong(
            "--%s %s: give a whole number from %lld to %lld: %s", name_of(id),
            text, (long long)n->min, (long long)n->max, n->what);
    *out = v;
    return true;
}

static bool parse_size(int id, const char *text, size_t *out)
{
    int64_t v;

    if (!parse_number(id, text, &v))
        return false;
    *out = (size_t)v;
    return true;
}

static bool parse_threads(const char *text, unsigned *out)
{
    int64_t v;

    if (!parse_number(OPT_THREADS, text, &v))
        return false;
    *out = (unsigned)v;
    return true;
}

static bool parse_seed(const char *text, uint64_t *out)
{
    int64_t v;

    if (!parse_number(OPT_SEED, text, &v))
        return false;
    *out = (uint64_t)v;
    return true;
}

static bool parse_throughput(const char *text, double *out)
{
    char *end;
    double v = strtod(text, &end);

    if (end == text || *end != '\0' || !isfinite(v))
        return options_wrong(
            "--throughput %s: give records per second, or -1 for as "
            "fast as it goes",
            text);
    *out = v;
    return true;
}

static const char *const reports_names[] = {"future", "callback", "queue",
                                            "none"};
static const char *const keys_names[] = {"none", "range", "random"};

const char *reports_name(enum reports r)
{
    return reports_names[r];
}

const char *keys_name(enum keys k)
{
    return keys_names[k];
}

static int find_name(const char *const *names, int count, const char *text)
{
    for (int i = 0; i < count; i++)
        if (strcmp(names[i], text) == 0)
            return i;
    return -1;
}

static bool parse_reports(const char *text, enum reports *out)
{
    int i = find_name(reports_names, 4, text);

    if (i < 0)
        return options_wrong(
            "--reports %s: give future, callback, queue or none", text);
    *out = (enum reports)i;
    return true;
}

static bool parse_keys(const char *text, enum keys *out)
{
    int i = find_name(keys_names, 3, text);

    if (i < 0)
        return options_wrong(
            "--key-distribution %s: give none, range or random", text);
    *out = (enum keys)i;
    return true;
}

static bool add_property(struct options *o, const char *text)
{
    const char *eq = strchr(text, '=');
    struct property *p = &o->properties[o->property_count];

    if (eq == NULL || eq == text)
        return options_wrong(
            "--command-property %s: write it as name=value, for "
            "example linger.ms=5",
            text);
    if (o->property_count == PROPERTIES_MAX)
        return options_wrong(
            "--command-property %s: more than %d of them; put them "
            "into a file for --command-config",
            text, PROPERTIES_MAX);
    p->name = strndup(text, (size_t)(eq - text));
    if (p->name == NULL)
        return options_wrong("no memory for the options");
    p->value = eq + 1;
    o->property_count++;
    return true;
}

static bool set_workload(struct options *o, int id, const char *v)
{
    switch (id) {
    case OPT_NUM_RECORDS:
        return parse_number(id, v, &o->num_records);
    case OPT_RECORD_SIZE:
        return parse_size(id, v, &o->record_size);
    case OPT_PAYLOAD_FILE:
        o->payload_file = v;
        return true;
    case OPT_PAYLOAD_DELIMITER:
        o->payload_delimiter = v;
        return true;
    case OPT_THROUGHPUT:
        return parse_throughput(v, &o->throughput);
    case OPT_WARMUP:
        return parse_number(id, v, &o->warmup_records);
    case OPT_KEY_RANGE:
        return parse_size(id, v, &o->key_range);
    case OPT_KEYS:
        return parse_keys(v, &o->keys);
    case OPT_KEY_SIZE:
        return parse_size(id, v, &o->key_size);
    default:
        return parse_seed(v, &o->seed);
    }
}

static bool set_harness(struct options *o, int id, const char *v)
{
    switch (id) {
    case OPT_INTERVAL:
        return parse_number(id, v, &o->interval_ms);
    case OPT_THREADS:
        return parse_threads(v, &o->threads);
    case OPT_REPORTS:
        return parse_reports(v, &o->reports);
    case OPT_OUTSTANDING:
        return parse_size(id, v, &o->outstanding);
    case OPT_SEND_MANY:
        return parse_size(id, v, &o->send_many);
    case OPT_JSON:
        o->json = v;
        return true;
    case OPT_PACED:
        o->paced = true;
        return true;
    case OPT_PRINT_METRICS:
        o->print_metrics = true;
        return true;
    default:
        return set_workload(o, id, v);
    }
}

static bool set(struct options *o, int id, const char *v)
{
    switch (id) {
    case OPT_BOOTSTRAP:
        o->bootstrap = v;
        return true;
    case OPT_TOPIC:
        o->topic = v;
        return true;
    case OPT_PROPERTY:
        return add_property(o, v);
    case OPT_CONFIG:
        o->config_file = v;
        return true;
    default:
        return set_harness(o, id, v);
    }
}

static bool unknown(int argc, char **argv)
{
    const char *arg = optind > 0 && optind <= argc ? argv[optind - 1] : "?";

    return options_wrong(
        "%s: no such option, or more than one begins like that; "
        "--help lists them",
        arg);
}

static bool no_value(char **argv)
{
    return options_wrong("%s: a value is missing; --help says which",
                         argv[optind - 1]);
}

static enum parsed read_all(struct options *o, int argc, char **argv)
{
    int last = 0, id;

    opterr = 0;
    /* '-': words that are no options come in their place, so that several
     * properties can follow one --command-property; ':': a missing value is
     * told from an unknown option. */
    while ((id = getopt_long(argc, argv, "-:h", table, NULL)) != -1) {
        bool ok;

        if (id == 'h' || id == OPT_HELP)
            return PARSED_HELP;
        if (id == '?')
            ok = unknown(argc, argv);
        else if (id == ':')
            ok = no_value(argv);
        else if (id == 1 && last == OPT_PROPERTY)
            ok = add_property(o, optarg);
        else if (id == 1)
            ok = options_wrong("%s: not an option; options begin with --",
                               optarg);
        else
            ok = set(o, last = id, optarg);
        if (!ok)
            return PARSED_WRONG;
    }
    return options_check(o) ? PARSED_RUN : PARSED_WRONG;
}

enum parsed options_parse(struct options *o, int argc, char **argv)
{
    memset(o, 0, sizeof(*o));
    o->payload_delimiter = "\\n";
    o->throughput = -1;
    o->interval_ms = 5000;
    o->threads = 1;
    o->reports = REPORTS_CALLBACK;
    if (argc < 2)
        return PARSED_HELP;
    return read_all(o, argc, argv);
}

void options_free(struct options *o)
{
    for (size_t i = 0; i < o->property_count; i++)
        free(o->properties[i].name);
    o->property_count = 0;
}
