/* SPDX-License-Identifier: BSD-2-Clause */
/* cross_checks.c - what a producer's settings mean together.
 *
 * Pure but for the log lines; runs on the thread that makes a producer.  Errors
 * first, then changes, so that a producer that is refused logs nothing. */
#include "lib/config/cross_checks.h"

#include <inttypes.h>
#include <stdint.h>

#include "lib/base/clock.h"
#include "lib/base/error.h"

/* Brokers remember that many batches of a producer per partition. */
#define IN_FLIGHT_MAX 5

#ifdef HAVE_ZLIB
#define HAVE_GZIP 1
#elif defined(HAVE_LIBDEFLATE)
#define HAVE_GZIP 1
#endif

static int64_t ms(int64_t ns)
{
    return ns / KP_NS_PER_MS;
}

static const char *text_of(const struct kp_config *config, enum property_id id)
{
    return kp__config_value(config, id);
}

/* -- Errors -- */

static kp_err check_refused(const struct kp_config *config, kp_error *error)
{
    if (config->refused[0] == '\0')
        return KP_OK;
    return kp__error_set(error, KP_ENOTSUP, KP_OK,
                         "%s was set on this config and refused: this version "
                         "lacks it; make a config without it if you can do "
                         "without",
                         config->refused);
}

static kp_err check_bootstrap(const struct settings *s,
                              const struct kp_config *config, kp_error *error)
{
    if (s->bootstrap_count > 0)
        return KP_OK;
    return kp__error_set(
        error, KP_EINVAL, KP_OK,
        "bootstrap.servers %s: name a broker or two, as host:9092,host:9092",
        kp__config_is_set(config, PROPERTY_BOOTSTRAP_SERVERS) ? "has no entry"
                                                              : "is not set");
}

static bool codec_is_built(enum codec_id id)
{
    switch (id) {
    case CODEC_NONE:
        return true;
    case CODEC_GZIP:
#ifdef HAVE_GZIP
        return true;
#else
        return false;
#endif
    case CODEC_SNAPPY:
#ifdef HAVE_SNAPPY
        return true;
#else
        return false;
#endif
    case CODEC_LZ4:
#ifdef HAVE_LZ4
        return true;
#else
        return false;
#endif
    case CODEC_ZSTD:
#ifdef HAVE_ZSTD
        return true;
#else
        return false;
#endif
    }
    return false;
}

static kp_err check_codec(const struct settings *s,
                          const struct kp_config *config, kp_error *error)
{
    if (codec_is_built(s->codec))
        return KP_OK;
    return kp__error_set(error, KP_ENOTSUP, KP_OK,
                         "compression.type=%s: this build was configured "
                         "without it; kp_features lists what it has",
                         text_of(config, PROPERTY_COMPRESSION_TYPE));
}

/* enable.idempotence=true beside what contradicts it. */
static kp_err check_explicit_idempotence(const struct settings *s,
                                         const struct kp_config *config,
                                         kp_error *error)
{
    if (!s->idempotence ||
        !kp__config_is_set(config, PROPERTY_ENABLE_IDEMPOTENCE))
        return KP_OK;
    if (s->retries == 0)
        return kp__error_set(error, KP_EINVAL, KP_OK,
                             "enable.idempotence=true and retries=0 contradict "
                             "each other: raise retries, or set "
                             "enable.idempotence=false");
    if (s->acks != -1)
        return kp__error_set(error, KP_EINVAL, KP_OK,
                             "enable.idempotence=true and acks=%d contradict "
                             "each other: set acks=all, or "
                             "enable.idempotence=false",
                             s->acks);
    return KP_OK;
}

/* As in Java, also where acks or retries would turn idempotence off anyway:
 * only saying so allows more in flight. */
static kp_err check_in_flight(const struct settings *s, kp_error *error)
{
    if (!s->idempotence || s->max_in_flight <= IN_FLIGHT_MAX)
        return KP_OK;
    return kp__error_set(error, KP_EINVAL, KP_OK,
                         "max.in.flight.requests.per.connection=%" PRId32
                         " is more than idempotence allows: set it to %d or "
                         "less, or set enable.idempotence=false",
                         s->max_in_flight, IN_FLIGHT_MAX);
}

/* What a delivery needs at least. */
static int64_t least_delivery_ns(const struct settings *s)
{
    int64_t least = s->linger_ns + s->request_timeout_ns;
    int64_t most = kp__ms_to_ns(INT32_MAX);

    return least < most ? least : most;
}

static kp_err check_delivery_timeout(const struct settings *s,
                                     const struct kp_config *config,
                                     kp_error *error)
{
    int64_t least = least_delivery_ns(s);

    if (s->delivery_timeout_ns >= least ||
        !kp__config_is_set(config, PROPERTY_DELIVERY_TIMEOUT_MS))
        return KP_OK;
    return kp__error_set(error, KP_EINVAL, KP_OK,
                         "delivery.timeout.ms=%" PRId64 " is less than "
                         "linger.ms=%" PRId64 " + request.timeout.ms=%" PRId64
                         ": raise it to %" PRId64 ", or lower the others",
                         ms(s->delivery_timeout_ns), ms(s->linger_ns),
                         ms(s->request_timeout_ns), ms(least));
}

static kp_err check_rack(const struct settings *s, kp_error *error)
{
    if (!s->rack_aware || s->client_rack[0] != '\0')
        return KP_OK;
    return kp__error_set(error, KP_EINVAL, KP_OK,
                         "partitioner.rack.aware=true needs client.rack: set "
                         "it to the rack this client stands in, or set "
                         "partitioner.rack.aware=false");
}

