/* SPDX-License-Identifier: BSD-2-Clause */
/* world_known.c - what the client can know: the bytes that its sockets took and
 * gave it, taken apart once more.
 *
 * Of each record: how many attempts left that may have stored it, and whether
 * an answer said that one did.  The table of what an attempt says about the log
 * stands here a second time, by hand.  Of each connection: which versions its
 * broker offered, and until when it asked not to be sent to.
 *
 * The bytes are noted while the client moves them and looked at when its turn is
 * over, for then no allocation is made to fail.  Invariant: what is taken for
 * an answer here is what the client could take for one: nothing is believed
 * behind the first thing on a connection that cannot be. */
#include <stdlib.h>
#include <string.h>

#include "io_thread/client.h"
#include "test/support/world_state.h"

#define FIVE_MINUTES_NS (300 * KP_NS_PER_SEC)

struct batch_sent {
    struct uuid topic_id;
    char topic[64];
    int32_t partition, count;
    uint32_t *ids;
    bool answered;
};

struct asked { /* a request that expects an answer */
    struct asked *next;
    int16_t api, version, acks;
    int32_t correlation_id;
    size_t count;
    struct batch_sent batches[];
};

struct bytes {
    uint8_t *data;
    size_t size;
};

struct range {
    int16_t min, max; /* max < 0: not offered */
};

struct known {
    struct world *w;
    int32_t node;
    struct bytes out, in;
    struct asked *first, **last;
    bool over; /* it said what cannot be */
    bool shaken;
    struct range ranges[8]; /* by place in kp__apis */
    int64_t begun_ns;       /* the first byte of what stands in `out` */
    int64_t muted_until_ns;
    int32_t muted_from; /* this correlation id and later ones */
};

struct note {
    struct known *k;
    bool is_out;
    size_t size; /* bytes that follow */
};

/* -- notes -- */

struct known *world_known_begin(struct world *w, int32_t node)
{
    struct known *k = world_must(calloc(1, sizeof(*k)));

    k->w = w;
    k->node = node;
    k->last = &k->first;
    return k;
}

static void add(struct world *w, const void *data, size_t size)
{
    if (w->noted + size > w->notes_capacity) {
        w->notes_capacity = 2 * (w->noted + size);
        w->notes = world_must(realloc(w->notes, w->notes_capacity));
    }
    memcpy(w->notes + w->noted, data, size);
    w->noted += size;
}

void world_known_note(struct known *k, bool is_out, const void *data,
                      size_t size)
{
    struct note n;

    if (k == NULL || size == 0)
        return;
    memset(&n, 0, sizeof(n));
    n.k = k;
    n.is_out = is_out;
    n.size = size;
    add(k->w, &n, sizeof(n));
    add(k->w, data, size);
}

/* -- what an attempt says about the log -- */

enum says { SAYS_NO, SAYS_MAYBE, SAYS_YES };

static bool is_one_of(int16_t code, const int16_t *codes, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (codes[i] == code)
            return true;
    return false;
}

static enum says said(int16_t code, int16_t acks)
{
    static const int16_t before_append[] = {
        2,  10, 14, 15, 16, 17, 18, 19, 21, 29, 31, 32, 35, 42,
        43, 44, 45, 47, 48, 49, 51, 53, 59, 76, 87, 90, 120};
    static const int16_t leader_first[] = {3, 5, 6, 9, 74, 75, 100, 103};

    if (code == 0)
        return SAYS_YES;
    if (is_one_of(code, before_append,
                  sizeof(before_append) / sizeof(before_append[0])))
        return SAYS_NO;
    if (acks == 1 && is_one_of(code, leader_first,
                               sizeof(leader_first) / sizeof(leader_first[0])))
        return SAYS_NO;
    return SAYS_MAYBE;
}

static void answered_one(struct world *w, struct world_record *r, int16_t code,
                         int16_t acks, int32_t together)
{
    enum says says = said(code, acks);

    /* only an earlier attempt can have been the first; what the client had no
     * memory to read it takes for such a one */
    if (code == KP_DUPLICATE_SEQUENCE_NUMBER &&
        (r->maybe_stored > 1 || w->fails_memory))
        says = SAYS_YES;
    if (says == SAYS_YES)
        r->said_stored = true;
    if (says == SAYS_NO)
        r->maybe_stored--;
    if (code == KP_MESSAGE_TOO_LARGE) {
        r->too_large = together;
        r->too_large_ns = w->now_ns;
        r->too_large_times++;
    }
}

