/* SPDX-License-Identifier: BSD-2-Clause */
/* skim.c - the walk over a request stream that leaves batch bodies out.
 *
 * One state a field of the Produce request.  A state asks for the few bytes it
 * needs to decide; longer things are copied or skipped by count.  Nothing is
 * believed: no field may reach past the end of its frame. */
#include <string.h>

#include "lib/wire/api.h"
#include "lib/wire/record_batch.h"
#include "test/broker/internal.h"
#include "test/broker/skim.h"

enum state {
    AT_SIZE,
    AT_HEAD,
    AT_WHOLE,
    AT_CLIENT,
    AT_TRANSACTION,
    AT_ACKS,
    AT_TOPICS,
    AT_TOPIC,
    AT_PARTITIONS,
    AT_PARTITION,
    AT_RECORDS,
    AT_BATCH,
    AT_PARTITION_END,
    AT_TOPIC_END,
    AT_TAGS,
    AT_TAG,
    AT_END
};

struct cursor {
    struct kb_skim *s;
    const uint8_t *at, *end;
    bool more; /* the bytes at hand do not suffice */
    bool bad;
};

void kb_skim_init(struct kb_skim *s, size_t max_frame)
{
    memset(s, 0, sizeof(*s));
    s->state = AT_SIZE;
    s->max_frame = max_frame;
}

void kb_skim_fini(struct kb_skim *s)
{
    kb_free(s->kept);
    s->kept = NULL;
}

static void keep(struct kb_skim *s, const void *data, size_t n)
{
    if (n == 0)
        return; /* there may be no memory yet */
    if (s->kept_size + n > s->kept_capacity) {
        s->kept_capacity = 2 * (s->kept_size + n);
        s->kept = kb_realloc(s->kept, s->kept_capacity);
    }
    memcpy(s->kept + s->kept_size, data, n);
    s->kept_size += n;
}

/* n bytes of the frame, or NULL. */
static const uint8_t *take(struct cursor *c, size_t n)
{
    const uint8_t *p = c->at;

    if (n > c->s->frame_left) {
        c->bad = true;
        return NULL;
    }
    if ((size_t)(c->end - c->at) < n) {
        c->more = true;
        return NULL;
    }
    c->at += n;
    c->s->frame_left -= n;
    return p;
}

static const uint8_t *take_kept(struct cursor *c, size_t n)
{
    const uint8_t *p = take(c, n);

    if (p != NULL)
        keep(c->s, p, n);
    return p;
}

static uint32_t be32(const uint8_t *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 |
           p[3];
}

/* Taken, and kept if asked for.  False: more or bad. */
static bool uvarint(struct cursor *c, uint32_t *out, bool kept)
{
    uint32_t v = 0;
    size_t i, left = (size_t)(c->end - c->at);

    for (i = 0; i < 5 && i < left; i++) {
        v |= (uint32_t)(c->at[i] & 0x7f) << (7 * i);
        if ((c->at[i] & 0x80) == 0) {
            *out = v;
            return (kept ? take_kept(c, i + 1) : take(c, i + 1)) != NULL;
        }
    }
    if (i == 5)
        c->bad = true;
    else if (left >= c->s->frame_left)
        c->bad = true;
    else
        c->more = true;
    return false;
}

/* A count or length: a plain int32, or a uvarint of one more.  -1: null. */
static bool length(struct cursor *c, int64_t *out, bool kept)
{
    const uint8_t *p;
    uint32_t v;

    if (c->s->flexible) {
        if (!uvarint(c, &v, kept))
            return false;
        *out = (int64_t)v - 1;
        return true;
    }
    p = kept ? take_kept(c, 4) : take(c, 4);
    if (p == NULL)
        return false;
    *out = (int32_t)be32(p);
    return true;
}

static bool copy_string(struct cursor *c, bool compact)
{
    const uint8_t *p;
    uint32_t v;

    if (compact) {
        if (!uvarint(c, &v, true))
            return false;
        c->s->copy_left = v > 0 ? v - 1 : 0;
        return true;
    }
    p = take_kept(c, 2);
    if (p == NULL)
        return false;
    v = (uint32_t)(p[0] << 8 | p[1]);
    c->s->copy_left = v < 0x8000 ? v : 0;
    return true;
}

