/* SPDX-License-Identifier: BSD-2-Clause */
/* property.c - the rows of config.def as data, and the check of one value.
 *
 * Pure; any thread.  A value that passes here can be stored without a further
 * check of its own: settings.c relies on it. */
#include "lib/config/property.h"

#include <stdbool.h>
#include <string.h>

#include "lib/base/error.h"
#include "lib/base/str.h"
#include "lib/config/host_port.h"

/* A client id travels with a 16-bit length. */
#define TEXT_MAX 32767

#define PRODUCER "org.apache.kafka.clients.producer."
#define ROUND_ROBIN PRODUCER "RoundRobinPartitioner"
/* Gone since Kafka 4.0, and still in files. */
#define DEFAULT PRODUCER "internals.DefaultPartitioner"
#define UNIFORM_STICKY PRODUCER "UniformStickyPartitioner"

#define EFFECT_OF_BOOL EFFECT_FULL
#define EFFECT_OF_I32 EFFECT_FULL
#define EFFECT_OF_NS EFFECT_FULL
#define EFFECT_OF_SIZE EFFECT_FULL
#define EFFECT_OF_ENUM EFFECT_FULL
#define EFFECT_OF_TEXT EFFECT_FULL
#define EFFECT_OF_BY_HAND EFFECT_FULL
#define EFFECT_OF_NO_EFFECT EFFECT_NONE
#define EFFECT_OF_DEFAULT_ONLY EFFECT_DEFAULT_ONLY

const struct property kp__properties[PROPERTY_COUNT] = {
#define PROPERTY(id, name_, type_, unit_, default_, min_, max_, choices_, \
                 importance_, store, field, help_) \
    [PROPERTY_##id] = {.name = (name_), \
                       .default_value = (default_), \
                       .choices = (choices_), \
                       .help = (help_), \
                       .min = (min_), \
                       .max = (max_), \
                       .type = TYPE_##type_, \
                       .unit = UNIT_##unit_, \
                       .importance = IMPORTANCE_##importance_, \
                       .effect = EFFECT_OF_##store},
#include "lib/config/config.def"
#undef PROPERTY
};

/* -- What is allowed -- */

static const char *of_unit(enum property_unit unit)
{
    switch (unit) {
    case UNIT_BYTES:
        return " of bytes";
    case UNIT_MS:
        return " of milliseconds";
    case UNIT_NO_UNIT:
        break;
    }
    return "";
}

static void describe_number(const struct property *p, char *out,
                            size_t capacity)
{
    if (p->min == INT64_MIN && p->max == INT64_MAX)
        (void)kp__format(out, capacity, "a whole number%s", of_unit(p->unit));
    else
        (void)kp__format(out, capacity, "a whole number%s from %lld to %lld",
                         of_unit(p->unit), (long long)p->min,
                         (long long)p->max);
}

/* "a|b|c" as "a, b or c". */
static void describe_choices(const char *choices, char *out, size_t capacity)
{
    size_t used = 0;
    const char *bar;

    for (; (bar = strchr(choices, '|')) != NULL; choices = bar + 1)
        used += kp__format(out + used, capacity - used, "%.*s%s",
                           (int)(bar - choices), choices,
                           strchr(bar + 1, '|') != NULL ? ", " : " or ");
    (void)kp__format(out + used, capacity - used, "%s", choices);
}

void kp__property_allowed(const struct property *p, char *out, size_t capacity)
{
    switch (p->type) {
    case TYPE_BOOLEAN:
        (void)kp__format(out, capacity, "true or false");
        return;
    case TYPE_INT:
    case TYPE_LONG:
        describe_number(p, out, capacity);
        return;
    case TYPE_LEVEL:
        (void)kp__format(out, capacity,
                         "%lld, or a whole number from 1 to %lld",
                         (long long)p->min, (long long)p->max);
        return;
    case TYPE_CHOICE:
    case TYPE_CHOICE_ANY_CASE:
        describe_choices(p->choices, out, capacity);
        return;
    case TYPE_STRING:
        (void)kp__format(out, capacity,
                         "UTF-8 text of at most %d bytes without control "
                         "characters",
                         TEXT_MAX);
        return;
    case TYPE_SERVERS:
        (void)kp__format(out, capacity, "host:port,host:port,...");
        return;
    case TYPE_PARTITIONER:
        (void)kp__format(out, capacity, "%s", ROUND_ROBIN);
        return;
    }
}

static kp_err not_allowed(const struct property *p, const char *name,
                          const char *value, kp_error *error)
{
    char shown[48], allowed[128];
    const char *known_as = name == p->name ? "" : p->name;

    kp__str_escape(shown, sizeof(shown), value, strlen(value));
    kp__property_allowed(p, allowed, sizeof(allowed));
    return kp__error_set(error, KP_EINVAL, KP_OK, "%s=\"%s\"%s%s%s: must be %s",
                         name, shown, *known_as != '\0' ? " (" : "", known_as,
                         *known_as != '\0' ? ")" : "", allowed);
}

