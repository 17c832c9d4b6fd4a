/* SPDX-License-Identifier: BSD-2-Clause */
/* faults.c - scripted answers: which requests they apply to, and what
 * becomes of the bytes of an answer. */
#include <stdlib.h>
#include <string.h>

#include "lib/base/str.h"
#include "test/broker/internal.h"

void kb_rule_default(struct kb_rule *r)
{
    memset(r, 0, sizeof(*r));
    r->api = -1;
    r->node_id = -1;
    r->partition = -1;
    r->count = 1;
}

int kb_rule_add(struct kb_cluster *c, const struct kb_rule *r)
{
    struct kb_rule_entry *e;

    c->rules = kb_realloc(c->rules, (c->rule_count + 1) * sizeof(c->rules[0]));
    e = &c->rules[c->rule_count++];
    memset(e, 0, sizeof(*e));
    e->id = c->next_rule_id++;
    e->rule = *r;
    return e->id;
}

void kb_rule_remove(struct kb_cluster *c, int id)
{
    size_t i, to = 0;

    for (i = 0; i < c->rule_count; i++)
        if (id != -1 && c->rules[i].id != id)
            c->rules[to++] = c->rules[i];
    c->rule_count = to;
}

int64_t kb_rule_hits(const struct kb_cluster *c, int id)
{
    size_t i;

    for (i = 0; i < c->rule_count; i++)
        if (c->rules[i].id == id)
            return c->rules[i].hits;
    return 0;
}

void kb_on_decide(struct kb_cluster *c, kb_decide_fn fn, void *arg)
{
    c->decide = fn;
    c->decide_arg = arg;
}

static bool text_is(const struct text *t, const char *s)
{
    size_t n = strlen(s);

    return t->data != NULL && t->size == n && memcmp(t->data, s, n) == 0;
}

static bool topic_is(const struct kb_request *q,
                     const struct produce_request_topic *t, const char *name)
{
    struct kb_topic_image *image;

    if (q->header.version < 13)
        return text_is(&t->name, name);
    image = kb_image_by_id(q->conn->node->image, &t->topic_id);
    return image != NULL && strcmp(image->topic->name, name) == 0;
}

static bool topic_speaks_of(const struct produce_request_topic *t,
                            int32_t partition)
{
    const struct produce_request_partition *p = kb_items(&t->partitions);
    size_t i;

    for (i = 0; i < t->partitions.count; i++)
        if (partition == -1 || p[i].index == partition)
            return true;
    return false;
}

/* Does the request have to do with what the rule speaks of? */
static bool speaks_of(const struct kb_request *q, const struct kb_rule *r)
{
    const struct produce_request_topic *t = kb_items(&q->produce.topics);
    size_t i;

    if (r->topic[0] == 0 && r->partition == -1)
        return true;
    if (q->header.api_key != API_PRODUCE)
        return q->header.api_key == API_METADATA;
    for (i = 0; i < q->produce.topics.count; i++)
        if ((r->topic[0] == 0 || topic_is(q, &t[i], r->topic)) &&
            topic_speaks_of(&t[i], r->partition))
            return true;
    return false;
}

static bool take_turn(struct kb_rule_entry *e)
{
    int64_t n = e->seen++ - e->rule.skip;

    if (n < 0 || (e->rule.count >= 0 && n >= e->rule.count))
        return false;
    e->hits++;
    return true;
}

static void merge_wire(struct kb_action *to, const struct kb_action *from)
{
    if (from->process_ns > 0)
        to->process_ns = from->process_ns;
    if (from->answer_ns > 0)
        to->answer_ns = from->answer_ns;
    if (from->dribble_ns > 0)
        to->dribble_ns = from->dribble_ns;
    if (from->answer != KB_ANSWER) {
        to->answer = from->answer;
        to->at = from->at;
    }
    if (from->has_take) {
        to->has_take = true;
        to->take = from->take;
    }
    if (from->text > 0)
        to->text = from->text;
    to->ignore |= from->ignore;
    to->no_brokers |= from->no_brokers;
    if (from->has_throttle) {
        to->has_throttle = true;
        to->throttle_ms = from->throttle_ms;
    }
}

