/* SPDX-License-Identifier: BSD-2-Clause */
/* config.c - the kp_config_* calls, and kp_log_stderr.
 *
 * A config has one owner at a time, so nothing here locks.  kp_log_stderr runs
 * on any thread, several at once: a line is one write of stdio. */
#include <pthread.h>
#include <stdio.h>
#include <time.h>

#include "include/kp/kp.h"
#include "lib/base/buf.h"
#include "lib/base/clock.h"
#include "lib/base/error.h"
#include "lib/base/file.h"
#include "lib/base/mem.h"
#include "lib/base/str.h"
#include "lib/config/config.h"

/* Far more than any configuration; a larger file is something else. */
#define FILE_SIZE_MAX (1024 * (size_t)1024)

kp_err kp_config_create(kp_config **out)
{
    kp_config *config;

    if (out == NULL)
        return KP_EINVAL;
    config = kp__zalloc(sizeof(*config));
    if (config == NULL)
        return KP_ENOMEM;
    *out = config;
    return KP_OK;
}

void kp_config_destroy(kp_config *config)
{
    if (config == NULL)
        return;
    kp__values_free(config->values);
    kp__free(config);
}

kp_err kp_config_set(kp_config *config, const char *name, const char *value,
                     kp_error *error)
{
    if (config == NULL)
        return kp__error_set(error, KP_EINVAL, KP_OK,
                             "config is NULL: make one with kp_config_create");
    if (name == NULL)
        return kp__error_set(error, KP_EINVAL, KP_OK,
                             "name is NULL: give a property's name, such as "
                             "bootstrap.servers");
    return kp__config_set(config, name, value, error);
}

kp_err kp_config_load(kp_config *config, const char *path, kp_error *error)
{
    struct buf text;
    kp_err err;

    if (config == NULL)
        return kp__error_set(error, KP_EINVAL, KP_OK,
                             "config is NULL: make one with kp_config_create");
    if (path == NULL)
        return kp__error_set(error, KP_EINVAL, KP_OK,
                             "path is NULL: give the path of a .properties "
                             "file");
    kp__buf_init(&text);
    err = kp__file_read(path, FILE_SIZE_MAX, &text, error);
    if (err == KP_OK)
        err = kp__config_load(config, path, (const char *)text.data, text.size,
                              error);
    kp__buf_fini(&text);
    return err;
}

void kp_config_properties(const kp_config *config, kp_property_visit visit,
                          void *arg)
{
    static const kp_config defaults;
    size_t i;

    if (config == NULL)
        config = &defaults;
    if (visit == NULL)
        return;
    for (i = 0; i < PROPERTY_COUNT; i++) {
        const struct property *p = &kp__properties[i];
        kp_property property = {
            .name = p->name,
            .value = kp__config_value(config, (enum property_id)i),
            .default_value = p->default_value,
            .help = p->help,
            .is_set = kp__config_is_set(config, (enum property_id)i)};

        visit(arg, &property);
    }
}

void kp_config_on_log(kp_config *config, kp_level level, kp_log_fn fn,
                      void *arg)
{
    if (config == NULL)
        return;
    config->log_level = level;
    config->log_fn = fn;
    config->log_arg = arg;
}

void kp_config_set_partitioner(kp_config *config, kp_partitioner_fn fn,
                               void *arg)
{
    if (config == NULL)
        return;
    config->partitioner_fn = fn;
    config->partitioner_arg = arg;
}

/* -- A ready log function -- */

static const char *level_name(kp_level level)
{
    static const char *const names[] = {"ERROR", "WARN", "INFO", "DEBUG"};

    return level >= KP_LOG_ERROR && level <= KP_LOG_DEBUG ? names[level] : "?";
}

/* As 2031-05-06T07:08:09.010Z. */
static size_t format_now(char *out, size_t capacity)
{
    int64_t now_ms = kp__system_clock.wall_ms(kp__system_clock.arg);
    time_t seconds = (time_t)(now_ms / 1000);
    struct tm tm;
    size_t used;

    if (gmtime_r(&seconds, &tm) == NULL)
        return kp__format(out, capacity, "-");
    used = strftime(out, capacity, "%Y-%m-%dT%H:%M:%S", &tm);
    return used + kp__format(out + used, capacity - used, ".%03dZ",
                             (int)(now_ms % 1000));
}

static const char *or_empty(const char *s)
{
    return s != NULL ? s : "";
}

void kp_log_stderr(void *arg, const kp_log *line)
{
    char when[40], repeated[40];
    const char *client_id;
    int cancel_state;

    (void)arg;
    if (line == NULL)
        return;
    client_id = or_empty(line->client_id);
    (void)format_now(when, sizeof(when));
    repeated[0] = '\0';
    if (line->repeated > 0)
        (void)kp__format(repeated, sizeof(repeated), " (%d like the last)",
                         (int)line->repeated);
    (void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
    (void)fprintf(stderr, "%s kp %-5s %s%s%s: %s%s\n", when,
                  level_name(line->level), client_id,
                  client_id[0] != '\0' ? " " : "", or_empty(line->component),
                  or_empty(line->text), repeated);
    (void)pthread_setcancelstate(cancel_state, NULL);
}