static bool begin_tags(struct kb_skim *s, int then)
{
    s->tags_return = then;
    s->state = s->flexible ? AT_TAGS : then;
    return true;
}

static bool at_size(struct cursor *c)
{
    struct kb_skim *s = c->s;
    uint32_t size;

    if ((size_t)(c->end - c->at) < 4) {
        c->more = true;
        return false;
    }
    size = be32(c->at);
    c->at += 4;
    if (size == 0 || size > s->max_frame) {
        c->bad = true;
        return false;
    }
    s->frame_left = size;
    s->kept_size = 0;
    s->skimmed = false;
    s->state = size >= 8 ? AT_HEAD : AT_WHOLE;
    return true;
}

static bool at_head(struct cursor *c)
{
    const uint8_t *p = take_kept(c, 8);
    struct kb_skim *s = c->s;
    int16_t key;

    if (p == NULL)
        return false;
    key = (int16_t)(p[0] << 8 | p[1]);
    s->version = (int16_t)(p[2] << 8 | p[3]);
    s->flexible = s->version >= 9;
    s->state = key == API_PRODUCE && s->version >= 3 && s->version <= 13
                   ? AT_CLIENT
                   : AT_WHOLE;
    return true;
}

static bool at_topics(struct cursor *c)
{
    int64_t n;

    if (!length(c, &n, true))
        return false;
    c->s->topics_left = n > 0 ? (uint32_t)n : 0;
    if (c->s->topics_left == 0)
        return begin_tags(c->s, AT_END);
    c->s->state = AT_TOPIC;
    return true;
}

static bool at_topic(struct cursor *c)
{
    if (c->s->version >= 13)
        c->s->copy_left = 16;
    else if (!copy_string(c, c->s->flexible))
        return false;
    c->s->state = AT_PARTITIONS;
    return true;
}

static bool at_partitions(struct cursor *c)
{
    int64_t n;

    if (!length(c, &n, true))
        return false;
    c->s->partitions_left = n > 0 ? (uint32_t)n : 0;
    if (c->s->partitions_left == 0)
        return begin_tags(c->s, AT_TOPIC_END);
    c->s->state = AT_PARTITION;
    return true;
}

static void keep_length(struct kb_skim *s, uint32_t n)
{
    uint8_t plain[4] = {0, 0, 0, (uint8_t)n};
    uint8_t compact = (uint8_t)(n + 1);

    if (s->flexible)
        keep(s, &compact, 1);
    else
        keep(s, plain, 4);
}

/* The length as sent goes back to the kept bytes when nothing is left out. */
static void keep_as_sent(struct cursor *c, const uint8_t *from)
{
    keep(c->s, from, (size_t)(c->at - from));
}

static bool at_records(struct cursor *c)
{
    const uint8_t *from = c->at;
    struct kb_skim *s = c->s;
    int64_t n;

    if (!length(c, &n, false))
        return false;
    if (n > (int64_t)s->frame_left) {
        c->bad = true;
        return false;
    }
    if (n < RECORD_BATCH_HEADER_SIZE) {
        keep_as_sent(c, from);
        s->copy_left = n > 0 ? (size_t)n : 0;
        return begin_tags(s, AT_PARTITION_END);
    }
    keep_length(s, RECORD_BATCH_HEADER_SIZE);
    s->body = (size_t)n - RECORD_BATCH_HEADER_SIZE;
    s->state = AT_BATCH;
    return true;
}

static bool at_batch(struct cursor *c)
{
    struct kb_skim *s = c->s;
    const uint8_t *p = take_kept(c, RECORD_BATCH_HEADER_SIZE);

    if (p == NULL)
        return false;
    s->skip_left = s->body;
    /* Not exactly one batch: the model cannot see that any more, so let it see
     * a record format that gets the same answer. */
    if ((uint64_t)be32(p + 8) + 12 !=
        (uint64_t)s->body + RECORD_BATCH_HEADER_SIZE)
        s->kept[s->kept_size - RECORD_BATCH_HEADER_SIZE + 16] = 1;
    s->skimmed = true;
    return begin_tags(s, AT_PARTITION_END);
}

