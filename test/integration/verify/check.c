/* SPDX-License-Identifier: BSD-2-Clause */
/* check.c - compares journals with logs, record by record.  One thread. */
#include "test/integration/verify/check.h"

#include <inttypes.h>
#include <kp/kp.h>
#include <stdlib.h>

#include "test/integration/sender/clock.h"
#include "test/integration/verify/problem.h"

/* A problem with one record, in words that lead to it. */
#define PROBLEM(kind, k, format, ...) \
    problem(kind, "%s record %u: " format, (k)->lane->label, \
            (unsigned)(k)->seq, __VA_ARGS__)

/* -- What a reader found -- */

/* A broker that is sent a batch again answers with the largest timestamp of the
 * batch that it has, whatever the topic's timestamps are; Java reports that. */
static bool true_stamp(const struct entry *e, const struct found *f,
                       const struct expectations *want)
{
    if (e->report_ms < 0 || e->report_ms == f->stamp_ms)
        return true;
    return want->retried && (f->batch_ms < 0 || e->report_ms == f->batch_ms);
}

static void match(struct known *k, const struct found *f, uint32_t log,
                  const struct expectations *want)
{
    const struct entry *e = k->entry;
    bool again = k->log == log; /* a batch may go to a topic made anew, too */
    k->log = log;
    if (k->copies++ == 0)
        k->first_found = f;
    else if (again && !want->copies_ok)
        PROBLEM("twice", k, "partition %d offset %" PRId64 ", and %" PRId64,
                (int)f->partition, k->first_found->offset, f->offset);
    if (e->partition == f->partition && e->offset == f->offset)
        k->at_offset = true;
    if (k->at_offset && !true_stamp(e, f, want))
        PROBLEM("timestamp", k, "%" PRId64 " reported, %" PRId64 " stored",
                e->report_ms, f->stamp_ms);
}

/* last: sequence + 1 of the lane's last record seen on this partition. */
static void check_order(const struct known *k, const struct found *f,
                        uint32_t *last)
{
    if (k->seq + 1 <= *last)
        PROBLEM("order", k, "behind record %u, partition %d offset %" PRId64,
                (unsigned)*last - 1, (int)f->partition, f->offset);
    else
        *last = k->seq + 1;
}

static void check_offset(const struct found *f, int64_t *last)
{
    if (f->offset <= *last)
        problem("offset", "partition %d: %" PRId64 " after %" PRId64,
                (int)f->partition, f->offset, *last);
    *last = f->offset;
}

void check_found(struct known_list *known, const struct found_list *found,
                 uint32_t log, const struct expectations *want)
{
    size_t lanes = (size_t)known->lane_count + 1;
    uint32_t *last_seq = calloc(lanes * PARTITIONS_MAX, sizeof *last_seq);
    int64_t last_offset[PARTITIONS_MAX];
    if (last_seq == NULL)
        abort();
    for (int i = 0; i < PARTITIONS_MAX; i++)
        last_offset[i] = -1;
    for (size_t i = 0; i < found->count; i++) {
        const struct found *f = &found->at[i];
        struct known *k = known_find(known, f);
        check_offset(f, &last_offset[f->partition]);
        if (k == NULL) {
            if (!want->strangers_ok)
                problem("stranger", "partition %d offset %" PRId64,
                        (int)f->partition, f->offset);
            continue;
        }
        match(k, f, log, want);
        if (!want->any_order)
            check_order(k, f,
                        &last_seq[(size_t)k->lane_number * PARTITIONS_MAX +
                                  (size_t)f->partition]);
    }
    free(last_seq);
}

/* -- What each record was told -- */

