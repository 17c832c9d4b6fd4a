/* SPDX-License-Identifier: BSD-2-Clause */
/* config_names.c - what a name in a configuration means.
 *
 * Pure; any thread.  Every name that is not unknown is a row of one table: the
 * properties of config.def, then the rows of config_names.def. */
#include "lib/config/config_names.h"

#include <string.h>

#include "lib/base/error.h"
#include "lib/base/str.h"

const struct config_name kp__config_names[] = {
#define PROPERTY(id, name, ...) \
    {NAME_PROPERTY, name, PROPERTY_##id, NULL, NULL},
#include "lib/config/config.def"
#undef PROPERTY
#define ALIAS(name, id) {NAME_ALIAS, name, PROPERTY_##id, NULL, NULL},
#define JAVA_CLASS(name, remedy) \
    {NAME_JAVA_CLASS, name, PROPERTY_COUNT, NULL, remedy},
#define LACKING(name, what) {NAME_LACKING, name, PROPERTY_COUNT, NULL, what},
#define LACKING_PREFIX(prefix, what) \
    {NAME_LACKING_PREFIX, prefix, PROPERTY_COUNT, NULL, what},
#define LIBRDKAFKA(name, java, note) \
    {NAME_LIBRDKAFKA, name, PROPERTY_COUNT, java, note},
#include "lib/config/config_names.def"
};

const size_t kp__config_name_count =
    sizeof(kp__config_names) / sizeof(kp__config_names[0]);

static const char *const candidates[] = {
#define PROPERTY(id, name, ...) name,
#include "lib/config/config.def"
#undef PROPERTY
};

static int matches(const struct config_name *row, const char *name)
{
    return row->kind == NAME_LACKING_PREFIX
               ? strncmp(name, row->name, strlen(row->name)) == 0
               : strcmp(name, row->name) == 0;
}

size_t kp__config_name_find(const char *name)
{
    size_t i;

    for (i = 0; i < kp__config_name_count; i++)
        if (matches(&kp__config_names[i], name))
            break;
    return i;
}

const char *kp__config_name_nearest(const char *name)
{
    return kp__str_nearest(name, candidates,
                           sizeof(candidates) / sizeof(candidates[0]));
}

static kp_err refuse_librdkafka(const struct config_name *row, kp_error *error)
{
    const char *note = row->note != NULL ? row->note : "";

    if (row->java == NULL)
        return kp__error_set(error, KP_EINVAL, KP_OK,
                             "%s is librdkafka's, and has no counterpart in "
                             "Java or here: leave it out (%s)",
                             row->name, note);
    return kp__error_set(
        error, KP_EINVAL, KP_OK, "%s is librdkafka's: use %s%s%s%s", row->name,
        row->java, *note != '\0' ? " (" : "", note, *note != '\0' ? ")" : "");
}

kp_err kp__config_name_refuse(const struct config_name *row, const char *name,
                              kp_error *error)
{
    char shown[96];

    kp__str_escape(shown, sizeof(shown), name, strlen(name));
    switch (row->kind) {
    case NAME_PROPERTY:
    case NAME_ALIAS:
        break;
    case NAME_JAVA_CLASS:
        return kp__error_set(error, KP_EINVAL, KP_OK,
                             "%s means a Java class, which cannot be run here: "
                             "leave it out (%s)",
                             shown, row->note);
    case NAME_LACKING:
    case NAME_LACKING_PREFIX:
        return kp__error_set(error, KP_ENOTSUP, KP_OK,
                             "%s: this version has no %s; leave it out only if "
                             "you can do without",
                             shown, row->note);
    case NAME_LIBRDKAFKA:
        return refuse_librdkafka(row, error);
    }
    return KP_OK;
}
