/* SPDX-License-Identifier: BSD-2-Clause */
/* partitioner.c - see partitioner.h.  Sending threads, several at once.
 *
 * Java: KafkaProducer.partition, BuiltInPartitioner.partitionForKey,
 * RoundRobinPartitioner.  The sticky choice is the accumulator's: it depends on
 * the queue's lock. */
#include "lib/api/partitioner.h"

#include <string.h>

static uint32_t load_le32(const uint8_t *p)
{
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 |
           (uint32_t)p[3] << 24;
}

uint32_t kp__murmur2(const void *data, size_t size)
{
    const uint32_t m = 0x5bd1e995;
    const uint8_t *p = data;
    uint32_t h = 0x9747b28cu ^ (uint32_t)size;

    for (; size >= 4; p += 4, size -= 4) {
        uint32_t k = load_le32(p);

        k *= m;
        k ^= k >> 24;
        k *= m;
        h *= m;
        h ^= k;
    }
    if (size >= 3)
        h ^= (uint32_t)p[2] << 16;
    if (size >= 2)
        h ^= (uint32_t)p[1] << 8;
    if (size >= 1) {
        h ^= p[0];
        h *= m;
    }
    h ^= h >> 13;
    h *= m;
    h ^= h >> 15;
    return h;
}

static int32_t round_robin(struct topic *t, int32_t count)
{
    /* relaxed: only the number's uniqueness matters */
    uint32_t n =
        atomic_fetch_add_explicit(&t->round_robin, 1, memory_order_relaxed);

    return (int32_t)(n % (uint32_t)count);
}

/* As the built-in partitioner does. */
static int32_t built_in(const struct settings *s, const kp_record *r,
                        int32_t count)
{
    if (r->key.data == NULL || s->ignore_keys)
        return -1;
    return (int32_t)((kp__murmur2(r->key.data, r->key.size) & 0x7fffffffu) %
                     (uint32_t)count);
}

/* The application's function, which may leave it to the built-in one. */
static kp_err custom(const struct settings *s, const kp_record *r,
                     int32_t count, int32_t *out)
{
    int32_t chosen = s->partitioner_fn(s->partitioner_arg, r, count);

    if (chosen < -1 || chosen >= count)
        return KP_EPARTITION;
    *out = chosen >= 0 ? chosen : built_in(s, r, count);
    return KP_OK;
}

kp_err kp__partition_for(struct kp_producer *p, const kp_record *r,
                         struct topic *t, int32_t count, int32_t *out)
{
    const struct settings *s = &p->settings;

    if ((r->flags & KP_HAS_PARTITION) != 0)
        *out = r->partition;
    else if (s->partitioner_fn != NULL)
        return custom(s, r, count, out);
    else if (s->partitioner == PARTITIONER_ROUND_ROBIN)
        *out = round_robin(t, count);
    else
        *out = built_in(s, r, count);
    return KP_OK;
}