static void check_times(const struct known *k, const struct expectations *want)
{
    const struct entry *e = k->entry;
    int64_t blocked_ns = e->sent_ns - e->call_ns;
    int64_t waited_ns = e->report_ns - e->sent_ns;
    if (blocked_ns > k->head->max_block_ns + want->margin_ns)
        PROBLEM("blocked", k, "%" PRId64 " ms in kp_send",
                blocked_ns / NS_PER_MS);
    if (e->reports != 0 &&
        waited_ns > k->head->delivery_timeout_ns + want->margin_ns)
        PROBLEM("late", k, "report %" PRId64 " ms after the send",
                waited_ns / NS_PER_MS);
}

static void check_refused(const struct known *k,
                          const struct expectations *want)
{
    if (k->copies != 0)
        PROBLEM("refused-but-there", k, "%s", kp_err_name(k->entry->send_err));
    if (k->entry->reports != 0)
        PROBLEM("report-of-refused", k, "%s", kp_err_name(k->entry->err));
    if (want->all_acked)
        PROBLEM("not-taken", k, "%s", kp_err_name(k->entry->send_err));
}

static void check_stored(const struct known *k)
{
    const struct entry *e = k->entry;
    if (e->stored == KP_STORED_YES && k->copies == 0)
        PROBLEM("lost", k, "%s, partition %d offset %" PRId64,
                kp_err_name(e->err), (int)e->partition, e->offset);
    if (e->stored == KP_STORED_NO && k->copies != 0)
        PROBLEM("denied-but-there", k, "%s, partition %d offset %" PRId64,
                kp_err_name(e->err), (int)k->first_found->partition,
                k->first_found->offset);
    if (e->err == KP_OK && k->lane->acks != 0 && e->stored != KP_STORED_YES)
        PROBLEM("certainty", k, "acknowledged, and stored is %d",
                (int)e->stored);
    if (e->err == KP_OK && k->lane->acks == 0 && e->stored != KP_STORED_MAYBE)
        PROBLEM("certainty", k, "acks=0, and stored is %d", (int)e->stored);
}

static void check_place(const struct known *k)
{
    const struct entry *e = k->entry;
    const struct found *f = k->first_found;
    if (e->offset >= 0 && k->lane->acks != 0 && !k->at_offset)
        PROBLEM("place", k,
                "reported at partition %d offset %" PRId64
                ", found at %d, %" PRId64,
                (int)e->partition, e->offset, (int)f->partition, f->offset);
    if (e->partition != f->partition)
        PROBLEM("partition", k, "%d reported, %d found", (int)e->partition,
                (int)f->partition);
    if (e->asked >= 0 && e->asked != f->partition)
        PROBLEM("partition-asked", k, "%d asked, %d found", (int)e->asked,
                (int)f->partition);
    if (k->lane->rule == RULE_KEYED && f->java_partition >= 0 &&
        f->java_partition != f->partition)
        PROBLEM("partition-of-key", k, "Java says %d, found at %d",
                (int)f->java_partition, (int)f->partition);
    if (f->codec > 0 && f->codec != k->lane->codec)
        PROBLEM("codec", k, "%d asked, %d found", (int)k->lane->codec,
                (int)f->codec);
}

static void check_taken(const struct known *k, const struct expectations *want)
{
    const struct entry *e = k->entry;
    if (e->reports != 1) {
        PROBLEM("reports", k, "%u reports", (unsigned)e->reports);
        return;
    }
    if (want->all_acked && e->err != KP_OK)
        PROBLEM("not-acked", k, "%s, cause %s", kp_err_name(e->err),
                kp_err_name(e->cause));
    if (want->all_found && k->copies == 0)
        PROBLEM("not-found", k, "%s", kp_err_name(e->err));
    check_stored(k);
    if (k->copies != 0)
        check_place(k);
}

void check_known(const struct known_list *known,
                 const struct expectations *want)
{
    for (size_t i = 0; i < known->count; i++) {
        const struct known *k = &known->at[i];
        check_times(k, want);
        if (k->entry->send_err != KP_OK)
            check_refused(k, want);
        else
            check_taken(k, want);
    }
}
