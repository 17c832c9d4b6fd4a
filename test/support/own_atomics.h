/* SPDX-License-Identifier: BSD-2-Clause */
/* own_atomics.h - takes away what <stdatomic.h> calls the operations that the
 * library uses, for a header that puts its own in their place. */
#include <stdatomic.h>

#undef atomic_load
#undef atomic_load_explicit
#undef atomic_store
#undef atomic_store_explicit
#undef atomic_exchange
#undef atomic_exchange_explicit
#undef atomic_fetch_add
#undef atomic_fetch_add_explicit
#undef atomic_fetch_sub
#undef atomic_fetch_sub_explicit
#undef atomic_fetch_or
#undef atomic_fetch_or_explicit
#undef atomic_fetch_and
#undef atomic_fetch_and_explicit
#undef atomic_compare_exchange_weak
#undef atomic_compare_exchange_weak_explicit
#undef atomic_compare_exchange_strong
#undef atomic_compare_exchange_strong_explicit
