/* SPDX-License-Identifier: BSD-2-Clause */
/* fuzz.h - functions that take any bytes whatever and must hold their oracle.
 *
 * A target is one function in a file of this folder and a row in targets.def.
 * clang's libFuzzer drives it (engine.c); replay_test.c runs it over what is
 * known already, with any compiler.  It keeps nothing between two calls. */
#ifndef KP_TEST_FUZZ_FUZZ_H
#define KP_TEST_FUZZ_FUZZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "include/kp/kp.h"

/* What inputs to begin with are given to; the bytes are lent. */
typedef void (*fuzz_seed_fn)(void *arg, const char *name, const void *data,
                             size_t size);

struct fuzz_target {
    const char *name;
    size_t max_size;
    unsigned damaged; /* about so many, in a replay */
    void (*one)(const uint8_t *data, size_t size);
    /* Inputs made from test/golden, by the target's own file. */
    void (*seeds)(fuzz_seed_fn fn, void *arg);
};

extern const struct fuzz_target fuzz_targets[];
extern const size_t fuzz_target_count;
/* NULL: no such target. */
const struct fuzz_target *fuzz_target_find(const char *name);

#define FUZZ_TARGET(name, max_size, damaged) \
    void fuzz_##name(const uint8_t *data, size_t size); \
    void fuzz_##name##_seeds(fuzz_seed_fn fn, void *arg);
#include "test/fuzz/targets.def"
#undef FUZZ_TARGET

/* -- for targets -- */

/* The oracle: prints and aborts, in every build. */
#define FUZZ_CHECK(condition) \
    ((condition) ? (void)0 : fuzz_failed(__FILE__, __LINE__, #condition))
_Noreturn void fuzz_failed(const char *file, int line, const char *what);

/* The bytes again at an address of exactly their size, so that a sanitizer
 * sees the first step past them; freed by the caller. */
uint8_t *fuzz_copy(const void *data, size_t size);
/* The same as a C string, up to the first NUL. */
char *fuzz_string(const void *data, size_t size);

/* The front of an input, for choices; zeroes when it is used up. */
struct fuzz_input {
    const uint8_t *at, *end;
};
uint8_t fuzz_byte(struct fuzz_input *in);
/* Up to `most` bytes; *size gets how many. */
const uint8_t *fuzz_bytes(struct fuzz_input *in, size_t most, size_t *size);

/* What a call left in `error`: a text that ends, in one line, of characters
 * that any terminal bears. */
void fuzz_check_error(kp_err err, const kp_error *error);

/* Allocations of the library: none left, and not out of all proportion. */
struct fuzz_memory {
    long live;
    size_t asked_bytes;
};
struct fuzz_memory fuzz_memory_begin(void);
/* Bytes asked for since then. */
size_t fuzz_memory_asked(const struct fuzz_memory *m);
void fuzz_memory_end(const struct fuzz_memory *m);

#endif
