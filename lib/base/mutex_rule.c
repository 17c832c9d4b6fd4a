/* SPDX-License-Identifier: BSD-2-Clause */
/* mutex_rule.c - the debug builds' rule that a thread holds at most one lock.
 * Any thread.
 *
 * In a file of its own, so that a test that counts locks can have its own in
 * its place. */
#include "lib/base/mutex.h"

#include <stddef.h>

#ifdef KP_DEBUG
static _Thread_local const struct mutex *held;

void kp__mutex_note_locked(const struct mutex *m)
{
    held = m;
}

void kp__mutex_note_unlocked(const struct mutex *m)
{
    kp__mutex_check_held(m);
    held = NULL;
}

void kp__mutex_check_held(const struct mutex *m)
{
    KP_CHECK(held == m);
}

void kp__mutex_check_none(void)
{
    KP_CHECK(held == NULL);
}

static bool (*doubt)(void *arg);
static void *doubt_arg;

void kp__mutex_doubt(bool (*fn)(void *arg), void *arg)
{
    doubt = fn;
    doubt_arg = arg;
}

bool kp__mutex_seems_taken(void)
{
    return doubt != NULL && doubt(doubt_arg);
}
#endif
