/* SPDX-License-Identifier: BSD-2-Clause */
/* known.h - the inputs of a target that are in the tree.
 *
 *   test/golden                      turned into inputs by the target
 *   test/fuzz/corpus/<target>.txt    found by fuzzing; a line of hex each
 *   test/fuzz/regressions/<target>/  files that failed once, as they were
 *
 * Folders are looked for under the environment's `srcdir`, or the working
 * folder. */
#ifndef KP_TEST_FUZZ_KNOWN_H
#define KP_TEST_FUZZ_KNOWN_H

#include "test/fuzz/fuzz.h"

void fuzz_known_corpus(const struct fuzz_target *t, fuzz_seed_fn fn, void *arg);
void fuzz_known_regressions(const struct fuzz_target *t, fuzz_seed_fn fn,
                            void *arg);

#endif