static void answered(struct known *k, struct asked *a, struct batch_sent *b,
                     int16_t code)
{
    b->answered = true;
    world_trace(k->w, "  answer of node %d for %s [%d], %d records: %d",
                (int)k->node, b->topic, (int)b->partition, (int)b->count,
                (int)code);
    for (int32_t i = 0; i < b->count; i++)
        if (b->ids[i] < k->w->record_count)
            answered_one(k->w, k->w->records[b->ids[i]], code, a->acks,
                         b->count);
}

/* -- what leaves -- */

/* I-23: each part is smaller than what was too large, and one record that is
 * too large by itself is not sent again.  While another batch is being split a
 * second one waits for it, and is sent as it was to find out anew; so is what
 * there was no memory to read the answer about. */
static void check_smaller(struct world *w, const struct world_record *r,
                          int32_t together)
{
    bool finds_out_anew = w->fails_memory ||
                          (together > 1 && w->split_ns >= r->too_large_ns);

    if (r->too_large == 0 || together < r->too_large ||
        (together == r->too_large && finds_out_anew))
        return;
    world_fail(w, "I-23: record %u was too large among %d and is sent among %d",
               r->id, (int)r->too_large, (int)together);
}

static void left(struct known *k, struct batch_sent *b)
{
    struct world *w = k->w;

    for (int32_t i = 0; i < b->count; i++) {
        struct world_record *r =
            b->ids[i] < w->record_count ? w->records[b->ids[i]] : NULL;

        if (r == NULL)
            continue;
        check_smaller(w, r, b->count);
        r->maybe_stored++;
        r->attempts++;
    }
}

static void forget(struct asked *a)
{
    for (size_t i = 0; i < a->count; i++)
        free(a->batches[i].ids);
    free(a);
}

static void ask(struct known *k, struct asked *a)
{
    *k->last = a;
    k->last = &a->next;
}

static struct asked *new_asked(const struct request_header *h, size_t count)
{
    struct asked *a =
        world_must(calloc(1, sizeof(*a) + count * sizeof(struct batch_sent)));

    a->api = h->api_key;
    a->version = h->version;
    a->correlation_id = h->correlation_id;
    return a;
}

static size_t count_batches(const struct produce_request *q)
{
    const struct produce_request_topic *t = q->topics.items;
    size_t n = 0;

    for (size_t i = 0; i < q->topics.count; i++)
        n += t[i].partitions.count;
    return n;
}

static void add_batches(struct known *k, struct asked *a,
                        const struct produce_request_topic *t)
{
    const struct produce_request_partition *p = t->partitions.items;

    for (size_t i = 0; i < t->partitions.count; i++) {
        struct batch_sent *b = &a->batches[a->count++];

        b->topic_id = t->topic_id;
        world_name_topic(k->w, t, b->topic);
        b->partition = p[i].index;
        b->ids = world_ids_of(p[i].records.data, p[i].records.size, &b->count);
        left(k, b);
    }
}

static void produce_left(struct known *k, const struct request_header *h,
                         struct reader *r)
{
    const struct api *api = kp__api(API_PRODUCE);
    struct produce_request q;
    struct arena arena;
    struct asked *a;

    kp__arena_init(&arena);
    if (!kp__schema_decode(api->request, r, &arena, h->version,
                           kp__api_flexible(api, h->version), &q))
        world_fail(k->w, "I-30: a Produce request that cannot be read");
    a = new_asked(h, count_batches(&q));
    a->acks = q.acks;
    for (size_t i = 0; i < q.topics.count; i++)
        add_batches(k, a,
                    (const struct produce_request_topic *)q.topics.items + i);
    kp__arena_fini(&arena);
    if (q.acks != 0)
        ask(k, a);
    else
        forget(a);
}

/* I-69: the highest that both speak. */
static void check_version(const struct known *k, const struct request_header *h)
{
    const struct api *api = kp__api(h->api_key);
    const struct range *v = &k->ranges[kp__api_place(h->api_key)];
    int16_t max = v->max < api->max_version ? v->max : api->max_version;

    if (h->api_key == API_API_VERSIONS)
        return;
    if (!k->shaken || h->version < v->min)
        world_fail(k->w, "I-69: node %d was asked %s in version %d",
                   (int)k->node, api->name, (int)h->version);
    /* of a topic whose id no broker has told, or that could not be kept */
    if (h->api_key == API_PRODUCE && h->version == 12 && max > 12 &&
        (k->w->old_versions || k->w->fails_memory))
        return;
    if (h->version != max)
        world_fail(k->w, "I-69: node %d was asked %s in version %d, not %d",
                   (int)k->node, api->name, (int)h->version, (int)max);
}

