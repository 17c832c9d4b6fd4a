/* SPDX-License-Identifier: BSD-2-Clause */
/* fixture.h - the accumulator of test/unit/accumulator_fixture.h for actors:
 * what fails in it is a violation. */
#ifndef KP_TEST_SCHEDULES_FIXTURE_H
#define KP_TEST_SCHEDULES_FIXTURE_H

#include "test/schedules/scenarios.h"

#define CHECK_H /* Check's header is not needed: */
#define ck_assert(x) \
    ((x) ? (void)0 : sched_violation("%s:%d: %s", __FILE__, __LINE__, #x))
#define ck_assert_int_eq(a, b) ck_assert((a) == (b))
#define ck_assert_uint_eq(a, b) ck_assert((a) == (b))
#define ck_assert_uint_le(a, b) ck_assert((a) <= (b))
#define ck_assert_ptr_nonnull(a) ck_assert((a) != NULL)

#include "test/unit/accumulator_fixture.h"

/* All of a fixture but the clocks and the check that nothing is left, which
 * earlier violations may have caused. */
static inline void fixture_check(long live)
{
    const struct topic_view *v = kp__topic_view(f.topic);

    for (int32_t i = 0; i < v->count; i++) {
        kp__queue_trim(v->queues[i]);
        ck_assert(kp__list_empty(&v->queues[i]->batches));
        ck_assert_uint_eq(v->queues[i]->held_bytes, 0);
    }
    kp__pool_check(f.pool);
    ck_assert_uint_eq(fixture_available(), f.settings.buffer_memory);
    kp__topics_destroy(f.topics);
    kp__compressors_fini(&f.compressors);
    kp__pool_unref(f.pool);
    if (kp__mem_live() != live)
        sched_violation("%ld allocations are left", kp__mem_live() - live);
}

#endif
