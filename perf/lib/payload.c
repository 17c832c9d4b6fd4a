/* SPDX-License-Identifier: BSD-2-Clause */
/* payload.c - makes or reads the values and keys.  The main thread, before the
 * run; afterwards they are constant and shared by the sending threads. */
#include "perf/lib/payload.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Values up to this size are separate; larger ones are slices that begin this
 * far apart in one long text. */
#define STRIDE_MAX ((size_t)16 * 1024)
#define RANDOM_KEYS_MIN ((size_t)1 << 16)
#define RANDOM_KEYS_MAX ((size_t)1 << 20)

uint64_t payload_random(uint64_t *state)
{
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);

    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

static bool no_memory(void)
{
    (void)fputs(TOOL ": no memory for the records to send; ask for smaller "
                     "ones, or fewer keys\n",
                stderr);
    return false;
}

static unsigned below(uint64_t *state, unsigned bound)
{
    return (unsigned)(payload_random(state) % bound);
}

static const char *word(uint64_t *state)
{
    static const char *const words[] = {
        "order",   "created", "payment",  "shipped",  "customer",  "warehouse",
        "invoice", "pending", "refund",   "priority", "eu-west-1", "us-east-2",
        "status",  "amount",  "currency", "quantity"};

    return words[below(state, 16)];
}

/* One more member of the object, at most 64 bytes. */
static int member(char *out, size_t size, uint64_t *state)
{
    if (below(state, 2) == 0)
        return snprintf(out, size, ",\"%s\":%u", word(state),
                        below(state, 100000));
    return snprintf(out, size, ",\"%s\":\"%s\"", word(state), word(state));
}

void payload_json(char *out, size_t size, uint64_t *state)
{
    char part[128];
    int n = snprintf(part, sizeof(part), "{\"id\":%u,\"user\":\"u%06u\"",
                     (unsigned)payload_random(state), below(state, 1000000));
    size_t at = 0;

    while (at < size) {
        size_t take = (size_t)n < size - at ? (size_t)n : size - at;

        memcpy(out + at, part, take);
        at += take;
        n = member(part, sizeof(part), state);
    }
    out[size - 1] = '}';
}

static bool make_values(struct payload *p, size_t size, uint64_t *state)
{
    size_t stride = size < STRIDE_MAX ? size : STRIDE_MAX;
    size_t total = (PAYLOADS_MIN - 1) * stride + size;

    p->value_data = malloc(total);
    p->values = calloc(PAYLOADS_MIN, sizeof(*p->values));
    if (p->value_data == NULL || p->values == NULL)
        return no_memory();
    for (size_t at = 0; at < total; at += stride)
        payload_json(p->value_data + at,
                     stride < total - at ? stride : total - at, state);
    for (size_t i = 0; i < PAYLOADS_MIN; i++) {
        p->values[i].data = p->value_data + i * stride;
        p->values[i].size = size;
    }
    p->value_count = PAYLOADS_MIN;
    p->mean_size = (double)size;
    return true;
}

/* The delimiter as a command line has it: \n, \t, \r, \0 and \\ are known. */
static char *unescape(const char *text, size_t *size)
{
    char *out = malloc(strlen(text) + 1);
    size_t n = 0;

    if (out == NULL)
        return NULL;
    for (; *text != '\0'; text++) {
        static const char from[] = "ntr0\\", to[] = "\n\t\r\0\\";
        const char *hit =
            text[0] == '\\' && text[1] != '\0' ? strchr(from, text[1]) : NULL;

        out[n++] = hit != NULL ? to[hit - from] : *text;
        text += hit != NULL;
    }
    *size = n;
    return out;
}

static bool file_error(const char *path, const char *what)
{
    (void)fprintf(stderr, TOOL ": --payload-file %s: %s\n", path, what);
    return false;
}

/* The whole file into p->value_data. */
static bool read_file(struct payload *p, const char *path, size_t *size)
{
    FILE *f = fopen(path, "rb");
    size_t capacity = 1 << 16, n = 0, got;

    if (f == NULL)
        return file_error(path, strerror(errno));
    p->value_data = malloc(capacity);
    while (p->value_data != NULL &&
           (got = fread(p->value_data + n, 1, capacity - n, f)) > 0) {
        n += got;
        if (n == capacity) {
            char *more = realloc(p->value_data, capacity *= 2);

            if (more == NULL)
                free(p->value_data);
            p->value_data = more;
        }
    }
    got = (size_t)ferror(f);
    (void)fclose(f);
    if (p->value_data == NULL)
        return no_memory();
    if (got != 0)
        return file_error(path, "cannot be read");
    *size = n;
    return n > 0 || file_error(path, "is empty; put one value on each line");
}

