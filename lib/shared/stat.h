/* SPDX-License-Identifier: BSD-2-Clause */
/* stat.h - one measured quantity over time windows, as Kafka's SampledStat,
 * Avg, Max, Rate and CumulativeSum see it.  The caller's lock.  Pure. */
#ifndef KP_SHARED_STAT_H
#define KP_SHARED_STAT_H

#include <stdint.h>

enum stat_kind {
    AVG,        /* mean of the recorded values */
    MAX,
    RATE,       /* sum of the values per second */
    TOTAL,      /* sum since the beginning */
    COUNT_RATE, /* recordings per second */
    COUNT,      /* recordings since the beginning */
    TIME_RATIO  /* values are ns: their sum per ns */
};

struct stat_sample {
    double sum, max;
    uint64_t count;
    int64_t start_ns;
};

struct stat {
    double total;
    uint64_t count;
    uint32_t current;
    struct stat_sample *samples; /* `samples` of the windows below */
};

struct stat_windows {
    uint32_t samples;
    int64_t window_ns;
};

void kp__stat_init(struct stat *s, struct stat_sample *samples,
                   const struct stat_windows *w, int64_t now_ns);
void kp__stat_record(struct stat *s, const struct stat_windows *w,
                     double value, int64_t now_ns);
/* NaN where there is nothing to say (no recording in the windows: AVG, MAX). */
double kp__stat_value(struct stat *s, const struct stat_windows *w,
                      enum stat_kind kind, int64_t now_ns);

#endif
