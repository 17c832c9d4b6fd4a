/* SPDX-License-Identifier: BSD-2-Clause */
/* broker_fuzz.c - the test broker, which reads requests from a network too.
 *
 * `broker`: requests one after another, each with two bytes of size in front.
 * Oracle: answers are whole frames that answer the request just given, and
 * decode.
 *
 * `skim`: two bytes that say how the stream is cut, and the stream.  Oracle:
 * the same frames come out as when it arrives at once; none is larger than
 * what came in. */
#include <stdlib.h>
#include <string.h>

#include "lib/wire/api.h"
#include "test/broker/probe.h"
#include "test/broker/skim.h"
#include "test/fuzz/fuzz.h"
#include "test/support/golden.h"

/* -- broker -- */

#define REQUESTS_MAX 32
#define SECOND INT64_C(1000000000)

static uint32_t be32(const uint8_t *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 |
           p[3];
}

static void check_decodes(const struct request_header *h, const uint8_t *frame,
                          size_t size)
{
    const struct api *api = kp__api(h->api_key);
    struct kb_probe_answer a;

    if (api == NULL || h->version < api->min_version ||
        h->version > api->max_version)
        return; /* an error in whatever version */
    FUZZ_CHECK(kb_probe_decode(&a, h->api_key, h->version, frame, size));
    FUZZ_CHECK(a.correlation_id == h->correlation_id);
    kb_probe_answer_fini(&a);
}

/* False: the connection is over. */
static bool take_answers(struct kb_conn *k, const uint8_t *request, size_t size)
{
    struct kb_output *o;
    struct request_header h;
    struct reader r;
    bool ok;

    kp__reader_init(&r, request, size);
    ok = kp__request_header_decode(&r, &h);
    while ((o = kb_conn_output(k)) != NULL) {
        if (o->kind != KB_OUT_BYTES)
            return false;
        FUZZ_CHECK(o->size >= 8 && be32(o->data) == o->size - 4);
        FUZZ_CHECK(size >= 8 && memcmp(o->data + 4, request + 4, 4) == 0);
        if (ok)
            check_decodes(&h, o->data, o->size);
        kb_conn_pop(k);
    }
    return true;
}

static void drop_answers(struct kb_conn *k)
{
    while (kb_conn_output(k) != NULL)
        kb_conn_pop(k);
}

static struct kb_cluster *make_cluster(int64_t now_ns)
{
    struct kb_cluster *c;
    struct kb_config config;

    kb_config_default(&config);
    config.nodes = 2;
    c = kb_create(&config);
    kb_advance(c, now_ns);
    FUZZ_CHECK(kb_topic_create(c, "t", 2, 2, now_ns) == 0);
    return c;
}

static bool serve_one(struct kb_cluster *c, struct kb_conn *k,
                      struct fuzz_input *in, int64_t *now_ns)
{
    uint8_t high = fuzz_byte(in);
    size_t most = (size_t)high << 8 | fuzz_byte(in), size;
    const uint8_t *at = fuzz_bytes(in, most, &size);
    uint8_t *frame = fuzz_copy(at, size);
    bool goes_on;

    kb_conn_frame(k, frame, size, *now_ns);
    *now_ns += 40 * SECOND; /* it may wait for replicas */
    kb_advance(c, *now_ns);
    goes_on = take_answers(k, frame, size);
    free(frame);
    return goes_on;
}

void fuzz_broker(const uint8_t *data, size_t size)
{
    struct fuzz_memory memory = fuzz_memory_begin();
    struct fuzz_input in = {data, data + size};
    int64_t now_ns = 1000 * SECOND;
    struct kb_cluster *c = make_cluster(now_ns);
    struct kb_conn *k = kb_connect(c, 1, NULL, now_ns);

    FUZZ_CHECK(k != NULL);
    for (int i = 0; i < REQUESTS_MAX && in.at < in.end; i++)
        if (!serve_one(c, k, &in, &now_ns))
            break;
    drop_answers(k);
    kb_conn_close(k, true, now_ns);
    kb_advance(c, now_ns + 1000 * SECOND);
    kb_destroy(c);
    fuzz_memory_end(&memory);
}

static void give_request(const uint8_t *frame, size_t size, fuzz_seed_fn fn,
                         void *arg)
{
    uint8_t *input = malloc(2 + size);

    FUZZ_CHECK(input != NULL && size < 65536);
    input[0] = (uint8_t)(size >> 8);
    input[1] = (uint8_t)size;
    memcpy(input + 2, frame, size);
    fn(arg, "request", input, 2 + size);
    free(input);
}

static void each_golden(const char *file, fuzz_seed_fn fn, void *arg)
{
    struct golden_file f;

    golden_open(&f, file);
    for (size_t i = 0; i < f.count; i += 3) {
        size_t head, rest;
        uint8_t *h = golden_bytes(golden_get(&f.cases[i], "header"), &head);
        uint8_t *b = golden_bytes(golden_get(&f.cases[i], "body"), &rest);
        uint8_t *frame = malloc(head + rest);

        FUZZ_CHECK(frame != NULL);
        memcpy(frame, h, head);
        if (rest != 0)
            memcpy(frame + head, b, rest);
        if (strstr(f.cases[i].title, " request ") != NULL && head + rest < 2000)
            give_request(frame, head + rest, fn, arg);
        free(frame);
        free(h);
        free(b);
    }
    golden_close(&f);
}