static bool at_partition_end(struct kb_skim *s)
{
    if (--s->partitions_left > 0) {
        s->state = AT_PARTITION;
        return true;
    }
    return begin_tags(s, AT_TOPIC_END);
}

static bool at_topic_end(struct kb_skim *s)
{
    if (--s->topics_left > 0) {
        s->state = AT_TOPIC;
        return true;
    }
    return begin_tags(s, AT_END);
}

static bool at_tags(struct cursor *c)
{
    if (!uvarint(c, &c->s->tags_left, true))
        return false;
    c->s->state = c->s->tags_left > 0 ? AT_TAG : c->s->tags_return;
    return true;
}

static bool at_tag(struct cursor *c)
{
    struct kb_skim *s = c->s;
    struct cursor before = *c;
    size_t kept = s->kept_size, left = s->frame_left;
    uint32_t number, size;

    if (!uvarint(c, &number, true) || !uvarint(c, &size, true)) {
        /* Both or none, so that the two can be read again together. */
        c->at = before.at;
        s->kept_size = kept;
        s->frame_left = left;
        return false;
    }
    s->copy_left = size;
    if (--s->tags_left == 0)
        s->state = s->tags_return;
    return true;
}

static bool go_on(struct cursor *c, bool done, int next)
{
    if (done)
        c->s->state = next;
    return done;
}

static bool step(struct cursor *c)
{
    struct kb_skim *s = c->s;

    switch (s->state) {
    case AT_SIZE:
        return at_size(c);
    case AT_HEAD:
        return at_head(c);
    case AT_WHOLE:
        s->copy_left = s->frame_left;
        s->state = AT_END;
        return true;
    case AT_CLIENT:
        return copy_string(c, false) && begin_tags(s, AT_TRANSACTION);
    case AT_TRANSACTION:
        return go_on(c, copy_string(c, s->flexible), AT_ACKS);
    case AT_ACKS:
        return go_on(c, take_kept(c, 6) != NULL, AT_TOPICS);
    case AT_TOPICS:
        return at_topics(c);
    case AT_TOPIC:
        return at_topic(c);
    case AT_PARTITIONS:
        return at_partitions(c);
    case AT_PARTITION:
        return go_on(c, take_kept(c, 4) != NULL, AT_RECORDS);
    case AT_RECORDS:
        return at_records(c);
    case AT_BATCH:
        return at_batch(c);
    case AT_PARTITION_END:
        return at_partition_end(s);
    case AT_TOPIC_END:
        return at_topic_end(s);
    case AT_TAGS:
        return at_tags(c);
    default:
        return at_tag(c);
    }
}

/* What is copied or skipped before the next state; never both. */
static bool run_counts(struct cursor *c)
{
    struct kb_skim *s = c->s;
    size_t have = (size_t)(c->end - c->at);
    size_t n;

    if (s->copy_left > s->frame_left || s->skip_left > s->frame_left) {
        c->bad = true;
        return false;
    }
    if (s->copy_left > 0) {
        n = s->copy_left < have ? s->copy_left : have;
        keep(s, c->at, n);
        c->at += n;
        s->copy_left -= n;
        s->frame_left -= n;
        return s->copy_left == 0;
    }
    n = s->skip_left < have ? s->skip_left : have;
    c->at += n;
    kb_skim_skipped(s, n);
    return s->skip_left == 0;
}

void kb_skim_skipped(struct kb_skim *s, size_t n)
{
    s->skip_left -= n;
    s->frame_left -= n;
}

enum kb_skim_result kb_skim_walk(struct kb_skim *s, const uint8_t *data,
                                 size_t n, size_t *used)
{
    struct cursor c = {s, data, data + n, false, false};
    enum kb_skim_result result = KB_SKIM_MORE;

    while (run_counts(&c)) {
        if (s->state == AT_END) {
            s->state = AT_SIZE;
            if (s->frame_left == 0)
                result = KB_SKIM_FRAME;
            else
                c.bad = true;
            break;
        }
        if (!step(&c))
            break;
    }
    *used = (size_t)(c.at - data);
    return c.bad ? KB_SKIM_BAD : result;
}
