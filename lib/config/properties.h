/* SPDX-License-Identifier: BSD-2-Clause */
/* properties.h - the text format of Java's .properties files.  Pure.
 *
 * As java.util.Properties.load: the separator is =, : or blanks; # and ! begin
 * comment lines; a backslash at its end continues a line, whose leading blanks
 * are dropped; \t \n \r \f \uXXXX are escapes and any other \x is x; lines end
 * in LF, CR or CRLF.  Different on purpose: bytes are UTF-8 and taken as they
 * are, a byte order mark is skipped, what cannot be a C string of UTF-8 (a NUL,
 * half of a surrogate pair) is an error, and a text that ends in a line of one
 * backslash has no property without name and value there. */
#ifndef KP_CONFIG_PROPERTIES_H
#define KP_CONFIG_PROPERTIES_H

#include <stddef.h>

#include "include/kp/kp.h"

/* name and value are lent until it returns; `line`, from 1, is where the
 * property begins. */
typedef kp_err (*kp__property_fn)(void *arg, int line, const char *name,
                                  const char *value, kp_error *error);

/* Give every property of `text` to fn, in order.  What is wrong with a line, or
 * what fn says of it, ends nothing but for KP_ENOMEM: what stands behind it may
 * matter more.  Returns the first such error, with the line in `error` if it is
 * ours: KP_EINVAL or KP_ENOMEM.  `source` names the text in messages. */
kp_err kp__properties_parse(const char *source, const char *text, size_t size,
                            kp__property_fn fn, void *arg, kp_error *error);

/* How a message names a source: control characters escaped, of a long one the
 * end.  `where` has the line behind it: "source line 7". */
#define PROPERTIES_SOURCE_SIZE 67
void kp__properties_source(char *out, size_t capacity, const char *source);
void kp__properties_where(char *out, size_t capacity, const char *source,
                          int line);

#endif
