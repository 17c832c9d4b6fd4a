/* SPDX-License-Identifier: BSD-2-Clause */
/* schema_decode.c - untrusted bytes to a C struct, by its table.  Pure; any
 * thread, one reader and one arena a thread.
 *
 * Recursion is as deep as the tables are nested, which is fixed at birth.  No
 * array is allocated whose items could not be in the bytes that are left, so
 * memory is at most a fixed multiple of the message. */
#include "lib/wire/schema.h"

struct decoder {
    struct reader *r;
    struct arena *arena;
    int16_t version;
    bool flexible;
};

static void decode_struct(const struct decoder *d, const struct schema *s,
                          void *value);

/* Bytes that a value takes at the very least in this version. */
static size_t min_size(const struct decoder *d, enum kind kind,
                       const struct schema *s)
{
    size_t size = d->flexible ? 1 : 0; /* the count of tagged fields */

    switch (kind) {
    case KIND_BOOL:
    case KIND_I8:
        return 1;
    case KIND_I16:
        return 2;
    case KIND_I32:
        return 4;
    case KIND_I64:
        return 8;
    case KIND_UUID:
        return 16;
    case KIND_STRING:
        return d->flexible ? 1 : 2;
    case KIND_BYTES:
    case KIND_RECORDS:
    case KIND_ARRAY:
        return d->flexible ? 1 : 4;
    case KIND_STRUCT:
        for (size_t i = 0; i < s->field_count; i++)
            if (!s->fields[i].tagged && kp__field_in(&s->fields[i], d->version))
                size += min_size(d, s->fields[i].kind, s->fields[i].schema);
        return size != 0 ? size : 1;
    }
    return 1;
}

/* Kafka's texts are no longer, in the flexible form either. */
static int64_t size_max(enum kind kind)
{
    return kind == KIND_STRING ? INT16_MAX : INT32_MAX;
}

/* A length or a count: false if null, or failed. */
static bool decode_size(const struct decoder *d, enum kind kind, bool nullable,
                        size_t *size)
{
    int64_t n;

    if (d->flexible)
        n = (int64_t)kp__read_uvarint(d->r) - 1;
    else if (kind == KIND_STRING)
        n = kp__read_i16(d->r);
    else
        n = kp__read_i32(d->r);
    if (d->r->failed)
        return false;
    if (n < -1 || n > size_max(kind))
        kp__reader_fail(d->r, "bad length");
    else if (n == -1 && !nullable)
        kp__reader_fail(d->r, "null not allowed");
    if (n < 0 || d->r->failed)
        return false;
    *size = (size_t)n;
    return true;
}

static void decode_text(const struct decoder *d, bool nullable, struct text *t)
{
    size_t size;

    *t = (struct text){0};
    if (!decode_size(d, KIND_STRING, nullable, &size))
        return;
    t->data = (const char *)kp__read_bytes(d->r, size);
    t->size = t->data != NULL ? size : 0;
}

static void decode_blob(const struct decoder *d, bool nullable, struct blob *b)
{
    size_t size;

    *b = (struct blob){0};
    if (!decode_size(d, KIND_BYTES, nullable, &size))
        return;
    b->data = kp__read_bytes(d->r, size);
    b->size = b->data != NULL ? size : 0;
}

static void decode_value(const struct decoder *d, enum kind kind,
                         const struct field *f, bool nullable, void *at);

static void decode_array(const struct decoder *d, const struct field *f,
                         bool nullable, struct array *a)
{
    size_t stride = kp__kind_size(f->item, f->schema);
    size_t count;
    char *items;

    *a = (struct array){0};
    if (!decode_size(d, KIND_ARRAY, nullable, &count)) {
        a->null = !d->r->failed;
        return;
    }
    if (count == 0)
        return;
    if (count > kp__reader_left(d->r) / min_size(d, f->item, f->schema)) {
        kp__reader_fail(d->r, "more items than bytes");
        return;
    }
    items = kp__arena_alloc_array(d->arena, count, stride);
    if (items == NULL) {
        kp__reader_fail(d->r, "memory");
        return;
    }
    for (size_t i = 0; i < count && !d->r->failed; i++)
        decode_value(d, f->item, f, false, items + i * stride);
    a->items = items;
    a->count = count;
}

