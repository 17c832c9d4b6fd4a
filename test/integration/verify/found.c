/* SPDX-License-Identifier: BSD-2-Clause */
/* found.c - reads what the independent readers print.  Whatever is not in the
 * form it should have ends the program: a check must not pass on half a file.
 * Offsets of a partition must go up. */
#include "test/integration/verify/found.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "test/integration/sender/hash.h"

static void bad(const char *path, const char *what)
{
    fprintf(stderr, "verify: %s: %s\n", path, what);
    exit(2);
}

static FILE *open_input(const char *path)
{
    FILE *f = fopen(path, "r");
    if (f == NULL)
        bad(path, "cannot be read");
    setvbuf(f, NULL, _IOFBF, 1 << 20);
    return f;
}

static void add(struct found_list *list, struct found f, const char *path)
{
    if (list->count == list->capacity) {
        list->capacity = list->capacity ? 2 * list->capacity : 4096;
        list->at = realloc(list->at, list->capacity * sizeof *list->at);
        if (list->at == NULL)
            bad(path, "no memory");
    }
    if (f.partition < 0 || f.partition >= PARTITIONS_MAX)
        bad(path, "partition out of range");
    list->at[list->count++] = f;
}

static void *body(size_t size, const char *path)
{
    static void *buffer;
    static size_t capacity;
    if (size > capacity) {
        capacity = 2 * size;
        free(buffer);
        buffer = malloc(capacity);
        if (buffer == NULL)
            bad(path, "no memory");
    }
    return buffer;
}

/* One length-prefixed field; -1 is null and has no bytes. */
static uint64_t hash_field(uint64_t h, long long size, FILE *in,
                           const char *path)
{
    if (size < 0)
        return hash_bytes(h, NULL, 0);
    void *at = body((size_t)size + 1, path);
    if (fread(at, 1, (size_t)size, in) != (size_t)size)
        bad(path, "ends inside a record");
    return hash_bytes(h, at, (size_t)size);
}

void found_read_kcat(struct found_list *list, const char *path)
{
    FILE *in = open_input(path);
    char line[160];
    while (fgets(line, sizeof line, in) != NULL) {
        struct found f = {.codec = -1, .java_partition = -1, .batch_ms = -1};
        long long key, value;
        if (sscanf(line, "%" SCNd32 " %" SCNd64 " %" SCNd64 " %lld %lld",
                   &f.partition, &f.offset, &f.stamp_ms, &key, &value) != 5)
            bad(path, "not a line of kcat");
        f.hash = hash_field(HASH_START, key, in, path);
        f.hash = hash_field(f.hash, value, in, path);
        add(list, f, path);
    }
    fclose(in);
    list->whole_hash = false;
}

void found_read_records(struct found_list *list, const char *path)
{
    FILE *in = open_input(path);
    char line[160];
    while (fgets(line, sizeof line, in) != NULL) {
        struct found f = {0};
        uint64_t key_and_value;
        if (sscanf(line,
                   "%" SCNd32 " %" SCNd64 " %" SCNd64 " %" SCNx64 " %" SCNx64
                   " %" SCNd16 " %" SCNd16 " %" SCNd64,
                   &f.partition, &f.offset, &f.stamp_ms, &key_and_value,
                   &f.hash, &f.codec, &f.java_partition, &f.batch_ms) != 8)
            bad(path, "not a line of KpLog");
        add(list, f, path);
    }
    fclose(in);
    list->whole_hash = true;
}
