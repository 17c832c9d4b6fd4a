/* SPDX-License-Identifier: BSD-2-Clause */
/* check_record.c - see check_record.h.  Sending threads.  Pure. */
#include "lib/api/check_record.h"

#include <string.h>

#include "lib/shared/topics.h"
#include "lib/wire/record.h"

#define KNOWN_FLAGS \
    ((uint32_t)(KP_HAS_PARTITION | KP_HAS_TIMESTAMP | KP_NOWAIT))

static bool is_nothing_with_a_size(kp_bytes b)
{
    return b.data == NULL && b.size != 0;
}

static kp_err check_headers(const kp_record *r)
{
    if (r->header_count > 0 && r->headers == NULL)
        return KP_EINVAL;
    for (size_t i = 0; i < r->header_count; i++) {
        if (r->headers[i].key.data == NULL)
            return KP_EHEADER;
        if (is_nothing_with_a_size(r->headers[i].value))
            return KP_EINVAL;
    }
    return KP_OK;
}

static kp_err check_numbers(const kp_record *r)
{
    bool partition = (r->flags & KP_HAS_PARTITION) != 0;
    bool timestamp = (r->flags & KP_HAS_TIMESTAMP) != 0;

    if (partition ? r->partition < 0 : r->partition != 0)
        return KP_EPARTITION;
    if (timestamp ? r->timestamp_ms < 0 : r->timestamp_ms != 0)
        return KP_ETIMESTAMP;
    return KP_OK;
}

kp_err kp__check_record(const kp_record *r, const struct settings *s)
{
    kp_err err;
    size_t bound;

    if (r->topic == NULL || (r->flags & ~KNOWN_FLAGS) != 0 ||
        r->reserved32 != 0 || r->reserved[0] != 0 || r->reserved[1] != 0)
        return KP_EINVAL;
    if (r->on_delivery != NULL && r->queue != NULL)
        return KP_EINVAL;
    if (is_nothing_with_a_size(r->key) || is_nothing_with_a_size(r->value))
        return KP_EINVAL;
    err = check_numbers(r);
    /* A header has a byte for the length of its key, and one for its value's:
     * a count that cannot be is no number of headers to look at. */
    if (err == KP_OK && r->headers != NULL &&
        r->header_count > s->max_request_size / 2)
        return KP_ETOOBIG;
    if (err == KP_OK && r->header_count > 0)
        err = check_headers(r);
    if (err != KP_OK)
        return err;
    bound = kp__record_upper_bound(r);
    if (bound > s->max_request_size || bound > s->buffer_memory)
        return KP_ETOOBIG;
    return KP_OK;
}

static bool topic_char(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           (c >= '0' && c <= '9') || c == '.' || c == '_' || c == '-';
}

bool kp__topic_is_legal(const char *name, size_t size)
{
    if (size == 0 || size > TOPIC_SIZE_MAX)
        return false;
    if (name[0] == '.' && (size == 1 || (size == 2 && name[1] == '.')))
        return false;
    for (size_t i = 0; i < size; i++)
        if (!topic_char(name[i]))
            return false;
    return true;
}
