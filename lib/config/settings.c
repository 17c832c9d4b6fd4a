/* SPDX-License-Identifier: BSD-2-Clause */
/* settings.c - a config's text as a producer's plain values.
 *
 * Runs on the thread that makes a producer.  Every text was checked when it was
 * set, so reading one cannot fail here; what can is memory, and what the values
 * mean together (cross_checks.c). */
#include "lib/config/settings.h"

#include <stdatomic.h>
#include <string.h>

#include "lib/base/check.h"
#include "lib/base/clock.h"
#include "lib/base/error.h"
#include "lib/base/mem.h"
#include "lib/base/str.h"
#include "lib/base/wait.h"
#include "lib/config/config.h"
#include "lib/config/cross_checks.h"
#include "lib/config/host_port.h"

/* As Java numbers the producers of a process that were given no name. */
static _Atomic uint32_t producer_number;

/* -- One value -- */

static int64_t number_of(const struct kp_config *config, enum property_id id)
{
    const struct property *p = &kp__properties[id];
    int64_t number = 0;
    kp_err err = kp__property_check(p, p->name, kp__config_value(config, id),
                                    &number, NULL);

    KP_CHECK(err == KP_OK);
    (void)err;
    return number;
}

static size_t size_of(const struct kp_config *config, enum property_id id)
{
    uint64_t n = (uint64_t)number_of(config, id);

    return n > SIZE_MAX ? SIZE_MAX : (size_t)n;
}

static int64_t ns_of(const struct kp_config *config, enum property_id id)
{
    return kp__ms_to_ns(number_of(config, id));
}

static char *text_of(const struct kp_config *config, enum property_id id)
{
    return kp__strdup(kp__config_value(config, id));
}

#define STORE_BOOL(id, field) s->field = number_of(config, id) != 0;
#define STORE_I32(id, field) s->field = (int32_t)number_of(config, id);
#define STORE_NS(id, field) s->field = ns_of(config, id);
#define STORE_SIZE(id, field) s->field = size_of(config, id);
#define STORE_ENUM(id, field) s->field = (unsigned)number_of(config, id);
#define STORE_TEXT(id, field) s->field = text_of(config, id);
#define STORE_BY_HAND(id, field)
#define STORE_NO_EFFECT(id, field)
#define STORE_DEFAULT_ONLY(id, field)

static void store_by_table(struct settings *s, const struct kp_config *config)
{
#define PROPERTY(id, name, type, unit, default_value, min, max, choices, \
                 importance, store, field, help) \
    STORE_##store(PROPERTY_##id, field)
#include "lib/config/config.def"
#undef PROPERTY
}

/* -- Values that are more than one value -- */

static int16_t acks_of(const struct kp_config *config)
{
    /* in the order of the choices: all, -1, 0, 1 */
    static const int16_t acks[] = {-1, -1, 0, 1};

    return acks[number_of(config, PROPERTY_ACKS)];
}

static int codec_level_of(const struct kp_config *config, enum codec_id codec)
{
    switch (codec) {
    case CODEC_GZIP:
        return (int)number_of(config, PROPERTY_COMPRESSION_GZIP_LEVEL);
    case CODEC_LZ4:
        return (int)number_of(config, PROPERTY_COMPRESSION_LZ4_LEVEL);
    case CODEC_ZSTD:
        return (int)number_of(config, PROPERTY_COMPRESSION_ZSTD_LEVEL);
    case CODEC_NONE:
    case CODEC_SNAPPY:
        break;
    }
    return 0;
}

static void store_by_hand(struct settings *s, const struct kp_config *config)
{
    int64_t linger_max_ns = kp__ms_to_ns(INT32_MAX);

    s->acks = acks_of(config);
    s->codec_level = codec_level_of(config, s->codec);
    s->request_timeout_ms =
        (int32_t)number_of(config, PROPERTY_REQUEST_TIMEOUT_MS);
    if (s->linger_ns > linger_max_ns)
        s->linger_ns = linger_max_ns;
    s->max_idle_ns = number_of(config, PROPERTY_CONNECTIONS_MAX_IDLE_MS) < 0
                         ? KP_NEVER
                         : ns_of(config, PROPERTY_CONNECTIONS_MAX_IDLE_MS);
    s->partitioner = kp__config_is_set(config, PROPERTY_PARTITIONER_CLASS)
                         ? PARTITIONER_ROUND_ROBIN
                         : PARTITIONER_BUILT_IN;
    s->partitioner_fn = config->partitioner_fn;
    s->partitioner_arg = config->partitioner_arg;
    s->log_level = config->log_level;
    s->log_fn = config->log_fn;
    s->log_arg = config->log_arg;
}

/* Last of what can fail, so that a refused producer takes no number.  A client
 * id that was set to nothing stays nothing. */
static bool name_producer(struct settings *s, const struct kp_config *config)
{
    char name[24];

    if (kp__config_is_set(config, PROPERTY_CLIENT_ID)) {
        s->client_id = text_of(config, PROPERTY_CLIENT_ID);
        return s->client_id != NULL;
    }
    s->client_id = kp__alloc(sizeof(name));
    if (s->client_id == NULL)
        return false;
    /* relaxed: only that no two get the same number matters */
    (void)kp__format(s->client_id, sizeof(name), "producer-%u",
                     1 + (unsigned)atomic_fetch_add_explicit(
                             &producer_number, 1, memory_order_relaxed));
    return true;
}

static kp_err no_memory(kp_error *error)
{
    return kp__error_set(error, KP_ENOMEM, KP_OK,
                         "no memory for the settings of a producer");
}

static kp_err fill(struct settings *s, const struct kp_config *config,
                   kp_error *error)
{
    kp_err err;

    store_by_table(s, config);
    store_by_hand(s, config);
    if (s->client_rack == NULL)
        return no_memory(error);
    err =
        kp__servers_parse(kp__config_value(config, PROPERTY_BOOTSTRAP_SERVERS),
                          &s->bootstrap, &s->bootstrap_count, error);
    if (err == KP_OK)
        err = kp__settings_check(s, config, error);
    if (err == KP_OK && !name_producer(s, config))
        err = no_memory(error);
    return err;
}

kp_err kp__settings_make(struct settings *out, const kp_config *config,
                         kp_error *error)
{
    struct settings s = {0};
    kp_err err = fill(&s, config, error);

    if (err != KP_OK) {
        kp__settings_fini(&s);
        return err;
    }
    kp__settings_adjust(&s, config);
    *out = s;
    return KP_OK;
}

void kp__settings_fini(struct settings *s)
{
    kp__servers_free(s->bootstrap, s->bootstrap_count);
    kp__free(s->client_id);
    kp__free(s->client_rack);
    *s = (struct settings){0};
}
