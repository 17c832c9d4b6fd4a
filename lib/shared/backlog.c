/* SPDX-License-Identifier: BSD-2-Clause */
/* backlog.c - a brake for senders that are faster than the wire.  Application
 * threads wait, the I/O thread takes and wakes.
 *
 * Invariant: nothing depends on a wake-up from here: every wait ends by itself
 * after BRAKE_NS. */
#include "lib/shared/backlog.h"

/* How long it stays on after the last wait. */
#define ON_NS KP_NS_PER_SEC
/* How long it is off after a wire took too little, at first and at most. */
#define OFF_NS (100 * KP_NS_PER_MS)
#define OFF_MAX_NS (10 * KP_NS_PER_SEC)
/* Half of it is what the I/O thread sends while a woken sender gets going. */
#define LIMIT_MIN ((size_t)2 << 20)

void kp__backlog_init(struct backlog *b, const struct clock *clock,
                      size_t batch_size)
{
    b->clock = clock;
    b->limit = LIMIT_MIN > 2 * batch_size ? LIMIT_MIN : 2 * batch_size;
    atomic_init(&b->bytes, 0);
    atomic_init(&b->taken, 0);
    atomic_init(&b->word, 0);
    atomic_init(&b->waiting, 0);
    atomic_init(&b->wake_at, 0);
    atomic_init(&b->on_until_ns, 0);
    atomic_init(&b->off_until_ns, 0);
    atomic_init(&b->off_ns, OFF_NS);
}

void kp__backlog_add(struct backlog *b, size_t bytes)
{
    /* relaxed: a level, that orders nothing */
    (void)atomic_fetch_add_explicit(&b->bytes, bytes, memory_order_relaxed);
}

void kp__backlog_sub(struct backlog *b, size_t bytes)
{
    /* seq_cst: before the look at `waiting`, as a sender's look at `bytes` is
     * after it has counted itself */
    (void)atomic_fetch_sub(&b->bytes, bytes);
    /* relaxed: it orders nothing */
    (void)atomic_fetch_add_explicit(&b->taken, bytes, memory_order_relaxed);
}

void kp__backlog_wake(struct backlog *b)
{
    size_t at;

    /* seq_cst: see kp__backlog_sub */
    if (atomic_load(&b->waiting) == 0)
        return;
    /* relaxed: one wake-up more or less does no harm */
    at = atomic_load_explicit(&b->wake_at, memory_order_relaxed);
    if (atomic_load_explicit(&b->bytes, memory_order_relaxed) > at)
        return;
    /* One is enough, unless the backlog goes on shrinking. */
    atomic_store_explicit(&b->wake_at, at / 2, memory_order_relaxed);
    /* release: with what was taken, for whoever reads that to judge the wire */
    (void)atomic_fetch_add_explicit(&b->word, 1, memory_order_release);
    kp__wake(&b->word, 1);
}

/* relaxed in the rest: hints, each by itself */
static int64_t load(_Atomic int64_t *x)
{
    return atomic_load_explicit(x, memory_order_relaxed);
}

static void store(_Atomic int64_t *x, int64_t value)
{
    atomic_store_explicit(x, value, memory_order_relaxed);
}

void kp__backlog_pressed(struct backlog *b)
{
    store(&b->on_until_ns, kp__now_ns(b->clock) + ON_NS);
}

bool kp__brake_begin(struct backlog *b, struct brake *brake,
                     struct ticket *ticket)
{
    int64_t now_ns;
    uint32_t seen;

    if (atomic_load_explicit(&b->bytes, memory_order_relaxed) <= b->limit ||
        load(&b->on_until_ns) == 0)
        return false;
    now_ns = kp__now_ns(b->clock);
    if (now_ns >= load(&b->on_until_ns) || now_ns < load(&b->off_until_ns))
        return false;
    store(&b->on_until_ns, now_ns + ON_NS);
    atomic_store_explicit(&b->wake_at, b->limit / 2, memory_order_relaxed);
    brake->since_ns = now_ns;
    brake->until_ns = now_ns + BRAKE_NS;
    brake->taken = atomic_load_explicit(&b->taken, memory_order_relaxed);
    /* seq_cst in these three: counted, then looked again, as whoever takes
     * looks at the count after it has taken */
    seen = atomic_load(&b->word);
    (void)atomic_fetch_add(&b->waiting, 1);
    *ticket = (struct ticket){&b->word, seen, brake->until_ns, 0};
    if (atomic_load(&b->bytes) <= b->limit / 2)
        ticket->word = NULL;
    return true;
}

/* The wire took less than it should while somebody waited. */
static void release_brake(struct backlog *b, int64_t now_ns)
{
    int64_t off_ns = load(&b->off_ns);

    if (now_ns < load(&b->off_until_ns))
        return; /* it has just been found out */
    store(&b->off_until_ns, kp__ns_add(now_ns, off_ns));
    store(&b->off_ns, off_ns < OFF_MAX_NS / 2 ? off_ns * 2 : OFF_MAX_NS);
}

int64_t kp__brake_end(struct backlog *b, const struct brake *brake)
{
    int64_t now_ns = kp__now_ns(b->clock);
    uint64_t taken =
        atomic_load_explicit(&b->taken, memory_order_relaxed) - brake->taken;

    (void)atomic_fetch_sub_explicit(&b->waiting, 1, memory_order_relaxed);
    if (taken >= b->limit / 2)
        store(&b->off_ns, OFF_NS);
    else if (now_ns >= brake->until_ns)
        release_brake(b, now_ns);
    return now_ns - brake->since_ns;
}
