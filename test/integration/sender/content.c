/* SPDX-License-Identifier: BSD-2-Clause */
/* content.c - makes records of each form.  Each sending thread has its own
 * struct content, so nothing here is shared. */
#include "test/integration/sender/content.h"

#include <stdio.h>
#include <string.h>

enum header_kind { HEADERS_NONE, HEADERS_PLAIN, HEADERS_ODD };

/* Key and value as the form without headers has them. */
static const struct {
    const char *name;
    enum form body;
    enum header_kind headers;
} forms[FORM_COUNT] = {
    [FORM_TEXT] = {"text", FORM_TEXT, HEADERS_NONE},
    [FORM_NO_KEY] = {"no-key", FORM_NO_KEY, HEADERS_NONE},
    [FORM_HEADERS] = {"headers", FORM_TEXT, HEADERS_PLAIN},
    [FORM_ODD_HEADERS] = {"odd-headers", FORM_TEXT, HEADERS_ODD},
    [FORM_BINARY] = {"binary", FORM_BINARY, HEADERS_NONE},
    [FORM_TOMBSTONE] = {"tombstone", FORM_TOMBSTONE, HEADERS_NONE},
    [FORM_EMPTY] = {"empty", FORM_EMPTY, HEADERS_NONE},
    [FORM_ALL_NULL] = {"all-null", FORM_ALL_NULL, HEADERS_NONE},
    [FORM_NO_KEY_HEADERS] = {"no-key-headers", FORM_NO_KEY, HEADERS_PLAIN},
    [FORM_NO_KEY_ODD_HEADERS] = {"no-key-odd-headers", FORM_NO_KEY,
                                 HEADERS_ODD},
    [FORM_BINARY_HEADERS] = {"binary-headers", FORM_BINARY, HEADERS_PLAIN},
    [FORM_BINARY_ODD_HEADERS] = {"binary-odd-headers", FORM_BINARY,
                                 HEADERS_ODD},
    [FORM_TOMBSTONE_HEADERS] = {"tombstone-headers", FORM_TOMBSTONE,
                                HEADERS_PLAIN},
    [FORM_TOMBSTONE_ODD_HEADERS] = {"tombstone-odd-headers", FORM_TOMBSTONE,
                                    HEADERS_ODD},
    [FORM_EMPTY_HEADERS] = {"empty-headers", FORM_EMPTY, HEADERS_PLAIN},
    [FORM_EMPTY_ODD_HEADERS] = {"empty-odd-headers", FORM_EMPTY, HEADERS_ODD},
    [FORM_ALL_NULL_HEADERS] = {"all-null-headers", FORM_ALL_NULL,
                               HEADERS_PLAIN},
    [FORM_ALL_NULL_ODD_HEADERS] = {"all-null-odd-headers", FORM_ALL_NULL,
                                   HEADERS_ODD},
};

const char *form_name(enum form form)
{
    return forms[form].name;
}

enum form form_of(const char *name)
{
    int f = 0;
    while (f < FORM_COUNT && strcmp(forms[f].name, name) != 0)
        f++;
    return (enum form)f;
}

static kp_bytes bytes(const void *data, size_t size)
{
    kp_bytes b = {data, size};
    return b;
}

/* Text that compresses about as well as a log line does. */
static void fill_text(unsigned char *to, size_t size, uint32_t seq)
{
    static const char words[] =
        "order accepted, warehouse informed, parcel on its way; ";
    for (size_t i = 0; i < size; i++)
        to[i] = (unsigned char)words[(i + seq) % (sizeof words - 1)];
}

static void fill_binary(unsigned char *to, size_t size, uint32_t seq)
{
    uint32_t x = seq * 2654435761U + 1;
    for (size_t i = 0; i < size; i++) {
        x = x * 1664525U + 1013904223U;
        to[i] = (unsigned char)(x >> 24);
    }
}

