/* SPDX-License-Identifier: BSD-2-Clause */
/* crc32c.h - CRC-32C (Castagnoli), as Kafka's record batches use it. */
#ifndef KP_BASE_CRC32C_H
#define KP_BASE_CRC32C_H

#include <stddef.h>
#include <stdint.h>

/* The crc of what `crc` covers followed by data; start with 0.  Chosen at first
 * use for this CPU: PCLMUL/SSE4.2 or ARMv8 instructions, else tables. */
uint32_t kp__crc32c(uint32_t crc, const void *data, size_t size);
/* crc(a followed by b) from crc(a), crc(b) and the size of b: CRC is linear, so
 * a batch header can change without its body being read again. */
uint32_t kp__crc32c_combine(uint32_t crc_a, uint32_t crc_b, uint64_t size_b);
/* For tests: the portable one, and the name of the one chosen. */
uint32_t kp__crc32c_portable(uint32_t crc, const void *data, size_t size);
const char *kp__crc32c_name(void);

#endif
