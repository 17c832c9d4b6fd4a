/* SPDX-License-Identifier: BSD-2-Clause */
/* schema.h - Kafka messages as tables.
 *
 * Each API has a file with one table a struct, which reads like Kafka's own
 * JSON of it: field, type, since which version, until which, nullable since,
 * default, tag.  One encoder and one decoder walk the tables, so every version
 * of every API goes through the same checks, in both directions (the embedded
 * broker decodes what the client encodes).
 *
 * C side of a field, by kind: BOOL bool, I8.. intN_t, UUID struct uuid, STRING
 * struct text, BYTES and RECORDS struct blob, ARRAY struct array of the named
 * struct or of a primitive, STRUCT the struct in place.  Decoded data points
 * into the bytes (text, blob: borrowed) and into the arena (arrays).  Strings
 * are not terminated.  Fields absent in a version get their default. */
#ifndef KP_WIRE_SCHEMA_H
#define KP_WIRE_SCHEMA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "include/kp/kp.h"
#include "lib/base/buf.h"
#include "lib/wire/reader.h"
#include "lib/wire/writer.h"

struct uuid {
    uint8_t b[16];
};
struct text { /* data NULL: null */
    const char *data;
    size_t size;
};
struct blob {
    const void *data; /* decoded, or to be copied; NULL and no owner: null */
    size_t size;
    void *owner; /* encoding: splice these bytes in, see writer.h */
};
struct array { /* items NULL and null true: null */
    void *items;
    size_t count;
    bool null;
};

enum kind {
    KIND_BOOL,
    KIND_I8,
    KIND_I16,
    KIND_I32,
    KIND_I64,
    KIND_UUID,
    KIND_STRING,
    KIND_BYTES,
    KIND_RECORDS,
    KIND_ARRAY,
    KIND_STRUCT
};

/* All zero but name, kind and offset: carried by every version, never null, no
 * tag, default 0, "" or empty. */
struct field {
    const char *name; /* Kafka's, for messages and tests */
    enum kind kind;
    enum kind item;              /* of an ARRAY */
    const struct schema *schema; /* of a STRUCT or an ARRAY of them */
    size_t offset;               /* in the C struct */
    int16_t since;               /* first version that carries it */
    int16_t removed_in;          /* first version without it; 0: none */
    bool nullable;               /* from version nullable_since on */
    int16_t nullable_since;
    bool tagged; /* written as tag number `tag`, unless at its default */
    int16_t tag;
    int64_t default_value; /* of numbers and bools */
    bool default_null;     /* of strings, bytes, arrays */
};

/* A row of a table: FIELD(struct, member, KIND, .since = 0, ...).  FIELD_AS
 * where Kafka's name is not the member's. */
#define FIELD_AS(type, member, label, k, ...) \
    { \
        .name = (label), .kind = KIND_##k, \
        .offset = offsetof(struct type, member), __VA_ARGS__ \
    }
#define FIELD(type, member, k, ...) \
    FIELD_AS(type, member, #member, k, __VA_ARGS__)
#define NULLABLE(version) .nullable = true, .nullable_since = (version)
#define TAG(number) .tagged = true, .tag = (number)
#define OF(s) .item = KIND_STRUCT, .schema = &(s)
#define OF_I32 .item = KIND_I32
/* The schema of `struct type` from its table `rows`. */
#define SCHEMA(type, label, rows) \
    { \
        .name = (label), .size = sizeof(struct type), .fields = (rows), \
        .field_count = sizeof(rows) / sizeof((rows)[0]) \
    }

struct schema {
    const char *name;
    size_t size; /* of the C struct */
    const struct field *fields;
    size_t field_count;
};

/* flexible: compact lengths and tagged fields, as this API's version has it. */
/* Encode `value`.  A null where the version allows none is our bug (KP_CHECK);
 * a text or array too long for the wire fails the writer. */
void kp__schema_encode(const struct schema *s, struct writer *w,
                       int16_t version, bool flexible, const void *value);
/* Decode into `value`; all of it is written.  False: r->failed says why, or no
 * memory in the arena (r->what "memory").  An array's count is checked against
 * the bytes that are left before anything is allocated. */
bool kp__schema_decode(const struct schema *s, struct reader *r,
                       struct arena *a, int16_t version, bool flexible,
                       void *value);
/* Set every field to its default. */
void kp__schema_defaults(const struct schema *s, void *value);
/* Bytes of a value of this kind in a C struct; `schema` of a STRUCT. */
size_t kp__kind_size(enum kind kind, const struct schema *schema);
static inline bool kp__field_in(const struct field *f, int16_t version)
{
    return version >= f->since &&
           (f->removed_in == 0 || version < f->removed_in);
}

#endif
