/* SPDX-License-Identifier: BSD-2-Clause */
/* codes.h - every error code a broker can answer with, and what has to come of
 * it.  Written by hand from Kafka's list of errors (which are retriable, and
 * where brokers check before they append) and from the rules of
 * docs/decisions/; the library's own table (errors.def) is not looked at. */
#ifndef KP_TEST_MATRIX_CODES_H
#define KP_TEST_MATRIX_CODES_H

#include <stdint.h>
#include <stdlib.h>

#include "include/kp/kp.h"

/* What becomes of a batch that was answered so, with nothing of its partition
 * in front of it.  Without idempotence BUMP, NEW_ID, FORGOTTEN and TWIN are
 * FINAL: sequence numbers mean nothing then. */
enum produce_rule {
    STORED,    /* that is what it says */
    RETRY,     /* sent again under the same numbers, until the deadline */
    THRICE,    /* sent three times in all */
    FINAL,     /* the report */
    FATAL,     /* the report, and the end of the producer */
    BUMP,      /* sent again under the next epoch */
    NEW_ID,    /* sent again under a new producer id */
    FORGOTTEN, /* RETRY while the log's start is unknown */
    TWIN       /* a duplicate of what was sent once: reported, then a new id */
};

/* What an answer to InitProducerId, or about a topic, leads to. */
enum answer_rule {
    AGAIN,  /* asked again after the backoff */
    REFUSED /* no id: the end of the producer; no topic: the send's error */
};

enum { NO = KP_STORED_NO, MAYBE = KP_STORED_MAYBE, YES = KP_STORED_YES };

struct code {
    int16_t code;
    enum produce_rule produce;
    int32_t one, all; /* in the log after one attempt, acks=1 and acks=all */
    enum answer_rule id, topic;
};

static const struct code codes_with_rules[] = {
    {-1, FINAL, MAYBE, MAYBE, AGAIN, AGAIN}, /* UNKNOWN_SERVER_ERROR */
    {0, STORED, YES, YES, AGAIN, AGAIN},
    {2, THRICE, NO, NO, AGAIN, AGAIN}, /* CORRUPT_MESSAGE */
    /* leaders append first, and then find that they lead no more */
    {3, RETRY, NO, MAYBE, AGAIN, AGAIN},   /* UNKNOWN_TOPIC_OR_PARTITION */
    {5, RETRY, NO, MAYBE, AGAIN, AGAIN},   /* LEADER_NOT_AVAILABLE */
    {6, RETRY, NO, MAYBE, AGAIN, AGAIN},   /* NOT_LEADER_OR_FOLLOWER */
    {9, RETRY, NO, MAYBE, AGAIN, AGAIN},   /* REPLICA_NOT_AVAILABLE */
    {74, RETRY, NO, MAYBE, AGAIN, AGAIN},  /* FENCED_LEADER_EPOCH */
    {75, RETRY, NO, MAYBE, AGAIN, AGAIN},  /* UNKNOWN_LEADER_EPOCH */
    {100, RETRY, NO, MAYBE, AGAIN, AGAIN}, /* UNKNOWN_TOPIC_ID */
    {103, RETRY, NO, MAYBE, AGAIN, AGAIN}, /* INCONSISTENT_TOPIC_ID */
    /* appended, or half of it */
    {7, RETRY, MAYBE, MAYBE, AGAIN, AGAIN},  /* REQUEST_TIMED_OUT */
    {20, RETRY, MAYBE, MAYBE, AGAIN, AGAIN}, /* ..._REPLICAS_AFTER_APPEND */
    {56, RETRY, MAYBE, MAYBE, AGAIN, AGAIN}, /* KAFKA_STORAGE_ERROR */
    /* checked before anything is appended */
    {10, FINAL, NO, NO, REFUSED, REFUSED}, /* MESSAGE_TOO_LARGE, one record */
    {14, RETRY, NO, NO, AGAIN, AGAIN},     /* COORDINATOR_LOAD_IN_PROGRESS */
    {15, RETRY, NO, NO, AGAIN, AGAIN},     /* COORDINATOR_NOT_AVAILABLE */
    {16, RETRY, NO, NO, AGAIN, AGAIN},     /* NOT_COORDINATOR */
    {17, FINAL, NO, NO, REFUSED, REFUSED}, /* INVALID_TOPIC_EXCEPTION */
    {18, FINAL, NO, NO, REFUSED, REFUSED}, /* RECORD_LIST_TOO_LARGE */
    {19, RETRY, NO, NO, AGAIN, AGAIN},     /* NOT_ENOUGH_REPLICAS */
    {21, FINAL, NO, NO, REFUSED, REFUSED}, /* INVALID_REQUIRED_ACKS */
    {29, FINAL, NO, NO, REFUSED, REFUSED}, /* TOPIC_AUTHORIZATION_FAILED */
    {31, FATAL, NO, NO, REFUSED, REFUSED}, /* CLUSTER_AUTHORIZATION_FAILED */
    {32, FINAL, NO, NO, REFUSED, REFUSED}, /* INVALID_TIMESTAMP */
    {35, FATAL, NO, NO, REFUSED, REFUSED}, /* UNSUPPORTED_VERSION */
    {42, FINAL, NO, NO, REFUSED, REFUSED}, /* INVALID_REQUEST */
    {43, FINAL, NO, NO, REFUSED, REFUSED}, /* UNSUPPORTED_FOR_MESSAGE_... */
    {44, FINAL, NO, NO, REFUSED, REFUSED}, /* POLICY_VIOLATION */
    {45, BUMP, NO, NO, REFUSED, REFUSED},  /* OUT_OF_ORDER_SEQUENCE_NUMBER */
    {46, TWIN, MAYBE, MAYBE, REFUSED, REFUSED}, /* DUPLICATE_SEQUENCE_NUMBER */
    {47, NEW_ID, NO, NO, REFUSED, REFUSED},     /* INVALID_PRODUCER_EPOCH */
    {48, FINAL, NO, NO, REFUSED, REFUSED},      /* INVALID_TXN_STATE */
    {49, NEW_ID, NO, NO, REFUSED, REFUSED},    /* INVALID_PRODUCER_ID_MAPPING */
    {51, RETRY, NO, NO, AGAIN, AGAIN},         /* CONCURRENT_TRANSACTIONS */
    {53, FATAL, NO, NO, REFUSED, REFUSED},     /* TRANSACTIONAL_ID_AUTHORI... */
    {59, FORGOTTEN, NO, NO, REFUSED, REFUSED}, /* UNKNOWN_PRODUCER_ID */
    {76, FINAL, NO, NO, REFUSED, REFUSED},  /* UNSUPPORTED_COMPRESSION_TYPE */
    {87, FINAL, NO, NO, REFUSED, REFUSED},  /* INVALID_RECORD */
    {90, FATAL, NO, NO, REFUSED, REFUSED},  /* PRODUCER_FENCED */
    {120, FINAL, NO, NO, REFUSED, REFUSED}, /* TRANSACTION_ABORTABLE */
};

