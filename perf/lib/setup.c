/* SPDX-License-Identifier: BSD-2-Clause */
/* setup.c - makes everything a run needs, so that the timed part allocates
 * nothing of ours.  The main thread. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "perf/lib/drive.h"

#define METADATA_STEP_MS 200 /* between two looks for an interruption */
#define SAMPLE_EVERY 64
#define SAMPLES_MIN 2000

static bool complain(const char *what, const kp_error *error)
{
    (void)fprintf(stderr, TOOL ": %s: %s: %s\n", what, kp_err_name(error->err),
                  error->text);
    return false;
}

static bool set(kp_config *config, const char *name, const char *value)
{
    kp_error error;

    return kp_config_set(config, name, value, &error) == KP_OK ||
           complain(name, &error);
}

static bool configure(kp_config *config, const struct options *o)
{
    kp_error error;

    if (!set(config, "client.id", "perf-producer-client"))
        return false;
    if (o->config_file != NULL &&
        kp_config_load(config, o->config_file, &error) != KP_OK)
        return complain(o->config_file, &error);
    for (size_t i = 0; i < o->property_count; i++)
        if (!set(config, o->properties[i].name, o->properties[i].value))
            return false;
    return o->bootstrap == NULL ||
           set(config, "bootstrap.servers", o->bootstrap);
}

static bool no_memory(const char *what)
{
    (void)fprintf(stderr, TOOL ": no memory for %s\n", what);
    return false;
}

/* What the configuration says of waiting for the topic. */
struct waiting {
    int64_t ms; /* max.block.ms */
    char servers[200];
};

static void note_waiting(void *arg, const kp_property *p)
{
    struct waiting *w = arg;
    const char *value = p->value != NULL ? p->value : "";

    if (strcmp(p->name, "max.block.ms") == 0)
        w->ms = strtoll(value, NULL, 10);
    else if (strcmp(p->name, "bootstrap.servers") == 0)
        (void)snprintf(w->servers, sizeof(w->servers), "%s", value);
}

static bool create_producer(struct run *run, struct waiting *w)
{
    kp_config *config;
    kp_error error;
    bool ok;

    if (kp_config_create(&config) != KP_OK)
        return no_memory("the configuration");
    kp_config_on_log(config, KP_LOG_WARN, kp_log_stderr, NULL);
    ok = configure(config, run->o);
    kp_config_properties(config, note_waiting, w);
    if (ok && kp_producer_create(&run->producer, config, &error) != KP_OK)
        ok = complain("the producer cannot start", &error);
    kp_config_destroy(config);
    return ok;
}

/* What is still to be waited before end_ns, a step at most. */
static int64_t step_ms(int64_t end_ns)
{
    int64_t left_ms = (end_ns - pace_now_ns() + 999999) / 1000000;

    return left_ms < 0                  ? 0
           : left_ms < METADATA_STEP_MS ? left_ms
                                        : METADATA_STEP_MS;
}

static bool no_topic(const struct run *run, const struct waiting *w, kp_err err)
{
    kp_error error;

    error.err = err;
    (void)snprintf(error.text, sizeof(error.text), "%s", kp_err_text(err));
    (void)kp_status(run->producer, run->o->topic, &error);
    (void)fprintf(stderr,
                  TOOL ": topic %s at %s: not there after max.block.ms=%lld: "
                       "%s: %s\nCreate the topic, check --bootstrap-server, or "
                       "wait longer: --command-property max.block.ms=MS\n",
                  run->o->topic, w->servers, (long long)w->ms,
                  kp_err_name(error.err), error.text);
    return false;
}

/* Know the topic before the clock runs, and fail early if there is none. */
static bool await_topic(struct run *run, const struct waiting *w)
{
    int64_t now_ns = pace_now_ns(), end_ns = INT64_MAX;
    kp_err err;

    if (w->ms < (INT64_MAX - now_ns) / 1000000)
        end_ns = now_ns + w->ms * 1000000;
    do {
        err = kp_partitions_for(run->producer, run->o->topic, step_ms(end_ns),
                                NULL, NULL, NULL);
    } while ((err == KP_PENDING || err == KP_EMETADATA) && !run_interrupted() &&
             pace_now_ns() < end_ns);
    return err == KP_OK || no_topic(run, w, err);
}

