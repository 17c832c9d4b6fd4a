/* SPDX-License-Identifier: BSD-2-Clause */
/* golden.h - reading the files of test/golden: bytes from Kafka's own classes,
 * with the values that are in them.  test/golden/README.md has the format.
 *
 * A file that cannot be read, or is not in the format, ends the program: a test
 * without its data must not pass. */
#ifndef KP_TEST_SUPPORT_GOLDEN_H
#define KP_TEST_SUPPORT_GOLDEN_H

#include "lib/base/buf.h"
#include "lib/wire/api.h"
#include "lib/wire/schema.h"

/* Large enough for every struct of api.h that a schema describes. */
union any_message {
    struct produce_request produce_request;
    struct produce_response produce_response;
    struct metadata_request metadata_request;
    struct metadata_response metadata_response;
    struct api_versions_request api_versions_request;
    struct api_versions_response api_versions_response;
    struct init_producer_id_request init_producer_id_request;
    struct init_producer_id_response init_producer_id_response;
};

struct golden_case { /* the lines from a title to its "end" */
    char *title;     /* "message PRODUCE request 9 max" */
    char **lines;    /* after the title */
    size_t count;
};
struct golden_file {
    char *text;
    char **lines;
    size_t line_count;
    struct golden_case *cases;
    size_t count;
};

/* From test/golden under the environment's `srcdir`, or the working folder. */
void golden_open(struct golden_file *f, const char *name);
void golden_close(struct golden_file *f);
/* What follows "key " on the line that begins so; NULL: no such line. */
const char *golden_get(const struct golden_case *c, const char *key);
long long golden_number(const struct golden_case *c, const char *key);
/* The bytes of a word; freed by the caller.  "null" gives NULL and size 0; no
 * bytes give an address and 0.  Exactly as large as the bytes, so that a
 * sanitizer sees the first step past them. */
uint8_t *golden_bytes(const char *word, size_t *size);
/* The word of some bytes. */
void golden_word(struct buf *out, const void *data, size_t size);
/* All lines of a case that begin so, one a line. */
void golden_lines(struct buf *out, const struct golden_case *c,
                  const char *begin);
/* The "nullable " lines that Kafka's classes would print of this version. */
void golden_nullables(struct buf *out, const struct schema *s, int16_t version);
/* The lines that Kafka's classes would print of this value. */
void golden_dump(struct buf *out, const struct schema *s, int16_t version,
                 const void *value);

#endif
