/* SPDX-License-Identifier: BSD-2-Clause */
/* map.h - a hash map from byte strings to pointers.  One thread, or the
 * caller's lock.  Keys are copied.  The hash is seeded per process, so a broker
 * cannot choose names that collide. */
#ifndef KP_BASE_MAP_H
#define KP_BASE_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct map_entry;
struct map {
    struct map_entry **buckets;
    size_t bucket_count, count;
};

uint64_t kp__hash(const void *data, size_t size);

void kp__map_init(struct map *m);
void kp__map_fini(struct map *m); /* does not free the values */
void *kp__map_get(const struct map *m, const void *key, size_t size);
/* False: no memory, nothing changed.  Replaces. */
bool kp__map_put(struct map *m, const void *key, size_t size, void *value);
void *kp__map_remove(struct map *m, const void *key, size_t size);
/* Visits every entry; fn may remove the entry it is given, nothing else. */
void kp__map_each(struct map *m,
                  void (*fn)(void *arg, const void *key, size_t size,
                             void *value),
                  void *arg);

#endif
