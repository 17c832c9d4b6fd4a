/* SPDX-License-Identifier: BSD-2-Clause */
/* handshake.c - the first exchange on a connection: which versions of which
 * APIs does this broker speak?  I/O thread only.
 *
 * ApiVersions is asked in our highest version.  A broker that does not know
 * it says UNSUPPORTED_VERSION in the layout of version 0, with the range it
 * knows if it is new enough: then once more on the same connection.  A peer
 * that hangs up or stays silent is asked in version 0 on the next
 * connection.  Kafka: NetworkClient.handleApiVersionsResponse, KIP-511;
 * cluster check: KIP-1242. */
#include <errno.h>
#include <string.h>

#include "io_thread/client.h"
#include "lib/wire/errors.h"

#define SOFTWARE_NAME "libkp"
#define DIGITS_(x) #x
#define DIGITS(x) DIGITS_(x)
#define SOFTWARE_VERSION \
    DIGITS(KP_VERSION_MAJOR) \
    "." DIGITS(KP_VERSION_MINOR) "." DIGITS(KP_VERSION_PATCH)

static void answered(void *arg, struct request *r, enum request_end end,
                     struct reader *body, kp_err err);

static struct text text_of(const char *s)
{
    return (struct text){.data = s, .size = strlen(s)};
}

static bool ask(struct node *n, int16_t version)
{
    struct network_client *c = n->client;
    const struct api *api = kp__api(API_API_VERSIONS);
    struct request *r = kp__request_create(api, version);
    struct api_versions_request q;

    if (r == NULL)
        return false;
    kp__schema_defaults(api->request, &q);
    q.client_software_name = text_of(SOFTWARE_NAME);
    q.client_software_version = text_of(SOFTWARE_VERSION);
    if (c->settings->cluster_check &&
        c->settings->recovery == RECOVERY_REBOOTSTRAP && n->id >= 0 &&
        c->cluster_id != NULL) {
        q.cluster_id = text_of(c->cluster_id);
        q.node_id = n->id;
    }
    kp__request_begin(r, c->settings->client_id);
    kp__schema_encode(api->request, &r->frame, version,
                      kp__api_flexible(api, version), &q);
    if (kp__request_seal(r, kp__client_next_correlation(c)) != KP_OK) {
        kp__request_destroy(r);
        return false;
    }
    r->timeout_ns = c->settings->request_timeout_ns;
    r->done = answered;
    r->arg = n;
    n->handshake_version = version;
    kp__requests_add(n, r);
    return true;
}

/* No memory: the attempt ends when the (empty) socket is next looked at. */
static void begin(struct node *n, int16_t version)
{
    if (!ask(n, version))
        kp__connection_broken(n, ENOMEM);
}

void kp__handshake_begin(struct node *n)
{
    begin(n, n->handshake_plain ? (int16_t)0
                                : kp__api(API_API_VERSIONS)->max_version);
}

void kp__handshake_cut(struct node *n)
{
    /* a proxy or a broker that cannot say what it does not know */
    n->handshake_plain =
        n->handshake_version > 0 &&
        (n->error == KP_EDISCONNECT || n->error == KP_ECONNECT);
}

static void refuse(struct node *n)
{
    n->handshake_refused = true; /* kp__requests_answer ends the connection */
}

/* -- ranges -- */

static void take_range(struct node *n, const struct api_version *v)
{
    int place = kp__api_place(v->api_key);
    const struct api *api;
    struct version_range *range;

    if (place < 0 || v->min_version < 0 || v->max_version < v->min_version)
        return;
    api = kp__apis[place];
    range = &n->versions[place];
    if (range->broker_max >= 0)
        return; /* named twice: the first counts */
    range->broker_min = v->min_version;
    range->broker_max = v->max_version;
    range->min =
        v->min_version > api->min_version ? v->min_version : api->min_version;
    range->max =
        v->max_version < api->max_version ? v->max_version : api->max_version;
    if (range->max < range->min)
        range->max = -1;
}

