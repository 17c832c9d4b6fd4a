/* SPDX-License-Identifier: BSD-2-Clause */
/* properties.c - the text format of Java's .properties files.
 *
 * Pure; any thread.  A logical line is gathered into one buffer, continuation
 * lines and all, and its name and value are then unescaped in place: that never
 * makes them longer. */
#include "lib/config/properties.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "lib/base/buf.h"
#include "lib/base/error.h"
#include "lib/base/str.h"

struct reader {
    const char *source;
    const char *at, *end;
    int line;       /* of `at` */
    int nul_line;   /* the last one that has a NUL in it; 0: none yet */
    struct buf buf; /* one logical line, terminated */
};

void kp__properties_source(char *out, size_t capacity, const char *source)
{
    kp__str_escape_path(out, capacity, source, 48);
}

void kp__properties_where(char *out, size_t capacity, const char *source,
                          int line)
{
    char shown[PROPERTIES_SOURCE_SIZE];

    kp__properties_source(shown, sizeof(shown), source);
    (void)kp__format(out, capacity, "%s line %d", shown, line);
}

static kp_err bad_line(const struct reader *r, int line, const char *why,
                       kp_error *error)
{
    char where[96];

    kp__properties_where(where, sizeof(where), r->source, line);
    return kp__error_set(error, KP_EINVAL, KP_OK, "%s: %s", where, why);
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\f';
}

static bool is_line_end(char c)
{
    return c == '\n' || c == '\r';
}

/* -- Logical lines -- */

static void skip_blanks(struct reader *r)
{
    while (r->at < r->end && is_blank(*r->at))
        r->at++;
}

static void skip_line_end(struct reader *r)
{
    if (r->at == r->end)
        return;
    if (*r->at == '\r' && r->at + 1 < r->end && r->at[1] == '\n')
        r->at++;
    r->at++;
    r->line++;
}

/* Up to the line's end, which is left; returns its size. */
static size_t skip_to_line_end(struct reader *r)
{
    const char *start = r->at;

    while (r->at < r->end && !is_line_end(*r->at))
        r->at++;
    return (size_t)(r->at - start);
}

/* An odd number of backslashes at the end continues the line. */
static bool ends_in_backslash(const char *start, size_t size)
{
    size_t n = 0;

    while (n < size && start[size - 1 - n] == '\\')
        n++;
    return n % 2 == 1;
}

/* Gather the next logical line, terminated, into r->buf.  A line that is only a
 * backslash leaves it empty, so that the next one may be a comment, as in Java.
 * False: the text is at its end. */
static bool next_line(struct reader *r, int *line)
{
    const char *start;
    size_t size;
    bool more = true;

    kp__buf_clear(&r->buf);
    while (more && r->at < r->end) {
        skip_blanks(r);
        start = r->at;
        size = skip_to_line_end(r);
        if (r->buf.size == 0)
            *line = r->line;
        if (size > 0 && memchr(start, '\0', size) != NULL)
            r->nul_line = r->line;
        skip_line_end(r);
        if (r->buf.size == 0 && size > 0 && (*start == '#' || *start == '!'))
            continue;
        more = ends_in_backslash(start, size);
        kp__buf_append(&r->buf, start, more ? size - 1 : size);
        more = more || (r->buf.size == 0 && !kp__buf_failed(&r->buf));
    }
    if (r->buf.size == 0 && !kp__buf_failed(&r->buf))
        return false;
    kp__buf_append(&r->buf, "", 1);
    return true;
}

/* -- Escapes -- */

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    if (c >= 'A' && c <= 'F')
        return c - 'A' + 10;
    return -1;
}

/* The four digits after \u; s is terminated. */
static bool read_unit(const char *s, uint32_t *unit)
{
    uint32_t u = 0;
    int i, digit;

    for (i = 0; i < 4; i++) {
        digit = hex_digit(s[i]);
        if (digit < 0)
            return false;
        u = u << 4 | (uint32_t)digit;
    }
    *unit = u;
    return true;
}

static char *put_utf8(char *out, uint32_t c)
{
    if (c < 0x80) {
        *out++ = (char)c;
        return out;
    }
    if (c < 0x800) {
        *out++ = (char)(0xc0 | c >> 6);
    } else if (c < 0x10000) {
        *out++ = (char)(0xe0 | c >> 12);
        *out++ = (char)(0x80 | (c >> 6 & 0x3f));
    } else {
        *out++ = (char)(0xf0 | c >> 18);
        *out++ = (char)(0x80 | (c >> 12 & 0x3f));
        *out++ = (char)(0x80 | (c >> 6 & 0x3f));
    }
    *out++ = (char)(0x80 | (c & 0x3f));
    return out;
}

