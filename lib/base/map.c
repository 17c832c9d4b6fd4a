/* SPDX-License-Identifier: BSD-2-Clause */
/* map.c - a hash map from byte strings to pointers.  One thread, or the
 * caller's lock; kp__hash: any thread.
 *
 * The number of buckets is a power of two, or 0 while nothing was ever put;
 * every entry is in the bucket of its hash. */
#include "lib/base/map.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "lib/base/check.h"
#include "lib/base/mem.h"
#include "lib/base/rand.h"

struct map_entry {
    struct map_entry *next;
    uint64_t hash;
    void *value;
    size_t size;
    unsigned char key[];
};

#define FIRST_BUCKETS 8

/* -- The hash: multiply and fold, keyed with secrets of this process -- */

static uint64_t secrets[4];
static atomic_bool seeded;
static pthread_once_t seed_once = PTHREAD_ONCE_INIT;

static void make_secrets(void)
{
    struct rng r;

    kp__rng_seed(&r, kp__rng_system_seed());
    for (size_t i = 0; i < 4; i++)
        secrets[i] = kp__rng_next(&r) | 1;
    /* Release: who reads true reads the secrets as written above. */
    atomic_store_explicit(&seeded, true, memory_order_release);
}

static uint64_t fold(uint64_t a, uint64_t b)
{
#ifdef __SIZEOF_INT128__
    __extension__ typedef unsigned __int128 wide;
    wide product = (wide)a * b;

    return (uint64_t)product ^ (uint64_t)(product >> 64);
#else
    uint64_t lo = (a & UINT32_MAX) * (b & UINT32_MAX);
    uint64_t m1 = (a >> 32) * (b & UINT32_MAX);
    uint64_t m2 = (a & UINT32_MAX) * (b >> 32);
    uint64_t mid = (lo >> 32) + (m1 & UINT32_MAX) + (m2 & UINT32_MAX);
    uint64_t hi = (a >> 32) * (b >> 32) + (m1 >> 32) + (m2 >> 32);

    return (lo & UINT32_MAX) ^ (mid << 32) ^ (hi + (mid >> 32));
#endif
}

static uint64_t load64(const unsigned char *p)
{
    uint64_t v;

    memcpy(&v, p, sizeof(v));
    return v;
}

static uint64_t load32(const unsigned char *p)
{
    uint32_t v;

    memcpy(&v, p, sizeof(v));
    return v;
}

/* Up to 16 bytes as two words.  They may overlap: with the size, which is mixed
 * in as well, they still tell any two keys apart. */
static void load_short(const unsigned char *p, size_t size, uint64_t *a,
                       uint64_t *b)
{
    if (size >= 8) {
        *a = load64(p);
        *b = load64(p + size - 8);
    } else if (size >= 4) {
        *a = load32(p);
        *b = load32(p + size - 4);
    } else {
        *a = size > 0 ? (uint64_t)p[0] << 16 | (uint64_t)p[size / 2] << 8 |
                            p[size - 1]
                      : 0;
        *b = 0;
    }
}

uint64_t kp__hash(const void *data, size_t size)
{
    const unsigned char *p = data;
    uint64_t h, a, b;

    /* Acquire: pairs with make_secrets. */
    if (KP_UNLIKELY(!atomic_load_explicit(&seeded, memory_order_acquire)))
        (void)pthread_once(&seed_once, make_secrets);
    h = secrets[0] ^ size;
    for (; size > 16; p += 16, size -= 16)
        h = fold(load64(p) ^ secrets[1], load64(p + 8) ^ h);
    load_short(p, size, &a, &b);
    return fold(fold(a ^ secrets[2], b ^ h) ^ secrets[3], secrets[1]);
}

/* -- The map -- */

void kp__map_init(struct map *m)
{
    *m = (struct map){0};
}

void kp__map_fini(struct map *m)
{
    for (size_t i = 0; i < m->bucket_count; i++) {
        struct map_entry *e = m->buckets[i];

        while (e != NULL) {
            struct map_entry *next = e->next;

            kp__free(e);
            e = next;
        }
    }
    kp__free(m->buckets);
    kp__map_init(m);
}

static struct map_entry **bucket(const struct map *m, uint64_t hash)
{
    return &m->buckets[hash & (m->bucket_count - 1)];
}

/* The link that leads to the key's entry, or NULL. */
static struct map_entry **find(const struct map *m, const void *key,
                               size_t size, uint64_t hash)
{
    struct map_entry **link;

    if (m->count == 0)
        return NULL;
    for (link = bucket(m, hash); *link != NULL; link = &(*link)->next) {
        const struct map_entry *e = *link;

        if (e->hash == hash && e->size == size &&
            (size == 0 || memcmp(e->key, key, size) == 0))
            return link;
    }
    return NULL;
}

void *kp__map_get(const struct map *m, const void *key, size_t size)
{
    struct map_entry **link = find(m, key, size, kp__hash(key, size));

    return link != NULL ? (*link)->value : NULL;
}

static bool grow(struct map *m)
{
    size_t count = m->bucket_count != 0 ? m->bucket_count * 2 : FIRST_BUCKETS;
    struct map_entry **buckets = kp__alloc_array(count, sizeof(*buckets));
    struct map old = *m;

    if (buckets == NULL)
        return false;
    memset(buckets, 0, count * sizeof(*buckets));
    m->buckets = buckets;
    m->bucket_count = count;
    for (size_t i = 0; i < old.bucket_count; i++) {
        struct map_entry *e = old.buckets[i];

        while (e != NULL) {
            struct map_entry *next = e->next;
            struct map_entry **to = bucket(m, e->hash);

            e->next = *to;
            *to = e;
            e = next;
        }
    }
    kp__free(old.buckets);
    return true;
}

static struct map_entry *make_entry(const void *key, size_t size)
{
    struct map_entry *e = size <= SIZE_MAX - sizeof(*e)
                              ? kp__alloc(sizeof(*e) + size)
                              : NULL;

    if (e == NULL)
        return NULL;
    e->size = size;
    if (size != 0)
        memcpy(e->key, key, size);
    return e;
}

bool kp__map_put(struct map *m, const void *key, size_t size, void *value)
{
    uint64_t hash = kp__hash(key, size);
    struct map_entry **link = find(m, key, size, hash), *e;

    if (link != NULL) {
        (*link)->value = value;
        return true;
    }
    e = make_entry(key, size);
    if (e == NULL)
        return false;
    /* A map that cannot grow still works, only slower; an empty one does not.
     * */
    if (m->count == m->bucket_count && !grow(m) && m->bucket_count == 0) {
        kp__free(e);
        return false;
    }
    e->hash = hash;
    e->value = value;
    link = bucket(m, hash);
    e->next = *link;
    *link = e;
    m->count++;
    return true;
}

void *kp__map_remove(struct map *m, const void *key, size_t size)
{
    struct map_entry **link = find(m, key, size, kp__hash(key, size)), *e;
    void *value;

    if (link == NULL)
        return NULL;
    e = *link;
    value = e->value;
    *link = e->next;
    kp__free(e);
    m->count--;
    return value;
}

void kp__map_each(struct map *m,
                  void (*fn)(void *arg, const void *key, size_t size,
                             void *value),
                  void *arg)
{
    for (size_t i = 0; i < m->bucket_count; i++) {
        struct map_entry *e = m->buckets[i], *next;

        for (; e != NULL; e = next) {
            next = e->next;
            fn(arg, e->key, e->size, e->value);
        }
    }
}
