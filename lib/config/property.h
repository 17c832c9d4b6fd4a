/* SPDX-License-Identifier: BSD-2-Clause */
/* property.h - the rows of config.def as data, and the check of one value.
 *
 * Pure; read-only data, so any thread. */
#ifndef KP_CONFIG_PROPERTY_H
#define KP_CONFIG_PROPERTY_H

#include <stddef.h>
#include <stdint.h>

#include "include/kp/kp.h"

enum property_id {
#define PROPERTY(id, ...) PROPERTY_##id,
#include "lib/config/config.def"
#undef PROPERTY
    PROPERTY_COUNT
};

enum property_type {
    TYPE_BOOLEAN,
    TYPE_INT,
    TYPE_LONG,
    TYPE_LEVEL,
    TYPE_CHOICE,
    TYPE_CHOICE_ANY_CASE,
    TYPE_STRING,
    TYPE_SERVERS,
    TYPE_PARTITIONER
};

enum property_unit { UNIT_NO_UNIT, UNIT_BYTES, UNIT_MS };
enum property_importance { IMPORTANCE_HIGH, IMPORTANCE_MEDIUM, IMPORTANCE_LOW };
enum property_effect { EFFECT_FULL, EFFECT_NONE, EFFECT_DEFAULT_ONLY };

struct property {
    const char *name, *default_value, *choices, *help;
    int64_t min, max;
    enum property_type type;
    enum property_unit unit;
    enum property_importance importance;
    enum property_effect effect;
};

extern const struct property kp__properties[PROPERTY_COUNT];

/* What values are allowed, as the end of a sentence: "true or false". */
void kp__property_allowed(const struct property *p, char *out, size_t capacity);

/* Is `value`, which has no blanks around it, allowed?  *number then gets a
 * whole number, 0 or 1 for false or true, or the index of a choice; 0 for
 * text.  `name` is what the caller called the property: an alias, or p->name.
 * KP_EINVAL, with name, value and what is allowed in `error`. */
kp_err kp__property_check(const struct property *p, const char *name,
                          const char *value, int64_t *number, kp_error *error);

#endif
