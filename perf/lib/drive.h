/* SPDX-License-Identifier: BSD-2-Clause */
/* drive.h - the main thread's part of a run: set up, watch, end. */
#ifndef KP_PERF_DRIVE_H
#define KP_PERF_DRIVE_H

#include "perf/lib/output.h"
#include "perf/lib/run.h"

/* False: what is wrong went to stderr.  Then, too, run_fini. */
bool run_init(struct run *run, const struct options *o,
              const struct payload *payload);
void run_fini(struct run *run);

/* From now on Ctrl-C ends the run in good order; a second one ends the
 * process. */
void run_catch_signals(void);
bool run_interrupted(void);

/* False: the system starts no more threads; some may be running. */
bool run_start_threads(struct run *run);
/* From the first send to the last report, with progress on `out`; joins the
 * threads.  *r gets all but `all`.  KP_OK, or what kp_flush said last. */
kp_err run_drive(struct run *run, FILE *out, struct outcome *r);

#endif
