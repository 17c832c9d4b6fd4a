/* SPDX-License-Identifier: BSD-2-Clause */
/* config_names.h - what a name in a configuration means.  Pure; read-only data,
 * so any thread. */
#ifndef KP_CONFIG_CONFIG_NAMES_H
#define KP_CONFIG_CONFIG_NAMES_H

#include <stddef.h>

#include "lib/config/property.h"

enum config_name_kind {
    NAME_PROPERTY,       /* a row of config.def */
    NAME_ALIAS,          /* librdkafka's name of one */
    NAME_JAVA_CLASS,     /* passed over in a file, else refused */
    NAME_LACKING,        /* KP_ENOTSUP */
    NAME_LACKING_PREFIX, /* the same, for all names that begin so */
    NAME_LIBRDKAFKA      /* refused, with Java's name */
};

struct config_name {
    enum config_name_kind kind;
    const char *name;
    enum property_id property; /* of a NAME_PROPERTY or NAME_ALIAS */
    const char *java;          /* of a NAME_LIBRDKAFKA; may be NULL */
    const char *note;          /* may be NULL: what to do instead, or lacks */
};

extern const struct config_name kp__config_names[];
extern const size_t kp__config_name_count;

/* The index in kp__config_names of what `name` means; the count: unknown. */
size_t kp__config_name_find(const char *name);
/* The property whose name is nearest to `name`, or NULL. */
const char *kp__config_name_nearest(const char *name);

/* The error for a name that kp_config_set does not take: any but a property,
 * an alias or an unknown one.  `name` is the caller's; a prefix is not. */
kp_err kp__config_name_refuse(const struct config_name *row, const char *name,
                              kp_error *error);

#endif