kp_err kp__settings_check(const struct settings *s,
                          const struct kp_config *config, kp_error *error)
{
    kp_err err = check_refused(config, error);

    if (err == KP_OK)
        err = check_bootstrap(s, config, error);
    if (err == KP_OK)
        err = check_codec(s, config, error);
    if (err == KP_OK)
        err = check_explicit_idempotence(s, config, error);
    if (err == KP_OK)
        err = check_in_flight(s, error);
    if (err == KP_OK)
        err = check_delivery_timeout(s, config, error);
    if (err == KP_OK)
        err = check_rack(s, error);
    return err;
}

/* -- Changes -- */

static void adjust_idempotence(struct settings *s,
                               const struct kp_config *config)
{
    if (!s->idempotence)
        return;
    if (s->retries == 0)
        kp__config_log(config, KP_LOG_WARN,
                       "retries=0 turns idempotence off: set "
                       "enable.idempotence=false to say so, or raise retries");
    if (s->acks != -1)
        kp__config_log(config, KP_LOG_WARN,
                       "acks=%d turns idempotence off: retries may double or "
                       "reorder records; set enable.idempotence=false to say "
                       "so, or set acks=all",
                       s->acks);
    s->idempotence = s->retries > 0 && s->acks == -1;
}

static void adjust_delivery_timeout(struct settings *s,
                                    const struct kp_config *config)
{
    int64_t least = least_delivery_ns(s);

    if (s->delivery_timeout_ns >= least)
        return;
    kp__config_log(config, KP_LOG_WARN,
                   "delivery.timeout.ms raised from %" PRId64 " to %" PRId64
                   ": linger.ms=%" PRId64 " + request.timeout.ms=%" PRId64
                   "; set it to that or more",
                   ms(s->delivery_timeout_ns), ms(least), ms(s->linger_ns),
                   ms(s->request_timeout_ns));
    s->delivery_timeout_ns = least;
}

static void warn_order(const struct settings *s, const struct kp_config *config)
{
    if (!s->idempotence && s->retries > 0 && s->max_in_flight > 1 &&
        kp__config_is_set(config, PROPERTY_ENABLE_IDEMPOTENCE))
        kp__config_log(config, KP_LOG_WARN,
                       "enable.idempotence=false with "
                       "max.in.flight.requests.per.connection=%" PRId32
                       ": a retry may double or reorder records; 1 in flight "
                       "keeps the order",
                       s->max_in_flight);
}

/* A first pause above the longest: the longest, always. */
static void adjust_base(const struct kp_config *config, int64_t *base_ns,
                        int64_t max_ns, const char *base_name,
                        const char *max_name)
{
    if (*base_ns <= max_ns)
        return;
    kp__config_log(config, KP_LOG_WARN,
                   "%s=%" PRId64 " is more than %s=%" PRId64
                   ": it is always %" PRId64 " ms",
                   base_name, ms(*base_ns), max_name, ms(max_ns), ms(max_ns));
    *base_ns = max_ns;
}

static void adjust_reconnect_backoff(struct settings *s,
                                     const struct kp_config *config)
{
    if (kp__config_is_set(config, PROPERTY_RECONNECT_BACKOFF_MS) &&
        !kp__config_is_set(config, PROPERTY_RECONNECT_BACKOFF_MAX_MS)) {
        kp__config_log(config, KP_LOG_WARN,
                       "reconnect.backoff.ms=%" PRId64
                       " without reconnect.backoff.max.ms: the pause does not "
                       "grow; set both to let it",
                       ms(s->reconnect_backoff_ns));
        s->reconnect_backoff_max_ns = s->reconnect_backoff_ns;
    }
    adjust_base(config, &s->reconnect_backoff_ns, s->reconnect_backoff_max_ns,
                "reconnect.backoff.ms", "reconnect.backoff.max.ms");
}

static void adjust_batch_size(struct settings *s,
                              const struct kp_config *config)
{
    if (s->batch_size <= s->buffer_memory)
        return;
    kp__config_log(config, KP_LOG_WARN,
                   "batch.size=%zu is more than buffer.memory=%zu: batches are "
                   "at most that large",
                   s->batch_size, s->buffer_memory);
    s->batch_size = s->buffer_memory;
}

static void warn_partitioner(const struct settings *s,
                             const struct kp_config *config)
{
    if (s->partitioner_fn != NULL &&
        kp__config_is_set(config, PROPERTY_PARTITIONER_CLASS))
        kp__config_log(config, KP_LOG_WARN,
                       "partitioner.class=%s gives way to the function of "
                       "kp_config_set_partitioner",
                       text_of(config, PROPERTY_PARTITIONER_CLASS));
    if (s->availability_timeout_ns > 0 && !s->adaptive)
        kp__config_log(config, KP_LOG_WARN,
                       "partitioner.availability.timeout.ms=%" PRId64
                       " has no effect while "
                       "partitioner.adaptive.partitioning.enable=false",
                       ms(s->availability_timeout_ns));
}

void kp__settings_adjust(struct settings *s, const struct kp_config *config)
{
    adjust_idempotence(s, config);
    warn_order(s, config);
    adjust_delivery_timeout(s, config);
    adjust_reconnect_backoff(s, config);
    adjust_base(config, &s->retry_backoff_ns, s->retry_backoff_max_ns,
                "retry.backoff.ms", "retry.backoff.max.ms");
    adjust_base(config, &s->setup_timeout_ns, s->setup_timeout_max_ns,
                "socket.connection.setup.timeout.ms",
                "socket.connection.setup.timeout.max.ms");
    adjust_batch_size(s, config);
    warn_partitioner(s, config);
}
