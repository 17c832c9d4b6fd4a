/* SPDX-License-Identifier: BSD-2-Clause */
/* tool.h - all of multi_thread_send but the producer it runs on. */
#ifndef KP_PERF_TOOL_H
#define KP_PERF_TOOL_H

/* What main returns: 0 only if every record was acknowledged, 1 if not, 2 if
 * there was nothing to run. */
int tool_main(int argc, char **argv);

#endif
