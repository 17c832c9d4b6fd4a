/* SPDX-License-Identifier: BSD-2-Clause */
/* config_fixture.h - what the tests of the configuration share: a config whose
 * log lines are kept, and assertions on errors. */
#ifndef KP_TEST_UNIT_CONFIG_FIXTURE_H
#define KP_TEST_UNIT_CONFIG_FIXTURE_H

#include <check.h>
#include <kp/kp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/mem.h"
#include "lib/config/config.h"

#define LOGGED_MAX 64

struct logged {
    int count;
    kp_level levels[LOGGED_MAX];
    char texts[LOGGED_MAX][256];
    char client_id[64];
};

static struct logged logged;
static kp_config *config;
static kp_error error;

static void keep_line(void *arg, const kp_log *line)
{
    struct logged *l = arg;

    ck_assert_int_lt(l->count, LOGGED_MAX);
    ck_assert_str_eq(line->component, "config");
    l->levels[l->count] = line->level;
    (void)snprintf(l->texts[l->count], sizeof(l->texts[0]), "%s", line->text);
    (void)snprintf(l->client_id, sizeof(l->client_id), "%s", line->client_id);
    l->count++;
}

static void setup(void)
{
    memset(&logged, 0, sizeof(logged));
    memset(&error, 0, sizeof(error));
    ck_assert_int_eq(kp_config_create(&config), KP_OK);
    kp_config_on_log(config, KP_LOG_DEBUG, keep_line, &logged);
}

static void teardown(void)
{
    kp_config_destroy(config);
    config = NULL;
}

static inline void set_ok(const char *name, const char *value)
{
    kp_err err = kp_config_set(config, name, value, &error);

    ck_assert_msg(err == KP_OK, "%s=%s: %s", name, value, error.text);
}

static inline void assert_error(kp_err err, kp_err wanted, const char *text)
{
    ck_assert_int_eq(err, wanted);
    ck_assert_int_eq(error.err, wanted);
    ck_assert_int_eq(error.cause, KP_OK);
    ck_assert_int_eq(error.kind, kp_err_kind(wanted));
    ck_assert_str_eq(error.text, text);
}

static inline void set_fails(const char *name, const char *value, kp_err wanted,
                             const char *text)
{
    assert_error(kp_config_set(config, name, value, &error), wanted, text);
}

static inline void find_property(void *arg, const kp_property *property)
{
    kp_property *wanted = arg;

    if (strcmp(wanted->name, property->name) == 0)
        *wanted = *property;
}

/* What kp_config_properties says of one property. */
static inline kp_property property_of(const kp_config *c, const char *name)
{
    kp_property property = {.name = name};

    kp_config_properties(c, find_property, &property);
    ck_assert_msg(property.value != NULL, "%s is not listed", name);
    return property;
}

static inline void assert_value(const char *name, const char *value, int is_set)
{
    kp_property property = property_of(config, name);

    ck_assert_str_eq(property.value, value);
    ck_assert_int_eq(property.is_set, is_set);
}

static inline void assert_logged(int i, kp_level level, const char *text)
{
    ck_assert_int_lt(i, logged.count);
    ck_assert_str_eq(logged.texts[i], text);
    ck_assert_int_eq(logged.levels[i], level);
}

/* Not every test program uses each. */
static inline void config_fixture_used(void)
{
    (void)setup;
    (void)teardown;
    (void)logged;
}

#endif
