/* SPDX-License-Identifier: BSD-2-Clause */
/* worker_pool - many threads share one producer; each sends a record and waits
 * until the brokers have it, again and again.
 *
 *     worker_pool localhost:9092 orders 1000 10     (threads, records each)
 *
 * This is how a job in a server would do it.  Records of all threads share
 * batches and requests, so waiting costs each thread time but not throughput.
 * */
#include <kp/kp.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

struct worker {
    pthread_t thread;
    kp_producer *producer;
    const char *topic;
    long number, records, acknowledged;
};

static void check(kp_err err, const char *text)
{
    if (err == KP_OK)
        return;
    fprintf(stderr, "%s: %s\n", kp_err_name(err), text);
    exit(1);
}

static kp_err send_and_wait(struct worker *w, long i)
{
    char value[64];
    kp_future future;
    kp_record record = {0};
    snprintf(value, sizeof value, "worker %ld, job %ld", w->number, i);
    record.topic = w->topic;
    record.value = kp_str(value);
    kp_err err = kp_send(w->producer, &record, &future);
    if (err != KP_OK)
        return err; /* not taken: nothing to wait for, nothing to release */
    err = kp_future_wait(&future, KP_FOREVER, NULL);
    kp_future_release(&future, 1);
    return err;
}

static void *work(void *arg)
{
    struct worker *w = arg;
    for (long i = 0; i < w->records; i++) {
        kp_err err = send_and_wait(w, i);
        if (err != KP_OK) {
            fprintf(stderr, "worker %ld: %s: %s\n", w->number, kp_err_name(err),
                    kp_err_text(err));
            break;
        }
        w->acknowledged++;
    }
    return NULL;
}

static kp_producer *make_producer(const char *servers)
{
    kp_config *config;
    kp_producer *producer;
    kp_error error = {0};
    check(kp_config_create(&config), "kp_config_create");
    check(kp_config_set(config, "bootstrap.servers", servers, &error),
          error.text);
    check(kp_producer_create(&producer, config, &error), error.text);
    kp_config_destroy(config);
    return producer;
}

/* Returns how many records were acknowledged. */
static long run(struct worker *workers, long threads)
{
    long started = 0, acknowledged = 0;
    while (started < threads && pthread_create(&workers[started].thread, NULL,
                                               work, &workers[started]) == 0)
        started++;
    if (started < threads)
        fprintf(stderr, "only %ld threads\n", started);
    for (long i = 0; i < started; i++) {
        pthread_join(workers[i].thread, NULL);
        acknowledged += workers[i].acknowledged;
    }
    return acknowledged;
}

int main(int argc, char **argv)
{
    kp_error error = {0};
    if (argc < 3)
        return fprintf(stderr, "usage: %s SERVERS TOPIC [THREADS [RECORDS]]\n",
                       argv[0]),
               2;
    long threads = argc > 3 ? strtol(argv[3], NULL, 10) : 1000;
    long records = argc > 4 ? strtol(argv[4], NULL, 10) : 10;
    if (threads < 1 || records < 0)
        return 2;
    struct worker *workers = calloc((size_t)threads, sizeof *workers);
    if (workers == NULL)
        return 1;
    kp_producer *producer = make_producer(argv[1]);
    for (long i = 0; i < threads; i++) {
        workers[i].producer = producer;
        workers[i].topic = argv[2];
        workers[i].number = i;
        workers[i].records = records;
    }
    long acknowledged = run(workers, threads);
    check(kp_close(producer, KP_FOREVER, &error), error.text);
    check(kp_producer_destroy(producer), "kp_producer_destroy");
    free(workers);
    printf("%ld of %ld acknowledged\n", acknowledged, threads * records);
    return acknowledged == threads * records ? 0 : 1;
}
