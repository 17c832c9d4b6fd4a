/* SPDX-License-Identifier: BSD-2-Clause */
/* tool.c - multi_thread_send from its command line to its exit status.  The main
 * thread. */
#include "perf/lib/tool.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "perf/lib/drive.h"

#define EXIT_SETUP 2
#define CLOSE_MS 30000

/* 0 only if every record was acknowledged. */
static int measure(struct run *run, struct latency *all)
{
    FILE *out = run->o->json != NULL && strcmp(run->o->json, "-") == 0 ? stderr
                                                                       : stdout;
    struct outcome r;
    kp_err err;
    bool ok;

    memset(&r, 0, sizeof(r));
    r.all = all;
    err = run_drive(run, out, &r);
    latency_merge(all, &run->warm_up);
    latency_merge(all, &run->measured);
    output_summary(out, run, &r);
    if (run->o->print_metrics)
        figures_print_metrics(out, run->producer);
    (void)kp_close(run->producer, CLOSE_MS, NULL);
    output_complaints(run, &r);
    ok = run->o->json == NULL || output_json(run, &r);
    return ok && err == KP_OK && r.failed == 0 && r.acked == r.asked
               ? EXIT_SUCCESS
               : EXIT_FAILURE;
}

static int run_tool(const struct options *o, const struct payload *payload)
{
    static struct run run;
    static struct latency all;
    int status = EXIT_SETUP;

    if (run_init(&run, o, payload)) {
        if (!run_start_threads(&run))
            exit(EXIT_SETUP); /* some of them run, and nothing was sent */
        status = measure(&run, &all);
    }
    run_fini(&run);
    return status;
}

int tool_main(int argc, char **argv)
{
    struct options options;
    struct payload payload;
    enum parsed parsed = options_parse(&options, argc, argv);
    int status = EXIT_SETUP;

    if (parsed == PARSED_RUN) {
        run_catch_signals();
        if (payload_make(&payload, &options))
            status = run_tool(&options, &payload);
        payload_free(&payload);
    }
    if (parsed == PARSED_HELP) {
        options_help();
        status = EXIT_SUCCESS;
    }
    options_free(&options);
    return status;
}
