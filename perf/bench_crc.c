/* SPDX-License-Identifier: BSD-2-Clause */
/* bench_crc.c - CRC-32C: as chosen for this processor, in portable C, and the
 * combination of two.  Data is warm. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/crc32c.h"
#include "perf/lib/bench.h"

struct job {
    uint8_t *data;
    size_t size;
    uint32_t crc;
};

static void chosen(void *arg, uint64_t n)
{
    struct job *j = arg;

    while (n-- > 0)
        j->crc = kp__crc32c(j->crc, j->data, j->size);
    bench_use(&j->crc);
}

static void portable(void *arg, uint64_t n)
{
    struct job *j = arg;

    while (n-- > 0)
        j->crc = kp__crc32c_portable(j->crc, j->data, j->size);
    bench_use(&j->crc);
}

static void combine(void *arg, uint64_t n)
{
    struct job *j = arg;

    while (n-- > 0)
        j->crc = kp__crc32c_combine(j->crc, 0x12345678u, j->size);
    bench_use(&j->crc);
}

int main(void)
{
    static const size_t sizes[] = {40, 100, 1024, 16384, 131072, 1048576};
    struct job j = {bench_need(malloc(1048576)), 0, 0};
    char name[64];

    memset(j.data, 0x5a, 1048576);
    (void)printf("chosen here: %s\n", kp__crc32c_name());
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        j.size = sizes[i];
        (void)snprintf(name, sizeof(name), "crc32c, %zu bytes", j.size);
        (void)bench_run(name, chosen, &j, (double)j.size);
        (void)snprintf(name, sizeof(name), "portable, %zu bytes", j.size);
        (void)bench_run(name, portable, &j, (double)j.size);
        (void)snprintf(name, sizeof(name), "combine, %zu bytes", j.size);
        (void)bench_run(name, combine, &j, 0);
    }
    free(j.data);
    return 0;
}