static size_t sample_every(const struct options *o)
{
    double rate = o->throughput / o->threads;
    size_t n = (size_t)(o->num_records / SAMPLES_MIN);

    if (o->paced || n < 1)
        return 1;
    if (n > SAMPLE_EVERY)
        n = SAMPLE_EVERY;
    /* A thread looks at its schedule once in a chunk: at least every ms. */
    if (o->throughput > 0 && (double)n > rate / 1000)
        n = rate < 1000 ? 1 : (size_t)(rate / 1000);
    return n;
}

/* The index-th part when `total` is split among `threads`. */
static int64_t part(int64_t total, unsigned threads, unsigned index)
{
    return total / threads + (index < (unsigned)(total % threads));
}

static void init_record(struct worker *w, kp_record *r)
{
    struct run *run = w->run;

    memset(r, 0, sizeof(*r));
    r->topic = run->o->topic;
    r->topic_size = strlen(run->o->topic);
    r->queue = w->queue != NULL ? w->queue : run->queue;
    r->on_delivery = reports_callback(run);
    r->tag = reports_tag(run, w->index, 0);
}

static bool create_queue(kp_cq **out)
{
    kp_error error;

    return kp_cq_create(out, &error) == KP_OK ||
           complain("no completion queue", &error);
}

static bool init_records(struct worker *w)
{
    const struct options *o = w->run->o;
    const struct payload *p = w->run->payload;

    if (o->reports == REPORTS_QUEUE && o->outstanding != 0 &&
        !create_queue(&w->queue))
        return false;
    init_record(w, &w->record);
    /* Threads begin at different places of the tables. */
    w->values_end = p->values + p->value_count;
    w->value = p->values + p->value_count * w->index / o->threads;
    if (p->keys != NULL) {
        w->keys_end = p->keys + p->key_count;
        w->key = p->keys + p->key_count * w->index / o->threads;
    }
    w->chunk = w->run->sample_every;
    if (o->send_many == 0)
        return true;
    if (w->chunk > 1 || o->throughput <= 0)
        w->chunk = o->send_many;
    w->records = calloc(o->send_many, sizeof(*w->records));
    for (size_t i = 0; w->records != NULL && i < o->send_many; i++)
        init_record(w, &w->records[i]);
    return w->records != NULL || no_memory("--send-many; ask for fewer");
}

static bool init_worker(struct run *run, unsigned index)
{
    const struct options *o = run->o;
    struct worker *w = &run->workers[index];
    int64_t measured = o->num_records - o->warmup_records;

    w->run = run;
    w->index = index;
    w->warm_up_count = part(o->warmup_records, o->threads, index);
    w->measured_count = part(measured, o->threads, index);
    if (!rounds_init(w))
        return no_memory("--outstanding; ask for fewer");
    return init_records(w);
}

bool run_init(struct run *run, const struct options *o,
              const struct payload *payload)
{
    struct waiting waiting = {.servers = ""};

    memset(run, 0, sizeof(*run));
    run->o = o;
    run->payload = payload;
    run->sample_every = sample_every(o);
    run->epoch_ns = pace_now_ns();
    run->gated = o->outstanding != 0;
    run->worker_count = o->threads;
    atomic_init(&run->poll_until, UINT64_MAX);
    atomic_init(&run->latency, &run->warm_up);
    gate_init(&run->gate);
    complaint_init(&run->refusal);
    complaint_init(&run->failure);
    reports_begin(run);
    if (!create_producer(run, &waiting))
        return false;
    run->workers = aligned_alloc(LINE_SIZE, o->threads * sizeof(*run->workers));
    if (run->workers == NULL)
        return no_memory("--threads; ask for fewer");
    memset(run->workers, 0, o->threads * sizeof(*run->workers));
    if (o->reports == REPORTS_QUEUE && o->outstanding == 0 &&
        !create_queue(&run->queue))
        return false;
    for (unsigned i = 0; i < o->threads; i++)
        if (!init_worker(run, i))
            return false;
    return await_topic(run, &waiting);
}

void run_fini(struct run *run)
{
    (void)kp_producer_destroy(run->producer);
    for (unsigned i = 0; run->workers != NULL && i < run->worker_count; i++) {
        struct worker *w = &run->workers[i];

        if (w->run == NULL)
            continue;
        rounds_fini(w);
        kp_cq_destroy(w->queue);
        free(w->records);
    }
    kp_cq_destroy(run->queue);
    free(run->workers);
    complaint_fini(&run->refusal);
    complaint_fini(&run->failure);
    gate_fini(&run->gate);
}