static void take_ranges(struct node *n, const struct api_versions_response *a)
{
    const struct api_version *v = a->api_keys.items;

    for (size_t i = 0; i < kp__api_count; i++)
        n->versions[i] = (struct version_range){-1, -1, -1, -1};
    for (size_t i = 0; i < a->api_keys.count; i++)
        take_range(n, &v[i]);
}

/* Without these two nothing can be done with it. */
static bool usable(struct node *n, int16_t key, const char *name)
{
    const struct version_range *v = &n->versions[kp__api_place(key)];
    const struct api *api = kp__api(key);

    if (v->max >= 0)
        return true;
    if (v->broker_max < 0)
        kp__node_fail_text(n, KP_ENOTSUP,
                           "%.100s: does not speak %s; we speak versions "
                           "%d-%d",
                           n->name, name, api->min_version, api->max_version);
    else
        kp__node_fail_text(n, KP_ENOTSUP,
                           "%.100s: speaks %s versions %d-%d, we speak %d-%d"
                           "%s",
                           n->name, name, v->broker_min, v->broker_max,
                           api->min_version, api->max_version,
                           v->broker_max < api->min_version
                               ? "; it is older than Kafka 0.11"
                               : "");
    return false;
}

/* -- the answer -- */

/* The version to ask in after UNSUPPORTED_VERSION. */
static int16_t version_named(const struct node *n,
                             const struct api_versions_response *a)
{
    const struct api_version *v = a->api_keys.items;

    for (size_t i = 0; i < a->api_keys.count; i++)
        if (v[i].api_key == API_API_VERSIONS && v[i].max_version >= 0 &&
            v[i].max_version < n->handshake_version)
            return v[i].max_version;
    return 0;
}

static void unsupported(struct node *n, struct reader *body, struct arena *a)
{
    const struct api *api = kp__api(API_API_VERSIONS);
    struct api_versions_response response;

    if (n->handshake_version == 0) {
        kp__node_fail_text(n, KP_ENOTSUP,
                           "%.100s: speaks no version of ApiVersions", n->name);
        refuse(n);
        return;
    }
    if (kp__schema_decode(api->response, body, a, 0, false, &response))
        begin(n, version_named(n, &response));
}

static void accepted(struct node *n, struct request *r,
                     const struct api_versions_response *response)
{
    take_ranges(n, response);
    if (!usable(n, API_PRODUCE, "Produce") ||
        !usable(n, API_METADATA, "Metadata")) {
        refuse(n);
        return;
    }
    kp__client_throttle(n->client, r, response->throttle_time_ms);
    kp__connection_ready(n);
}

static void refused(struct node *n, kp_err code)
{
    if (code == KP_REBOOTSTRAP_REQUIRED) {
        n->client->misrouted = true;
        kp__node_fail_text(n, code,
                           "%.100s: is another broker, or of another cluster, "
                           "than metadata says",
                           n->name);
    } else {
        kp__node_fail_text(n, code, "%.100s: answers ApiVersions with %s",
                           n->name, kp__error_info(code)->name);
    }
    refuse(n);
}

/* The error code is the first field of every version. */
static int16_t peek_code(const struct reader *body)
{
    struct reader copy = *body;

    return kp__read_i16(&copy);
}

static void judge(struct node *n, struct request *r, struct reader *body,
                  struct arena *a)
{
    struct api_versions_response response;
    int16_t code = peek_code(body);

    if (code == KP_UNSUPPORTED_VERSION)
        unsupported(n, body, a);
    else if (!kp__schema_decode(r->api->response, body, a, r->version,
                                kp__api_flexible(r->api, r->version),
                                &response))
        return; /* body->failed tells */
    else if (response.error_code != 0)
        refused(n, kp__error_answered(response.error_code));
    else
        accepted(n, r, &response);
}

static void answered(void *arg, struct request *r, enum request_end end,
                     struct reader *body, kp_err err)
{
    struct arena a;

    (void)err; /* the connection's end has its text already */
    if (end == REQUEST_ANSWERED) {
        kp__arena_init(&a);
        judge(arg, r, body, &a);
        kp__arena_fini(&a);
    }
    kp__request_destroy(r);
}
