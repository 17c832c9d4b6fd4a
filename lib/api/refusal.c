/* SPDX-License-Identifier: BSD-2-Clause */
/* refusal.c - the log line of a refused or a doubtful send.  Sending threads,
 * several at once.
 *
 * The code says what was wrong; the line adds the value, never what is in the
 * record. */
#include "lib/api/refusal.h"

#include <inttypes.h>
#include <string.h>

#include "lib/base/str.h"
#include "lib/shared/topics.h"
#include "lib/wire/record.h"

#define LINE_EVERY_NS (10 * KP_NS_PER_SEC)

/* What is shown of the name.  A size that cannot be is not read by: the name is
 * taken for a C string then. */
static size_t shown_size(const kp_record *r)
{
    if (r->topic_size > TOPIC_SIZE_MAX)
        return strnlen(r->topic, TOPIC_SIZE_MAX);
    return r->topic_size > 0 ? r->topic_size : strlen(r->topic);
}

/* What stands behind an err that only the I/O thread can explain. */
static void describe_status(struct kp_producer *p, const kp_record *r,
                            char *out, size_t capacity)
{
    kp_error status;

    if (kp__status_get(&p->status, r->topic, shown_size(r), &status) != KP_OK)
        (void)kp__format(out, capacity, "; %s", status.text);
}

static void describe_size(const struct kp_producer *p, const kp_record *r,
                          char *out, size_t capacity)
{
    /* More than kp__check_record looks at: they may not be there. */
    if (r->header_count > p->settings.max_request_size / 2) {
        (void)kp__format(out, capacity, "; %zu headers, max.request.size=%zu",
                         r->header_count, p->settings.max_request_size);
        return;
    }
    (void)kp__format(out, capacity,
                     "; it may take %zu bytes, max.request.size=%zu, "
                     "buffer.memory=%zu",
                     kp__record_upper_bound(r), p->settings.max_request_size,
                     p->settings.buffer_memory);
}

static void describe(struct kp_producer *p, const kp_record *r, kp_err err,
                     char *out, size_t capacity)
{
    switch (err) {
    case KP_ETOPIC:
        if (r->topic_size > 0)
            (void)kp__format(out, capacity, "; topic_size=%zu", r->topic_size);
        break;
    case KP_EINVAL:
        (void)kp__format(out, capacity, "; flags 0x%" PRIx32 ", %zu headers",
                         r->flags, r->header_count);
        break;
    case KP_EPARTITION:
        (void)kp__format(out, capacity,
                         "; partition=%" PRId32 ", flags 0x%" PRIx32,
                         r->partition, r->flags);
        break;
    case KP_ETIMESTAMP:
        (void)kp__format(out, capacity,
                         "; timestamp_ms=%" PRId64 ", flags 0x%" PRIx32,
                         r->timestamp_ms, r->flags);
        break;
    case KP_ETOOBIG:
        describe_size(p, r, out, capacity);
        break;
    case KP_EMETADATA:
        if ((r->flags & KP_HAS_PARTITION) != 0) {
            size_t n =
                kp__format(out, capacity, "; partition=%" PRId32, r->partition);

            out += n;
            capacity -= n;
        }
        describe_status(p, r, out, capacity);
        break;
    case KP_EBUFFER:
        (void)kp__format(out, capacity, "; buffer.memory=%zu",
                         p->settings.buffer_memory);
        break;
    default:
        break;
    }
}

void kp__refusal_log(struct kp_producer *p, const kp_record *r, kp_err err)
{
    struct log_limit *limit =
        &p->refused_limits[(uint32_t)err % REFUSED_LIMITS];
    char topic[128] = "", more[300] = "";

    if (p->settings.log_fn == NULL)
        return;
    if (r != NULL && r->topic != NULL) {
        kp__str_escape(topic, sizeof(topic), r->topic, shown_size(r));
        describe(p, r, err, more, sizeof(more));
    }
    kp__log_limited(p->log, limit, LINE_EVERY_NS, KP_LOG_WARN, "send",
                    "a record for topic \"%s\" was refused: %s, %s%s", topic,
                    kp_err_name(err), kp_err_text(err), more);
}

void kp__stamp_log(struct kp_producer *p, const kp_record *r)
{
    char topic[128];

    if (p->settings.log_fn == NULL)
        return;
    kp__str_escape(topic, sizeof(topic), r->topic, shown_size(r));
    kp__log_limited(p->log, &p->stamp_limit, LINE_EVERY_NS, KP_LOG_WARN, "send",
                    "a record for topic \"%s\" has timestamp_ms=%" PRId64
                    ", after the year 5138: give milliseconds since 1970, not "
                    "micro- or nanoseconds",
                    topic, r->timestamp_ms);
}
