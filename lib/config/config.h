/* SPDX-License-Identifier: BSD-2-Clause */
/* config.h - what a kp_config holds, and one setting put into it.
 *
 * A config keeps what was set as text, each value checked by itself; what the
 * values mean together is looked at when a producer is made (settings.h).  One
 * owner at a time. */
#ifndef KP_CONFIG_CONFIG_H
#define KP_CONFIG_CONFIG_H

#include <stdbool.h>
#include <stddef.h>

#include "include/kp/kp.h"
#include "lib/base/check.h"
#include "lib/config/property.h"

struct kp_config {
    char *values[PROPERTY_COUNT]; /* without blanks around; NULL: not set */
    /* What was asked for and this version lacks: a producer that is made all
     * the same would, say, send in the clear.  Empty: nothing. */
    char refused[96];

    kp_level log_level;
    kp_log_fn log_fn; /* or NULL */
    void *log_arg;

    kp_partitioner_fn partitioner_fn; /* or NULL */
    void *partitioner_arg;
};

/* All or nothing, as kp_config_set. */
kp_err kp__config_set(struct kp_config *config, const char *name,
                      const char *value, kp_error *error);
/* All of a .properties text or nothing, as kp_config_load. */
kp_err kp__config_load(struct kp_config *config, const char *source,
                       const char *text, size_t size, kp_error *error);

/* The value as set, or else the default. */
const char *kp__config_value(const struct kp_config *config,
                             enum property_id id);
bool kp__config_is_set(const struct kp_config *config, enum property_id id);

/* A line of component "config" to the config's log function. */
void kp__config_log(const struct kp_config *config, kp_level level,
                    const char *fmt, ...) KP_PRINTF(3, 4);

/* -- For load.c: values on their way into a config -- */

/* Check one value, and put a copy of it in place of what values[id] holds.
 * KP_EINVAL, KP_ENOTSUP or KP_ENOMEM: values is as it was. */
kp_err kp__values_set(char *values[], enum property_id id, const char *name,
                      const char *value, kp_error *error);
void kp__values_free(char *values[]);
/* Remember that `name` was refused with KP_ENOTSUP. */
void kp__config_note_refused(struct kp_config *config, const char *name);

#endif