/* Those which no Produce request is answered with.  Whoever sends one all the
 * same has not said whether the batch was appended. */
static const int16_t codes_retriable[] = {
    13, 41, 70, 71, 72, 78, 80, 83, 84, 88, 89, 106, 122, 123, 133,
};
static const int16_t
    codes_final[] =
        {
            1,   4,   8,   11,  12,  22,  23,  24,  25,  26,  27,   28,
            30,  33,  34,  36,  37,  38,  39,  40,  50,  52,  54,   55,
            57,  58,  60,  61,  62,  63,  64,  65,  66,  67,  68,   69,
            73,  77,  79,  81,  82,  85,  86,  91,  92,  93,  94,   95,
            96,  97,  98,  99,  101, 102, 104, 105, 107, 108, 109,  110,
            111, 112, 113, 114, 115, 116, 117, 118, 119, 121, 124,  125,
            126, 127, 128, 129, 130, 131, 132, 134, 135, 136, 1000, /* nobody's */
};
/* Nobody's either.  Negative numbers are the library's own, so it stands in the
 * report as UNKNOWN_SERVER_ERROR, and is judged as that. */
#define CODE_OF_NOBODY (-77)

#define CODES_COUNT(list) ((int)(sizeof(list) / sizeof((list)[0])))
#define CODES \
    (CODES_COUNT(codes_with_rules) + CODES_COUNT(codes_retriable) + \
     CODES_COUNT(codes_final) + 1)

static inline struct code code_at(int i)
{
    if (i < CODES_COUNT(codes_with_rules))
        return codes_with_rules[i];
    i -= CODES_COUNT(codes_with_rules);
    if (i < CODES_COUNT(codes_retriable))
        return (struct code){
            codes_retriable[i], RETRY, MAYBE, MAYBE, AGAIN, AGAIN};
    i -= CODES_COUNT(codes_retriable);
    if (i < CODES_COUNT(codes_final))
        return (struct code){codes_final[i], FINAL,   MAYBE,
                             MAYBE,          REFUSED, REFUSED};
    return (struct code){CODE_OF_NOBODY, FINAL, MAYBE, MAYBE, AGAIN, AGAIN};
}

/* As it stands in a report. */
static inline kp_err code_shown(int16_t code)
{
    return code == CODE_OF_NOBODY ? KP_UNKNOWN_SERVER_ERROR : code;
}

#endif
