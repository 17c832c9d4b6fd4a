/* SPDX-License-Identifier: BSD-2-Clause */
/* cross_checks.h - what a producer's settings mean together.
 *
 * Java's rules (ProducerConfig, KafkaProducer.configureDeliveryTimeout,
 * CommonClientConfigs): a contradiction between values that were set is an
 * error, one with a default gives way to what was set, with a WARN line. */
#ifndef KP_CONFIG_CROSS_CHECKS_H
#define KP_CONFIG_CROSS_CHECKS_H

#include "lib/config/config.h"
#include "lib/config/settings.h"

/* Refuse what contradicts itself: KP_EINVAL or KP_ENOTSUP, with the properties,
 * their values and the remedy in `error`.  Changes and logs nothing. */
kp_err kp__settings_check(const struct settings *s,
                          const struct kp_config *config, kp_error *error);
/* After that: let defaults give way, with a log line for each.  Cannot fail. */
void kp__settings_adjust(struct settings *s, const struct kp_config *config);

#endif
