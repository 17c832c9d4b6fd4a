/* SPDX-License-Identifier: BSD-2-Clause */
/* compressors.c - the fixed set of codec contexts, and compressing one batch.
 * Application threads that sealed something, and the I/O thread.
 *
 * Invariant: a compressor has one user at a time, and everything it needs was
 * allocated at creation: so compressing asks for nothing, and cannot fail. */
#include "lib/shared/compressors.h"

#include <string.h>

#include "lib/base/crc32c.h"
#include "lib/base/mem.h"
#include "lib/base/system.h"

#define COMPRESSORS_MAX 8

/* Two neighbouring chunks hold more than one chunk's worth, since what did not
 * fit the first began the second; the first may be a small one. */
static size_t pieces_max(size_t raw_max)
{
    return raw_max / (CHUNK_SIZE / 2) + 4;
}

static bool make_compressor(struct compressor *k, const struct codec *codec,
                            int level, size_t raw_max)
{
    k->codec = codec;
    k->pieces_max = pieces_max(raw_max);
    k->pieces = kp__alloc_array(k->pieces_max, sizeof(*k->pieces));
    if (k->pieces == NULL)
        return false;
    if (codec == NULL)
        return true;
    k->scratch_size = raw_max;
    k->scratch = kp__pages_map(raw_max);
    k->context = codec->create(level, raw_max);
    return k->scratch != NULL && k->context != NULL;
}

static void free_compressor(struct compressor *k)
{
    if (k->context != NULL)
        k->codec->destroy(k->context);
    kp__pages_unmap(k->scratch, k->scratch_size);
    kp__free(k->pieces);
}

kp_err kp__compressors_init(struct compressors *c, enum codec_id id, int level,
                            size_t raw_max)
{
    unsigned count = kp__processor_count();

    *c = (struct compressors){.raw_max = raw_max};
    if (id != CODEC_NONE) {
        c->codec = kp__codec(id);
        if (c->codec == NULL)
            return KP_ENOTSUP;
    }
    if (count > COMPRESSORS_MAX)
        count = COMPRESSORS_MAX;
    /* Without a codec nothing is shared: a crc needs no context. */
    if (c->codec == NULL)
        count = 0;
    c->count = (size_t)count + 1;
    c->all = kp__zalloc(c->count * sizeof(*c->all));
    if (c->all == NULL)
        return KP_ENOMEM;
    kp__mutex_init(&c->lock);
    for (size_t i = 0; i < c->count; i++) {
        struct compressor *k = &c->all[i];

        if (!make_compressor(k, c->codec, level, raw_max)) {
            kp__compressors_fini(c);
            return KP_ENOMEM;
        }
        if (i + 1 < c->count) {
            k->next = c->free;
            c->free = k;
        }
    }
    return KP_OK;
}

void kp__compressors_fini(struct compressors *c)
{
    if (c->all == NULL)
        return;
    for (size_t i = 0; i < c->count; i++)
        free_compressor(&c->all[i]);
    kp__free(c->all);
    c->all = NULL;
    kp__mutex_fini(&c->lock);
}

/* What stands for a compressor where only a crc is asked for: without state, so
 * that everybody may use it at once. */
static struct compressor crc_only;

struct compressor *kp__compressors_take(struct compressors *c)
{
    struct compressor *k;

    if (c->codec == NULL)
        return &crc_only;
    kp__mutex_lock(&c->lock);
    k = c->free;
    if (k != NULL)
        c->free = k->next;
    kp__mutex_unlock(&c->lock);
    return k;
}

void kp__compressors_give(struct compressors *c, struct compressor *k)
{
    if (k->codec == NULL || k == kp__compressors_own(c))
        return;
    kp__mutex_lock(&c->lock);
    k->next = c->free;
    c->free = k;
    kp__mutex_unlock(&c->lock);
}

struct compressor *kp__compressors_own(struct compressors *c)
{
    return &c->all[c->count - 1];
}

/* -- One batch -- */

static uint32_t crc_of_chunks(const struct batch *b)
{
    uint32_t crc = 0;

    for (const struct chunk *c = b->chunks; c != NULL; c = c->next)
        crc = kp__crc32c(crc, c->data, c->used);
    return crc;
}

static void leave_raw(struct batch *b)
{
    b->codec = CODEC_NONE;
    b->wire_size = b->raw_size;
    b->body_crc = crc_of_chunks(b);
}

/* The compressed body into the first chunks; returns those that are left over.
 * */
static struct chunk *store(struct batch *b, const uint8_t *data, size_t size)
{
    struct chunk *c = b->chunks, *surplus;
    size_t left = size;

    for (;; c = c->next) {
        size_t n = c->capacity < left ? c->capacity : left;

        memcpy(c->data, data, n);
        c->used = (uint32_t)n;
        data += n;
        left -= n;
        if (left == 0)
            break;
    }
    surplus = c->next;
    c->next = NULL;
    b->last_chunk = c;
    return surplus;
}

struct chunk *kp__compress_batch(struct compressor *k, struct batch *b)
{
    size_t n, size = 0;

    kp__mutex_check_none();
    KP_CHECK(b->place == PLACE_COMPRESSING);
    if (k->codec == NULL || b->raw_size > k->scratch_size ||
        kp__batch_iov_count(b) > k->pieces_max) {
        leave_raw(b);
        return NULL;
    }
    n = kp__batch_iov(b, k->pieces, k->pieces_max);
    /* Only what is smaller is worth it; and so it always fits the chunks. */
    if (b->raw_size > 1)
        size = k->codec->compress(k->context, k->pieces, (int)n, k->scratch,
                                  b->raw_size - 1);
    if (size == 0) {
        leave_raw(b);
        return NULL;
    }
    b->codec = k->codec->id;
    b->wire_size = size;
    b->body_crc = kp__crc32c(0, k->scratch, size);
    return store(b, k->scratch, size);
}
