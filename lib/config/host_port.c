/* SPDX-License-Identifier: BSD-2-Clause */
/* host_port.c - reading bootstrap.servers.
 *
 * Pure; any thread.  Names are not resolved here: only their form is checked.
 * One function splits the list and one reads an entry, so that what
 * kp_config_set lets through can always be parsed later. */
#include "lib/config/host_port.h"

#include <arpa/inet.h>
#include <stdbool.h>
#include <string.h>

#include "lib/base/error.h"
#include "lib/base/mem.h"
#include "lib/base/str.h"

#define HOST_SIZE_MAX 255
#define HOST_CHARACTERS \
    "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-._%"

/* Points into the text that is read. */
struct entry {
    const char *host;
    size_t host_size;
    uint16_t port;
};

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\f' || c == '\r' || c == '\n';
}

/* The next entry that is not empty, without blanks around it; *value moves past
 * it.  False: none is left. */
static bool next_entry(const char **value, const char **start, size_t *size)
{
    const char *s, *end;

    while (**value != '\0') {
        s = *value;
        end = s + strcspn(s, ",");
        *value = *end == ',' ? end + 1 : end;
        while (s < end && is_blank(*s))
            s++;
        while (s < end && is_blank(end[-1]))
            end--;
        if (s < end) {
            *start = s;
            *size = (size_t)(end - s);
            return true;
        }
    }
    return false;
}

/* What stands behind the address, % and all: nothing, or %eth0. */
static bool is_zone(const char *zone, size_t size)
{
    return size == 0 || (size > 1 && strspn(zone, HOST_CHARACTERS) >= size);
}

/* An IPv6 address, perhaps with a zone: fe80::1%eth0. */
static bool is_ipv6(const char *host, size_t size)
{
    const char *zone = memchr(host, '%', size);
    size_t address_size = zone != NULL ? (size_t)(zone - host) : size;
    char text[INET6_ADDRSTRLEN];
    struct in6_addr address;

    if (size > HOST_SIZE_MAX || address_size >= sizeof(text) ||
        !is_zone(host + address_size, size - address_size))
        return false;
    memcpy(text, host, address_size);
    text[address_size] = '\0';
    return inet_pton(AF_INET6, text, &address) == 1;
}

static const char *read_port(const char *s, size_t size, uint16_t *port)
{
    uint32_t n = 0;
    size_t i;

    for (i = 0; i < size && s[i] >= '0' && s[i] <= '9' && n <= 65535; i++)
        n = n * 10 + (uint32_t)(s[i] - '0');
    if (size == 0 || i < size || n == 0 || n > 65535)
        return "the port must be a number from 1 to 65535";
    *port = (uint16_t)n;
    return NULL;
}

static const char *read_ipv6(const char *s, size_t size, struct entry *e)
{
    const char *close = memchr(s, ']', size);

    if (close == NULL)
        return "the ] after the IPv6 address is missing";
    e->host = s + 1;
    e->host_size = (size_t)(close - e->host);
    if (!is_ipv6(e->host, e->host_size))
        return "[ and ] must enclose an IPv6 address, as in [::1]:9092";
    if (close + 1 == s + size || close[1] != ':')
        return "the port is missing: write [address]:9092";
    return read_port(close + 2, size - (size_t)(close + 2 - s), &e->port);
}

static const char *read_name(const char *s, size_t size, struct entry *e)
{
    const char *colon = memchr(s, ':', size);

    if (colon == NULL)
        return "the port is missing: write host:9092";
    e->host = s;
    e->host_size = (size_t)(colon - s);
    if (memchr(colon + 1, ':', size - e->host_size - 1) != NULL)
        return "an IPv6 address needs brackets: write [address]:9092";
    if (e->host_size == 0)
        return "the host is missing: write host:9092";
    if (e->host_size > HOST_SIZE_MAX ||
        strspn(s, HOST_CHARACTERS) < e->host_size)
        return "this is not a host name";
    return read_port(colon + 1, size - e->host_size - 1, &e->port);
}

static bool has_scheme(const char *s, size_t size)
{
    size_t i;

    for (i = 0; i + 2 < size; i++)
        if (memcmp(s + i, "://", 3) == 0)
            return true;
    return false;
}

/* NULL, or what is wrong and what to do. */
static const char *read_entry(const char *s, size_t size, struct entry *e)
{
    size_t i;

    if (has_scheme(s, size))
        return "leave out the part up to ://, write host:9092 (the protocol is "
               "security.protocol's)";
    for (i = 0; i < size; i++)
        if (is_blank(s[i]) || s[i] == ';')
            return "entries are separated by commas";
    return *s == '[' ? read_ipv6(s, size, e) : read_name(s, size, e);
}

static kp_err bad_entry(const char *name, const char *start, size_t size,
                        const char *why, kp_error *error)
{
    char shown[64];

    kp__str_escape(shown, sizeof(shown), start, size);
    return kp__error_set(error, KP_EINVAL, KP_OK, "%s: \"%s\": %s", name, shown,
                         why);
}

static kp_err count_entries(const char *name, const char *value, size_t *count,
                            kp_error *error)
{
    const char *start, *why;
    size_t size, n = 0;
    struct entry e;

    while (next_entry(&value, &start, &size)) {
        why = read_entry(start, size, &e);
        if (why != NULL)
            return bad_entry(name, start, size, why, error);
        n++;
    }
    *count = n;
    return KP_OK;
}

kp_err kp__servers_check(const char *name, const char *value, kp_error *error)
{
    size_t count;

    return count_entries(name, value, &count, error);
}

kp_err kp__servers_parse(const char *value, struct host_port **out,
                         size_t *count, kp_error *error)
{
    struct host_port *servers = NULL;
    const char *start;
    struct entry e;
    size_t size, i, n;
    kp_err err = count_entries("bootstrap.servers", value, &n, error);

    if (err != KP_OK)
        return err;
    if (n > 0 && (servers = kp__alloc_array(n, sizeof(*servers))) == NULL)
        goto no_memory;
    for (i = 0; i < n; i++) {
        (void)next_entry(&value, &start, &size);
        (void)read_entry(start, size, &e);
        servers[i].port = e.port;
        servers[i].host = kp__strndup(e.host, e.host_size);
        if (servers[i].host == NULL) {
            kp__servers_free(servers, i);
            goto no_memory;
        }
    }
    *out = servers;
    *count = n;
    return KP_OK;
no_memory:
    return kp__error_set(error, KP_ENOMEM, KP_OK,
                         "no memory for the list of bootstrap.servers");
}

void kp__servers_free(struct host_port *servers, size_t count)
{
    size_t i;

    for (i = 0; i < count; i++)
        kp__free(servers[i].host);
    kp__free(servers);
}
