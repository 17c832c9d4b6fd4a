/* SPDX-License-Identifier: BSD-2-Clause */
/* check.h - assertions of our own invariants.
 *
 * KP_CHECK is for what only a bug of ours can break.  It is compiled in when
 * KP_DEBUG is defined (debug, sanitizer and simulation builds) and costs
 * nothing otherwise: a library does not abort someone else's process over a
 * caller's or a broker's mistake, so those are never checked with it. */
#ifndef KP_BASE_CHECK_H
#define KP_BASE_CHECK_H

#ifdef KP_DEBUG
/* Prints where and what, then aborts. */
_Noreturn void kp__check_failed(const char *file, int line, const char *what);
#define KP_CHECK(cond) \
    ((cond) ? (void)0 : kp__check_failed(__FILE__, __LINE__, #cond))
#else
#define KP_CHECK(cond) ((void)(1 || (cond))) /* names in it count as used */
#endif

#if defined(__GNUC__)
#define KP_LIKELY(x) __builtin_expect(!!(x), 1)
#define KP_UNLIKELY(x) __builtin_expect(!!(x), 0)
#define KP_PRINTF(f, a) __attribute__((format(printf, f, a)))
#define KP_INLINE static inline __attribute__((always_inline))
#else
#define KP_LIKELY(x) (x)
#define KP_UNLIKELY(x) (x)
#define KP_PRINTF(f, a)
#define KP_INLINE static inline
#endif

/* The struct that `member` at `ptr` is embedded in. */
#define KP_CONTAINER(ptr, type, member) \
    ((type *)(void *)((char *)(ptr) - offsetof(type, member)))

#endif
