/* SPDX-License-Identifier: BSD-2-Clause */
/* str.c - small helpers for text.  Any thread: nothing is kept. */
#include "lib/base/str.h"

#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

size_t kp__format(char *out, size_t capacity, const char *fmt, ...)
{
    va_list args;
    int n;

    if (capacity == 0)
        return 0;
    va_start(args, fmt);
    n = vsnprintf(out, capacity, fmt, args);
    va_end(args);
    if (n < 0) {
        out[0] = '\0';
        return 0;
    }
    return (size_t)n < capacity ? (size_t)n : capacity - 1;
}

/* -- UTF-8 -- */

/* How long a character that starts with this byte is; 0: none does. */
static size_t utf8_size(unsigned char first)
{
    if (first < 0x80)
        return 1;
    if (first >= 0xc2 && first <= 0xdf)
        return 2;
    if (first >= 0xe0 && first <= 0xef)
        return 3;
    if (first >= 0xf0 && first <= 0xf4)
        return 4;
    return 0;
}

/* Too long a form, a surrogate, or past U+10FFFF: the second byte tells. */
static bool bad_second(unsigned char first, unsigned char second)
{
    return (first == 0xe0 && second < 0xa0) ||
           (first == 0xed && second > 0x9f) ||
           (first == 0xf0 && second < 0x90) || (first == 0xf4 && second > 0x8f);
}

/* The size of the valid character at s, or 0. */
static size_t utf8_char(const unsigned char *s, size_t size)
{
    size_t n = utf8_size(s[0]);

    if (n == 0 || n > size)
        return 0;
    for (size_t i = 1; i < n; i++)
        if ((s[i] & 0xc0) != 0x80)
            return 0;
    return n > 1 && bad_second(s[0], s[1]) ? 0 : n;
}

size_t kp__str_whole(const char *s, size_t size)
{
    /* Walk back over continuation bytes to the last character's first. */
    for (size_t back = 1; back <= 4 && back <= size; back++) {
        unsigned char c = (unsigned char)s[size - back];

        if ((c & 0xc0) == 0x80)
            continue;
        return utf8_size(c) > back ? size - back : size;
    }
    return size;
}

static bool is_control(const unsigned char *s, size_t n)
{
    /* C0, DEL, and C1, which in UTF-8 is C2 80 to C2 9F */
    return n == 1 ? s[0] < 0x20 || s[0] == 0x7f
                  : n == 2 && s[0] == 0xc2 && s[1] < 0xa0;
}

void kp__str_escape(char *out, size_t capacity, const void *s, size_t size)
{
    const unsigned char *p = s, *end = p + size;
    size_t used = 0;

    if (capacity == 0)
        return;
    while (p < end) {
        size_t n = utf8_char(p, (size_t)(end - p));
        bool raw = n != 0 && !is_control(p, n);
        size_t need = raw ? n : 4;

        if (need > capacity - 1 - used)
            break;
        if (raw)
            memcpy(out + used, p, n);
        else
            (void)snprintf(out + used, 5, "\\x%02X", *p);
        used += need;
        p += raw ? n : 1;
    }
    out[used] = '\0';
}

void kp__str_escape_path(char *out, size_t capacity, const char *path,
                         size_t most)
{
    static const char dots[] = "...";
    size_t size = strlen(path), lead = size > most ? strlen(dots) : 0;

    KP_CHECK(capacity > strlen(dots));
    memcpy(out, dots, lead);
    if (size > most) {
        path += size - most;
        size = most;
    }
    kp__str_escape(out + lead, capacity - strlen(dots), path, size);
}

/* -- Comparing -- */

static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

bool kp__str_ieq(const char *a, const char *b)
{
    for (; *a != '\0' && lower(*a) == lower(*b); a++, b++)
        continue;
    return lower(*a) == lower(*b);
}

/* Property names differ by their separators as often as by a letter. */
static char folded(char c)
{
    return c == '_' || c == '-' ? '.' : lower(c);
}

#define LONGEST_WORD 80

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* One row of the table: distances from a[0..i] to each prefix of b, from the
 * two rows before (two neighbours swapped count as one mistake). */
static void next_row(size_t row[], const size_t up[], const size_t upup[],
                     const char *a, size_t i, const char *b, size_t b_size)
{
    row[0] = i + 1;
    for (size_t j = 0; j < b_size; j++) {
        char x = folded(a[i]), y = folded(b[j]);
        size_t best = least(up[j + 1] + 1, row[j] + 1);

        best = least(best, up[j] + (x != y));
        if (i > 0 && j > 0 && x == folded(b[j - 1]) && folded(a[i - 1]) == y)
            best = least(best, upup[j - 1] + 1);
        row[j + 1] = best;
    }
}

/* How many letters to insert, remove, change or swap to get from a to b. */
static size_t distance(const char *a, size_t a_size, const char *b,
                       size_t b_size)
{
    size_t rows[3][LONGEST_WORD + 1];

    for (size_t j = 0; j <= b_size; j++)
        rows[0][j] = j;
    for (size_t i = 0; i < a_size; i++)
        next_row(rows[(i + 1) % 3], rows[i % 3], rows[(i + 2) % 3], a, i, b,
                 b_size);
    return rows[a_size % 3][b_size];
}

const char *kp__str_nearest(const char *word, const char *const *candidates,
                            size_t count)
{
    size_t size = strlen(word);
    /* Farther off than a third of the word is a guess, not a suggestion. */
    size_t nearest = size / 3 + 1;
    const char *found = NULL;

    if (size == 0 || size > LONGEST_WORD)
        return NULL;
    for (size_t i = 0; i < count; i++) {
        size_t n = strlen(candidates[i]), d;

        if (n > LONGEST_WORD)
            continue;
        d = distance(word, size, candidates[i], n);
        if (d < nearest || (d == nearest && found == NULL && d <= size / 3)) {
            nearest = d;
            found = candidates[i];
        }
    }
    return found;
}

/* -- Numbers -- */

static bool is_blank(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

bool kp__str_to_i64(const char *s, int64_t *out)
{
    bool negative;
    int64_t value = 0;
    int digits = 0;

    while (is_blank(*s))
        s++;
    negative = *s == '-';
    if (*s == '-' || *s == '+')
        s++;
    /* Gathered below zero, where there is one more number. */
    for (; *s >= '0' && *s <= '9'; s++, digits++) {
        int digit = *s - '0';

        if (value < (INT64_MIN + digit) / 10)
            return false;
        value = value * 10 - digit;
    }
    while (is_blank(*s))
        s++;
    if (digits == 0 || *s != '\0' || (!negative && value == INT64_MIN))
        return false;
    *out = negative ? value : -value;
    return true;
}
