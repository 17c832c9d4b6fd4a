/* SPDX-License-Identifier: BSD-2-Clause */
/* print_errors.c - prints include/kp/errors.h from lib/wire/errors.def.
 *
 *     cc -I. -o print_errors docs/tools/print_errors.c
 *     ./print_errors > include/kp/errors.h
 *
 * A unit test fails when the committed header is not what this prints. */
#include <stdio.h>

#define KAFKA_ERROR(code, name, kind, again, one, all, text) {code, #name},
#define OUR_ERROR(name, kind, again, one, all, text)

static const struct {
    int code;
    const char *name;
} rows[] = {
#include "lib/wire/errors.def"
};

int main(void)
{
    const size_t count = sizeof rows / sizeof rows[0];

    puts("/* SPDX-License-Identifier: BSD-2-Clause */\n"
         "/* errors.h - Kafka's error codes.  Printed from"
         " lib/wire/errors.def by\n"
         " * docs/tools/print_errors.c; kp_err_text has a sentence for each."
         " */\n"
         "#ifndef KP_ERRORS_H\n"
         "#define KP_ERRORS_H\n"
         "\n"
         "enum {");
    for (size_t i = 0; i < count; i++)
        printf("    KP_%s = %d%s\n", rows[i].name, rows[i].code,
               i + 1 < count ? "," : "");
    puts("};\n"
         "\n"
         "#endif");
    return ferror(stdout) != 0;
}