/* *at stands after \u, and moves behind the escape. */
static const char *read_unicode(const char **at, char **out)
{
    uint32_t c, low;

    if (!read_unit(*at, &c))
        return "four hexadecimal digits must follow \\u (write \\\\u for a "
               "backslash and a u)";
    *at += 4;
    if (c == 0)
        return "\\u0000 cannot be part of a name or a value";
    if (c >= 0xdc00 && c <= 0xdfff)
        return "a low surrogate (\\uDC00 to \\uDFFF) must follow a high one";
    if (c >= 0xd800 && c <= 0xdbff) {
        if ((*at)[0] != '\\' || (*at)[1] != 'u' || !read_unit(*at + 2, &low) ||
            low < 0xdc00 || low > 0xdfff)
            return "a high surrogate (\\uD800 to \\uDBFF) must be followed by "
                   "a low one";
        *at += 6;
        c = 0x10000 + ((c - 0xd800) << 10) + (low - 0xdc00);
    }
    *out = put_utf8(*out, c);
    return NULL;
}

static char escaped(char c)
{
    switch (c) {
    case 't':
        return '\t';
    case 'n':
        return '\n';
    case 'r':
        return '\r';
    case 'f':
        return '\f';
    default:
        return c;
    }
}

/* Unescape the terminated string at s in place.  NULL, or what is wrong. */
static const char *unescape(char *s)
{
    const char *at = s, *why = NULL;
    char *out = s;

    while (*at != '\0' && why == NULL) {
        if (*at != '\\') {
            *out++ = *at++;
        } else if (at[1] == 'u') {
            at += 2;
            why = read_unicode(&at, &out);
        } else {
            at++; /* a backslash that ends the text stands for nothing */
            if (*at != '\0')
                *out++ = escaped(*at++);
        }
    }
    *out = '\0';
    return why;
}

/* -- Name and value -- */

/* Terminate the name, and return where the value begins. */
static char *split(char *s)
{
    char *value;
    bool separator;

    while (*s != '\0' && *s != '=' && *s != ':' && !is_blank(*s))
        s += s[0] == '\\' && s[1] != '\0' ? 2 : 1;
    value = s;
    separator = *value == '=' || *value == ':';
    if (*value != '\0')
        value++;
    while (is_blank(*value) ||
           (!separator && (*value == '=' || *value == ':'))) {
        separator = separator || !is_blank(*value);
        value++;
    }
    *s = '\0';
    return value;
}

static kp_err take_line(struct reader *r, int line, kp__property_fn fn,
                        void *arg, kp_error *error)
{
    char *name = (char *)r->buf.data, *value;
    const char *why;

    if (kp__buf_failed(&r->buf))
        return kp__error_set(error, KP_ENOMEM, KP_OK,
                             "no memory to read the properties of a file");
    value = split(name);
    why = unescape(name);
    if (why == NULL)
        why = unescape(value);
    if (why != NULL)
        return bad_line(r, line, why, error);
    return fn(arg, line, name, value, error);
}

/* A NUL, be it in a comment: the file is something else, most often UTF-16. */
static kp_err check_text(struct reader *r, kp_error *error)
{
    int line = r->nul_line;

    r->nul_line = 0;
    return line == 0 ? KP_OK
                     : bad_line(r, line,
                                "a NUL byte; a properties file is text in UTF-8",
                                error);
}

static bool has_nul(const struct buf *line)
{
    return !kp__buf_failed(line) &&
           memchr(line->data, '\0', line->size - 1) != NULL;
}

static void keep_first(kp_err *first, kp_error *error, kp_err err,
                       const kp_error *reason)
{
    if (err == KP_OK || *first != KP_OK)
        return;
    *first = err;
    if (error != NULL)
        *error = *reason;
}

kp_err kp__properties_parse(const char *source, const char *text, size_t size,
                            kp__property_fn fn, void *arg, kp_error *error)
{
    struct reader r = {source, text, text, 1, 0, {0}};
    kp_err first = KP_OK, err = KP_OK;
    kp_error reason = {0};
    bool more = true;
    int line = 1;

    if (size == 0)
        return KP_OK;
    r.end = text + size;
    if (size >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0)
        r.at += 3;
    kp__buf_init(&r.buf);
    while (more && err != KP_ENOMEM) {
        more = next_line(&r, &line);
        keep_first(&first, error, check_text(&r, &reason), &reason);
        if (!more || has_nul(&r.buf))
            continue;
        err = take_line(&r, line, fn, arg, &reason);
        keep_first(&first, error, err, &reason);
    }
    kp__buf_fini(&r.buf);
    return first;
}
