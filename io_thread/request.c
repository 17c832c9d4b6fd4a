/* SPDX-License-Identifier: BSD-2-Clause */
/* request.c - a request as bytes.  I/O thread only.
 *
 * A frame is the buffer of its writer, cut where splices come, and the owners'
 * memory between the cuts.  Invariant after kp__request_seal: the pieces in
 * r->iov hold total_size bytes, and their order is the order on the wire. */
#include <string.h>

#include "io_thread/client.h"
#include "lib/base/mem.h"

#define SIZE_SIZE 4      /* of the size in front */
#define CORRELATION_AT 8 /* size, api key, version */

struct request *kp__request_create(const struct api *api, int16_t version)
{
    struct request *r = kp__zalloc(sizeof *r);

    if (r == NULL)
        return NULL;
    kp__node_init(&r->link);
    r->api = api;
    r->version = version;
    r->expects_response = true;
    kp__writer_init(&r->frame);
    return r;
}

void kp__request_destroy(struct request *r)
{
    if (r == NULL)
        return;
    KP_CHECK(!r->deadline.in_heap && !kp__node_linked(&r->link));
    kp__writer_fini(&r->frame);
    kp__free(r->iov);
    kp__free(r);
}

void kp__request_begin(struct request *r, const char *client_id)
{
    struct request_header h = {
        .api_key = r->api->key,
        .version = r->version,
        .client_id = {.data = client_id,
                      .size = client_id == NULL ? 0 : strlen(client_id)},
    };

    kp__write_i32(&r->frame, 0);
    kp__request_header_encode(&r->frame, &h);
}

static void put_i32(uint8_t *at, int32_t value)
{
    uint32_t v = (uint32_t)value;

    at[0] = (uint8_t)(v >> 24);
    at[1] = (uint8_t)(v >> 16);
    at[2] = (uint8_t)(v >> 8);
    at[3] = (uint8_t)v;
}

/* How many pieces there can be at most. */
static size_t count_pieces(const struct request *r)
{
    size_t n = 1;

    for (size_t i = 0; i < r->frame.splice_count; i++)
        n += 1 + r->pieces(r->frame.splices[i].owner, NULL, 0);
    return n;
}

static void add_piece(struct request *r, const uint8_t *data, size_t size)
{
    if (size == 0)
        return;
    r->iov[r->iov_count].iov_base = (void *)(uintptr_t)data;
    r->iov[r->iov_count].iov_len = size;
    r->iov_count++;
}

static void collect(struct request *r, size_t room)
{
    const struct writer *w = &r->frame;
    size_t at = 0;

    for (size_t i = 0; i < w->splice_count; i++) {
        const struct splice *s = &w->splices[i];
        add_piece(r, w->buf.data + at, s->at - at);
        at = s->at;
        r->iov_count +=
            r->pieces(s->owner, r->iov + r->iov_count, room - r->iov_count);
    }
    add_piece(r, w->buf.data + at, w->buf.size - at);
}

kp_err kp__request_seal(struct request *r, int32_t correlation_id)
{
    size_t room, size = kp__writer_size(&r->frame);

    if (kp__writer_failed(&r->frame) || size - SIZE_SIZE > INT32_MAX)
        return KP_ENOMEM;
    room = count_pieces(r);
    r->iov = kp__alloc_array(room, sizeof *r->iov);
    if (r->iov == NULL)
        return KP_ENOMEM;
    r->correlation_id = correlation_id;
    put_i32(r->frame.buf.data, (int32_t)(size - SIZE_SIZE));
    put_i32(r->frame.buf.data + CORRELATION_AT, correlation_id);
    r->total_size = size;
    r->written = 0;
    r->iov_count = 0;
    r->iov_at = 0;
    collect(r, room);
#ifdef KP_DEBUG
    size = 0;
    for (size_t i = 0; i < r->iov_count; i++)
        size += r->iov[i].iov_len;
    KP_CHECK(size == r->total_size);
#endif
    return KP_OK;
}
