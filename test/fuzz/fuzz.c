/* SPDX-License-Identifier: BSD-2-Clause */
/* fuzz.c - the table of targets, and what all of them need.  One thread. */
#include "test/fuzz/fuzz.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/mem.h"

const struct fuzz_target fuzz_targets[] = {
#define FUZZ_TARGET(name, max_size, damaged) \
    {#name, max_size, damaged, fuzz_##name, fuzz_##name##_seeds},
#include "test/fuzz/targets.def"
#undef FUZZ_TARGET
};
const size_t fuzz_target_count = sizeof(fuzz_targets) / sizeof(fuzz_targets[0]);

const struct fuzz_target *fuzz_target_find(const char *name)
{
    for (size_t i = 0; i < fuzz_target_count; i++)
        if (strcmp(fuzz_targets[i].name, name) == 0)
            return &fuzz_targets[i];
    return NULL;
}

_Noreturn void fuzz_failed(const char *file, int line, const char *what)
{
    (void)fprintf(stderr, "%s:%d: not so: %s\n", file, line, what);
    abort();
}

uint8_t *fuzz_copy(const void *data, size_t size)
{
    uint8_t *copy = malloc(size != 0 ? size : 1);

    if (copy == NULL)
        abort();
    if (size != 0)
        memcpy(copy, data, size);
    return copy;
}

char *fuzz_string(const void *data, size_t size)
{
    size_t length = size != 0 ? strnlen(data, size) : 0;
    char *copy = malloc(length + 1);

    if (copy == NULL)
        abort();
    if (length != 0)
        memcpy(copy, data, length);
    copy[length] = '\0';
    return copy;
}

uint8_t fuzz_byte(struct fuzz_input *in)
{
    return in->at < in->end ? *in->at++ : 0;
}

const uint8_t *fuzz_bytes(struct fuzz_input *in, size_t most, size_t *size)
{
    const uint8_t *at = in->at;
    size_t left = (size_t)(in->end - in->at);

    *size = left < most ? left : most;
    in->at += *size;
    return at;
}

void fuzz_check_error(kp_err err, const kp_error *error)
{
    size_t size = strnlen(error->text, sizeof(error->text));

    if (err == KP_OK)
        return;
    FUZZ_CHECK(error->err == err);
    FUZZ_CHECK(size > 0 && size < sizeof(error->text));
    for (size_t i = 0; i < size; i++)
        FUZZ_CHECK((unsigned char)error->text[i] >= ' ' &&
                   error->text[i] != 0x7f);
}

#ifdef KP_FAILMALLOC
struct fuzz_memory fuzz_memory_begin(void)
{
    return (struct fuzz_memory){kp__mem_live(), kp__mem_asked_bytes()};
}

size_t fuzz_memory_asked(const struct fuzz_memory *m)
{
    return kp__mem_asked_bytes() - m->asked_bytes;
}

void fuzz_memory_end(const struct fuzz_memory *m)
{
    FUZZ_CHECK(kp__mem_live() == m->live);
}
#else
struct fuzz_memory fuzz_memory_begin(void)
{
    return (struct fuzz_memory){0, 0};
}

size_t fuzz_memory_asked(const struct fuzz_memory *m)
{
    (void)m;
    return 0;
}

void fuzz_memory_end(const struct fuzz_memory *m)
{
    (void)m;
}
#endif
