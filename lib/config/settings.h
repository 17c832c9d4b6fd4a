/* SPDX-License-Identifier: BSD-2-Clause */
/* settings.h - a producer's settings as plain values, checked.
 *
 * Made from a kp_config by kp__settings_make; read-only afterwards, so any
 * thread may read them.  Times are nanoseconds (clamped to about 31 years),
 * sizes bytes. */
#ifndef KP_CONFIG_SETTINGS_H
#define KP_CONFIG_SETTINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "include/kp/kp.h"

enum dns_lookup { DNS_USE_ALL_IPS, DNS_RESOLVE_CANONICAL };
enum codec_id { CODEC_NONE, CODEC_GZIP, CODEC_SNAPPY, CODEC_LZ4, CODEC_ZSTD };
enum recovery { RECOVERY_REBOOTSTRAP, RECOVERY_NONE };
enum partitioner_kind { PARTITIONER_BUILT_IN, PARTITIONER_ROUND_ROBIN };

struct host_port {
    char *host; /* without the brackets of an IPv6 address */
    uint16_t port;
};

struct settings {
    /* who and where */
    struct host_port *bootstrap;
    size_t bootstrap_count;
    char *client_id; /* set, or "producer-N" */
    char *client_rack;
    enum dns_lookup dns_lookup;
    int64_t bootstrap_resolve_timeout_ns;
    bool cluster_check;

    /* delivery */
    int16_t acks; /* 0, 1, -1 */
    bool idempotence;
    int32_t retries;
    int32_t max_in_flight;
    int64_t delivery_timeout_ns;
    int64_t request_timeout_ns;
    int32_t request_timeout_ms; /* as it goes on the wire */
    int64_t linger_ns;
    int64_t max_block_ns;

    /* batches and memory */
    size_t batch_size; /* 0: every record its own batch */
    size_t max_request_size;
    size_t buffer_memory;
    enum codec_id codec;
    int codec_level; /* of `codec` */

    /* partitions */
    enum partitioner_kind partitioner;
    bool ignore_keys, adaptive, rack_aware;
    int64_t availability_timeout_ns;  /* 0: off */
    kp_partitioner_fn partitioner_fn; /* or NULL */
    void *partitioner_arg;

    /* metadata, connections */
    int64_t metadata_max_age_ns, metadata_max_idle_ns;
    enum recovery recovery;
    int64_t rebootstrap_trigger_ns;
    int64_t reconnect_backoff_ns, reconnect_backoff_max_ns;
    int64_t retry_backoff_ns, retry_backoff_max_ns;
    int64_t setup_timeout_ns, setup_timeout_max_ns;
    int64_t max_idle_ns; /* KP_NEVER: never close an idle connection */
    int32_t send_buffer, receive_buffer; /* -1: the system's */

    /* metrics */
    int32_t metrics_samples;
    int64_t metrics_window_ns;

    /* logging */
    kp_level log_level;
    kp_log_fn log_fn;
    void *log_arg;
};

/* Check `config` as a whole (Java's cross-checks) and copy it out.  Warnings go
 * to the config's log function.  KP_EINVAL, KP_ENOTSUP or KP_ENOMEM, with the
 * property, its value and the remedy in `error`: `out` is as it was. */
kp_err kp__settings_make(struct settings *out, const kp_config *config,
                         kp_error *error);
void kp__settings_fini(struct settings *s);

#endif