/* "run:lane:seq:" and then filler: unique, and readable in a dump. */
static kp_bytes make_value(struct content *c, uint32_t seq)
{
    int n = snprintf((char *)c->value, VALUE_SLACK, "%s:%u:%u:", c->run,
                     (unsigned)c->lane, (unsigned)seq);
    size_t named = (size_t)n;
    if (c->value_size <= named)
        return bytes(c->value, named);
    if (forms[c->form].body == FORM_BINARY)
        fill_binary(c->value + named, c->value_size - named, seq);
    else
        fill_text(c->value + named, c->value_size - named, seq);
    return bytes(c->value, c->value_size);
}

static kp_bytes make_key(struct content *c, uint32_t seq)
{
    bool repeats = c->key_count != 0 && forms[c->form].body != FORM_TOMBSTONE;
    uint32_t number = repeats ? seq % c->key_count : seq;
    int n = snprintf(c->key, sizeof c->key, "%s:%u:%u", c->run,
                     (unsigned)c->lane, (unsigned)number);
    size_t size = (size_t)n;
    if (forms[c->form].body == FORM_BINARY) {
        /* All tail lengths of murmur2, and bytes past 127. */
        size = 1 + number % 16;
        fill_binary((unsigned char *)c->key, size, number);
    }
    return bytes(c->key, size);
}

static void make_headers(struct content *c, kp_record *r)
{
    static const unsigned char binary[] = {0, 1, 0x7f, 0x80, 0xff, '=', ','};
    enum header_kind kind = forms[c->form].headers;
    if (kind == HEADERS_PLAIN) {
        c->headers[0] = (kp_header){kp_str("trace"), kp_str("a1b2")};
        c->headers[1] = (kp_header){kp_str("source"), kp_str("shop")};
        c->headers[2] = (kp_header){kp_str("trace"), kp_str("c3")};
        r->header_count = 3;
    } else if (kind == HEADERS_ODD) {
        c->headers[0] = (kp_header){kp_str("null"), bytes(NULL, 0)};
        c->headers[1] = (kp_header){kp_str("empty"), bytes("", 0)};
        c->headers[2] =
            (kp_header){kp_str("binary"), bytes(binary, sizeof binary)};
        c->headers[3] = (kp_header){bytes("", 0), kp_str("no name")};
        r->header_count = 4;
    }
    r->headers = c->headers;
}

static void make_body(struct content *c, uint32_t seq, kp_record *r)
{
    switch (forms[c->form].body) {
    case FORM_EMPTY:
        r->key = bytes("", 0);
        r->value = bytes("", 0);
        break;
    case FORM_ALL_NULL:
        break;
    case FORM_TOMBSTONE:
        r->key = make_key(c, seq);
        break;
    case FORM_NO_KEY:
        r->value = make_value(c, seq);
        break;
    default:
        r->key = make_key(c, seq);
        r->value = make_value(c, seq);
    }
}

static bool needs_stamp(const struct content *c, uint32_t seq)
{
    enum form body = forms[c->form].body;
    if (body == FORM_EMPTY || body == FORM_ALL_NULL)
        return true;
    return c->stamp_odd && (seq & 1) != 0;
}

void content_make(struct content *c, uint32_t seq, kp_record *r,
                  struct entry *e)
{
    make_body(c, seq, r);
    make_headers(c, r);
    e->stamp_ms = -1;
    if (needs_stamp(c, seq)) {
        r->flags |= KP_HAS_TIMESTAMP;
        r->timestamp_ms = c->stamp_base_ms + seq +
                          (int64_t)c->lane * (int64_t)c->lane_capacity;
        e->stamp_ms = r->timestamp_ms;
    }
    uint64_t h = hash_bytes(HASH_START, r->key.data, r->key.size);
    h = hash_bytes(h, r->value.data, r->value.size);
    e->kv_hash = h;
    h = hash_number(h, (int32_t)r->header_count);
    for (size_t i = 0; i < r->header_count; i++) {
        h = hash_bytes(h, r->headers[i].key.data, r->headers[i].key.size);
        h = hash_bytes(h, r->headers[i].value.data, r->headers[i].value.size);
    }
    e->all_hash = h;
}
