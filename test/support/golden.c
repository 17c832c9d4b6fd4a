/* SPDX-License-Identifier: BSD-2-Clause */
/* golden.c - the files of test/golden.  One thread. */
#include "test/support/golden.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/str.h"

#define RUN_MIN 8

_Noreturn static void die(const char *what, const char *which)
{
    (void)fprintf(stderr, "golden: %s: %s\n", what, which);
    exit(EXIT_FAILURE);
}

static void *or_die(void *p)
{
    if (p == NULL)
        die("no memory", "");
    return p;
}

/* -- files -- */

static char *slurp(const char *name)
{
    const char *srcdir = getenv("srcdir");
    char path[4096];
    struct buf b;
    uint8_t *p;
    FILE *f;

    (void)snprintf(path, sizeof path, "%s/test/golden/%s",
                   srcdir != NULL ? srcdir : ".", name);
    f = fopen(path, "r");
    if (f == NULL)
        die("cannot open", path);
    kp__buf_init(&b);
    do {
        p = or_die(kp__buf_reserve(&b, 65536));
        b.size += fread(p, 1, 65536, f);
    } while (!feof(f) && !ferror(f));
    if (ferror(f))
        die("cannot read", path);
    (void)fclose(f);
    p = or_die(malloc(b.size + 1));
    memcpy(p, b.data, b.size);
    p[b.size] = '\0';
    kp__buf_fini(&b);
    return (char *)p;
}

static void split_lines(struct golden_file *f)
{
    size_t n = 1;

    for (const char *p = f->text; *p != '\0'; p++)
        n += *p == '\n';
    f->lines = or_die(calloc(n, sizeof *f->lines));
    for (char *p = strtok(f->text, "\n"); p != NULL; p = strtok(NULL, "\n"))
        if (*p != '#')
            f->lines[f->line_count++] = p;
}

static void group_cases(struct golden_file *f, const char *name)
{
    f->cases = or_die(calloc(f->line_count + 1, sizeof *f->cases));
    for (size_t i = 0; i < f->line_count; i++) {
        struct golden_case *c = &f->cases[f->count++];
        c->title = f->lines[i++];
        c->lines = &f->lines[i];
        while (i < f->line_count && strcmp(f->lines[i], "end") != 0)
            i++;
        if (i == f->line_count)
            die("no \"end\" in", name);
        c->count = (size_t)(&f->lines[i] - c->lines);
    }
}

void golden_open(struct golden_file *f, const char *name)
{
    memset(f, 0, sizeof *f);
    f->text = slurp(name);
    split_lines(f);
    if (f->line_count == 0)
        die("empty", name);
    if (strchr(f->lines[0], ' ') != NULL && strstr(name, "numbers") == NULL)
        group_cases(f, name);
}

void golden_close(struct golden_file *f)
{
    free(f->text);
    free(f->lines);
    free(f->cases);
    memset(f, 0, sizeof *f);
}

const char *golden_get(const struct golden_case *c, const char *key)
{
    size_t n = strlen(key);

    for (size_t i = 0; i < c->count; i++)
        if (strncmp(c->lines[i], key, n) == 0 && c->lines[i][n] == ' ')
            return c->lines[i] + n + 1;
    return NULL;
}

long long golden_number(const struct golden_case *c, const char *key)
{
    const char *s = golden_get(c, key);
    char *end;
    long long v;

    if (s == NULL)
        die("no value for", key);
    v = strtoll(s, &end, 10);
    if (end == s || *end != '\0')
        die("no number", s);
    return v;
}

/* -- words -- */

static uint8_t hex_pair(const char *s)
{
    char pair[3] = {s[0], s[0] != '\0' ? s[1] : '\0', '\0'};
    char *end;
    unsigned long v = strtoul(pair, &end, 16);

    if (end != pair + 2)
        die("no hex", s);
    return (uint8_t)v;
}

/* One byte or a run of one; moves *s past it. */
static size_t run_length(const char **s)
{
    char *end;
    unsigned long n;

    *s += 2;
    if (**s != '*')
        return 1;
    n = strtoul(*s + 1, &end, 10);
    if (*end != '.')
        die("no run", *s);
    *s = end + 1;
    return n;
}

uint8_t *golden_bytes(const char *word, size_t *size)
{
    const char *end = word + strcspn(word, " ");
    uint8_t *out;
    size_t n = 0;

    *size = 0;
    if (strncmp(word, "null", 4) == 0)
        return NULL;
    if (*word == '-')
        return or_die(malloc(1));
    for (const char *s = word; s < end;) {
        (void)hex_pair(s);
        n += run_length(&s);
    }
    out = or_die(malloc(n));
    for (const char *s = word; s < end;) {
        uint8_t b = hex_pair(s);
        size_t run = run_length(&s);
        memset(out + *size, b, run);
        *size += run;
    }
    return out;
}