/* I-41 */
static void check_muted(const struct known *k, const struct request_header *h)
{
    if (k->begun_ns >= k->muted_until_ns || h->correlation_id < k->muted_from ||
        k->w->fails_memory)
        return;
    world_fail(k->w,
               "I-41: node %d was asked %s %lld us before the time that it "
               "had asked for was over",
               (int)k->node, kp__api(h->api_key)->name,
               (long long)(k->muted_until_ns - k->begun_ns) / 1000);
}

static void request_left(struct known *k, const uint8_t *frame, size_t size)
{
    struct request_header h;
    struct reader r;

    kp__reader_init(&r, frame, size);
    if (!kp__request_header_decode(&r, &h) || kp__api(h.api_key) == NULL)
        world_fail(k->w, "I-30: a request whose header cannot be read");
    check_version(k, &h);
    check_muted(k, &h);
    if (h.api_key == API_PRODUCE)
        produce_left(k, &h, &r);
    else
        ask(k, new_asked(&h, 0));
}

/* -- what comes -- */

static struct batch_sent *find(struct asked *a,
                               const struct produce_response_topic *t,
                               int32_t partition)
{
    for (size_t i = 0; i < a->count; i++) {
        struct batch_sent *b = &a->batches[i];
        bool same =
            a->version > 12
                ? memcmp(&b->topic_id, &t->topic_id, sizeof(t->topic_id)) == 0
                : strlen(b->topic) == t->name.size &&
                      memcmp(b->topic, t->name.data, t->name.size) == 0;

        if (same && b->partition == partition && !b->answered)
            return b;
    }
    return NULL;
}

/* False: an offset that cannot be. */
static bool take_partition(struct known *k, struct asked *a,
                           const struct produce_response_topic *t,
                           const struct produce_response_partition *p)
{
    struct batch_sent *b = find(a, t, p->index);

    if (b == NULL)
        return true; /* not asked about */
    if (p->error_code == 0 &&
        (p->base_offset < -1 || p->base_offset > INT64_MAX - b->count))
        return false;
    answered(k, a, b, p->error_code < 0 ? (int16_t)-1 : p->error_code);
    return true;
}

/* From these versions on the client waits, not the broker (KIP-219). */
static int16_t waits_since(int16_t api)
{
    if (api == API_PRODUCE || api == API_METADATA)
        return 6;
    return api == API_API_VERSIONS ? 2 : 1;
}

static void take_throttle(struct known *k, const struct asked *a,
                          int32_t throttle_ms)
{
    int64_t most_ns = k->w->p->settings.request_timeout_ns;
    int64_t ns = kp__ms_to_ns(throttle_ms);

    if (throttle_ms <= 0 || a->version < waits_since(a->api))
        return;
    if (most_ns < FIVE_MINUTES_NS)
        most_ns = FIVE_MINUTES_NS;
    if (ns > most_ns)
        ns = most_ns;
    if (k->w->now_ns + ns <= k->muted_until_ns)
        return;
    k->muted_until_ns = k->w->now_ns + ns;
    k->muted_from = k->w->handed;
}

static bool take_produce(struct known *k, struct asked *a,
                         const struct produce_response *answer)
{
    const struct produce_response_topic *t = answer->topics.items;
    bool possible = true;

    take_throttle(k, a, answer->throttle_time_ms);
    for (size_t i = 0; i < answer->topics.count; i++) {
        const struct produce_response_partition *p = t[i].partitions.items;

        for (size_t j = 0; j < t[i].partitions.count; j++)
            possible = take_partition(k, a, &t[i], &p[j]) && possible;
    }
    return possible;
}

static void take_versions(struct known *k, const struct asked *a,
                          const struct api_versions_response *answer)
{
    const struct api_version *v = answer->api_keys.items;

    for (size_t i = 0; i < kp__api_count; i++)
        k->ranges[i] = (struct range){0, -1};
    for (size_t i = answer->api_keys.count; i-- > 0;)
        if (kp__api_place(v[i].api_key) >= 0 && v[i].min_version >= 0 &&
            v[i].max_version >= v[i].min_version)
            k->ranges[kp__api_place(v[i].api_key)] =
                (struct range){v[i].min_version, v[i].max_version};
    k->shaken = true;
    take_throttle(k, a, answer->throttle_time_ms);
}

