/* SPDX-License-Identifier: BSD-2-Clause */
/* handshake.c - ApiVersions 0-5 and InitProducerId 0-6. */
#include <string.h>

#include "test/broker/internal.h"

/* ApiVersionsRequest: [a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])? */
static bool alnum(char ch)
{
    return (ch >= 'a' && ch <= 'z') || (ch >= 'A' && ch <= 'Z') ||
           (ch >= '0' && ch <= '9');
}

static bool software_text(const struct text *t)
{
    size_t i;

    if (t->data == NULL || t->size == 0 || !alnum(t->data[0]) ||
        !alnum(t->data[t->size - 1]))
        return false;
    for (i = 0; i < t->size; i++)
        if (!alnum(t->data[i]) && t->data[i] != '.' && t->data[i] != '-')
            return false;
    return true;
}

/* KIP-1242: from version 5 a client says which cluster and node it believes to
 * talk to: both or neither. */
static int16_t check_versions_request(const struct kb_request *q,
                                      const struct api_versions_request *r)
{
    const struct kb_cluster *c = q->conn->cluster;

    if (q->header.version >= 5 &&
        (r->cluster_id.data == NULL) != (r->node_id == -1))
        return 42;
    if (q->header.version >= 3 && (!software_text(&r->client_software_name) ||
                                   !software_text(&r->client_software_version)))
        return 42;
    if (q->header.version >= 5 && r->cluster_id.data != NULL &&
        (r->cluster_id.size != strlen(c->cluster_id) ||
         memcmp(r->cluster_id.data, c->cluster_id, r->cluster_id.size) != 0 ||
         r->node_id != q->conn->node->id))
        return 129;
    return 0;
}

static bool fill_apis(struct kb_request *q, int16_t only, struct array *out)
{
    const struct kb_node *n = q->conn->node;
    struct api_version *v =
        kp__arena_alloc_array(&q->arena, KB_API_RANGES, sizeof(*v));
    int i;

    if (v == NULL)
        return false;
    out->items = v;
    for (i = 0; i < KB_API_RANGES; i++) {
        if (n->apis[i].max < 0 || (only != -1 && n->apis[i].key != only))
            continue;
        v[out->count].api_key = n->apis[i].key;
        v[out->count].min_version = n->apis[i].min;
        v[out->count++].max_version = n->apis[i].max;
    }
    return true;
}

static bool decode_versions(struct kb_request *q,
                            struct api_versions_request *r)
{
    memset(r, 0, sizeof(*r));
    r->node_id = -1;
    return kb_request_body(q, r);
}

bool kb_api_versions_handle(struct kb_request *q)
{
    const struct kb_api_range *own =
        kb_node_api(q->conn->node, API_API_VERSIONS);
    struct api_versions_request r;
    struct api_versions_response a;
    struct kb_action script;

    memset(&a, 0, sizeof(a));
    a.finalized_features_epoch = -1;
    if (q->header.version < own->min || q->header.version > own->max) {
        a.error_code = 35;
        q->header.version = 0;
    } else if (!decode_versions(q, &r)) {
        return false;
    } else {
        a.error_code = check_versions_request(q, &r);
    }
    kb_decide_part(q, "", 0, -1, &script);
    if (script.has_error)
        a.error_code = script.error;
    /* With an error there is no list, but for 35, which names our range. */
    if ((a.error_code == 0 || a.error_code == 35) &&
        !fill_apis(q, a.error_code == 0 ? -1 : API_API_VERSIONS, &a.api_keys))
        return false;
    if (q->action.has_throttle)
        a.throttle_time_ms = q->throttle_ms = q->action.throttle_ms;
    kb_request_encode(q, &a);
    kb_request_answer(q);
    return true;
}

/* Without a transactional id a producer always gets a new producer id, with
 * epoch 0.  Transactions are not served. */
bool kb_init_producer_id_handle(struct kb_request *q)
{
    struct kb_cluster *c = q->conn->cluster;
    struct init_producer_id_request r;
    struct init_producer_id_response a;
    struct kb_action script;

    if (!kb_request_body(q, &r))
        return false;
    memset(&a, 0, sizeof(a));
    a.producer_id = -1;
    a.producer_epoch = -1;
    a.ongoing_txn_producer_id = -1;
    a.ongoing_txn_producer_epoch = -1;
    kb_decide_part(q, "", 0, -1, &script);
    if (script.has_error)
        a.error_code = script.error;
    else if (r.transactional_id.data != NULL)
        a.error_code = r.transactional_id.size == 0 ? 42 : 35;
    if (a.error_code == 0) {
        a.producer_id = c->next_producer_id++;
        a.producer_epoch = 0;
    }
    if (q->action.has_throttle)
        a.throttle_time_ms = q->throttle_ms = q->action.throttle_ms;
    kb_request_encode(q, &a);
    kb_request_answer(q);
    return true;
}
