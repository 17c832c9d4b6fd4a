/* SPDX-License-Identifier: BSD-2-Clause */
/* options.h - the command line of multi_thread_send: the options of
 * kafka-producer-perf-test under their names, and our own. */
#ifndef KP_PERF_OPTIONS_H
#define KP_PERF_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifndef TOOL /* the name in messages; perf/peers has another */
#define TOOL "multi_thread_send"
#endif
#define PROPERTIES_MAX 128
#define THREADS_MAX 4000

enum reports { REPORTS_FUTURE, REPORTS_CALLBACK, REPORTS_QUEUE, REPORTS_NONE };
enum keys { KEYS_NONE, KEYS_RANGE, KEYS_RANDOM };

struct property {
    char *name;
    const char *value;
};

struct options {
    const char *bootstrap; /* or NULL: a property says it */
    const char *topic;
    int64_t num_records, warmup_records;
    size_t record_size; /* 0: from payload_file */
    const char *payload_file, *payload_delimiter;
    double throughput; /* records/s of all threads; <= 0: as fast as it goes */
    bool paced;        /* evenly, and latency counts from the schedule */
    int64_t interval_ms;
    enum keys keys;
    size_t key_range, key_size;
    uint64_t seed;
    unsigned threads;
    enum reports reports;
    size_t outstanding; /* of each thread; 0: no waiting between sends */
    size_t send_many;   /* 0: kp_send */
    const char *json;   /* a file, or "-" */
    bool print_metrics;
    const char *config_file;
    struct property properties[PROPERTIES_MAX];
    size_t property_count;
};

enum parsed { PARSED_RUN, PARSED_HELP, PARSED_WRONG };

/* Fills *o from the command line.  What is wrong goes to stderr, with the
 * option, its value and what to write instead. */
enum parsed options_parse(struct options *o, int argc, char **argv);
/* For the parts of that: what needs one look at all options together, and a
 * complaint, which always says false. */
bool options_check(const struct options *o);
bool options_wrong(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void options_free(struct options *o);
void options_help(void);
const char *reports_name(enum reports r);
const char *keys_name(enum keys k);

#endif
