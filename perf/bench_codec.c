/* SPDX-License-Identifier: BSD-2-Clause */
/* bench_codec.c - compressing a batch of JSON-like records, as it lies in
 * memory (pieces of 16 KiB), with a context that is kept; CPU time of a batch,
 * MB/s of input, and the ratio.  Batches differ.
 *
 * bench_codec [NAME [LEVEL...]]; without a name all codecs at their default
 * levels. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/codec/codec.h"
#include "lib/wire/record.h"
#include "perf/lib/bench.h"
#include "perf/lib/payload.h"

#define BATCHES 16
#define PIECE ((size_t)16384)
#define PIECES_MAX 65

struct job {
    const struct codec *codec;
    struct codec_context *context;
    uint8_t *batches[BATCHES], *out;
    size_t size, packed[BATCHES];
    struct buf unpacked;
};

static int pieces_of(uint8_t *data, size_t size, struct iovec *iov)
{
    int n = 0;

    for (size_t at = 0; at < size; at += PIECE) {
        iov[n].iov_base = data + at;
        iov[n++].iov_len = size - at < PIECE ? size - at : PIECE;
    }
    return n;
}

static void compress(void *arg, uint64_t n)
{
    struct job *j = arg;

    for (uint64_t i = 0; i < n; i++) {
        size_t b = i % BATCHES;
        struct iovec iov[PIECES_MAX];
        int pieces = pieces_of(j->batches[b], j->size, iov);

        j->packed[b] =
            j->codec->compress(j->context, iov, pieces, j->out, j->size * 2);
    }
}

static void decompress(void *arg, uint64_t n)
{
    struct job *j = arg;

    while (n-- > 0) {
        kp__buf_clear(&j->unpacked);
        if (!j->codec->decompress(j->out, j->packed[0], j->size, &j->unpacked))
            abort();
    }
}

static double ratio(const struct job *j)
{
    size_t sum = 0;

    for (int i = 0; i < BATCHES; i++)
        sum += j->packed[i];
    return (double)j->size * BATCHES / (double)sum;
}

/* Records until the batch is full, the rest zero. */
static void fill(uint8_t *batch, size_t size, size_t value_size, uint64_t *seed)
{
    char *value = bench_need(malloc(value_size));
    uint8_t *at = batch;
    int32_t index = 0;
    kp_record r;

    memset(&r, 0, sizeof(r));
    memset(batch, 0, size);
    r.value.data = value;
    r.value.size = value_size;
    for (;; index++) {
        size_t body = kp__record_body_size(&r, index, index);

        if ((size_t)(batch + size - at) < body + VARINT_MAX_SIZE)
            break;
        payload_json(value, value_size, seed);
        at = kp__record_encode(at, &r, body, index, index);
    }
    free(value);
}

static void measure(struct job *j, int level, size_t value_size)
{
    char name[80];

    j->context = bench_need(j->codec->create(level, j->size));
    compress(j, BATCHES);
    (void)snprintf(name, sizeof(name), "%s %d, %zu bytes, %zu KiB, ratio %.2f",
                   j->codec->name, level, value_size, j->size / 1024, ratio(j));
    (void)bench_run(name, compress, j, (double)j->size);
    /* `out` holds the last batch; read that one. */
    compress(j, 1);
    (void)snprintf(name, sizeof(name), "%s %d, reading", j->codec->name, level);
    (void)bench_run(name, decompress, j, (double)j->size);
    j->codec->destroy(j->context);
}

static void run(const struct codec *codec, const int *levels, int count,
                size_t value_size, size_t size)
{
    struct job j;
    uint64_t seed = 3;

    memset(&j, 0, sizeof(j));
    j.codec = codec;
    j.size = size;
    j.out = bench_need(malloc(2 * size));
    kp__buf_init(&j.unpacked);
    for (int i = 0; i < BATCHES; i++) {
        j.batches[i] = bench_need(malloc(size));
        fill(j.batches[i], size, value_size, &seed);
    }
    for (int i = 0; i < count; i++)
        measure(&j, levels[i], value_size);
    for (int i = 0; i < BATCHES; i++)
        free(j.batches[i]);
    kp__buf_fini(&j.unpacked);
    free(j.out);
}

static void run_sizes(const struct codec *codec, const int *levels, int count)
{
    run(codec, levels, count, 100, 16384);
    run(codec, levels, count, 1024, 16384);
    run(codec, levels, count, 100, 1048576);
    run(codec, levels, count, 1024, 1048576);
}

#define LEVELS_MAX 32

static const struct codec *codec_named(const char *name)
{
    for (int id = CODEC_GZIP; id <= CODEC_ZSTD; id++) {
        const struct codec *codec = kp__codec((enum codec_id)id);

        if (codec != NULL && strcmp(codec->name, name) == 0)
            return codec;
    }
    return NULL;
}

static void run_named(const char *name, char **words, int count)
{
    const struct codec *codec = codec_named(name);
    int levels[LEVELS_MAX], n = 0;

    if (codec == NULL) {
        (void)fprintf(stderr, "%s: not in this build, which has: %s\n", name,
                      kp__codec_names());
        exit(2);
    }
    for (; n < count && n < LEVELS_MAX; n++)
        levels[n] = atoi(words[n]);
    if (n == 0)
        levels[n++] = codec->level_default;
    run_sizes(codec, levels, n);
}

int main(int argc, char **argv)
{
    if (argc > 1) {
        run_named(argv[1], argv + 2, argc - 2);
        return 0;
    }
    for (int id = CODEC_GZIP; id <= CODEC_ZSTD; id++) {
        const struct codec *codec = kp__codec((enum codec_id)id);

        if (codec != NULL)
            run_sizes(codec, &codec->level_default, 1);
    }
    return 0;
}
