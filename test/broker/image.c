/* SPDX-License-Identifier: BSD-2-Clause */
/* image.c - metadata images: what a node believes about the cluster.
 *
 * Never changed once published.  A change is a new image that shares the topic
 * images it did not touch, so that two images are compared by pointer. */
#include <string.h>

#include "test/broker/internal.h"

static void topic_image_unref(struct kb_topic_image *t)
{
    if (--t->refs == 0)
        kb_free(t);
}

struct kb_topic_image *kb_topic_image_new(struct kb_topic *topic, int32_t parts)
{
    struct kb_topic_image *t =
        kb_alloc(sizeof(*t) + (size_t)parts * sizeof(t->parts[0]));

    t->refs = 1;
    t->topic = topic;
    t->part_count = parts;
    return t;
}

struct kb_topic_image *kb_topic_image_clone(const struct kb_topic_image *t,
                                            int32_t parts)
{
    struct kb_topic_image *n = kb_topic_image_new(t->topic, parts);
    int32_t keep = parts < t->part_count ? parts : t->part_count;

    memcpy(n->parts, t->parts, (size_t)keep * sizeof(t->parts[0]));
    return n;
}

bool kb_part_has(const uint16_t *set, int count, int node)
{
    int i;

    for (i = 0; i < count; i++)
        if (set[i] == node)
            return true;
    return false;
}

struct kb_image *kb_image_new(int node_count)
{
    struct kb_image *i = kb_alloc(sizeof(*i));

    i->refs = 1;
    i->node_count = node_count;
    i->alive = kb_alloc((size_t)node_count * sizeof(bool));
    return i;
}

struct kb_image *kb_image_ref(struct kb_image *i)
{
    i->refs++;
    return i;
}

void kb_image_unref(struct kb_image *i)
{
    size_t n;

    if (i == NULL || --i->refs > 0)
        return;
    for (n = 0; n < i->count; n++)
        topic_image_unref(i->by_name[n]);
    kb_free(i->by_name);
    kb_free(i->by_id);
    kb_free(i->alive);
    kb_free(i);
}

struct kb_image *kb_image_clone(const struct kb_image *i)
{
    struct kb_image *c = kb_image_new(i->node_count);
    size_t bytes = (i->count + 1) * sizeof(i->by_name[0]);
    size_t n;

    memcpy(c->alive, i->alive, (size_t)i->node_count * sizeof(bool));
    c->count = i->count;
    c->by_name = kb_alloc(bytes);
    c->by_id = kb_alloc(bytes);
    for (n = 0; n < i->count; n++) {
        c->by_name[n] = i->by_name[n];
        c->by_id[n] = i->by_id[n];
        c->by_name[n]->refs++;
    }
    return c;
}

static int compare_names(const char *a, size_t a_size, const char *b,
                         size_t b_size)
{
    size_t n = a_size < b_size ? a_size : b_size;
    int d = n > 0 ? memcmp(a, b, n) : 0;

    if (d != 0)
        return d;
    return a_size < b_size ? -1 : a_size > b_size;
}

/* The first place whose name is not before this one. */
static size_t name_place(const struct kb_image *i, const char *name,
                         size_t size)
{
    size_t low = 0, high = i->count;

    while (low < high) {
        size_t mid = low + (high - low) / 2;
        const struct kb_topic *t = i->by_name[mid]->topic;

        if (compare_names(t->name, t->name_size, name, size) < 0)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

static size_t id_place(const struct kb_image *i, const struct uuid *id)
{
    size_t low = 0, high = i->count;

    while (low < high) {
        size_t mid = low + (high - low) / 2;

        if (memcmp(&i->by_id[mid]->topic->id, id, sizeof(*id)) < 0)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

struct kb_topic_image *kb_image_by_name(const struct kb_image *i,
                                        const char *name, size_t size)
{
    size_t at = name_place(i, name, size);
    const struct kb_topic *t;

    if (at == i->count)
        return NULL;
    t = i->by_name[at]->topic;
    return compare_names(t->name, t->name_size, name, size) == 0
               ? i->by_name[at]
               : NULL;
}

struct kb_topic_image *kb_image_by_id(const struct kb_image *i,
                                      const struct uuid *id)
{
    size_t at = id_place(i, id);

    if (at == i->count ||
        memcmp(&i->by_id[at]->topic->id, id, sizeof(*id)) != 0)
        return NULL;
    return i->by_id[at];
}

static void array_open(struct kb_topic_image **a, size_t count, size_t at)
{
    memmove(a + at + 1, a + at, (count - at) * sizeof(a[0]));
}

static void array_close(struct kb_topic_image **a, size_t count, size_t at)
{
    memmove(a + at, a + at + 1, (count - at - 1) * sizeof(a[0]));
}

void kb_image_put(struct kb_image *i, struct kb_topic_image *t)
{
    size_t name_at, id_at;

    kb_image_remove(i, t->topic);
    i->by_name = kb_realloc(i->by_name, (i->count + 1) * sizeof(t));
    i->by_id = kb_realloc(i->by_id, (i->count + 1) * sizeof(t));
    name_at = name_place(i, t->topic->name, t->topic->name_size);
    id_at = id_place(i, &t->topic->id);
    array_open(i->by_name, i->count, name_at);
    array_open(i->by_id, i->count, id_at);
    i->by_name[name_at] = t;
    i->by_id[id_at] = t;
    i->count++;
}

void kb_image_remove(struct kb_image *i, const struct kb_topic *topic)
{
    struct kb_topic_image *old = kb_image_by_id(i, &topic->id);

    if (old == NULL)
        return;
    array_close(i->by_name, i->count,
                name_place(i, topic->name, topic->name_size));
    array_close(i->by_id, i->count, id_place(i, &topic->id));
    i->count--;
    topic_image_unref(old);
}
