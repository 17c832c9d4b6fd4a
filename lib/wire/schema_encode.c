/* SPDX-License-Identifier: BSD-2-Clause */
/* schema_encode.c - a C struct to bytes, by its table.  Pure; any thread, one
 * writer a thread.
 *
 * Recursion is as deep as the tables are nested, which is fixed at birth. */
#include "lib/wire/schema.h"

#include <string.h>

struct encoder {
    struct writer *w;
    int16_t version;
    bool flexible;
};

static void encode_struct(const struct encoder *e, const struct schema *s,
                          const void *value);

/* A length, or a count; null as -1, or 0 when compact.  What no reader could
 * take fails the writer. */
static void encode_size(const struct encoder *e, enum kind kind, size_t size,
                        bool null)
{
    size_t max = kind == KIND_STRING ? INT16_MAX : INT32_MAX;

    if (e->flexible)
        max = INT32_MAX;
    if (size > max)
        e->w->buf.failed = true;
    else if (e->flexible)
        kp__write_uvarint(e->w, null ? 0 : (uint32_t)size + 1);
    else if (kind == KIND_STRING)
        kp__write_i16(e->w, null ? (int16_t)-1 : (int16_t)size);
    else
        kp__write_i32(e->w, null ? -1 : (int32_t)size);
}

static void encode_text(const struct encoder *e, const struct text *t,
                        bool nullable)
{
    KP_CHECK(t->data != NULL || nullable);
    encode_size(e, KIND_STRING, t->data != NULL ? t->size : 0,
                t->data == NULL && nullable);
    if (t->data != NULL)
        kp__write_bytes(e->w, t->data, t->size);
}

static void encode_blob(const struct encoder *e, const struct blob *b,
                        bool nullable)
{
    bool null = b->data == NULL && b->owner == NULL;

    KP_CHECK(!null || nullable);
    encode_size(e, KIND_BYTES, null ? 0 : b->size, null && nullable);
    if (b->owner != NULL)
        kp__write_external(e->w, b->size, b->owner);
    else if (!null)
        kp__write_bytes(e->w, b->data, b->size);
}

static void encode_value(const struct encoder *e, enum kind kind,
                         const struct field *f, bool nullable, const void *at);

static void encode_array(const struct encoder *e, const struct field *f,
                         bool nullable, const struct array *a)
{
    size_t stride = kp__kind_size(f->item, f->schema);
    size_t count = a->null ? 0 : a->count;

    KP_CHECK(!a->null || nullable);
    encode_size(e, KIND_ARRAY, count, a->null && nullable);
    for (size_t i = 0; i < count; i++)
        encode_value(e, f->item, f, false, (const char *)a->items + i * stride);
}

static void encode_value(const struct encoder *e, enum kind kind,
                         const struct field *f, bool nullable, const void *at)
{
    switch (kind) {
    case KIND_BOOL:
        kp__write_i8(e->w, *(const bool *)at ? 1 : 0);
        break;
    case KIND_I8:
        kp__write_i8(e->w, *(const int8_t *)at);
        break;
    case KIND_I16:
        kp__write_i16(e->w, *(const int16_t *)at);
        break;
    case KIND_I32:
        kp__write_i32(e->w, *(const int32_t *)at);
        break;
    case KIND_I64:
        kp__write_i64(e->w, *(const int64_t *)at);
        break;
    case KIND_UUID:
        kp__write_bytes(e->w, at, sizeof(struct uuid));
        break;
    case KIND_STRING:
        encode_text(e, at, nullable);
        break;
    case KIND_BYTES:
    case KIND_RECORDS:
        encode_blob(e, at, nullable);
        break;
    case KIND_ARRAY:
        encode_array(e, f, nullable, at);
        break;
    case KIND_STRUCT:
        encode_struct(e, f->schema, at);
        break;
    }
}

static bool is_default(const struct field *f, const void *at);

