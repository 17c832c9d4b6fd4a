/* SPDX-License-Identifier: BSD-2-Clause */
/* api.c - the list of our APIs, and the headers of their messages.  Pure; any
 * thread.
 *
 * Only the header's version is decided here: request v2 and response v1 are for
 * flexible messages, and the response to ApiVersions always has v0. */
#include "lib/wire/api.h"

const struct api *const kp__apis[] = {
    &kp__api_produce,
    &kp__api_metadata,
    &kp__api_api_versions,
    &kp__api_init_producer_id,
};
const size_t kp__api_count = sizeof kp__apis / sizeof kp__apis[0];

const struct api *kp__api(int16_t key)
{
    for (size_t i = 0; i < kp__api_count; i++)
        if (kp__apis[i]->key == key)
            return kp__apis[i];
    return NULL;
}

static bool is_flexible(int16_t key, int16_t version)
{
    const struct api *a = kp__api(key);

    return a != NULL && kp__api_flexible(a, version);
}

/* The client id keeps its int16 length in header v2 as well. */
static void encode_client_id(struct writer *w, const struct text *id)
{
    if (id->size > INT16_MAX) {
        w->buf.failed = true;
        return;
    }
    kp__write_i16(w, id->data == NULL ? (int16_t)-1 : (int16_t)id->size);
    if (id->data != NULL)
        kp__write_bytes(w, id->data, id->size);
}

void kp__request_header_encode(struct writer *w, const struct request_header *h)
{
    kp__write_i16(w, h->api_key);
    kp__write_i16(w, h->version);
    kp__write_i32(w, h->correlation_id);
    encode_client_id(w, &h->client_id);
    if (is_flexible(h->api_key, h->version))
        kp__write_uvarint(w, 0); /* no tagged fields */
}

bool kp__request_header_decode(struct reader *r, struct request_header *h)
{
    struct request_header d = {0};
    int16_t size;

    d.api_key = kp__read_i16(r);
    d.version = kp__read_i16(r);
    d.correlation_id = kp__read_i32(r);
    size = kp__read_i16(r);
    if (size < -1)
        kp__reader_fail(r, "bad length");
    if (size >= 0 && !r->failed) {
        d.client_id.data = (const char *)kp__read_bytes(r, (size_t)size);
        d.client_id.size = (size_t)size;
    }
    if (is_flexible(d.api_key, d.version))
        kp__read_skip_tags(r);
    if (r->failed)
        return false;
    *h = d;
    return true;
}

static bool response_has_tags(int16_t key, int16_t version)
{
    return key != API_API_VERSIONS && is_flexible(key, version);
}

void kp__response_header_encode(struct writer *w, int16_t api_key,
                                int16_t version, int32_t correlation_id)
{
    kp__write_i32(w, correlation_id);
    if (response_has_tags(api_key, version))
        kp__write_uvarint(w, 0);
}

bool kp__response_header_decode(struct reader *r, int16_t api_key,
                                int16_t version, int32_t *correlation_id)
{
    int32_t id = kp__read_i32(r);

    if (response_has_tags(api_key, version))
        kp__read_skip_tags(r);
    if (r->failed)
        return false;
    *correlation_id = id;
    return true;
}
