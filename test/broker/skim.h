/* SPDX-License-Identifier: BSD-2-Clause */
/* skim.h - taking the bodies of record batches out of a byte stream, so that
 * they need not be read at all.  For discard mode.  Pure.
 *
 * The stream is walked as it comes.  Of a Produce request everything is kept
 * but what follows the 61 bytes of each batch header; the length of each
 * record field becomes 61.  Other requests are kept whole. */
#ifndef KP_BROKER_SKIM_H
#define KP_BROKER_SKIM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct kb_skim {
    int state;
    size_t max_frame;
    size_t frame_left; /* bytes of the frame not yet walked over */
    size_t copy_left, skip_left;
    size_t body; /* of the batch whose header comes next */
    int16_t version;
    bool flexible, skimmed;
    uint32_t topics_left, partitions_left, tags_left;
    int tags_return; /* the state after a tag section */
    uint8_t *kept;
    size_t kept_size, kept_capacity;
};

enum kb_skim_result {
    KB_SKIM_MORE,  /* everything usable was used */
    KB_SKIM_FRAME, /* kept[0..kept_size) is one whole request */
    KB_SKIM_BAD
};

void kb_skim_init(struct kb_skim *s, size_t max_frame);
void kb_skim_fini(struct kb_skim *s);
/* Walk on; *used gets how many of the n bytes are done with.  What is left over
 * at KB_SKIM_MORE (at most 60 bytes) must come again with more behind it. */
enum kb_skim_result kb_skim_walk(struct kb_skim *s, const uint8_t *data,
                                 size_t n, size_t *used);
/* Bytes of the stream that would only be thrown away: the caller may drop them
 * unread, and says so with kb_skim_skipped. */
static inline size_t kb_skim_skippable(const struct kb_skim *s)
{
    return s->copy_left == 0 ? s->skip_left : 0;
}
void kb_skim_skipped(struct kb_skim *s, size_t n);

#endif
