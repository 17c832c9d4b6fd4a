/* SPDX-License-Identifier: BSD-2-Clause */
/* batches.h - the batches of a log, as Kafka's DumpLogSegments prints them. */
#ifndef KP_TEST_INTEGRATION_BATCHES_H
#define KP_TEST_INTEGRATION_BATCHES_H

#include <stdbool.h>
#include <stdint.h>

/* Check that offsets have no gap, that every batch is valid, and that each
 * producer's sequences start at 0 in each epoch and go on without a gap.
 * Prints a line for each partition, producer and epoch, in log order:
 *   epoch PARTITION PRODUCER EPOCH FIRST_OFFSET LAST_OFFSET BATCHES
 * `any_start`: a partition's first batch of a producer may have any sequence,
 * as in the log of a topic that was made anew.
 * Returns the number of records. */
uint64_t batches_check(const char *path, bool any_start);

#endif
