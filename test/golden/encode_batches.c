/* SPDX-License-Identifier: BSD-2-Clause */
/* encode_batches.c - the records of batches.txt, encoded and compressed by this
 * library with each of its codecs at their lowest, default and highest level,
 * for DecodeBatches to read with Kafka's classes.  README.md says how to run
 * it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/crc32c.h"
#include "lib/codec/codec.h"
#include "lib/wire/record.h"
#include "lib/wire/record_batch.h"
#include "test/support/golden.h"
#include "test/support/golden_record.h"

#define ROOM 65536 /* what a codec may add to what it cannot compress */

_Noreturn static void die(const char *what, const char *which)
{
    (void)fprintf(stderr, "encode_batches: %s: %s\n", what, which);
    exit(EXIT_FAILURE);
}

static void encode_records(const struct golden_case *c, struct buf *body)
{
    struct golden_record g;

    for (size_t i = 0; golden_record_open(&g, c, i); i++) {
        size_t n = kp__record_body_size(&g.record, g.timestamp_delta_ms,
                                        g.offset_delta);
        uint8_t *at = kp__buf_reserve(body, n + VARINT_MAX_SIZE);
        if (at == NULL)
            die("no memory", c->title);
        body->size +=
            (size_t)(kp__record_encode(at, &g.record, n, g.timestamp_delta_ms,
                                       g.offset_delta) -
                     at);
        golden_record_close(&g);
    }
}

static struct record_batch_header header_of(const struct golden_case *c, int id)
{
    return (struct record_batch_header){
        .base_offset = golden_number(c, "= base_offset"),
        .partition_leader_epoch =
            (int32_t)golden_number(c, "= partition_leader_epoch"),
        .magic = 2,
        .attributes = (int16_t)((golden_number(c, "= attributes") & ~7) | id),
        .last_offset_delta = (int32_t)golden_number(c, "= last_offset_delta"),
        .base_timestamp_ms = golden_number(c, "= base_timestamp_ms"),
        .max_timestamp_ms = golden_number(c, "= max_timestamp_ms"),
        .producer_id = golden_number(c, "= producer_id"),
        .producer_epoch = (int16_t)golden_number(c, "= producer_epoch"),
        .base_sequence = (int32_t)golden_number(c, "= base_sequence"),
        .record_count = (int32_t)golden_number(c, "= record_count"),
    };
}

/* A case as batches.txt has it, with our bytes. */
static void print(const struct golden_case *c, const char *codec, int level,
                  int id, const void *body, size_t size)
{
    struct record_batch_header h = header_of(c, id);
    uint8_t header[RECORD_BATCH_HEADER_SIZE];
    struct buf bytes, word;

    kp__buf_init(&bytes);
    kp__buf_init(&word);
    kp__record_batch_encode(header, &h, size, kp__crc32c(0, body, size));
    kp__buf_append(&bytes, header, sizeof header);
    kp__buf_append(&bytes, body, size);
    golden_word(&word, bytes.data, bytes.size);
    if (kp__buf_failed(&bytes) || kp__buf_failed(&word))
        die("no memory", c->title);
    (void)printf("%.*s_%s_%d %s\n", (int)(strrchr(c->title, ' ') - c->title),
                 c->title, codec, level, codec);
    for (size_t i = 0; i < c->count; i++)
        if (strncmp(c->lines[i], "bytes ", 6) != 0 &&
            strncmp(c->lines[i], "= crc ", 6) != 0 &&
            strncmp(c->lines[i], "= batch_length ", 15) != 0 &&
            strncmp(c->lines[i], "= attributes ", 13) != 0)
            (void)puts(c->lines[i]);
    (void)printf("bytes %.*s\nend\n", (int)word.size, (const char *)word.data);
    kp__buf_fini(&bytes);
    kp__buf_fini(&word);
}

/* Two pieces, as a batch in chunks has, if there are two bytes. */
static void compress(const struct golden_case *c, const struct codec *codec,
                     int level, const struct buf *body)
{
    struct codec_context *context = codec->create(level, body->size);
    size_t half = body->size / 2;
    struct iovec in[2] = {
        {.iov_base = body->data, .iov_len = half},
        {.iov_base = body->data + half, .iov_len = body->size - half}};
    uint8_t *out = malloc(2 * body->size + ROOM);
    size_t size;

    if (context == NULL || out == NULL)
        die("no memory", c->title);
    size = codec->compress(context, in, 2, out, 2 * body->size + ROOM);
    if (size == 0)
        die("does not compress", c->title);
    print(c, codec->name, level, (int)codec->id, out, size);
    codec->destroy(context);
    free(out);
}

static void encode(const struct golden_case *c)
{
    struct buf body;

    kp__buf_init(&body);
    encode_records(c, &body);
    print(c, "none", 0, 0, body.data, body.size);
    for (int id = CODEC_GZIP; id <= CODEC_ZSTD; id++) {
        const struct codec *codec = kp__codec((enum codec_id)id);
        if (codec == NULL)
            continue;
        compress(c, codec, codec->level_default, &body);
        if (codec->level_min != codec->level_default)
            compress(c, codec, codec->level_min, &body);
        if (codec->level_max != codec->level_default)
            compress(c, codec, codec->level_max, &body);
    }
    kp__buf_fini(&body);
}

int main(void)
{
    struct golden_file f;

    golden_open(&f, "batches.txt");
    (void)printf("# Printed by encode_batches with our own codecs.\n");
    for (size_t i = 0; i < f.count; i++)
        encode(&f.cases[i]);
    golden_close(&f);
    return fflush(stdout) != 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
