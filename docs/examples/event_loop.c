/* SPDX-License-Identifier: BSD-2-Clause */
/* event_loop - send from a poll(2) loop that never waits anywhere else.
 *
 *     event_loop localhost:9092 greetings 1000
 *
 * Reports come through a completion queue, whose file descriptor stands in the
 * loop beside those of the program.  Sends use KP_NOWAIT: one that is refused
 * for now is tried again when the descriptor becomes readable.  Gives up after
 * 10 seconds without news. */
#include <kp/kp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>

struct loop {
    kp_producer *producer;
    kp_cq *queue;
    const char *topic;
    long count, sent, acknowledged, failed;
};

static void check(kp_err err, const char *text)
{
    if (err == KP_OK)
        return;
    fprintf(stderr, "%s: %s\n", kp_err_name(err), text);
    exit(1);
}

static void start(struct loop *l, const char *servers)
{
    kp_config *config;
    kp_error error = {0};
    check(kp_config_create(&config), "kp_config_create");
    check(kp_config_set(config, "bootstrap.servers", servers, &error),
          error.text);
    check(kp_producer_create(&l->producer, config, &error), error.text);
    kp_config_destroy(config);
    check(kp_cq_create(&l->queue, &error), error.text);
}

static kp_err send_one(struct loop *l)
{
    char value[32];
    kp_record record = {0};
    snprintf(value, sizeof value, "number %ld", l->sent);
    record.topic = l->topic;
    record.value = kp_str(value);
    record.flags = KP_NOWAIT;
    record.queue = l->queue;
    return kp_send(l->producer, &record, NULL);
}

/* As much as goes without waiting. */
static void send_some(struct loop *l)
{
    while (l->sent < l->count) {
        kp_err err = send_one(l);
        if (err == KP_EBUFFER || err == KP_EMETADATA)
            return; /* the queue's descriptor tells when to come back */
        check(err, kp_err_text(err));
        l->sent++;
    }
}

static void take_reports(struct loop *l)
{
    kp_report reports[64];
    size_t n;
    while ((n = kp_cq_poll(l->queue, reports, 64, 0)) > 0)
        for (size_t i = 0; i < n; i++) {
            if (reports[i].err == KP_OK)
                l->acknowledged++;
            else
                l->failed++;
        }
}

static void run(struct loop *l)
{
    struct pollfd fd = {kp_cq_fd(l->queue), POLLIN, 0};
    while (l->acknowledged + l->failed < l->count) {
        send_some(l);
        if (poll(&fd, 1, 10000) != 1) {
            kp_error why = {0};
            kp_status(l->producer, l->topic, &why);
            fprintf(stderr, "nothing for 10 seconds: %s\n", why.text);
            return;
        }
        take_reports(l);
    }
}

int main(int argc, char **argv)
{
    struct loop l = {0};
    kp_error error = {0};
    if (argc < 3)
        return fprintf(stderr, "usage: %s SERVERS TOPIC [RECORDS]\n", argv[0]),
               2;
    l.topic = argv[2];
    l.count = argc > 3 ? strtol(argv[3], NULL, 10) : 1000;
    start(&l, argv[1]);
    run(&l);
    /* What is still buffered after a failure gets five seconds. */
    kp_err closed = kp_close(l.producer, 5000, &error);
    if (closed != KP_OK)
        fprintf(stderr, "%s: %s\n", kp_err_name(closed), error.text);
    check(kp_producer_destroy(l.producer), "kp_producer_destroy");
    kp_cq_destroy(l.queue);
    printf("%ld acknowledged, %ld failed\n", l.acknowledged, l.failed);
    return l.acknowledged == l.count ? 0 : 1;
}
