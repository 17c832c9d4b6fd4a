/* SPDX-License-Identifier: BSD-2-Clause */
/* main.h - the main() of a test program made of Check suites.
 *
 *     static Suite *heap_suite(void) { ... }
 *     KP_TEST_MAIN(heap_suite)
 *
 * Several suites are named in a row.  The last line it prints is
 * "N passed, N failed", which test/support/run adds up; it exits non-zero when
 * something failed or nothing ran.  An argument runs only the test case of that
 * name.  CK_FORK=no, CK_VERBOSITY and the rest of Check's variables work; a
 * test may take a minute unless its case says otherwise. */
#ifndef KP_TEST_SUPPORT_MAIN_H
#define KP_TEST_SUPPORT_MAIN_H

#include <check.h>
#include <stddef.h>

typedef Suite *(*test_suite_fn)(void);

int test_main(int argc, char **argv, const test_suite_fn *suites, size_t count);

#define KP_TEST_MAIN(...) \
    int main(int argc, char **argv) \
    { \
        static const test_suite_fn suites[] = {__VA_ARGS__}; \
        return test_main(argc, argv, suites, \
                         sizeof(suites) / sizeof(suites[0])); \
    }

#endif
