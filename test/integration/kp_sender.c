/* SPDX-License-Identifier: BSD-2-Clause */
/* kp_sender - sends numbered records and keeps a journal of what was said.
 *
 * Uses nothing but the public API.  Each sending thread is a lane of the
 * journal; reports come by future, callback or queue.  SIGTERM and SIGINT end
 * the sending, not the program: what was taken is delivered, reported and
 * counted.  Exit 0: each record taken had exactly one report; whether they
 * told the truth is for verify to say. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include "test/integration/sender/clock.h"
#include "test/integration/sender/options.h"
#include "test/integration/sender/summary.h"

static void stop(int signal_number)
{
    (void)signal_number;
    load_stopped = true;
}

static void on_signals(void)
{
    struct sigaction a = {.sa_handler = stop};
    sigaction(SIGTERM, &a, NULL);
    sigaction(SIGINT, &a, NULL);
}

static int32_t acks_of(const struct options *o)
{
    const char *acks = options_property(o, "acks", "all");
    return strcmp(acks, "all") == 0 ? -1 : (int32_t)strtol(acks, NULL, 10);
}

static int32_t codec_of(const struct options *o)
{
    static const char *const names[] = {"none", "gzip", "snappy", "lz4",
                                        "zstd"};
    const char *codec = options_property(o, "compression.type", "none");
    int32_t i = 0;
    while (i < 5 && strcmp(codec, names[i]) != 0)
        i++;
    return i;
}

static int64_t property_ns(const struct options *o, const char *name,
                           const char *fallback)
{
    const char *ms = options_property(o, name, fallback);
    return (int64_t)strtoll(ms, NULL, 10) * NS_PER_MS;
}

static enum partition_rule rule_of(const struct options *o)
{
    const struct load *l = &o->load;
    if (l->fixed >= 0 || l->partitions != 0)
        return RULE_EXPLICIT;
    return o->form == FORM_NO_KEY ? RULE_NONE : RULE_KEYED;
}

static void make_journal(struct options *o, struct journal *j)
{
    if (!journal_create(j, o->journal_path, o->threads, o->load.records)) {
        fprintf(stderr, "%s: %s\n", o->journal_path, strerror(errno));
        exit(2);
    }
    j->head->delivery_timeout_ns =
        property_ns(o, "delivery.timeout.ms", "120000");
    j->head->max_block_ns =
        o->load.flags != 0 ? 0 : property_ns(o, "max.block.ms", "60000");
    for (uint32_t i = 0; i < o->threads; i++) {
        struct lane *lane = &j->lanes[i];
        snprintf(lane->label, sizeof lane->label, "%s thread %u", o->load.run,
                 (unsigned)i);
        lane->acks = acks_of(o);
        lane->codec = codec_of(o);
        lane->rule = (int32_t)rule_of(o);
    }
    o->load.journal = j;
}

static void make_producer(struct options *o)
{
    kp_error error = {0};
    if (o->log)
        kp_config_on_log(o->config, KP_LOG_DEBUG, kp_log_stderr, NULL);
    if (kp_producer_create(&o->load.producer, o->config, &error) != KP_OK) {
        fprintf(stderr, "kp_producer_create: %s\n", error.text);
        exit(2);
    }
    kp_config_destroy(o->config);
    if (o->load.kind == REPORT_QUEUE && !poller_start(&o->load.poller)) {
        fprintf(stderr, "no completion queue\n");
        exit(2);
    }
}

static bool send_all(struct options *o)
{
    struct load_lane *lanes = calloc(o->threads, sizeof *lanes);
    if (lanes == NULL)
        return false;
    for (uint32_t i = 0; i < o->threads; i++) {
        lanes[i].load = &o->load;
        lanes[i].lane = i;
        lanes[i].form = o->form;
    }
    if (o->seconds > 0)
        o->load.end_ns =
            monotonic_ns() + (int64_t)(o->seconds * (double)NS_PER_S);
    bool ok = load_run(&o->load, lanes, o->threads);
    free(lanes);
    return ok;
}

/* Everything is watched, so neither call has a failure to return. */
static bool finish(struct options *o)
{
    kp_error error = {0};
    kp_err flushed = kp_flush(o->load.producer, o->close_ms, &error);
    kp_err closed = kp_close(o->load.producer, o->close_ms, &error);
    if (o->load.kind == REPORT_QUEUE)
        poller_stop(&o->load.poller);
    kp_err freed = kp_producer_destroy(o->load.producer);
    printf("flush %s close %s\n", kp_err_name(flushed), kp_err_name(closed));
    return flushed == KP_OK && closed == KP_OK && freed == KP_OK;
}

int main(int argc, char **argv)
{
    static struct options o;
    struct journal journal;
    on_signals();
    options_read(&o, argc, argv);
    make_journal(&o, &journal);
    make_producer(&o);
    int64_t start_ns = monotonic_ns();
    bool ok = send_all(&o);
    ok = finish(&o) && ok;
    printf("seconds %.3f\n",
           (double)(monotonic_ns() - start_ns) / (double)NS_PER_S);
    ok = summary_print(&journal) && ok;
    journal_close(&journal);
    return ok ? 0 : 1;
}