static void decode_uuid(const struct decoder *d, struct uuid *u)
{
    const uint8_t *p = kp__read_bytes(d->r, sizeof u->b);

    for (size_t i = 0; i < sizeof u->b; i++)
        u->b[i] = p != NULL ? p[i] : 0;
}

static void decode_value(const struct decoder *d, enum kind kind,
                         const struct field *f, bool nullable, void *at)
{
    switch (kind) {
    case KIND_BOOL:
        *(bool *)at = kp__read_i8(d->r) != 0;
        break;
    case KIND_I8:
        *(int8_t *)at = kp__read_i8(d->r);
        break;
    case KIND_I16:
        *(int16_t *)at = kp__read_i16(d->r);
        break;
    case KIND_I32:
        *(int32_t *)at = kp__read_i32(d->r);
        break;
    case KIND_I64:
        *(int64_t *)at = kp__read_i64(d->r);
        break;
    case KIND_UUID:
        decode_uuid(d, at);
        break;
    case KIND_STRING:
        decode_text(d, nullable, at);
        break;
    case KIND_BYTES:
    case KIND_RECORDS:
        decode_blob(d, nullable, at);
        break;
    case KIND_ARRAY:
        decode_array(d, f, nullable, at);
        break;
    case KIND_STRUCT:
        decode_struct(d, f->schema, at);
        break;
    }
}

static void decode_field(const struct decoder *d, const struct field *f,
                         void *value)
{
    decode_value(d, f->kind, f, f->nullable && d->version >= f->nullable_since,
                 (char *)value + f->offset);
}

static const struct field *find_tag(const struct decoder *d,
                                    const struct schema *s, uint32_t tag)
{
    for (size_t i = 0; i < s->field_count; i++) {
        const struct field *f = &s->fields[i];
        if (f->tagged && (uint32_t)f->tag == tag && kp__field_in(f, d->version))
            return f;
    }
    return NULL;
}

/* One tagged field, held to the bytes it announced. */
static void decode_tag(const struct decoder *d, const struct schema *s,
                       uint32_t tag, void *value)
{
    const struct field *f = find_tag(d, s, tag);
    size_t size = kp__read_uvarint(d->r);
    const uint8_t *bytes = kp__read_bytes(d->r, size);
    struct reader within;
    struct decoder inner = *d;

    if (f == NULL || bytes == NULL)
        return; /* unknown tags are skipped */
    kp__reader_init(&within, bytes, size);
    inner.r = &within;
    decode_field(&inner, f, value);
    if (kp__reader_left(&within) != 0)
        kp__reader_fail(&within, "tagged field too long");
    if (within.failed)
        kp__reader_fail(d->r, within.what);
}

/* Tags come in rising order, each once: a repeated one could make us allocate
 * for it again and again. */
static void decode_tags(const struct decoder *d, const struct schema *s,
                        void *value)
{
    uint32_t count = kp__read_uvarint(d->r);
    int64_t last = -1;

    for (uint32_t i = 0; i < count && !d->r->failed; i++) {
        uint32_t tag = kp__read_uvarint(d->r);
        if (tag <= last)
            kp__reader_fail(d->r, "tags out of order");
        else
            decode_tag(d, s, tag, value);
        last = tag;
    }
}

static void decode_struct(const struct decoder *d, const struct schema *s,
                          void *value)
{
    kp__schema_defaults(s, value);
    for (size_t i = 0; i < s->field_count && !d->r->failed; i++) {
        const struct field *f = &s->fields[i];
        if (!f->tagged && kp__field_in(f, d->version))
            decode_field(d, f, value);
    }
    if (d->flexible)
        decode_tags(d, s, value);
}

bool kp__schema_decode(const struct schema *s, struct reader *r,
                       struct arena *a, int16_t version, bool flexible,
                       void *value)
{
    struct decoder d = {
        .r = r, .arena = a, .version = version, .flexible = flexible};

    decode_struct(&d, s, value);
    return !r->failed;
}
