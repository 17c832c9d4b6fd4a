/* SPDX-License-Identifier: BSD-2-Clause */
/* callbacks - send many records; a function of ours hears of each.
 *
 *     callbacks localhost:9092 greetings 1000
 *
 * The function runs on the producer's own thread, so it must be quick: here it
 * counts.  The tag of a record comes back in its report. */
#include <kp/kp.h>
#include <stdio.h>
#include <stdlib.h>

struct counts {
    long acknowledged, failed; /* read only after kp_close */
};

/* What went wrong, and the last thing that had before it, if anything had. */
static void tell(const kp_report *report)
{
    fprintf(stderr, "first failure: %s: %s\n", kp_err_name(report->err),
            report->text != NULL ? report->text : kp_err_text(report->err));
    if (report->cause != KP_OK)
        fprintf(stderr, "before it: %s: %s\n", kp_err_name(report->cause),
                kp_err_text(report->cause));
}

static void on_delivery(const kp_report *report)
{
    struct counts *counts = report->tag;
    if (report->err == KP_OK) {
        counts->acknowledged++;
        return;
    }
    counts->failed++;
    if (counts->failed == 1)
        tell(report);
}

static void check(kp_err err, const char *text)
{
    if (err == KP_OK)
        return;
    fprintf(stderr, "%s: %s\n", kp_err_name(err), text);
    exit(1);
}

static kp_producer *make_producer(const char *servers)
{
    kp_config *config;
    kp_producer *producer;
    kp_error error = {0};
    check(kp_config_create(&config), "kp_config_create");
    check(kp_config_set(config, "bootstrap.servers", servers, &error),
          error.text);
    check(kp_config_set(config, "compression.type", "lz4", &error), error.text);
    check(kp_producer_create(&producer, config, &error), error.text);
    kp_config_destroy(config);
    return producer;
}

int main(int argc, char **argv)
{
    struct counts counts = {0, 0};
    kp_error error = {0};
    if (argc < 3)
        return fprintf(stderr, "usage: %s SERVERS TOPIC [RECORDS]\n", argv[0]),
               2;
    long count = argc > 3 ? strtol(argv[3], NULL, 10) : 1000;
    kp_producer *producer = make_producer(argv[1]);

    for (long i = 0; i < count; i++) {
        char value[32];
        kp_record record = {0};
        snprintf(value, sizeof value, "number %ld", i);
        record.topic = argv[2];
        record.value = kp_str(value); /* ours again when kp_send returns */
        record.tag = &counts;
        record.on_delivery = on_delivery;
        /* Waits while the buffer is full.  Refused: no callback will come. */
        kp_err err = kp_send(producer, &record, NULL);
        check(err, kp_err_text(err));
    }

    /* Every callback has returned when kp_close does. */
    check(kp_close(producer, KP_FOREVER, &error), error.text);
    check(kp_producer_destroy(producer), "kp_producer_destroy");
    printf("%ld acknowledged, %ld failed\n", counts.acknowledged,
           counts.failed);
    return counts.acknowledged == count ? 0 : 1;
}