static size_t split(char *data, size_t size, const char *delimiter,
                    size_t delimiter_size, kp_bytes *out)
{
    size_t count = 0;

    for (char *at = data, *end = data + size; at < end; count++) {
        char *hit = memmem(at, (size_t)(end - at), delimiter, delimiter_size);
        char *stop = hit != NULL ? hit : end;

        if (out != NULL) {
            out[count].data = at;
            out[count].size = (size_t)(stop - at);
        }
        at = hit != NULL ? hit + delimiter_size : end;
    }
    return count;
}

/* The values one after the other in the order they are sent in, as made ones
 * lie: what the loop reads next is then fetched ahead. */
static bool lay_out(struct payload *p, size_t total)
{
    char *data = malloc(total + 1), *at = data;

    if (data == NULL)
        return no_memory();
    for (size_t i = 0; i < p->value_count; i++) {
        memcpy(at, p->values[i].data, p->values[i].size);
        p->values[i].data = at;
        at += p->values[i].size;
    }
    free(p->value_data);
    p->value_data = data;
    return true;
}

/* The values of the file in a random order, some of them often if they are
 * few, as the Java tool picks them. */
static bool pick(struct payload *p, const kp_bytes *from, size_t count,
                 uint64_t *state)
{
    size_t total = 0;

    p->value_count = count < PAYLOADS_MIN ? PAYLOADS_MIN : count;
    p->values = calloc(p->value_count, sizeof(*p->values));
    if (p->values == NULL)
        return no_memory();
    for (size_t i = 0; i < p->value_count; i++) {
        p->values[i] = from[payload_random(state) % count];
        total += p->values[i].size;
    }
    p->mean_size = (double)total / (double)p->value_count;
    return lay_out(p, total);
}

static bool read_values(struct payload *p, const struct options *o,
                        uint64_t *state)
{
    size_t size, delimiter_size = 0, count;
    char *delimiter;
    kp_bytes *all;
    bool ok;

    if (!read_file(p, o->payload_file, &size))
        return false;
    delimiter = unescape(o->payload_delimiter, &delimiter_size);
    if (delimiter == NULL || delimiter_size == 0) {
        free(delimiter);
        return file_error(o->payload_file,
                          "--payload-delimiter is empty; give what stands "
                          "between two values, for example \\n");
    }
    count = split(p->value_data, size, delimiter, delimiter_size, NULL);
    all = calloc(count, sizeof(*all));
    if (all != NULL)
        (void)split(p->value_data, size, delimiter, delimiter_size, all);
    ok = all != NULL ? pick(p, all, count, state) : no_memory();
    free(all);
    free(delimiter);
    return ok;
}

static int digits(size_t v)
{
    return snprintf(NULL, 0, "%zu", v);
}

static bool make_keys(struct payload *p, const struct options *o,
                      uint64_t *state)
{
    int width = digits(o->key_range - 1);
    size_t slot;

    if (o->key_size != 0 && o->key_size < (size_t)width) {
        (void)fprintf(stderr,
                      TOOL ": --key-size %zu: keys below --record-key-range "
                           "%zu need %d bytes\n",
                      o->key_size, o->key_range, width);
        return false;
    }
    if (o->key_size != 0)
        width = (int)o->key_size;
    slot = (size_t)width + 1;
    p->key_count = o->key_range;
    if (o->keys == KEYS_RANDOM && p->key_count < RANDOM_KEYS_MIN)
        p->key_count = RANDOM_KEYS_MIN;
    if (o->keys == KEYS_RANDOM && p->key_count > RANDOM_KEYS_MAX)
        p->key_count = RANDOM_KEYS_MAX;
    p->keys = calloc(p->key_count, sizeof(*p->keys));
    p->key_data = calloc(p->key_count, slot);
    if (p->keys == NULL || p->key_data == NULL)
        return no_memory();
    for (size_t i = 0; i < p->key_count; i++) {
        size_t key = o->keys == KEYS_RANGE
                         ? i
                         : (size_t)(payload_random(state) % o->key_range);
        char *at = p->key_data + i * slot;

        p->keys[i].data = at;
        p->keys[i].size = (size_t)snprintf(at, slot, "%0*zu",
                                           o->key_size != 0 ? width : 0, key);
    }
    return true;
}

bool payload_make(struct payload *p, const struct options *o)
{
    uint64_t state = o->seed;

    memset(p, 0, sizeof(*p));
    if (!(o->payload_file != NULL ? read_values(p, o, &state)
                                  : make_values(p, o->record_size, &state)))
        return false;
    return o->keys == KEYS_NONE || make_keys(p, o, &state);
}

void payload_free(struct payload *p)
{
    free(p->values);
    free(p->value_data);
    free(p->keys);
    free(p->key_data);
    memset(p, 0, sizeof(*p));
}
