/* SPDX-License-Identifier: BSD-2-Clause */
/* refusal.c - the log line of a refused send.  Sending threads, several at
 * once.
 *
 * The code says what was wrong; the line adds the value, never what is in the
 * record. */
#include "lib/api/refusal.h"

#include <inttypes.h>
#include <string.h>

#include "lib/base/str.h"
#include "lib/wire/record.h"

#define LINE_EVERY_NS (10 * KP_NS_PER_SEC)

/* What stands behind an err that only the I/O thread can explain. */
static void describe_status(struct kp_producer *p, const kp_record *r,
                            char *out, size_t capacity)
{
    size_t size = r->topic_size > 0 ? r->topic_size : strlen(r->topic);
    kp_error status;

    if (kp__status_get(&p->status, r->topic, size, &status) != KP_OK)
        (void)kp__format(out, capacity, "; %s", status.text);
}

static void describe_size(const struct kp_producer *p, const kp_record *r,
                          char *out, size_t capacity)
{
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
        kp__str_escape(topic, sizeof(topic), r->topic,
                       r->topic_size > 0 ? r->topic_size : strlen(r->topic));
        describe(p, r, err, more, sizeof(more));
    }
    kp__log_limited(p->log, limit, LINE_EVERY_NS, KP_LOG_WARN, "send",
                    "a record for topic \"%s\" was refused: %s, %s%s", topic,
                    kp_err_name(err), kp_err_text(err), more);
}