static void merge_part(struct kb_action *to, const struct kb_action *from)
{
    if (from->has_error) {
        to->has_error = true;
        to->error = from->error;
        to->append = from->append;
    }
    if (from->has_log_start) {
        to->has_log_start = true;
        to->log_start = from->log_start;
    }
    if (from->has_offset) {
        to->has_offset = true;
        to->base_offset = from->base_offset;
    }
    to->omit |= from->omit;
    to->repeat |= from->repeat;
    to->stranger |= from->stranger;
    if (from->has_hint) {
        to->has_hint = true;
        to->hint = from->hint;
        to->hint_epoch = from->hint_epoch;
    }
    if (from->has_blame) {
        to->has_blame = true;
        to->blame = from->blame;
    }
}

static void info_of(const struct kb_request *q, struct kb_request_info *info)
{
    memset(info, 0, sizeof(*info));
    info->node_id = q->conn->node->id;
    info->api = q->header.api_key;
    info->version = q->header.version;
    info->acks = q->produce.acks;
    info->partition = -1;
    info->user = q->conn->user;
}

void kb_decide_request(struct kb_request *q)
{
    struct kb_cluster *c = q->conn->cluster;
    struct kb_request_info info;
    size_t i;

    memset(&q->action, 0, sizeof(q->action));
    q->rule_count = 0;
    for (i = 0; i < c->rule_count; i++) {
        struct kb_rule_entry *e = &c->rules[i];

        if ((e->rule.api != -1 || q->header.api_key < 0) &&
            e->rule.api != q->header.api_key)
            continue;
        if (e->rule.node_id != -1 && e->rule.node_id != q->conn->node->id)
            continue;
        if (!speaks_of(q, &e->rule) || !take_turn(e))
            continue;
        merge_wire(&q->action, &e->rule.action);
        if (q->rule_count < KB_RULES_PER_REQUEST)
            q->rules[q->rule_count++] = e->rule;
    }
    if (c->decide == NULL)
        return;
    info_of(q, &info);
    info.client_id = kb_strndup(
        &q->arena, q->header.client_id.data,
        q->header.client_id.data == NULL ? 0 : q->header.client_id.size);
    c->decide(c->decide_arg, &info, &q->action);
}

/* A rule that names a partition speaks of no whole topic; one that names none
 * speaks of all partitions of a Produce request, and of whole topics in an
 * answer to Metadata. */
static bool part_is(const struct kb_request *q, const struct kb_rule *r,
                    int32_t partition)
{
    if (r->partition == -1)
        return partition == -1 || q->header.api_key == API_PRODUCE;
    return r->partition == partition;
}

void kb_decide_part(struct kb_request *q, const char *topic, size_t topic_size,
                    int32_t partition, struct kb_action *out)
{
    struct kb_cluster *c = q->conn->cluster;
    struct text name = {topic, topic_size};
    struct kb_request_info info;
    size_t i;

    memset(out, 0, sizeof(*out));
    if (q->action.has_error)
        merge_part(out, &q->action); /* a decider's, for all of them */
    for (i = 0; i < q->rule_count; i++) {
        const struct kb_rule *r = &q->rules[i];

        if ((r->topic[0] == 0 || text_is(&name, r->topic)) &&
            part_is(q, r, partition))
            merge_part(out, &r->action);
    }
    if (c->decide == NULL || partition == -1 ||
        q->header.api_key != API_PRODUCE)
        return;
    info_of(q, &info);
    info.topic = kb_strndup(&q->arena, topic, topic_size);
    info.partition = partition;
    c->decide(c->decide_arg, &info, out);
}

void kb_decide_connect(struct kb_cluster *c, struct kb_node *n, void *user,
                       struct kb_action *out)
{
    struct kb_request_info info;
    size_t i;

