/* SPDX-License-Identifier: BSD-2-Clause */
/* config_load.c - a .properties text put into a config, all of it or nothing.
 *
 * Runs on the config's owner.  The text is read twice: first to learn which of
 * several lines with the same name is the last, since only that one counts and
 * only that one may be wrong; then to gather the values, which become the
 * config's when nothing failed. */
#include <string.h>

#include "lib/base/error.h"
#include "lib/base/mem.h"
#include "lib/base/str.h"
#include "lib/config/config.h"
#include "lib/config/config_names.h"
#include "lib/config/properties.h"

/* A file of something else must not fill a log. */
#define UNKNOWN_LINES_MAX 50

struct load {
    struct kp_config *config;
    const char *source;
    int *last_lines; /* by index of kp__config_names; 0: not there */
    char *values[PROPERTY_COUNT];
    int unknown;
};

static kp_err note_line(void *arg, int line, const char *name,
                        const char *value, kp_error *error)
{
    struct load *load = arg;
    size_t i = kp__config_name_find(name);

    (void)value;
    (void)error;
    /* two names with one prefix are two properties */
    if (i < kp__config_name_count &&
        kp__config_names[i].kind != NAME_LACKING_PREFIX)
        load->last_lines[i] = line;
    return KP_OK;
}

static void pass_over_unknown(struct load *load, int line, const char *name)
{
    const char *nearest;
    char where[96], shown[96];

    if (++load->unknown > UNKNOWN_LINES_MAX)
        return;
    nearest = kp__config_name_nearest(name);
    kp__properties_where(where, sizeof(where), load->source, line);
    kp__str_escape(shown, sizeof(shown), name, strlen(name));
    kp__config_log(load->config, KP_LOG_WARN,
                   "%s: no property is called \"%s\": passed over%s%s%s", where,
                   shown, nearest != NULL ? "; did you mean " : "",
                   nearest != NULL ? nearest : "", nearest != NULL ? "?" : "");
}

static void pass_over_java_class(struct load *load, int line,
                                 const struct config_name *row)
{
    char where[96];

    kp__properties_where(where, sizeof(where), load->source, line);
    kp__config_log(load->config, KP_LOG_WARN,
                   "%s: %s means a Java class: passed over (%s)", where,
                   row->name, row->note);
}

static kp_err take_known(struct load *load, int line,
                         const struct config_name *row, const char *name,
                         const char *value, kp_error *error)
{
    switch (row->kind) {
    case NAME_PROPERTY:
    case NAME_ALIAS:
        return kp__values_set(load->values, row->property, name, value, error);
    case NAME_JAVA_CLASS:
        pass_over_java_class(load, line, row);
        return KP_OK;
    case NAME_LACKING:
    case NAME_LACKING_PREFIX:
    case NAME_LIBRDKAFKA:
        break;
    }
    return kp__config_name_refuse(row, name, error);
}

static kp_err take_property(void *arg, int line, const char *name,
                            const char *value, kp_error *error)
{
    struct load *load = arg;
    size_t i = kp__config_name_find(name);
    kp_error reason = {0};
    char where[96];
    kp_err err;

    if (i == kp__config_name_count) {
        pass_over_unknown(load, line, name);
        return KP_OK;
    }
    if (load->last_lines[i] > line)
        return KP_OK;
    err = take_known(load, line, &kp__config_names[i], name, value, &reason);
    if (err == KP_OK)
        return KP_OK;
    if (err == KP_ENOTSUP)
        kp__config_note_refused(load->config, name);
    kp__properties_where(where, sizeof(where), load->source, line);
    return kp__error_set(error, err, KP_OK, "%s: %s", where, reason.text);
}

static void commit(struct load *load)
{
    for (size_t i = 0; i < PROPERTY_COUNT; i++) {
        if (load->values[i] == NULL)
            continue;
        kp__free(load->config->values[i]);
        load->config->values[i] = load->values[i];
        load->values[i] = NULL;
    }
}

static void log_rest_of_unknown(const struct load *load)
{
    char source[PROPERTIES_SOURCE_SIZE];

    if (load->unknown <= UNKNOWN_LINES_MAX)
        return;
    kp__properties_source(source, sizeof(source), load->source);
    kp__config_log(load->config, KP_LOG_WARN,
                   "%s: %d more names are unknown: passed over", source,
                   load->unknown - UNKNOWN_LINES_MAX);
}

kp_err kp__config_load(struct kp_config *config, const char *source,
                       const char *text, size_t size, kp_error *error)
{
    struct load load = {.config = config, .source = source};
    kp_err err;

    load.last_lines = kp__zalloc(kp__config_name_count * sizeof(int));
    if (load.last_lines == NULL)
        return kp__error_set(error, KP_ENOMEM, KP_OK,
                             "no memory to load a configuration");
    /* The second reading has the same lines to refuse, and reads on for what the
     * text asks that we lack. */
    err = kp__properties_parse(source, text, size, note_line, &load, error);
    if (err != KP_ENOMEM)
        err = kp__properties_parse(source, text, size, take_property, &load,
                                   error);
    if (err == KP_OK) {
        commit(&load);
        log_rest_of_unknown(&load);
    }
    kp__values_free(load.values);
    kp__free(load.last_lines);
    return err;
}
