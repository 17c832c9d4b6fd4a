/* SPDX-License-Identifier: BSD-2-Clause */
/* config_set.c - one setting put into a config.
 *
 * Runs on the config's owner.  What is in values[] has passed
 * kp__property_check; a call that fails leaves it as it was. */
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/error.h"
#include "lib/base/mem.h"
#include "lib/base/str.h"
#include "lib/config/config.h"
#include "lib/config/config_names.h"

const char *kp__config_value(const struct kp_config *config,
                             enum property_id id)
{
    return kp__config_is_set(config, id) ? config->values[id]
                                         : kp__properties[id].default_value;
}

bool kp__config_is_set(const struct kp_config *config, enum property_id id)
{
    return config->values[id] != NULL;
}

void kp__config_log(const struct kp_config *config, kp_level level,
                    const char *fmt, ...)
{
    char text[512];
    kp_log line = {0};
    va_list args;

    if (config->log_fn == NULL || level > config->log_level)
        return;
    va_start(args, fmt);
    (void)vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    text[kp__str_whole(text, strlen(text))] = '\0';
    line.level = level;
    line.client_id = kp__config_value(config, PROPERTY_CLIENT_ID);
    line.component = "config";
    line.text = text;
    config->log_fn(config->log_arg, &line);
}

void kp__config_note_refused(struct kp_config *config, const char *name)
{
    if (config->refused[0] == '\0')
        kp__str_escape(config->refused, sizeof(config->refused), name,
                       strlen(name));
}

/* -- One value -- */

/* Java trims values by its own idea of a blank: all up to U+0020. */
static char *trimmed(const char *value)
{
    size_t size;

    while (*value > '\0' && *value <= ' ')
        value++;
    size = strlen(value);
    while (size > 0 && value[size - 1] > '\0' && value[size - 1] <= ' ')
        size--;
    return kp__strndup(value, size);
}

/* Of a property that has one allowed value as long as we lack the rest. */
static kp_err check_default_only(const struct property *p, const char *name,
                                 const char *value, int64_t number,
                                 kp_error *error)
{
    int64_t only = 0;
    char shown[48];

    if (p->effect != EFFECT_DEFAULT_ONLY)
        return KP_OK;
    (void)kp__property_check(p, p->name, p->default_value, &only, NULL);
    if (number == only)
        return KP_OK;
    kp__str_escape(shown, sizeof(shown), value, strlen(value));
    return kp__error_set(error, KP_ENOTSUP, KP_OK,
                         "%s=\"%s\": this version has no %s; only %s is "
                         "possible",
                         name, shown,
                         p == &kp__properties[PROPERTY_SECURITY_PROTOCOL]
                             ? "TLS or SASL"
                             : "transactions",
                         p->default_value);
}

kp_err kp__values_set(char *values[], enum property_id id, const char *name,
                      const char *value, kp_error *error)
{
    const struct property *p = &kp__properties[id];
    char *copy = trimmed(value);
    int64_t number = 0;
    kp_err err;

    if (copy == NULL)
        return kp__error_set(error, KP_ENOMEM, KP_OK, "no memory for %s",
                             p->name);
    /* an alias is told apart from the name by address */
    if (strcmp(name, p->name) == 0)
        name = p->name;
    err = kp__property_check(p, name, copy, &number, error);
    if (err == KP_OK)
        err = check_default_only(p, name, copy, number, error);
    if (err != KP_OK) {
        kp__free(copy);
        return err;
    }
    kp__free(values[id]);
    values[id] = copy;
    return KP_OK;
}

void kp__values_free(char *values[])
{
    size_t i;

    for (i = 0; i < PROPERTY_COUNT; i++)
        kp__free(values[i]);
}

/* -- One name and value -- */

static kp_err unknown(const char *name, kp_error *error)
{
    const char *nearest = kp__config_name_nearest(name);
    char shown[96];

    kp__str_escape(shown, sizeof(shown), name, strlen(name));
    if (nearest != NULL)
        return kp__error_set(error, KP_EINVAL, KP_OK,
                             "no property is called \"%s\"; did you mean %s?",
                             shown, nearest);
    return kp__error_set(error, KP_EINVAL, KP_OK,
                         "no property is called \"%s\"; kp_config_properties "
                         "lists them all",
                         shown);
}

static kp_err no_value(const char *name, kp_error *error)
{
    char shown[96];

    kp__str_escape(shown, sizeof(shown), name, strlen(name));
    return kp__error_set(error, KP_EINVAL, KP_OK,
                         "%s=NULL: give a value, or leave the call out to keep "
                         "the default",
                         shown);
}

static kp_err set_known(struct kp_config *config, const struct config_name *row,
                        const char *name, const char *value, kp_error *error)
{
    if (row->kind == NAME_PROPERTY || row->kind == NAME_ALIAS)
        return kp__values_set(config->values, row->property, name, value,
                              error);
    return kp__config_name_refuse(row, name, error);
}

kp_err kp__config_set(struct kp_config *config, const char *name,
                      const char *value, kp_error *error)
{
    size_t i = kp__config_name_find(name);
    kp_err err;

    if (i == kp__config_name_count)
        return unknown(name, error);
    if (value == NULL)
        return no_value(name, error);
    err = set_known(config, &kp__config_names[i], name, value, error);
    if (err == KP_ENOTSUP)
        kp__config_note_refused(config, name);
    return err;
}