    memset(out, 0, sizeof(*out));
    for (i = 0; i < c->rule_count; i++) {
        struct kb_rule_entry *e = &c->rules[i];

        if (e->rule.api == KB_API_CONNECT &&
            (e->rule.node_id == -1 || e->rule.node_id == n->id) && take_turn(e))
            merge_wire(out, &e->rule.action);
    }
    if (c->decide == NULL)
        return;
    memset(&info, 0, sizeof(info));
    info.node_id = n->id;
    info.api = KB_API_CONNECT;
    info.partition = -1;
    info.user = user;
    c->decide(c->decide_arg, &info, out);
}

/* -- what becomes of the bytes -- */

static void put_i32(uint8_t *at, uint32_t v)
{
    at[0] = (uint8_t)(v >> 24);
    at[1] = (uint8_t)(v >> 16);
    at[2] = (uint8_t)(v >> 8);
    at[3] = (uint8_t)v;
}

static void emit(struct kb_request *q, const uint8_t *data, size_t size)
{
    kb_conn_emit(q->conn, KB_OUT_BYTES, data, size, q->conn->cluster->now_ns);
}

static void dribble(struct kb_request *q, const uint8_t *data, size_t size)
{
    int64_t at_ns = q->conn->cluster->now_ns;
    size_t i;

    for (i = 0; i < size; i++) {
        kb_conn_emit(q->conn, KB_OUT_BYTES, data + i, 1, at_ns);
        at_ns += q->action.dribble_ns;
    }
}

static void emit_with_size(struct kb_request *q, uint8_t *data, size_t size,
                           uint32_t announced)
{
    put_i32(data, announced);
    emit(q, data, size);
}

static void emit_garbage(struct kb_request *q, uint8_t *data, size_t size)
{
    struct rng *rng = &q->conn->cluster->rng;
    size_t i;

    for (i = 8; i < size; i++)
        data[i] = (uint8_t)kp__rng_next(rng);
    emit(q, data, size);
}

static void emit_flipped(struct kb_request *q, uint8_t *data, size_t size)
{
    size_t bit = size > 4 ? q->action.at % ((size - 4) * 8) : 0;

    data[4 + bit / 8] ^= (uint8_t)(1u << (bit % 8));
    emit(q, data, size);
}

static void emit_other_api(struct kb_request *q, uint8_t *data)
{
    /* error 0, no APIs: an answer to ApiVersions v0 */
    uint8_t frame[4 + 4 + 2 + 4] = {0, 0, 0, 10};

    memcpy(frame + 4, data + 4, 4);
    emit(q, frame, sizeof(frame));
}

static void emit_unasked(struct kb_request *q, const uint8_t *data, size_t size)
{
    uint8_t *copy = kb_memdup(data, size);

    put_i32(copy + 4, (uint32_t)q->header.correlation_id ^ 0x40000000u);
    emit(q, copy, size);
    kb_free(copy);
}

static size_t cut(const struct kb_request *q, size_t size)
{
    return q->action.at < size ? q->action.at : size;
}

/* With a size field that lies, or as it is. */
static void emit_sized(struct kb_request *q, uint8_t *data, size_t size)
{
    size_t at = cut(q, size - 4);

    if (q->action.answer == KB_ANSWER_SHORT)
        emit_with_size(q, data, 4 + at, (uint32_t)at);
    else if (q->action.answer == KB_ANSWER_LIE)
        emit_with_size(q, data, size, q->action.at);
    else if (q->action.answer == KB_ANSWER_HUGE)
        emit_with_size(q, data, size, INT32_MAX);
    else if (q->action.answer == KB_ANSWER_NEGATIVE)
        emit_with_size(q, data, size, UINT32_MAX);
    else if (q->action.answer == KB_ANSWER_TINY)
        emit_with_size(q, data, 6, 2);
    else
        emit(q, data, size);
}

