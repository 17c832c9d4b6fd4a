/* SPDX-License-Identifier: BSD-2-Clause */
/* config_fuzz.c - what a user may set: .properties texts, single values, and
 * lists of servers.
 *
 * Oracle: a call that fails changes nothing and says why in one line; what it
 * takes has no blanks around it and is taken again; a config that was filled
 * makes settings or says why not; all memory comes back. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/config/config.h"
#include "lib/config/config_names.h"
#include "lib/config/host_port.h"
#include "test/fuzz/fuzz.h"

/* -- a config, and what it held -- */

static void check_line(void *arg, const kp_log *line)
{
    size_t size = strlen(line->text);

    (void)arg;
    FUZZ_CHECK(size > 0 && size < 512);
    for (size_t i = 0; i < size; i++)
        FUZZ_CHECK((unsigned char)line->text[i] >= ' ');
}

static kp_config *make(void)
{
    kp_config *c;

    FUZZ_CHECK(kp_config_create(&c) == KP_OK);
    kp_config_on_log(c, KP_LOG_DEBUG, check_line, NULL);
    return c;
}

struct held {
    char *values[PROPERTY_COUNT];
};

static void hold(struct held *h, const kp_config *c)
{
    for (size_t i = 0; i < PROPERTY_COUNT; i++)
        h->values[i] = c->values[i] != NULL
                           ? fuzz_string(c->values[i], strlen(c->values[i]))
                           : NULL;
}

/* Is it the same as then?  The copy is freed. */
static bool unchanged(struct held *h, const kp_config *c)
{
    bool same = true;

    for (size_t i = 0; i < PROPERTY_COUNT; i++) {
        if (h->values[i] == NULL || c->values[i] == NULL)
            same = same && h->values[i] == c->values[i];
        else
            same = same && strcmp(h->values[i], c->values[i]) == 0;
        free(h->values[i]);
    }
    return same;
}

static bool is_blank(char c)
{
    return c > '\0' && c <= ' ';
}

static void check_values(const kp_config *c)
{
    for (size_t i = 0; i < PROPERTY_COUNT; i++) {
        const char *v = c->values[i];
        int64_t number;

        if (v == NULL)
            continue;
        FUZZ_CHECK(!is_blank(v[0]));
        FUZZ_CHECK(v[0] == '\0' || !is_blank(v[strlen(v) - 1]));
        FUZZ_CHECK(kp__property_check(&kp__properties[i],
                                      kp__properties[i].name, v, &number,
                                      NULL) == KP_OK);
    }
}

static void check_sizes(const struct settings *s)
{
    FUZZ_CHECK(s->bootstrap_count > 0 && s->client_id != NULL);
    FUZZ_CHECK(s->acks >= -1 && s->acks <= 1);
    FUZZ_CHECK(!s->idempotence || (s->acks == -1 && s->max_in_flight <= 5));
    FUZZ_CHECK(s->delivery_timeout_ns >= 0 && s->request_timeout_ns >= 0);
    FUZZ_CHECK(s->linger_ns >= 0 && s->max_block_ns >= 0);
    FUZZ_CHECK(s->retry_backoff_ns >= 0 && s->reconnect_backoff_ns >= 0);
}

static void make_settings(kp_config *c)
{
    struct settings s;
    kp_error error = {0};
    kp_err err = kp__settings_make(&s, c, &error);

    fuzz_check_error(err, &error);
    FUZZ_CHECK(err == KP_OK || err == KP_EINVAL || err == KP_ENOTSUP);
    if (err != KP_OK)
        return;
    check_sizes(&s);
    kp__settings_fini(&s);
}

/* -- properties: a text -- */

void fuzz_properties(const uint8_t *data, size_t size)
{
    struct fuzz_memory memory = fuzz_memory_begin();
    uint8_t *text = fuzz_copy(data, size);
    kp_config *c = make();
    kp_error error = {0};
    struct held before;
    kp_err err;

    FUZZ_CHECK(kp_config_set(c, "bootstrap.servers", "a:1", NULL) == KP_OK);
    hold(&before, c);
    err =
        kp__config_load(c, "a \"source\"\n", (const char *)text, size, &error);
    FUZZ_CHECK(err == KP_OK || err == KP_EINVAL || err == KP_ENOTSUP);
    fuzz_check_error(err, &error);
    FUZZ_CHECK(unchanged(&before, c) || err == KP_OK);
    check_values(c);
    if (err == KP_OK)
        make_settings(c);
    kp_config_destroy(c);
    free(text);
    fuzz_memory_end(&memory);
}

static const char *const texts[] = {
    "bootstrap.servers=one:9092,two:9093\nacks=all\n",
    "# a comment\n! another\nclient.id = \\u00e9t\\u00E9\nlinger.ms:5\n",
    "compression.type zstd\r\ncompression.zstd.level=\\\r\n   7\r\n",
    "delivery.timeout.ms=1\nlinger.ms=2\nrequest.timeout.ms=3\n",
    "queue.buffering.max.ms=5\nkey.serializer=some.java.Class\n",
    "\xef\xbb\xbf batch.size=\\\n\\\n16384\ncliend.id=x\n",
    "a\\=b\\:c\\ d = \\t\\n\\f\\r\\q\nssl.keystore.location=/x\n",
    "client.id=\\uD83D\\uDE00\nacks=0\nenable.idempotence=true\n"};

