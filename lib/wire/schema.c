/* SPDX-License-Identifier: BSD-2-Clause */
/* schema.c - what the encoder and the decoder of tables share: sizes and
 * defaults.  Pure; any thread. */
#include "lib/wire/schema.h"

#include <string.h>

size_t kp__kind_size(enum kind kind, const struct schema *schema)
{
    switch (kind) {
    case KIND_BOOL:
        return sizeof(bool);
    case KIND_I8:
        return sizeof(int8_t);
    case KIND_I16:
        return sizeof(int16_t);
    case KIND_I32:
        return sizeof(int32_t);
    case KIND_I64:
        return sizeof(int64_t);
    case KIND_UUID:
        return sizeof(struct uuid);
    case KIND_STRING:
        return sizeof(struct text);
    case KIND_BYTES:
    case KIND_RECORDS:
        return sizeof(struct blob);
    case KIND_ARRAY:
        return sizeof(struct array);
    case KIND_STRUCT:
        return schema->size;
    }
    return 0;
}

static void set_default(const struct field *f, void *at)
{
    switch (f->kind) {
    case KIND_BOOL:
        *(bool *)at = f->default_value != 0;
        break;
    case KIND_I8:
        *(int8_t *)at = (int8_t)f->default_value;
        break;
    case KIND_I16:
        *(int16_t *)at = (int16_t)f->default_value;
        break;
    case KIND_I32:
        *(int32_t *)at = (int32_t)f->default_value;
        break;
    case KIND_I64:
        *(int64_t *)at = f->default_value;
        break;
    case KIND_UUID:
        *(struct uuid *)at = (struct uuid){{0}};
        break;
    case KIND_STRING:
        *(struct text *)at = (struct text){.data = f->default_null ? NULL : ""};
        break;
    case KIND_BYTES:
    case KIND_RECORDS:
        *(struct blob *)at = (struct blob){.data = f->default_null ? NULL : ""};
        break;
    case KIND_ARRAY:
        *(struct array *)at = (struct array){.null = f->default_null};
        break;
    case KIND_STRUCT:
        kp__schema_defaults(f->schema, at);
        break;
    }
}

void kp__schema_defaults(const struct schema *s, void *value)
{
    memset(value, 0, s->size); /* padding too: what is copied is all known */
    for (size_t i = 0; i < s->field_count; i++)
        set_default(&s->fields[i], (char *)value + s->fields[i].offset);
}