/* Kinds that need the bytes of an answer. */
static void shape(struct kb_request *q, uint8_t *data, size_t size)
{
    struct kb_conn *k = q->conn;

    switch (q->action.answer) {
    case KB_ANSWER_CUT:
        emit(q, data, cut(q, size));
        kb_conn_end(k, KB_OUT_CLOSE);
        break;
    case KB_ANSWER_CUT_STALL:
        emit(q, data, cut(q, size));
        k->stalled = true;
        break;
    case KB_ANSWER_CUT_RESET:
        emit(q, data, cut(q, size));
        kb_conn_end(k, KB_OUT_RESET);
        break;
    case KB_ANSWER_GARBAGE:
        emit_garbage(q, data, size);
        break;
    case KB_ANSWER_FLIP:
        emit_flipped(q, data, size);
        break;
    case KB_ANSWER_TWICE:
        emit(q, data, size);
        emit(q, data, size);
        break;
    case KB_ANSWER_WRONG_ID:
        put_i32(data + 4, (uint32_t)q->header.correlation_id + 1000);
        emit(q, data, size);
        break;
    case KB_ANSWER_UNASKED:
        emit_unasked(q, data, size);
        emit(q, data, size);
        break;
    case KB_ANSWER_OTHER_API:
        emit_other_api(q, data);
        break;
    case KB_ANSWER_DRIBBLE:
        dribble(q, data, size);
        break;
    case KB_ANSWER_HALF_CLOSE:
        emit(q, data, size);
        kb_conn_emit(k, KB_OUT_HALF_CLOSE, NULL, 0, k->cluster->now_ns);
        break;
    case KB_ANSWER_CLOSE_AFTER:
        emit(q, data, size);
        kb_conn_end(k, KB_OUT_CLOSE);
        break;
    default:
        emit_sized(q, data, size);
        break;
    }
}

static void hold_behind(struct kb_request *q)
{
    struct kb_conn *k = q->conn;

    kb_free(k->behind);
    k->behind_size = q->out.buf.size;
    k->behind = kb_memdup(q->out.buf.data, k->behind_size);
}

static void emit_behind(struct kb_conn *k)
{
    if (k->behind == NULL)
        return;
    kb_conn_emit(k, KB_OUT_BYTES, k->behind, k->behind_size,
                 k->cluster->now_ns);
    kb_free(k->behind);
    k->behind = NULL;
}

void kb_answer_send(struct kb_request *q)
{
    struct kb_conn *k = q->conn;

    switch (q->action.answer) {
    case KB_ANSWER_NONE:
        return;
    case KB_ANSWER_STALL:
        k->stalled = true;
        return;
    case KB_ANSWER_CLOSE:
        kb_conn_end(k, KB_OUT_CLOSE);
        return;
    case KB_ANSWER_RESET:
        kb_conn_end(k, KB_OUT_RESET);
        return;
    default:
        break;
    }
    if (q->no_answer || q->out.buf.size < 8)
        return;
    if (q->action.answer == KB_ANSWER_BEHIND) {
        hold_behind(q);
        return;
    }
    shape(q, q->out.buf.data, q->out.buf.size);
    emit_behind(k);
}

/* -- rules as text -- */

static const char *const answer_names[KB_ANSWER_KINDS] = {
    "normal",    "none",      "stall",      "close",       "reset",  "cut",
    "cut-stall", "cut-reset", "short",      "garbage",     "flip",   "twice",
    "wrong-id",  "lie",       "huge",       "negative",    "tiny",   "unasked",
    "other-api", "dribble",   "half-close", "close-after", "behind",
};

static const char *set_answer(struct kb_rule *r, const char *value)
{
    int i;

    for (i = 0; i < KB_ANSWER_KINDS; i++)
        if (strcmp(answer_names[i], value) == 0) {
            r->action.answer = (enum kb_answer)i;
            if (r->action.answer == KB_ANSWER_DRIBBLE &&
                r->action.dribble_ns == 0)
                r->action.dribble_ns = KB_NS_PER_MS;
            return NULL;
        }
    return "no such answer";
}

static const char *set_api(struct kb_rule *r, const char *value)
{
    static const struct {
        const char *name;
        int16_t key;
    } apis[] = {{"produce", API_PRODUCE},
                {"metadata", API_METADATA},
                {"api-versions", API_API_VERSIONS},
                {"init-producer-id", API_INIT_PRODUCER_ID},
                {"connect", KB_API_CONNECT},
                {"any", -1}};
    size_t i;

    for (i = 0; i < sizeof(apis) / sizeof(apis[0]); i++)
        if (strcmp(apis[i].name, value) == 0) {
            r->api = apis[i].key;
            return NULL;
        }
    return "no such API";
}

