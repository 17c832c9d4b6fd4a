/* SPDX-License-Identifier: BSD-2-Clause */
/* broker_process.h - the embedded broker in a process of its own, so that only
 * the library's calls fail, and questions to it.  One broker, one thread. */
#ifndef KP_TEST_FAILCALLS_BROKER_PROCESS_H
#define KP_TEST_FAILCALLS_BROKER_PROCESS_H

#include <stddef.h>
#include <stdint.h>

/* Forks; before that no thread may run.  Returns the port. */
int broker_process_start(void);
void broker_process_stop(void);
/* A topic of two partitions, and a rule of the model (as text; "": none)
 * instead of those before. */
void broker_process_topic(const char *name, const char *rule);
/* The numbers that stand in the topic's records, in the order of the logs; the
 * topic is deleted.  Returns how many, at most `max`. */
size_t broker_process_take(const char *name, uint32_t *out, size_t max);

#endif
