/* SPDX-License-Identifier: BSD-2-Clause */
/* main.c - runs the suites of one test program and says how many cases passed.
 * The main thread; Check runs each case in a child unless CK_FORK=no. */
#include "test/support/main.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

int test_main(int argc, char **argv, const test_suite_fn *suites, size_t count)
{
    SRunner *runner;
    int run, failed;

    /* What stands in the environment already wins. */
    (void)setenv("CK_DEFAULT_TIMEOUT", "60", 0);
    (void)setenv("CK_VERBOSITY", "normal", 0);
    if (argc > 1)
        (void)setenv("CK_RUN_CASE", argv[1], 1);
    (void)setvbuf(stdout, NULL, _IOLBF, 0);
    runner = srunner_create(suites[0]());
    for (size_t i = 1; i < count; i++)
        srunner_add_suite(runner, suites[i]());
    srunner_run_all(runner, CK_ENV);
    run = srunner_ntests_run(runner);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    if (run == 0)
        (void)fprintf(stderr, "no test was run\n");
    (void)printf("%d passed, %d failed\n", run - failed, failed);
    return run == 0 || failed != 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
