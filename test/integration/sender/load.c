/* SPDX-License-Identifier: BSD-2-Clause */
/* load.c - one sending thread for each lane.  A thread writes only its own
 * lane and the sending half of its own entries. */
#include "test/integration/sender/load.h"

#include <stdio.h>
#include <stdlib.h>

#include "test/integration/sender/clock.h"

atomic_bool load_stopped;

static bool ended(const struct load *l)
{
    return load_stopped || (l->end_ns != 0 && monotonic_ns() >= l->end_ns);
}

/* What was lost while a send waited is not made up for in a burst. */
static void pace(const struct load *l, int64_t *next_ns)
{
    if (l->gap_ns == 0)
        return;
    int64_t now_ns = monotonic_ns();
    if (*next_ns > now_ns)
        sleep_ns(*next_ns - now_ns);
    else if (now_ns - *next_ns > 100 * NS_PER_MS)
        *next_ns = now_ns;
    *next_ns += l->gap_ns;
}

static int32_t partition_for(const struct load *l, uint32_t lane, uint32_t seq)
{
    if (l->fixed >= 0)
        return l->fixed;
    return (int32_t)((l->by_lane ? lane : seq) % l->partitions);
}

static void address(struct load *l, uint32_t lane, uint32_t seq, kp_record *r)
{
    r->topic = l->topic;
    r->flags = l->flags;
    if (l->fixed >= 0 || l->partitions != 0) {
        r->flags |= KP_HAS_PARTITION;
        r->partition = partition_for(l, lane, seq);
    }
    if (l->kind == REPORT_CALLBACK)
        r->on_delivery = entry_report;
    else if (l->kind == REPORT_QUEUE)
        r->queue = l->poller.queue;
}

/* Once in the life of the program: for tests that pin the words.  A send that
 * does not wait may be refused before anything is known to be wrong. */
static void tell_status(struct load *l, kp_err err)
{
    static atomic_flag told = ATOMIC_FLAG_INIT;
    if (!l->tell_status)
        return;
    kp_error why = {0};
    kp_err status = kp_status(l->producer, l->topic, &why);
    if (status == KP_OK || atomic_flag_test_and_set(&told))
        return;
    printf("refused %s status %s text %s\n", kp_err_name(err),
           kp_err_name(status), why.text);
    fflush(stdout);
}

static void wait_here(kp_future *future)
{
    kp_report report;
    (void)kp_future_wait(future, KP_FOREVER, &report);
    entry_report(&report);
    kp_future_release(future, 1);
}

/* A record that asks for a partition has it in its entry; one that a custom
 * partitioner will place gets it there from the partitioner. */
static kp_err send_one(struct load *l, struct content *c, uint32_t seq,
                       kp_future *future)
{
    struct entry *e = journal_entry(l->journal, c->lane, seq);
    kp_record r = {0};
    address(l, c->lane, seq, &r);
    bool large = l->large_size != 0 && seq == l->large_seq;
    c->value_size = large ? l->large_size : l->value_size;
    content_make(c, seq, &r, e);
    r.tag = e;
    e->asked = (r.flags & KP_HAS_PARTITION) != 0 ? r.partition : -1;
    e->call_ns = monotonic_ns();
    kp_err err = kp_send(l->producer, &r, future);
    e->sent_ns = monotonic_ns();
    e->send_err = err;
    return err;
}

static void send_all(struct load_lane *lane, struct content *c,
                     struct reaper *reaper)
{
    struct load *l = lane->load;
    struct lane *own = &l->journal->lanes[lane->lane];
    kp_future future;
    kp_future *asked = l->kind == REPORT_FUTURE ? &future : NULL;
    int64_t next_ns = monotonic_ns();
    for (uint32_t seq = 0; seq < l->records && !ended(l); seq++) {
        pace(l, &next_ns);
        kp_err err = send_one(l, c, seq, asked);
        own->used = seq + 1;
        if (err != KP_OK) {
            tell_status(l, err);
            if (l->refused_ns > 0)
                sleep_ns(l->refused_ns);
        } else if (asked != NULL) {
            if (reaper != NULL)
                reaper_give(reaper, future);
            else
                wait_here(&future);
        }
    }
}

static struct content lane_content(const struct load_lane *lane)
{
    const struct load *l = lane->load;
    const struct journal_head *h = l->journal->head;
    struct content c = {0};
    c.run = l->run;
    c.form = lane->form;
    c.key_count = l->key_count;
    c.lane = lane->lane;
    c.lane_capacity = h->lane_capacity;
    c.stamp_odd = l->stamp_odd;
    c.stamp_base_ms = h->stamp_base_ms;
    return c;
}

static void *lane_main(void *arg)
{
    struct load_lane *lane = arg;
    struct load *l = lane->load;
    struct content c = lane_content(lane);
    struct reaper reaper;
    bool reaps = l->kind == REPORT_FUTURE && l->outstanding > 1;
    c.value = malloc(l->value_size + l->large_size + VALUE_SLACK);
    if (c.value == NULL)
        return "no memory";
    if (reaps && !reaper_start(&reaper, l->outstanding)) {
        free(c.value);
        return "no reaper";
    }
    send_all(lane, &c, reaps ? &reaper : NULL);
    if (reaps)
        reaper_stop(&reaper);
    free(c.value);
    return NULL;
}

static bool start(struct load_lane *lane, const pthread_attr_t *attr)
{
    return pthread_create(&lane->thread, attr, lane_main, lane) == 0;
}

bool load_run(struct load *load, struct load_lane *lanes, uint32_t count)
{
    pthread_attr_t attr;
    pthread_attr_init(&attr);
    if (load->stack_size != 0)
        pthread_attr_setstacksize(&attr, load->stack_size);
    uint32_t started = 0;
    while (started < count && start(&lanes[started], &attr))
        started++;
    pthread_attr_destroy(&attr);
    bool ok = started == count;
    for (uint32_t i = 0; i < started; i++) {
        void *problem;
        pthread_join(lanes[i].thread, &problem);
        if (problem != NULL)
            fprintf(stderr, "lane %u: %s\n", (unsigned)lanes[i].lane,
                    (char *)problem);
        ok = ok && problem == NULL;
    }
    return ok;
}
