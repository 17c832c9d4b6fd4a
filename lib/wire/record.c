/* SPDX-License-Identifier: BSD-2-Clause */
/* record.c - how large a record may become.  Pure; any thread. */
#include "lib/wire/record.h"

#include "lib/wire/record_batch.h"

/* Lengths on the wire are int32, so a sum past that is too large for anyone;
 * each addend is checked first, so the sum itself cannot wrap. */
static size_t add_bytes(size_t sum, kp_bytes b)
{
    if (sum > INT32_MAX || (b.data != NULL && b.size > INT32_MAX))
        return SIZE_MAX;
    return sum + kp__record_bytes_size(b);
}

size_t kp__record_upper_bound(const kp_record *r)
{
    size_t sum = RECORD_BATCH_HEADER_SIZE + RECORD_MAX_OVERHEAD;

    if (r->header_count > INT32_MAX)
        return SIZE_MAX;
    sum += kp__varint_size((int32_t)r->header_count);
    sum = add_bytes(sum, r->key);
    sum = add_bytes(sum, r->value);
    for (size_t i = 0; i < r->header_count; i++) {
        sum = add_bytes(sum, r->headers[i].key);
        sum = add_bytes(sum, r->headers[i].value);
    }
    return sum > INT32_MAX ? SIZE_MAX : sum;
}
