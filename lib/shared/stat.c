/* SPDX-License-Identifier: BSD-2-Clause */
/* stat.c - see stat.h.  Kafka: SampledStat, Rate.windowSize. */
#include "lib/shared/stat.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

static void sample_reset(struct stat_sample *x, int64_t now_ns)
{
    x->sum = 0;
    x->max = -HUGE_VAL;
    x->count = 0;
    x->start_ns = now_ns;
}

void kp__stat_init(struct stat *s, struct stat_sample *samples,
                   const struct stat_windows *w, int64_t now_ns)
{
    s->total = 0;
    s->count = 0;
    s->current = 0;
    s->samples = samples;
    for (uint32_t i = 0; i < w->samples; i++)
        sample_reset(&samples[i], now_ns);
}

void kp__stat_record(struct stat *s, const struct stat_windows *w,
                     double value, int64_t now_ns)
{
    struct stat_sample *x = &s->samples[s->current];

    if (now_ns - x->start_ns >= w->window_ns) {
        s->current = (s->current + 1) % w->samples;
        x = &s->samples[s->current];
        sample_reset(x, now_ns);
    }
    x->sum += value;
    x->count++;
    if (value > x->max)
        x->max = value;
    s->total += value;
    s->count++;
}

struct merged {
    double sum, max;
    uint64_t count;
    int64_t oldest_ns;
};

static struct merged merge(struct stat *s, const struct stat_windows *w,
                           int64_t now_ns)
{
    struct merged m = {0, -HUGE_VAL, 0, now_ns};
    int64_t span_ns = w->window_ns > INT64_MAX / (int64_t)w->samples
                          ? INT64_MAX
                          : w->window_ns * (int64_t)w->samples;

    for (uint32_t i = 0; i < w->samples; i++) {
        struct stat_sample *x = &s->samples[i];

        if (now_ns - x->start_ns >= span_ns)
            sample_reset(x, now_ns); /* too old to count */
        m.sum += x->sum;
        m.count += x->count;
        if (x->count > 0 && x->max > m.max)
            m.max = x->max;
        if (x->start_ns < m.oldest_ns)
            m.oldest_ns = x->start_ns;
    }
    return m;
}

/* The time that the windows stand for: at least all but one of them, so that a
 * rate just begun is not overstated. */
static double window_size_ns(const struct stat_windows *w,
                             const struct merged *m, int64_t now_ns)
{
    int64_t elapsed_ns = now_ns - m->oldest_ns;
    int64_t full = elapsed_ns / w->window_ns;
    int64_t least = (int64_t)w->samples - 1;
    double size_ns = (double)elapsed_ns;

    if (full < least)
        size_ns += (double)(least - full) * (double)w->window_ns;
    return size_ns > 0 ? size_ns : (double)w->window_ns;
}

double kp__stat_value(struct stat *s, const struct stat_windows *w,
                      enum stat_kind kind, int64_t now_ns)
{
    struct merged m;

    if (kind == TOTAL)
        return s->total;
    if (kind == COUNT)
        return (double)s->count;
    m = merge(s, w, now_ns);
    switch (kind) {
    case AVG:
        return m.count > 0 ? m.sum / (double)m.count : (double)NAN;
    case MAX:
        return m.count > 0 ? m.max : (double)NAN;
    case RATE:
        return m.sum * 1e9 / window_size_ns(w, &m, now_ns);
    case COUNT_RATE:
        return (double)m.count * 1e9 / window_size_ns(w, &m, now_ns);
    case TIME_RATIO:
        return m.sum / window_size_ns(w, &m, now_ns);
    case TOTAL:
    case COUNT:
    default:
        return s->total;
    }
}