KP_PRINTF(2, 3)
static void add_text(struct buf *b, const char *fmt, ...)
{
    va_list args;
    char *text;
    int size;

    va_start(args, fmt);
    size = vasprintf(&text, fmt, args);
    va_end(args);
    if (size < 0)
        abort();
    kp__buf_append(b, text, (size_t)size);
    free(text);
}

void golden_word(struct buf *out, const void *data, size_t size)
{
    const uint8_t *p = data;

    if (p == NULL)
        add_text(out, "null");
    else if (size == 0)
        add_text(out, "-");
    for (size_t i = 0, run; p != NULL && i < size; i += run) {
        run = 1;
        while (i + run < size && p[i + run] == p[i])
            run++;
        if (run >= RUN_MIN)
            add_text(out, "%02x*%zu.", p[i], run);
        for (size_t k = 0; run < RUN_MIN && k < run; k++)
            add_text(out, "%02x", p[i]);
    }
}

/* -- values -- */

void golden_lines(struct buf *out, const struct golden_case *c,
                  const char *begin)
{
    for (size_t i = 0; i < c->count; i++)
        if (strncmp(c->lines[i], begin, strlen(begin)) == 0)
            add_text(out, "%s\n", c->lines[i]);
}

static void list_nullables(struct buf *out, const char *parent,
                           const struct schema *s, int16_t version)
{
    char path[512];

    for (size_t i = 0; i < s->field_count; i++) {
        const struct field *f = &s->fields[i];
        if (!kp__field_in(f, version))
            continue;
        kp__format(path, sizeof path, "%s%s%s", parent,
                   *parent != '\0' ? "." : "", f->name);
        if (f->nullable && version >= f->nullable_since)
            add_text(out, "nullable %s\n", path);
        if (f->schema != NULL)
            list_nullables(out, path, f->schema, version);
    }
}

void golden_nullables(struct buf *out, const struct schema *s, int16_t version)
{
    list_nullables(out, "", s, version);
}

struct dump {
    struct buf *out;
    int16_t version;
};

static void dump_struct(const struct dump *d, const char *path,
                        const struct schema *s, const void *value);

static void dump_uuid(const struct dump *d, const struct uuid *u)
{
    for (size_t i = 0; i < sizeof u->b; i++)
        add_text(d->out, "%02x", u->b[i]);
}

static void dump_number(const struct dump *d, enum kind kind, const void *at)
{
    long long v = kind == KIND_I8    ? *(const int8_t *)at
                  : kind == KIND_I16 ? *(const int16_t *)at
                  : kind == KIND_I32 ? *(const int32_t *)at
                                     : *(const int64_t *)at;

    add_text(d->out, "%lld", v);
}

static void dump_scalar(const struct dump *d, const char *path, enum kind kind,
                        const void *at)
{
    const struct text *t = at;
    const struct blob *b = at;

    add_text(d->out, "= %s ", path);
    if (kind == KIND_BOOL)
        add_text(d->out, "%s", *(const bool *)at ? "true" : "false");
    else if (kind == KIND_UUID)
        dump_uuid(d, at);
    else if (kind == KIND_STRING)
        golden_word(d->out, t->data, t->size);
    else if (kind == KIND_BYTES || kind == KIND_RECORDS)
        golden_word(d->out, b->data, b->size);
    else
        dump_number(d, kind, at);
    add_text(d->out, "\n");
}

static void dump_array(const struct dump *d, const char *path,
                       const struct field *f, const struct array *a)
{
    size_t stride = kp__kind_size(f->item, f->schema);
    char item[512];

    if (a->null) {
        add_text(d->out, "= %s null\n", path);
        return;
    }
    add_text(d->out, "= %s %zu\n", path, a->count);
    for (size_t i = 0; i < a->count; i++) {
        const char *at = (const char *)a->items + i * stride;
        kp__format(item, sizeof item, "%s[%zu]", path, i);
        if (f->item == KIND_STRUCT)
            dump_struct(d, item, f->schema, at);
        else
            dump_scalar(d, item, f->item, at);
    }
}

static void dump_field(const struct dump *d, const char *parent,
                       const struct field *f, const void *value)
{
    const void *at = (const char *)value + f->offset;
    char path[512];

    kp__format(path, sizeof path, "%s%s%s", parent, *parent != '\0' ? "." : "",
               f->name);
    if (f->kind == KIND_ARRAY)
        dump_array(d, path, f, at);
    else if (f->kind == KIND_STRUCT)
        dump_struct(d, path, f->schema, at);
    else
        dump_scalar(d, path, f->kind, at);
}

static void dump_struct(const struct dump *d, const char *path,
                        const struct schema *s, const void *value)
{
    for (int tagged = 0; tagged <= 1; tagged++)
        for (size_t i = 0; i < s->field_count; i++)
            if (s->fields[i].tagged == (tagged == 1) &&
                kp__field_in(&s->fields[i], d->version))
                dump_field(d, path, &s->fields[i], value);
}

void golden_dump(struct buf *out, const struct schema *s, int16_t version,
                 const void *value)
{
    struct dump d = {.out = out, .version = version};

    dump_struct(&d, "", s, value);
}