static bool struct_is_default(const struct schema *s, const void *value)
{
    for (size_t i = 0; i < s->field_count; i++)
        if (!is_default(&s->fields[i],
                        (const char *)value + s->fields[i].offset))
            return false;
    return true;
}

/* Texts and blobs: null or empty as the default is. */
static bool is_empty_as(bool default_null, bool null, size_t size)
{
    return default_null ? null : !null && size == 0;
}

static bool is_default(const struct field *f, const void *at)
{
    static const struct uuid zero;
    const struct text *t = at;
    const struct blob *b = at;
    const struct array *a = at;

    switch (f->kind) {
    case KIND_BOOL:
        return *(const bool *)at == (f->default_value != 0);
    case KIND_I8:
        return *(const int8_t *)at == f->default_value;
    case KIND_I16:
        return *(const int16_t *)at == f->default_value;
    case KIND_I32:
        return *(const int32_t *)at == f->default_value;
    case KIND_I64:
        return *(const int64_t *)at == f->default_value;
    case KIND_UUID:
        return memcmp(at, &zero, sizeof zero) == 0;
    case KIND_STRING:
        return is_empty_as(f->default_null, t->data == NULL, t->size);
    case KIND_BYTES:
    case KIND_RECORDS:
        return is_empty_as(f->default_null, b->data == NULL && b->owner == NULL,
                           b->size);
    case KIND_ARRAY:
        return is_empty_as(f->default_null, a->null, a->count);
    case KIND_STRUCT:
        return struct_is_default(f->schema, at);
    }
    return false;
}

/* The size of a tag's bytes comes before them and is not known yet: write them,
 * then shift them behind it.  Tagged fields are small and never spliced. */
static void encode_tag(const struct encoder *e, const struct field *f,
                       const void *at)
{
    struct buf *buf = &e->w->buf;
    size_t start, size, shift;

    kp__write_uvarint(e->w, (uint32_t)f->tag);
    start = buf->size;
    encode_value(e, f->kind, f, f->nullable && e->version >= f->nullable_since,
                 at);
    size = buf->size - start;
    kp__write_uvarint(e->w, (uint32_t)size);
    if (kp__writer_failed(e->w))
        return;
    shift = buf->size - start - size;
    uint8_t prefix[8];
    memcpy(prefix, buf->data + start + size, shift);
    memmove(buf->data + start + shift, buf->data + start, size);
    memcpy(buf->data + start, prefix, shift);
}

static bool tag_is_sent(const struct encoder *e, const struct field *f,
                        const void *value)
{
    return f->tagged && kp__field_in(f, e->version) &&
           !is_default(f, (const char *)value + f->offset);
}

/* Tables list tagged fields in the order of their tags, as on the wire. */
static void encode_tags(const struct encoder *e, const struct schema *s,
                        const void *value)
{
    uint32_t count = 0;

    for (size_t i = 0; i < s->field_count; i++)
        count += tag_is_sent(e, &s->fields[i], value);
    kp__write_uvarint(e->w, count);
    for (size_t i = 0; i < s->field_count; i++)
        if (tag_is_sent(e, &s->fields[i], value))
            encode_tag(e, &s->fields[i],
                       (const char *)value + s->fields[i].offset);
}

static void encode_struct(const struct encoder *e, const struct schema *s,
                          const void *value)
{
    for (size_t i = 0; i < s->field_count; i++) {
        const struct field *f = &s->fields[i];
        if (!f->tagged && kp__field_in(f, e->version))
            encode_value(e, f->kind, f,
                         f->nullable && e->version >= f->nullable_since,
                         (const char *)value + f->offset);
    }
    if (e->flexible)
        encode_tags(e, s, value);
}

void kp__schema_encode(const struct schema *s, struct writer *w,
                       int16_t version, bool flexible, const void *value)
{
    struct encoder e = {.w = w, .version = version, .flexible = flexible};

    encode_struct(&e, s, value);
}
