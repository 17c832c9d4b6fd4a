/* SPDX-License-Identifier: BSD-2-Clause */
/* kp_matrix - every combination of acks, codec, partitioner and form of
 * record, each with a number of records, into one topic and one journal.
 *
 * One producer after another, a sending thread for each form, a lane of the
 * journal for each combination; explicit and keyed records share a producer.
 * The ways of reporting take turns from producer to producer. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "test/integration/sender/clock.h"
#include "test/integration/sender/load.h"
#include "test/integration/sender/summary.h"

#define PARTITIONS 6

static const char *const acks_names[] = {"all", "1", "0"};
static const int32_t acks_values[] = {-1, 1, 0};
static const char *const codecs[] = {"none", "gzip", "snappy", "lz4", "zstd"};
static const char *const rules[] = {
    [RULE_EXPLICIT] = "explicit", [RULE_KEYED] = "keyed",
    [RULE_STICKY] = "sticky",     [RULE_ROUND_ROBIN] = "round robin",
    [RULE_CUSTOM] = "custom",     [RULE_RACK] = "rack",
};

#define ACKS_COUNT 3
#define CODEC_COUNT 5
#define RULE_COUNT (RULE_RACK - RULE_EXPLICIT + 1)
#define LANE_COUNT (ACKS_COUNT * CODEC_COUNT * RULE_COUNT * FORM_COUNT)

struct matrix {
    const char *bootstrap, *topic;
    uint32_t records;
    struct journal journal;
    uint32_t next_lane;
    uint32_t producers;
};

/* Any function of the record would do; this one is not uniform. */
static int32_t choose(void *arg, const kp_record *r, int32_t count)
{
    struct entry *e = r->tag;
    (void)arg;
    e->asked = (int32_t)((e->kv_hash >> 7) % (uint64_t)count) / 2;
    return e->asked;
}

static void set(kp_config *config, const char *name, const char *value)
{
    kp_error error = {0};
    if (kp_config_set(config, name, value, &error) == KP_OK)
        return;
    fprintf(stderr, "%s=%s: %s\n", name, value, error.text);
    exit(2);
}

static void set_rule(kp_config *config, enum partition_rule rule)
{
    if (rule == RULE_STICKY)
        set(config, "partitioner.ignore.keys", "true");
    else if (rule == RULE_ROUND_ROBIN)
        set(config, "partitioner.class",
            "org.apache.kafka.clients.producer.RoundRobinPartitioner");
    else if (rule == RULE_RACK) {
        set(config, "partitioner.ignore.keys", "true");
        set(config, "partitioner.rack.aware", "true");
        set(config, "client.rack", "rack-1");
    } else if (rule == RULE_CUSTOM)
        kp_config_set_partitioner(config, choose, NULL);
}

static kp_producer *make_producer(const struct matrix *m, size_t acks,
                                  size_t codec, enum partition_rule rule)
{
    kp_config *config;
    kp_producer *p;
    kp_error error = {0};
    if (kp_config_create(&config) != KP_OK)
        exit(2);
    set(config, "bootstrap.servers", m->bootstrap);
    set(config, "acks", acks_names[acks]);
    set(config, "compression.type", codecs[codec]);
    set_rule(config, rule);
    if (kp_producer_create(&p, config, &error) != KP_OK) {
        fprintf(stderr, "kp_producer_create: %s\n", error.text);
        exit(2);
    }
    kp_config_destroy(config);
    return p;
}

static void describe(struct matrix *m, struct load_lane *lane, size_t acks,
                     size_t codec, enum partition_rule rule)
{
    struct lane *l = &m->journal.lanes[m->next_lane];
    snprintf(l->label, sizeof l->label, "acks=%s %s %s %s", acks_names[acks],
             codecs[codec], rules[rule], form_name(lane->form));
    l->acks = acks_values[acks];
    l->codec = (int32_t)codec;
    l->rule = (int32_t)rule;
    l->group = m->next_lane / FORM_COUNT;
    lane->lane = m->next_lane++;
}

static bool run_rule(struct matrix *m, struct load *load, size_t acks,
                     size_t codec, enum partition_rule rule)
{
    struct load_lane lanes[FORM_COUNT];
    load->partitions = rule == RULE_EXPLICIT ? PARTITIONS : 0;
    for (int f = 0; f < FORM_COUNT; f++) {
        lanes[f].load = load;
        lanes[f].form = (enum form)f;
        describe(m, &lanes[f], acks, codec, rule);
    }
    return load_run(load, lanes, FORM_COUNT);
}

static bool finish(struct load *load)
{
    kp_err closed = kp_close(load->producer, 30000, NULL);
    if (load->kind == REPORT_QUEUE)
        poller_stop(&load->poller);
    if (closed != KP_OK)
        fprintf(stderr, "kp_close: %s\n", kp_err_name(closed));
    return kp_producer_destroy(load->producer) == KP_OK && closed == KP_OK;
}

static bool run_producer(struct matrix *m, size_t acks, size_t codec,
                         enum partition_rule rule)
{
    struct load load = {0};
    load.producer = make_producer(m, acks, codec, rule);
    load.journal = &m->journal;
    load.topic = m->topic;
    load.run = "matrix";
    load.kind = (enum report_kind)(m->producers++ % REPORT_COUNT);
    load.outstanding = m->records;
    load.records = m->records;
    load.value_size = 100;
    load.key_count = 200;
    load.fixed = -1;
    load.stamp_odd = true;
    if (load.kind == REPORT_QUEUE && !poller_start(&load.poller))
        return false;
    bool ok = run_rule(m, &load, acks, codec, rule);
    if (rule == RULE_EXPLICIT)
        ok = run_rule(m, &load, acks, codec, RULE_KEYED) && ok;
    return finish(&load) && ok;
}

static bool run_all(struct matrix *m)
{
    bool ok = true;
    for (size_t a = 0; a < ACKS_COUNT; a++)
        for (size_t c = 0; c < CODEC_COUNT; c++) {
            ok = run_producer(m, a, c, RULE_EXPLICIT) && ok;
            ok = run_producer(m, a, c, RULE_STICKY) && ok;
            ok = run_producer(m, a, c, RULE_ROUND_ROBIN) && ok;
            ok = run_producer(m, a, c, RULE_CUSTOM) && ok;
            ok = run_producer(m, a, c, RULE_RACK) && ok;
        }
    return ok && m->next_lane == LANE_COUNT;
}

int main(int argc, char **argv)
{
    struct matrix m = {0};
    if (argc != 5) {
        fprintf(stderr, "kp_matrix BOOTSTRAP TOPIC RECORDS JOURNAL\n");
        return 2;
    }
    m.bootstrap = argv[1];
    m.topic = argv[2];
    m.records = (uint32_t)strtoul(argv[3], NULL, 10);
    if (!journal_create(&m.journal, argv[4], LANE_COUNT, m.records)) {
        fprintf(stderr, "%s: %s\n", argv[4], strerror(errno));
        return 2;
    }
    m.journal.head->delivery_timeout_ns = 120 * NS_PER_S;
    m.journal.head->max_block_ns = 60 * NS_PER_S;
    bool ok = run_all(&m);
    printf("combinations %u\n", (unsigned)m.next_lane);
    ok = summary_print(&m.journal) && ok;
    journal_close(&m.journal);
    return ok ? 0 : 1;
}