void fuzz_properties_seeds(fuzz_seed_fn fn, void *arg)
{
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        fn(arg, "text", texts[i], strlen(texts[i]));
}

/* -- config_set: rounds of a name's place, the value's size, the value; place
 * 255: the name too is free, up to an '=' -- */

#define ANY_NAME 255

static void set_one(kp_config *c, const char *name, const char *value)
{
    kp_error error = {0};
    struct held before;
    kp_err err;

    hold(&before, c);
    err = kp_config_set(c, name, value, &error);
    fuzz_check_error(err, &error);
    FUZZ_CHECK(err == KP_OK || err == KP_EINVAL || err == KP_ENOTSUP);
    FUZZ_CHECK(unchanged(&before, c) || err == KP_OK);
}

static void set_next(kp_config *c, struct fuzz_input *in)
{
    uint8_t place = fuzz_byte(in);
    size_t most = fuzz_byte(in), size;
    const uint8_t *at = fuzz_bytes(in, most, &size);
    char *text = fuzz_string(at, size), *equals = strchr(text, '=');

    if (place != ANY_NAME) {
        set_one(c, kp__config_names[place % kp__config_name_count].name, text);
    } else if (equals == NULL) {
        set_one(c, text, NULL);
    } else {
        *equals = '\0';
        set_one(c, text, equals + 1);
    }
    free(text);
}

void fuzz_config_set(const uint8_t *data, size_t size)
{
    struct fuzz_memory memory = fuzz_memory_begin();
    struct fuzz_input in = {data, data + size};
    kp_config *c = make();

    FUZZ_CHECK(kp_config_set(c, "bootstrap.servers", "a:1", NULL) == KP_OK);
    while (in.at < in.end)
        set_next(c, &in);
    check_values(c);
    make_settings(c);
    kp_config_destroy(c);
    fuzz_memory_end(&memory);
}

static void give_setting(uint8_t place, const char *value, fuzz_seed_fn fn,
                         void *arg)
{
    uint8_t bytes[2 + 255];
    size_t size = strlen(value);

    bytes[0] = place;
    bytes[1] = (uint8_t)size;
    memcpy(bytes + 2, value, size);
    fn(arg, "setting", bytes, 2 + size);
}

void fuzz_config_set_seeds(fuzz_seed_fn fn, void *arg)
{
    for (size_t i = 0; i < kp__config_name_count && i < ANY_NAME; i++) {
        const struct config_name *n = &kp__config_names[i];
        bool has = n->kind == NAME_PROPERTY || n->kind == NAME_ALIAS;

        give_setting((uint8_t)i,
                     has ? kp__properties[n->property].default_value : "1", fn,
                     arg);
    }
    give_setting(ANY_NAME, "ssl.no.such=1", fn, arg);
    give_setting(ANY_NAME, "linger.ms=-1", fn, arg);
}

/* -- servers: a list -- */

void fuzz_servers(const uint8_t *data, size_t size)
{
    struct fuzz_memory memory = fuzz_memory_begin();
    char *text = fuzz_string(data, size);
    kp_error checked = {0}, parsed = {0};
    struct host_port *servers = NULL;
    size_t count = 0;
    kp_err err = kp__servers_check("bootstrap.servers", text, &checked);

    FUZZ_CHECK(err == KP_OK || err == KP_EINVAL);
    fuzz_check_error(err, &checked);
    FUZZ_CHECK(kp__servers_parse(text, &servers, &count, &parsed) == err);
    FUZZ_CHECK(err == KP_OK || (servers == NULL && count == 0));
    fuzz_check_error(err, &parsed);
    FUZZ_CHECK(count <= size && (count == 0) == (servers == NULL));
    for (size_t i = 0; i < count; i++) {
        size_t host_size = strlen(servers[i].host);

        FUZZ_CHECK(host_size > 0 && host_size <= 255 && servers[i].port > 0);
        FUZZ_CHECK(strpbrk(servers[i].host, "[], \t\n;/") == NULL);
    }
    kp__servers_free(servers, count);
    free(text);
    fuzz_memory_end(&memory);
}

static const char *const lists[] = {
    "one:9092",   "one:9092,two:9093, three.example.com:1 ,",
    "[::1]:9092", "[fe80::1%eth0]:65535,10.0.0.1:1",
    ",,",         "PLAINTEXT://one:9092",
    "[::1]",      "[::ffff:1.2.3.4]:9092;b:1",
    "a:0",        "a:65536"};

void fuzz_servers_seeds(fuzz_seed_fn fn, void *arg)
{
    for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++)
        fn(arg, "list", lists[i], strlen(lists[i]));
}
