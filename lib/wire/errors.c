/* SPDX-License-Identifier: BSD-2-Clause */
/* errors.c - the rows of errors.def, and the one function that says what is
 * known of a record.  Constant tables, pure; any thread. */
#include "lib/wire/errors.h"

#include <stddef.h>

enum again { FINAL, RETRY, REFRESH };

#define ROW(code, label, k, a, one, all, sentence) \
    { \
        .err = (code), .name = (label), .text = (sentence), \
        .kind = KP_KIND_##k, .retriable = (a) != FINAL, \
        .refresh_metadata = (a) == REFRESH, .acks_one = CERTAIN_##one, \
        .acks_all = CERTAIN_##all \
    }

/* Kafka's by code + 1, for UNKNOWN_SERVER_ERROR is -1; ours by -code. */
#define KAFKA_ERROR(code, name, kind, again, one, all, text) \
    [(code) + 1] = ROW(code, #name, kind, again, one, all, text),
#define OUR_ERROR(name, kind, again, one, all, text)
static const struct error_info kafka_rows[] = {
#include "lib/wire/errors.def"
};
#undef KAFKA_ERROR
#undef OUR_ERROR

#define KAFKA_ERROR(code, name, kind, again, one, all, text)
#define OUR_ERROR(name, kind, again, one, all, text) \
    [-KP_##name] = ROW(KP_##name, "KP_" #name, kind, again, one, all, text),
static const struct error_info our_rows[] = {
#include "lib/wire/errors.def"
};
#undef KAFKA_ERROR
#undef OUR_ERROR

static const struct error_info unknown_row =
    ROW(-1, "UNKNOWN_ERROR", RETRIABLE, FINAL, MAYBE, MAYBE,
        "The broker answered with a code that this version of the library "
        "does not know; its own log says why, and the record may be stored.");

#define COUNT(rows) ((int32_t)(sizeof(rows) / sizeof((rows)[0])))

const struct error_info *kp__error_info(kp_err err)
{
    const struct error_info *row = &unknown_row;

    if (err == KP_OK)
        return &our_rows[0];
    if (err >= -1 && err < COUNT(kafka_rows) - 1)
        row = &kafka_rows[err + 1];
    else if (err < 0 && err > -COUNT(our_rows))
        row = &our_rows[-err];
    return row->name != NULL ? row : &unknown_row;
}

kp_err kp__error_answered(int16_t code)
{
    return code < 0 ? KP_UNKNOWN_SERVER_ERROR : code;
}

bool kp__error_may_pass(kp_err err)
{
    if (err < 0)
        return err != KP_ENOTSUP && err != KP_ETOPIC;
    return kp__error_info(err)->retriable;
}

/* One attempt alone.  A broker has a frame only when it has its last byte, and
 * with acks=0 it never says what it did. */
static enum certainty attempt(kp_err err, int16_t acks, bool sent)
{
    const struct error_info *row = kp__error_info(err);

    if (!sent)
        return CERTAIN_NO;
    if (acks == 0)
        return CERTAIN_MAYBE;
    return acks == 1 ? row->acks_one : row->acks_all;
}

/* DUPLICATE_SEQUENCE_NUMBER proves an earlier attempt that might have been
 * stored; without one the numbers are another batch's, and that is our bug. */
static enum certainty duplicate(bool first, enum certainty so_far)
{
    return first || so_far == CERTAIN_NO ? CERTAIN_MAYBE : CERTAIN_YES;
}

enum certainty kp__certainty(kp_err err, int16_t acks, bool sent, bool first,
                             enum certainty so_far)
{
    enum certainty now = attempt(err, acks, sent);

    if (sent && acks != 0 && err == KP_DUPLICATE_SEQUENCE_NUMBER)
        now = duplicate(first, so_far);
    if (first)
        return now;
    if (so_far == CERTAIN_YES || now == CERTAIN_YES)
        return CERTAIN_YES;
    if (so_far == CERTAIN_MAYBE || now == CERTAIN_MAYBE)
        return CERTAIN_MAYBE;
    return CERTAIN_NO;
}