/* Produce requests with whole batches, of each codec and version. */
static void each_produce(void (*give)(const uint8_t *, size_t, fuzz_seed_fn,
                                      void *),
                         fuzz_seed_fn fn, void *arg)
{
    for (int16_t version = 3; version <= 12; version++) {
        struct kb_probe_batch b;
        struct kb_probe_part part = {.topic = "t"};
        struct kb_probe_produce p = {.version = version,
                                     .acks = -1,
                                     .timeout_ms = 5,
                                     .correlation_id = 1,
                                     .parts = &part,
                                     .count = 1};
        uint8_t *batch, *frame;
        size_t size;

        kb_probe_batch_default(&b);
        b.records = 3;
        b.value_size = 20;
        b.header_count = version % 3;
        b.producer_id = version % 2 == 0 ? 1 : -1;
        batch = kb_probe_batch_make(&b, &part.size);
        part.records = batch;
        frame = kb_probe_produce_request(&p, &size);
        give(frame + 4, size - 4, fn, arg);
        kb_probe_free(frame);
        kb_probe_free(batch);
    }
}

void fuzz_broker_seeds(fuzz_seed_fn fn, void *arg)
{
    each_produce(give_request, fn, arg);
    each_golden("produce.txt", fn, arg);
    each_golden("metadata.txt", fn, arg);
    each_golden("api_versions.txt", fn, arg);
    each_golden("init_producer_id.txt", fn, arg);
}

/* -- skim -- */

#define SKIM_FRAME_MAX 100000

struct skimmed { /* all frames, one behind another */
    struct buf kept;
    unsigned frames;
    bool bad;
};

static void note(struct skimmed *s, const struct kb_skim *k)
{
    FUZZ_CHECK(k->kept_size <= SKIM_FRAME_MAX);
    kp__buf_append(&s->kept, k->kept, k->kept_size);
    s->frames++;
}

/* In pieces of `step`; each piece stands alone, so that a step past it shows.
 */
static void skim(struct skimmed *s, const uint8_t *data, size_t size,
                 size_t step)
{
    size_t at = 0, have = 0, used = 0;
    enum kb_skim_result r = KB_SKIM_MORE;
    struct kb_skim k;

    memset(s, 0, sizeof(*s));
    kp__buf_init(&s->kept);
    kb_skim_init(&k, SKIM_FRAME_MAX);
    while (r != KB_SKIM_BAD && have < size) {
        have = step < size - have ? have + step : size;
        do {
            uint8_t *piece = fuzz_copy(data + at, have - at);

            r = kb_skim_walk(&k, piece, have - at, &used);
            free(piece);
            FUZZ_CHECK(used <= have - at);
            at += used;
            if (r == KB_SKIM_FRAME)
                note(s, &k);
        } while (r == KB_SKIM_FRAME);
        FUZZ_CHECK(r == KB_SKIM_BAD || have - at <= 60);
    }
    s->bad = r == KB_SKIM_BAD;
    kb_skim_fini(&k);
}

void fuzz_skim(const uint8_t *data, size_t size)
{
    struct fuzz_memory memory = fuzz_memory_begin();
    struct fuzz_input in = {data, data + size};
    size_t step = fuzz_byte(&in) + (size_t)1;
    struct skimmed whole, cut;
    const uint8_t *stream = fuzz_bytes(&in, SIZE_MAX, &size);

    skim(&whole, stream, size, SIZE_MAX);
    skim(&cut, stream, size, step);
    FUZZ_CHECK(whole.bad == cut.bad && whole.frames == cut.frames);
    FUZZ_CHECK(whole.kept.size == cut.kept.size);
    FUZZ_CHECK(whole.kept.size == 0 ||
               memcmp(whole.kept.data, cut.kept.data, cut.kept.size) == 0);
    FUZZ_CHECK(whole.kept.size <= size);
    kp__buf_fini(&whole.kept);
    kp__buf_fini(&cut.kept);
    fuzz_memory_end(&memory);
}

static void give_stream(const uint8_t *frame, size_t size, fuzz_seed_fn fn,
                        void *arg)
{
    uint8_t front[5] = {13, (uint8_t)(size >> 24), (uint8_t)(size >> 16),
                        (uint8_t)(size >> 8), (uint8_t)size};
    uint8_t *input = malloc(5 + size);

    FUZZ_CHECK(input != NULL);
    memcpy(input, front, 5);
    memcpy(input + 5, frame, size);
    fn(arg, "stream", input, 5 + size);
    free(input);
}

void fuzz_skim_seeds(fuzz_seed_fn fn, void *arg)
{
    each_produce(give_stream, fn, arg);
}
