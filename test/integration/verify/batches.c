/* SPDX-License-Identifier: BSD-2-Clause */
/* batches.c - reads DumpLogSegments' batch lines.  One thread.  The segments of
 * a partition must come in the order of their base offsets. */
#include "test/integration/verify/batches.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "test/integration/verify/problem.h"

#define STREAMS_MAX 4096

struct batch {
    int64_t base, last, count, sequence, last_sequence, producer, epoch;
    int valid;
};

/* A producer's batches of one partition in one epoch. */
struct stream {
    char partition[256];
    int64_t producer, epoch, first_offset, last_offset, last_sequence;
    uint64_t batches;
};

struct dump {
    char partition[256];
    int64_t next_offset;
    uint64_t records;
    bool any_start;
    struct stream streams[STREAMS_MAX];
    size_t stream_count;
};

/* The folder of the segment, "topic-3", is the partition's name. */
static void start_file(struct dump *d, char *path)
{
    char *slash = strrchr(path, '/');
    char name[sizeof d->partition];
    if (slash == NULL)
        return;
    *slash = '\0';
    char *folder = strrchr(path, '/');
    snprintf(name, sizeof name, "%.255s", folder == NULL ? path : folder + 1);
    if (strcmp(name, d->partition) != 0)
        d->next_offset = -1;
    memcpy(d->partition, name, sizeof name);
}

static int64_t field(const char *line, const char *name)
{
    const char *at = strstr(line, name);
    if (at == NULL) {
        problem("dump", "no %s in: %.100s", name, line);
        return -1;
    }
    return strtoll(at + strlen(name), NULL, 10);
}

static struct batch parse(const char *line)
{
    struct batch b;
    b.base = field(line, "baseOffset: ");
    b.last = field(line, "lastOffset: ");
    b.count = field(line, "count: ");
    b.sequence = field(line, "baseSequence: ");
    b.last_sequence = field(line, "lastSequence: ");
    b.producer = field(line, "producerId: ");
    b.epoch = field(line, "producerEpoch: ");
    b.valid = strstr(line, "isvalid: true") != NULL;
    return b;
}

static struct stream *stream_of(struct dump *d, const struct batch *b)
{
    struct stream *s = NULL;
    for (size_t i = d->stream_count; i-- > 0 && s == NULL;)
        if (d->streams[i].producer == b->producer &&
            strcmp(d->streams[i].partition, d->partition) == 0)
            s = &d->streams[i];
    if (s != NULL && s->epoch == b->epoch)
        return s;
    bool fresh = s == NULL;
    if (s != NULL && s->epoch > b->epoch)
        problem("epoch", "%s offset %" PRId64 ": %" PRId64 " after %" PRId64,
                d->partition, b->base, b->epoch, s->epoch);
    if (d->stream_count == STREAMS_MAX)
        abort();
    s = &d->streams[d->stream_count++];
    memcpy(s->partition, d->partition, sizeof s->partition);
    s->producer = b->producer;
    s->epoch = b->epoch;
    s->first_offset = b->base;
    s->last_sequence = fresh && d->any_start ? b->sequence - 1 : -1;
    s->batches = 0;
    return s;
}

static int64_t after(int64_t sequence)
{
    return sequence == INT32_MAX ? 0 : sequence + 1;
}

static void check_batch(struct dump *d, const struct batch *b)
{
    struct stream *s = stream_of(d, b);
    if (!b->valid)
        problem("invalid-batch", "%s offset %" PRId64, d->partition, b->base);
    if (d->next_offset >= 0 && b->base != d->next_offset)
        problem("offset-gap", "%s: %" PRId64 " instead of %" PRId64,
                d->partition, b->base, d->next_offset);
    if (b->last - b->base + 1 != b->count)
        problem("count", "%s offset %" PRId64, d->partition, b->base);
    if (b->producer >= 0 && b->sequence != after(s->last_sequence))
        problem("sequence-gap",
                "%s offset %" PRId64 " epoch %" PRId64 ": %" PRId64
                " after %" PRId64,
                d->partition, b->base, b->epoch, b->sequence, s->last_sequence);
    s->last_sequence = b->last_sequence;
    s->last_offset = b->last;
    s->batches++;
    d->next_offset = b->last + 1;
    d->records += (uint64_t)b->count;
}

static void print_streams(const struct dump *d)
{
    for (size_t i = 0; i < d->stream_count; i++) {
        const struct stream *s = &d->streams[i];
        if (s->producer >= 0)
            printf("epoch %s %" PRId64 " %" PRId64 " %" PRId64 " %" PRId64
                   " %" PRIu64 "\n",
                   s->partition, s->producer, s->epoch, s->first_offset,
                   s->last_offset, s->batches);
    }
}

uint64_t batches_check(const char *path, bool any_start)
{
    static struct dump d;
    char line[2048];
    FILE *in = fopen(path, "r");
    if (in == NULL) {
        fprintf(stderr, "verify: %s: cannot be read\n", path);
        exit(2);
    }
    d.any_start = any_start;
    d.next_offset = -1;
    while (fgets(line, sizeof line, in) != NULL) {
        if (strncmp(line, "Dumping ", 8) == 0)
            start_file(&d, line + 8);
        else if (strncmp(line, "baseOffset: ", 12) == 0) {
            struct batch b = parse(line);
            check_batch(&d, &b);
        }
    }
    fclose(in);
    print_streams(&d);
    return d.records;
}
