/* SPDX-License-Identifier: BSD-2-Clause */
/* bench_encode.c - writing a record as a send does: its size, then its bytes,
 * into a batch of 16 KB or 1 MB that is used again and again; and the header of
 * a batch.  One thread, no lock. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/wire/record.h"
#include "lib/wire/record_batch.h"
#include "perf/lib/bench.h"
#include "perf/lib/payload.h"

struct job {
    kp_record record;
    char *values; /* PAYLOADS_MIN of them */
    size_t value_size;
    uint8_t *batch;
    size_t batch_size;
};

static void encode(void *arg, uint64_t n)
{
    struct job *j = arg;
    uint8_t *at = j->batch, *end = at + j->batch_size;
    int32_t index = 0;
    size_t value = 0;

    while (n-- > 0) {
        size_t body;

        j->record.value.data = j->values + value * j->value_size;
        value = (value + 1) % PAYLOADS_MIN;
        body = kp__record_body_size(&j->record, 5, index);
        if ((size_t)(end - at) < body + VARINT_MAX_SIZE) {
            bench_use(j->batch);
            at = j->batch;
            index = 0;
        }
        at = kp__record_encode(at, &j->record, body, 5, index++);
    }
    bench_use(j->batch);
}

static void upper_bound(void *arg, uint64_t n)
{
    struct job *j = arg;
    size_t sum = 0;

    while (n-- > 0) {
        bench_use(&j->record);
        sum += kp__record_upper_bound(&j->record);
    }
    bench_use(&sum);
}

static void header(void *arg, uint64_t n)
{
    struct job *j = arg;
    struct record_batch_header h = {.magic = 2, .record_count = 100};

    while (n-- > 0) {
        h.base_sequence++;
        kp__record_batch_encode(j->batch, &h, 16384, (uint32_t)n);
        bench_use(j->batch);
    }
}

static void run(struct job *j, size_t value_size, size_t batch_size,
                const char *what)
{
    char name[80];

    j->value_size = value_size;
    j->batch_size = batch_size;
    j->record.value.size = value_size;
    (void)snprintf(name, sizeof(name), "encode %zu bytes%s, batch %zu KiB",
                   value_size, what, batch_size / 1024);
    (void)bench_run(name, encode, j, (double)value_size);
}

int main(void)
{
    static const kp_header trace = {{"trace-id", 8}, {"0123456789abcdef", 16}};
    struct job j;
    uint64_t seed = 1;

    memset(&j, 0, sizeof(j));
    j.values = bench_need(malloc(PAYLOADS_MIN * 1024));
    j.batch = bench_need(malloc(1048576));
    payload_json(j.values, PAYLOADS_MIN * 1024, &seed);
    j.record.value.data = j.values;
    run(&j, 100, 16384, "");
    run(&j, 100, 1048576, "");
    run(&j, 1024, 16384, "");
    run(&j, 1024, 1048576, "");
    j.record.key = kp_str("0123456789abcdef");
    run(&j, 100, 16384, " + key 16");
    j.record.headers = &trace;
    j.record.header_count = 1;
    run(&j, 100, 16384, " + key 16 + header");
    (void)bench_run("upper bound of a record's size", upper_bound, &j, 0);
    (void)bench_run("header of a batch, crc combined", header, &j, 0);
    free(j.values);
    free(j.batch);
    return 0;
}
