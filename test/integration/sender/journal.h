/* SPDX-License-Identifier: BSD-2-Clause */
/* journal.h - what a sending program did and was told, record by record.
 *
 * A file mapped into memory, so that it is whole whenever the program dies:
 * a head, one struct lane for each sending thread, then lane_count x
 * lane_capacity entries.  A lane's entries are in sending order. */
#ifndef KP_TEST_INTEGRATION_JOURNAL_H
#define KP_TEST_INTEGRATION_JOURNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define JOURNAL_MAGIC UINT64_C(0x6b706a6f75726e31)

enum partition_rule {
    RULE_NONE,        /* any partition is right */
    RULE_EXPLICIT,    /* the one the record asked for */
    RULE_KEYED,       /* where Java puts the key; any, if there is none */
    RULE_STICKY,      /* long runs on one partition */
    RULE_ROUND_ROBIN, /* each partition as often as any other */
    RULE_CUSTOM,      /* as RULE_EXPLICIT, but a function of ours chose it */
    RULE_RACK         /* as RULE_STICKY, among leaders in our rack */
};

struct journal_head {
    uint64_t magic;
    uint32_t lane_count;
    uint32_t lane_capacity;
    int64_t delivery_timeout_ns;
    int64_t max_block_ns; /* of the sends; 0 with KP_NOWAIT */
    /* the first timestamp that records ask for: all of them lie in the past, for
     * brokers refuse future ones, and no two lanes share any */
    int64_t stamp_base_ms;
};

struct lane {
    char label[64];
    int32_t acks;
    int32_t codec;  /* Kafka's number of the codec asked for */
    int32_t rule;   /* enum partition_rule */
    uint32_t used;  /* entries that were handed to kp_send */
    uint32_t group; /* lanes of one producer and rule have the same */
    uint32_t reserved;
};

/* Written by the sending thread, but for the last block, which belongs to
 * whoever takes the report.  Times are CLOCK_MONOTONIC. */
struct entry {
    uint64_t kv_hash, all_hash;
    int64_t stamp_ms; /* the timestamp asked for; -1: none */
    int64_t call_ns, sent_ns;
    int32_t send_err;
    int32_t asked; /* the partition asked for; -1: none */

    int64_t report_ns;
    int64_t offset;
    int64_t report_ms;
    int32_t err, cause;
    int32_t partition;
    uint16_t stored;
    uint16_t reports;
};

struct journal {
    struct journal_head *head;
    struct lane *lanes;
    struct entry *entries;
    size_t size_bytes;
};

/* Make a new file at `path`, all zero but the head.  False: errno says why. */
bool journal_create(struct journal *j, const char *path, uint32_t lane_count,
                    uint32_t lane_capacity);
/* Map an existing file to read.  False: not a whole journal. */
bool journal_open(struct journal *j, const char *path);
void journal_close(struct journal *j);

static inline struct entry *journal_entry(const struct journal *j,
                                          uint32_t lane, uint32_t seq)
{
    return &j->entries[(size_t)lane * j->head->lane_capacity + seq];
}

#endif