union answer {
    struct produce_response produce;
    struct metadata_response metadata;
    struct api_versions_response versions;
    struct init_producer_id_response id;
};

/* False: it cannot be read. */
static bool take_body(struct known *k, struct asked *a, struct reader *r,
                      struct arena *arena)
{
    const struct api *api = kp__api(a->api);
    struct reader peek = *r;
    union answer u;

    /* in the layout of version 0; asked again on the same connection */
    if (a->api == API_API_VERSIONS &&
        kp__read_i16(&peek) == KP_UNSUPPORTED_VERSION)
        return a->version > 0;
    if (!kp__schema_decode(api->response, r, arena, a->version,
                           kp__api_flexible(api, a->version), &u))
        return false;
    if (a->api == API_PRODUCE)
        return take_produce(k, a, &u.produce);
    if (a->api == API_METADATA)
        take_throttle(k, a, u.metadata.throttle_time_ms);
    else if (a->api == API_INIT_PRODUCER_ID)
        take_throttle(k, a, u.id.throttle_time_ms);
    else if (u.versions.error_code == 0)
        take_versions(k, a, &u.versions);
    return true;
}

static bool answer_came(struct known *k, const uint8_t *frame, size_t size)
{
    struct asked *a = k->first;
    struct arena arena;
    struct reader r;
    int32_t id;
    bool good;

    kp__reader_init(&r, frame, size);
    if (a == NULL || !kp__response_header_decode(&r, a->api, a->version, &id) ||
        id != a->correlation_id)
        return false;
    k->first = a->next;
    if (k->first == NULL)
        k->last = &k->first;
    kp__arena_init(&arena);
    good = take_body(k, a, &r, &arena);
    kp__arena_fini(&arena);
    forget(a);
    return good;
}

/* -- frames -- */

/* The size of the first frame's body; -1: it is not there yet, -2: none that
 * can be. */
static int64_t frame_size(const struct bytes *b, size_t max)
{
    struct reader r;
    int32_t size;

    if (b->size < 4)
        return -1;
    kp__reader_init(&r, b->data, b->size);
    size = kp__read_i32(&r);
    if (size < 0 || (size_t)size > max)
        return -2;
    return (size_t)size > b->size - 4 ? -1 : size;
}

static void drop(struct bytes *b, size_t size)
{
    memmove(b->data, b->data + size, b->size - size);
    b->size -= size;
}

static void append(struct bytes *b, const uint8_t *data, size_t size)
{
    b->data = world_must(realloc(b->data, b->size + size));
    memcpy(b->data + b->size, data, size);
    b->size += size;
}

static void wrote(struct known *k, const uint8_t *data, size_t size)
{
    int64_t n;

    if (k->out.size == 0)
        k->begun_ns = k->w->now_ns;
    append(&k->out, data, size);
    while ((n = frame_size(&k->out, INT32_MAX)) >= 0) {
        request_left(k, k->out.data + 4, (size_t)n);
        drop(&k->out, 4 + (size_t)n);
        k->begun_ns = k->w->now_ns;
    }
}

static void read_in(struct known *k, const uint8_t *data, size_t size)
{
    int64_t n;

    if (k->over)
        return;
    append(&k->in, data, size);
    while (!k->over &&
           (n = frame_size(&k->in, k->shaken ? FRAME_MAX
                                             : HANDSHAKE_FRAME_MAX)) != -1) {
        k->over = n < 0 || !answer_came(k, k->in.data + 4, (size_t)n);
        if (!k->over)
            drop(&k->in, 4 + (size_t)n);
    }
}

void world_known_run(struct world *w)
{
    bool splits = w->p->io->split.children > 0;
    size_t at = 0;

    if (splits || w->split)
        w->split_ns = w->now_ns;
    w->split = splits;
    while (at < w->noted) {
        struct note n;

        memcpy(&n, w->notes + at, sizeof(n));
        at += sizeof(n);
        if (n.is_out)
            wrote(n.k, w->notes + at, n.size);
        else
            read_in(n.k, w->notes + at, n.size);
        at += n.size;
    }
    w->noted = 0;
    /* what the client has handed to connections by now has a smaller one */
    w->handed = w->p->io->client->next_correlation;
}

void world_known_end(struct known *k)
{
    if (k == NULL)
        return;
    while (k->first != NULL) {
        struct asked *a = k->first;

        k->first = a->next;
        forget(a);
    }
    free(k->out.data);
    free(k->in.data);
    free(k);
}
