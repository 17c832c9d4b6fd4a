/* SPDX-License-Identifier: BSD-2-Clause */
/* host_port.h - reading bootstrap.servers.  Pure; any thread. */
#ifndef KP_CONFIG_HOST_PORT_H
#define KP_CONFIG_HOST_PORT_H

#include <stddef.h>

#include "include/kp/kp.h"
#include "lib/config/settings.h"

/* Is `value` a list of host:port?  Empty entries are skipped, and none at all
 * is fine here.  KP_EINVAL, with the entry and the remedy in `error`; `name` is
 * what the caller called the property. */
kp_err kp__servers_check(const char *name, const char *value, kp_error *error);

/* The same list as an array, for the caller to give to kp__servers_free.  No
 * entry: *out is NULL.  KP_EINVAL as above, or KP_ENOMEM. */
kp_err kp__servers_parse(const char *value, struct host_port **out,
                         size_t *count, kp_error *error);
void kp__servers_free(struct host_port *servers, size_t count);

#endif
