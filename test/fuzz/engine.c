/* SPDX-License-Identifier: BSD-2-Clause */
/* engine.c - what libFuzzer calls.  Linked with -fsanitize=fuzzer, which brings
 * main(); the program's own name says which target it is.
 *
 *     fuzz-metadata FOLDER...         look for inputs that fail
 *     fuzz-metadata FILE...           run these
 *     fuzz-metadata --corpus FOLDER   write what is known there
 *     fuzz-metadata --hex FOLDER      print the folder as a corpus file
 *
 * Assertions of Check in the shared test files end the program here. */
#include <dirent.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/buf.h"
#include "lib/base/file.h"
#include "test/fuzz/known.h"

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct fuzz_target *target;

/* -- Check without Check -- */

_Noreturn void _ck_assert_failed(const char *file, int line, const char *expr,
                                 const char *msg, ...);
_Noreturn void _ck_assert_failed(const char *file, int line, const char *expr,
                                 const char *msg, ...)
{
    (void)fprintf(stderr, "%s:%d: %s %s\n", file, line, expr,
                  msg != NULL ? msg : "");
    if (msg != NULL && strcmp(msg, "%s") != 0) {
        va_list args;

        va_start(args, msg);
        (void)vfprintf(stderr, msg, args);
        va_end(args);
        (void)fputc('\n', stderr);
    }
    abort();
}

void _mark_point(const char *file, int line);
void _mark_point(const char *file, int line)
{
    (void)file;
    (void)line;
}

/* -- corpora -- */

struct folder {
    const char *path;
    unsigned count;
};

static void write_one(void *arg, const char *name, const void *data,
                      size_t size)
{
    struct folder *to = arg;
    char path[4096];
    FILE *f;

    (void)name;
    if (size > target->max_size)
        return;
    (void)snprintf(path, sizeof(path), "%s/known-%04u", to->path, to->count++);
    f = fopen(path, "w");
    if (f == NULL || fwrite(data, 1, size, f) != size || fclose(f) != 0) {
        perror(path);
        exit(EXIT_FAILURE);
    }
}

static void print_file(const char *folder, const char *name)
{
    char path[4096 + 256];
    kp_error error;
    struct buf b;

    kp__buf_init(&b);
    (void)snprintf(path, sizeof(path), "%s/%s", folder, name);
    if (kp__file_read(path, target->max_size, &b, &error) == KP_OK &&
        b.size > 0) {
        for (size_t i = 0; i < b.size; i++)
            (void)printf("%02x", b.data[i]);
        (void)putchar('\n');
    }
    kp__buf_fini(&b);
}

static void print_folder(const char *path)
{
    struct dirent **entries;
    int n = scandir(path, &entries, NULL, alphasort);

    if (n < 0) {
        perror(path);
        exit(EXIT_FAILURE);
    }
    for (int i = 0; i < n; i++) {
        if (entries[i]->d_name[0] != '.')
            print_file(path, entries[i]->d_name);
        free(entries[i]);
    }
    free(entries);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    const char *name = strrchr((*argv)[0], '/');
    struct folder to = {NULL, 0};

    name = name != NULL ? name + 1 : (*argv)[0];
    target = strncmp(name, "fuzz-", 5) == 0 ? fuzz_target_find(name + 5) : NULL;
    if (target == NULL) {
        (void)fprintf(stderr, "%s: no target is called so\n", name);
        exit(EXIT_FAILURE);
    }
    if (*argc != 3 || strncmp((*argv)[1], "--", 2) != 0)
        return 0;
    to.path = (*argv)[2];
    if (strcmp((*argv)[1], "--hex") == 0) {
        print_folder(to.path);
    } else {
        fuzz_known_corpus(target, write_one, &to);
        fuzz_known_regressions(target, write_one, &to);
    }
    exit(EXIT_SUCCESS);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    target->one(data, size);
    return 0;
}