/* -- Numbers and choices -- */

static bool is_number(const struct property *p, const char *value,
                      int64_t *number)
{
    int64_t n;

    if (!kp__str_to_i64(value, &n) || n < p->min || n > p->max ||
        (p->type == TYPE_LEVEL && n == 0))
        return false;
    *number = n;
    return true;
}

static bool is_boolean(const char *value, int64_t *number)
{
    if (!kp__str_ieq(value, "true") && !kp__str_ieq(value, "false"))
        return false;
    *number = kp__str_ieq(value, "true");
    return true;
}

static bool same_text(const char *a, const char *b, bool any_case)
{
    return any_case ? kp__str_ieq(a, b) : strcmp(a, b) == 0;
}

static bool is_choice(const struct property *p, const char *value,
                      int64_t *number)
{
    const char *choice = p->choices, *end;
    char word[64];
    int64_t i;

    for (i = 0;; i++, choice = end + 1) {
        end = choice + strcspn(choice, "|");
        (void)kp__format(word, sizeof(word), "%.*s", (int)(end - choice),
                         choice);
        if (same_text(value, word, p->type == TYPE_CHOICE_ANY_CASE)) {
            *number = i;
            return true;
        }
        if (*end == '\0')
            return false;
    }
}

/* -- Text -- */

/* How long a character that starts with this byte is; 0: none does. */
static size_t utf8_size(unsigned char first)
{
    if (first < 0x80)
        return 1;
    if (first >= 0xc2 && first <= 0xdf)
        return 2;
    if (first >= 0xe0 && first <= 0xef)
        return 3;
    return first >= 0xf0 && first <= 0xf4 ? 4 : 0;
}

/* The size of the UTF-8 character at s, which is terminated; 0: it is none. */
static size_t utf8_char(const unsigned char *s)
{
    size_t i, n = utf8_size(s[0]);

    for (i = 1; i < n; i++)
        if ((s[i] & 0xc0) != 0x80)
            return 0;
    /* overlong forms, surrogates, and past the last character */
    if ((s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xed && s[1] > 0x9f) ||
        (s[0] == 0xf0 && s[1] < 0x90) || (s[0] == 0xf4 && s[1] > 0x8f))
        return 0;
    return n;
}

static bool is_text(const char *value)
{
    const unsigned char *s = (const unsigned char *)value;
    size_t n;

    if (strlen(value) > TEXT_MAX)
        return false;
    for (; *s != '\0'; s += n) {
        n = utf8_char(s);
        if (n == 0 || *s < 0x20 || *s == 0x7f)
            return false;
    }
    return true;
}

/* A partitioner decides where records go, so a class that cannot be run is
 * never passed over. */
static kp_err check_partitioner(const char *name, const char *value,
                                kp_error *error)
{
    char shown[80];

    if (strcmp(value, ROUND_ROBIN) == 0)
        return KP_OK;
    kp__str_escape(shown, sizeof(shown), value, strlen(value));
    if (strcmp(value, DEFAULT) == 0)
        return kp__error_set(error, KP_EINVAL, KP_OK,
                             "%s=\"%s\": leave it out, this is built in", name,
                             shown);
    if (strcmp(value, UNIFORM_STICKY) == 0)
        return kp__error_set(error, KP_EINVAL, KP_OK,
                             "%s=\"%s\": leave it out and set "
                             "partitioner.ignore.keys=true",
                             name, shown);
    return kp__error_set(error, KP_EINVAL, KP_OK,
                         "%s=\"%s\": a Java class cannot be run here; use "
                         "kp_config_set_partitioner",
                         name, shown);
}

kp_err kp__property_check(const struct property *p, const char *name,
                          const char *value, int64_t *number, kp_error *error)
{
    bool allowed = false;
    int64_t n = 0;
    kp_err err = KP_OK;

    switch (p->type) {
    case TYPE_BOOLEAN:
        allowed = is_boolean(value, &n);
        break;
    case TYPE_INT:
    case TYPE_LONG:
    case TYPE_LEVEL:
        allowed = is_number(p, value, &n);
        break;
    case TYPE_CHOICE:
    case TYPE_CHOICE_ANY_CASE:
        allowed = is_choice(p, value, &n);
        break;
    case TYPE_STRING:
        allowed = is_text(value);
        break;
    case TYPE_SERVERS:
        allowed = true;
        err = kp__servers_check(name, value, error);
        break;
    case TYPE_PARTITIONER:
        allowed = true;
        err = check_partitioner(name, value, error);
        break;
    }
    if (!allowed)
        err = not_allowed(p, name, value, error);
    if (err == KP_OK)
        *number = n;
    return err;
}
