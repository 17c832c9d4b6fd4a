/* SPDX-License-Identifier: BSD-2-Clause */
/* content.h - what the records hold: a function of run, lane and sequence.
 *
 * No two records of a journal are equal: those whose form has no room for a
 * number carry a timestamp of their own. */
#ifndef KP_TEST_INTEGRATION_CONTENT_H
#define KP_TEST_INTEGRATION_CONTENT_H

#include <kp/kp.h>

#include "test/integration/sender/hash.h"
#include "test/integration/sender/journal.h"

enum form {
    FORM_TEXT,        /* key and value */
    FORM_NO_KEY,      /* null key, value */
    FORM_HEADERS,     /* and three headers, one name twice */
    FORM_ODD_HEADERS, /* null, empty and binary values, an empty name */
    FORM_BINARY,      /* every byte value, in key and value */
    FORM_TOMBSTONE,   /* key, null value */
    FORM_EMPTY,       /* key and value of no bytes */
    FORM_ALL_NULL,    /* null key, null value */
    /* the others with each kind of headers */
    FORM_NO_KEY_HEADERS,
    FORM_NO_KEY_ODD_HEADERS,
    FORM_BINARY_HEADERS,
    FORM_BINARY_ODD_HEADERS,
    FORM_TOMBSTONE_HEADERS,
    FORM_TOMBSTONE_ODD_HEADERS,
    FORM_EMPTY_HEADERS,
    FORM_EMPTY_ODD_HEADERS,
    FORM_ALL_NULL_HEADERS,
    FORM_ALL_NULL_ODD_HEADERS,
    FORM_COUNT
};

#define VALUE_SLACK ((size_t)96) /* the name fits, whatever value_size is */

struct content {
    const char *run; /* tells the programs that share a topic apart */
    enum form form;
    size_t value_size;
    uint32_t key_count; /* keys repeat after so many; 0: never */
    bool stamp_odd;     /* give every other record a timestamp of its own */
    int64_t stamp_base_ms;
    uint32_t lane, lane_capacity;
    char key[64];
    unsigned char *value; /* value_size + VALUE_SLACK bytes */
    kp_header headers[4];
};

const char *form_name(enum form form);
/* FORM_COUNT if there is none of this name. */
enum form form_of(const char *name);
/* Fill in key, value, headers and timestamp of record number `seq`, and the
 * entry's hashes.  The bytes stay until the next call. */
void content_make(struct content *c, uint32_t seq, kp_record *r,
                  struct entry *e);

#endif