static const char *set_flag(struct kb_rule *r, const char *name)
{
    if (strcmp(name, "append") == 0)
        r->action.append = true;
    else if (strcmp(name, "ignore") == 0)
        r->action.ignore = true;
    else if (strcmp(name, "omit") == 0)
        r->action.omit = true;
    else if (strcmp(name, "repeat") == 0)
        r->action.repeat = true;
    else if (strcmp(name, "stranger") == 0)
        r->action.stranger = true;
    else if (strcmp(name, "no_brokers") == 0)
        r->action.no_brokers = true;
    else
        return "no such word";
    return NULL;
}

static const char *set_number(struct kb_rule *r, const char *name, int64_t v)
{
    struct kb_action *a = &r->action;

    if (strcmp(name, "node") == 0)
        r->node_id = (int32_t)v;
    else if (strcmp(name, "partition") == 0)
        r->partition = (int32_t)v;
    else if (strcmp(name, "skip") == 0)
        r->skip = v;
    else if (strcmp(name, "count") == 0)
        r->count = v;
    else if (strcmp(name, "process_ms") == 0)
        a->process_ns = v * KB_NS_PER_MS;
    else if (strcmp(name, "answer_ms") == 0)
        a->answer_ns = v * KB_NS_PER_MS;
    else if (strcmp(name, "dribble_ms") == 0)
        a->dribble_ns = v * KB_NS_PER_MS;
    else if (strcmp(name, "at") == 0)
        a->at = (uint32_t)v;
    else if (strcmp(name, "text") == 0)
        a->text = (int32_t)v;
    else if (strcmp(name, "blame") == 0) {
        a->has_blame = true;
        a->blame = (int32_t)v;
    } else if (strcmp(name, "hint") == 0) {
        a->has_hint = true;
        a->hint = (int32_t)v;
    } else if (strcmp(name, "hint_epoch") == 0) {
        a->hint_epoch = (int32_t)v;
    } else if (strcmp(name, "error") == 0) {
        a->has_error = true;
        a->error = (int16_t)v;
    } else if (strcmp(name, "offset") == 0) {
        a->has_offset = true;
        a->base_offset = v;
    } else if (strcmp(name, "log_start") == 0) {
        a->has_log_start = true;
        a->log_start = v;
    } else if (strcmp(name, "take") == 0) {
        a->has_take = true;
        a->take = v;
    } else if (strcmp(name, "throttle_ms") == 0) {
        a->has_throttle = true;
        a->throttle_ms = (int32_t)v;
    } else {
        return "no such setting";
    }
    return NULL;
}

static const char *set_one(struct kb_rule *r, char *word)
{
    char *value = strchr(word, '=');
    int64_t v;

    if (value == NULL)
        return set_flag(r, word);
    *value++ = 0;
    if (strcmp(word, "api") == 0)
        return set_api(r, value);
    if (strcmp(word, "answer") == 0)
        return set_answer(r, value);
    if (strcmp(word, "topic") == 0) {
        if (strlen(value) >= sizeof(r->topic))
            return "topic name too long";
        memcpy(r->topic, value, strlen(value) + 1);
        return NULL;
    }
    if (!kp__str_to_i64(value, &v) ||
        (strcmp(word, "offset") != 0 && (v < INT32_MIN || v > INT32_MAX)))
        return "not a number";
    return set_number(r, word, v);
}

const char *kb_rule_parse(const char *line, struct kb_rule *out)
{
    char copy[1024], *at = copy, *word;
    const char *wrong = NULL;
    struct kb_rule r;

    if (strlen(line) >= sizeof(copy))
        return "line too long";
    memcpy(copy, line, strlen(line) + 1);
    kb_rule_default(&r);
    while (wrong == NULL && (word = strtok_r(at, " \t\r\n", &at)) != NULL)
        wrong = set_one(&r, word);
    if (wrong == NULL)
        *out = r;
    return wrong;
}
