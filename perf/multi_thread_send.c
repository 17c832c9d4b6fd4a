/* SPDX-License-Identifier: BSD-2-Clause */
/* multi_thread_send.c - sends records from several threads and measures it: the
 * producer's load generator, with kafka-producer-perf-test's options.  The
 * parts are in lib/; how figures are taken is in METHOD.md. */
#include "perf/lib/tool.h"

int main(int argc, char **argv)
{
    return tool_main(argc, argv);
}
