/* SPDX-License-Identifier: BSD-2-Clause */
/* known.c - the inputs of a target that are in the tree.  One thread.
 *
 * What cannot be read ends the program, as a replay of nothing proves
 * nothing; that there is no such file or folder is no mistake. */
#include "test/fuzz/known.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/buf.h"
#include "lib/base/file.h"

#define FILE_MAX ((size_t)8 << 20)

static void path_of(char *out, size_t size, const char *folder,
                    const char *name)
{
    const char *srcdir = getenv("srcdir");

    (void)snprintf(out, size, "%s/test/fuzz/%s/%s",
                   srcdir != NULL ? srcdir : ".", folder, name);
}

_Noreturn static void die(const char *what, const char *path)
{
    (void)fprintf(stderr, "fuzz: %s: %s\n", what, path);
    abort();
}

static void slurp(const char *path, struct buf *out)
{
    kp_error error = {0};

    kp__buf_init(out);
    if (kp__file_read(path, FILE_MAX, out, &error) != KP_OK)
        die(error.text, path);
}

/* -- a line of hex each -- */

static int digit(char c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
                                  : -1;
}

static void give_line(const char *line, size_t size, const char *path,
                      fuzz_seed_fn fn, void *arg)
{
    uint8_t *bytes = fuzz_copy(line, size / 2);
    char name[32];

    if (size % 2 != 0)
        die("half a byte", path);
    for (size_t i = 0; i < size / 2; i++) {
        int high = digit(line[2 * i]), low = digit(line[2 * i + 1]);

        if (high < 0 || low < 0)
            die("no hex", path);
        bytes[i] = (uint8_t)(high << 4 | low);
    }
    (void)snprintf(name, sizeof(name), "corpus %.16s", line);
    fn(arg, name, bytes, size / 2);
    free(bytes);
}

void fuzz_known_corpus(const struct fuzz_target *t, fuzz_seed_fn fn, void *arg)
{
    char path[4096], file[64];
    struct buf text;
    FILE *f;

    t->seeds(fn, arg);
    (void)snprintf(file, sizeof(file), "%s.txt", t->name);
    path_of(path, sizeof(path), "corpus", file);
    f = fopen(path, "r");
    if (f == NULL && errno == ENOENT)
        return;
    if (f == NULL)
        die(strerror(errno), path);
    (void)fclose(f);
    slurp(path, &text);
    kp__buf_append(&text, "", 1);
    for (char *line = strtok((char *)text.data, "\n"); line != NULL;
         line = strtok(NULL, "\n"))
        if (*line != '#')
            give_line(line, strlen(line), path, fn, arg);
    kp__buf_fini(&text);
}

/* -- a file each -- */

static void give_file(const char *folder, const char *name, fuzz_seed_fn fn,
                      void *arg)
{
    char path[4096 + 256];
    struct buf data;

    (void)snprintf(path, sizeof(path), "%s/%s", folder, name);
    slurp(path, &data);
    fn(arg, name, data.data, data.size);
    kp__buf_fini(&data);
}

void fuzz_known_regressions(const struct fuzz_target *t, fuzz_seed_fn fn,
                            void *arg)
{
    char folder[4096];
    struct dirent *e;
    DIR *d;

    path_of(folder, sizeof(folder), "regressions", t->name);
    d = opendir(folder);
    if (d == NULL && errno == ENOENT)
        return;
    if (d == NULL)
        die(strerror(errno), folder);
    while ((e = readdir(d)) != NULL)
        if (e->d_name[0] != '.')
            give_file(folder, e->d_name, fn, arg);
    (void)closedir(d);
}
