/* SPDX-License-Identifier: BSD-2-Clause */
/* metrics.c - kp_metrics.  Any thread.  Java: KafkaProducer.metrics. */
#include "lib/base/thread.h"
#include "lib/shared/producer.h"

void kp_metrics(kp_producer *p, kp_metric_visit visit, void *arg)
{
    struct pool_stats pool;

    if (p == NULL || visit == NULL ||
        p->fork_generation != kp__fork_generation())
        return;
    kp__pool_stats(p->pool, &pool);
    kp__metrics_visit(p->metrics, &pool, kp__now_ns(&p->clock), visit, arg);
}
