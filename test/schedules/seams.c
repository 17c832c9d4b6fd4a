/* SPDX-License-Identifier: BSD-2-Clause */
/* seams.c - locks, words to sleep on and wake-up descriptors for actors.  One
 * thread.
 *
 * They promise what the real ones do, and no more: a lock goes to any of those
 * who want it; a wake-up takes sleepers in the order in which they came; a wait
 * with a deadline may be late at any moment. */
#include "test/schedules/seams.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/check.h"
#include "lib/base/mutex.h"
#include "lib/base/thread.h"
#include "lib/base/wait.h"
#include "lib/base/wakeup.h"
#include "lib/shared/sticky.h"

/* -- Planted faults -- */

static enum plant planted;
static int wakes; /* so many in this run */

void sched_plant(enum plant plant)
{
    planted = plant;
}
enum plant sched_planted(void)
{
    return planted;
}
bool sched_splits(void)
{
    return planted == PLANT_SPLIT_RMW && sched_current() >= 0;
}

const char *sched_plant_name(enum plant plant)
{
    static const char *const names[PLANT_COUNT] = {
        "none",         "lost wake-up", "lost later wake-ups",
        "one woken",    "blind wait",   "lost fd",
        "no exclusion", "split rmw",    "late store"};

    return names[plant];
}

void seams_store_late(struct late_store *s, volatile void *to, const void *from,
                      size_t size)
{
    if (s->to != NULL)
        memcpy((void *)(uintptr_t)s->to, s->bytes, s->size);
    s->to = to;
    s->size = size;
    memcpy(s->bytes, from, size);
}

/* A load goes first, once; anything else drains the buffer. */
void seams_late_store(struct late_store *s, enum sched_kind kind)
{
    if (s->to == NULL || kind == SCHED_LOAD)
        return;
    memcpy((void *)(uintptr_t)s->to, s->bytes, s->size);
    s->to = NULL;
}

/* -- Locks: the owner stands in the mutex itself, one more than the actor -- */

static uint32_t *owner_of(const volatile void *m)
{
    return (uint32_t *)(uintptr_t)m;
}

void kp__mutex_init(struct mutex *m)
{
    memset(m, 0, sizeof *m);
}

void kp__mutex_fini(struct mutex *m)
{
    KP_CHECK(*owner_of(m) == 0);
}

static int me(void)
{
    return sched_current() + 1;
}

void kp__mutex_take(struct mutex *m)
{
    sched_point(SCHED_LOCK, m, __FILE__, __LINE__);
    KP_CHECK(*owner_of(m) == 0 || planted == PLANT_NO_EXCLUSION);
    *owner_of(m) = (uint32_t)me();
}

bool kp__mutex_try_take(struct mutex *m)
{
    sched_point(SCHED_TRYLOCK, m, __FILE__, __LINE__);
    if (*owner_of(m) != 0)
        return false;
    *owner_of(m) = (uint32_t)me();
    return true;
}

void kp__mutex_drop(struct mutex *m)
{
    sched_point(SCHED_UNLOCK, m, __FILE__, __LINE__);
    *owner_of(m) = 0;
}

/* Of what is not compiled for the explorer: logs, errors.  Actors run one at a
 * time, and none stops while it holds one of these. */
void kp__mutex_take_slow(struct mutex *m);
void kp__mutex_take_slow(struct mutex *m)
{
    (void)m;
    KP_CHECK(false);
}

void kp__mutex_wake(struct mutex *m);
void kp__mutex_wake(struct mutex *m)
{
    (void)m;
    KP_CHECK(false);
}

/* One lock at a time, for each actor as for each thread. */
static const struct mutex *held[ACTORS_MAX + 1];

void kp__mutex_note_locked(const struct mutex *m)
{
    held[me()] = m;
}

void kp__mutex_note_unlocked(const struct mutex *m)
{
    kp__mutex_check_held(m);
    held[me()] = NULL;
}

void kp__mutex_check_held(const struct mutex *m)
{
    KP_CHECK(held[me()] == m);
}

void kp__mutex_check_none(void)
{
    KP_CHECK(held[me()] == NULL);
}

/* Here another actor has it, or nobody. */
void kp__mutex_doubt(bool (*fn)(void *arg), void *arg)
{
    (void)fn;
    (void)arg;
}

bool kp__mutex_seems_taken(void)
{
    return false;
}

/* -- Words to sleep on -- */

static struct sleeper {
    const volatile void *word;
    uint32_t mask;
    bool asleep, woken, may_be_late;
} sleepers[ACTORS_MAX];
static int line[ACTORS_MAX]; /* who sleeps, oldest first */
static int line_count;

static void enter_line(int actor, const void *word, uint32_t mask, bool late)
{
    sleepers[actor] = (struct sleeper){word, mask, true, false, late};
    line[line_count++] = actor;
}

static void leave_line(int at)
{
    sleepers[line[at]].asleep = false;
    memmove(&line[at], &line[at + 1],
            (size_t)(line_count - at - 1) * sizeof line[0]);
    line_count--;
}

static void leave_by_deadline(int actor)
{
    for (int i = 0; i < line_count; i++)
        if (line[i] == actor) {
            leave_line(i);
            return;
        }
}

bool kp__wait_masked(_Atomic uint32_t *word, uint32_t seen, int64_t deadline_ns,
                     uint32_t mask)
{
    struct sleeper *s;

    kp__mutex_check_none();
    if (sched_current() < 0)
        sched_violation("a wait outside of every actor");
    sched_point(SCHED_WAIT, word, __FILE__, __LINE__);
    if (*(const volatile uint32_t *)word != seen && planted != PLANT_BLIND_WAIT)
        return true;
    enter_line(sched_current(), word, mask, deadline_ns != KP_NEVER);
    sched_point(SCHED_RESUME, word, __FILE__, __LINE__);
    s = &sleepers[sched_current()];
    if (s->woken)
        return true;
    leave_by_deadline(sched_current());
    return false;
}

void kp__wake_masked(_Atomic uint32_t *word, int n, uint32_t mask)
{
    sched_point(SCHED_WAKE, word, __FILE__, __LINE__);
    wakes++;
    if (planted == PLANT_LOST_WAKE ||
        (planted == PLANT_LOST_LATER && wakes > 1))
        return;
    if (planted == PLANT_ONE_WAKE && n > 1)
        n = 1;
    for (int i = 0; i < line_count && n > 0;) {
        struct sleeper *s = &sleepers[line[i]];

        if (s->word != word || (s->mask & mask) == 0) {
            i++;
            continue;
        }
        s->woken = true;
        leave_line(i);
        n--;
    }
}

/* -- Wake-up descriptors: read_fd says whether it is readable -- */

int kp__wakeup_init(struct wakeup *w)
{
    *w = (struct wakeup){0, 0};
    return 0;
}

void kp__wakeup_fini(struct wakeup *w)
{
    (void)w;
}

void kp__wakeup_set(struct wakeup *w)
{
    sched_point(SCHED_SET_FD, w, __FILE__, __LINE__);
    if (planted != PLANT_LOST_FD)
        w->read_fd = 1;
}

static bool was_readable;

bool sched_cleared(void)
{
    return was_readable;
}

void kp__wakeup_clear(struct wakeup *w)
{
    sched_point(SCHED_CLEAR_FD, w, __FILE__, __LINE__);
    was_readable = w->read_fd != 0;
    w->read_fd = 0;
}

void sched_poll_fd(const struct wakeup *w)
{
    sched_point(SCHED_POLL_FD, w, __FILE__, __LINE__);
}

static int times_left;

void sched_poll_fd_or_time(const struct wakeup *w, bool near)
{
    sched_point(near ? SCHED_POLL_SOON : SCHED_POLL_TIME, w, __FILE__,
                __LINE__);
    if (near && w->read_fd == 0 && times_left > 0)
        times_left--;
}

/* -- Thread-local things -- */

static struct own {
    bool in_callback;
    struct hop hop;
} owns[ACTORS_MAX];

void seams_swap_own(int actor)
{
    struct own ours = {kp__in_callback(), kp__hop};

    kp__set_in_callback(owns[actor].in_callback);
    kp__hop = owns[actor].hop;
    owns[actor] = ours;
}

/* -- Who can go on -- */

void seams_reset(void)
{
    memset(held, 0, sizeof held);
    memset(sleepers, 0, sizeof sleepers);
    memset(owns, 0, sizeof owns);
    line_count = 0;
    wakes = 0;
    times_left = SCHED_TIMES;
}

bool seams_enabled(int actor, const struct pending *p)
{
    if (p->kind == SCHED_LOCK)
        return *owner_of(p->at) == 0 || planted == PLANT_NO_EXCLUSION;
    if (p->kind == SCHED_RESUME)
        return sleepers[actor].woken || sleepers[actor].may_be_late;
    if (p->kind == SCHED_POLL_SOON && times_left > 0)
        return true;
    if (p->kind == SCHED_POLL_FD || p->kind == SCHED_POLL_SOON ||
        p->kind == SCHED_POLL_TIME)
        return ((const volatile struct wakeup *)p->at)->read_fd != 0;
    return true;
}

/* In place of lib/base/check.c: a broken invariant of the library is a
 * violation as any other. */
_Noreturn void kp__check_failed(const char *file, int line_number,
                                const char *what)
{
    sched_violation("%s:%d: %s", file, line_number, what);
    fprintf(stderr, "%s:%d: %s, outside of every actor\n", file, line_number,
            what);
    abort();
}

/* In place of Check, for the parts of test/support that are used here. */
_Noreturn void _ck_assert_failed(const char *file, int line_number,
                                 const char *expression, const char *text, ...);
void _mark_point(const char *file, int line_number);

void _ck_assert_failed(const char *file, int line_number,
                       const char *expression, const char *text, ...)
{
    char said[256] = "";
    va_list args;

    va_start(args, text);
    if (text != NULL)
        (void)vsnprintf(said, sizeof said, text, args);
    va_end(args);
    sched_violation("%s:%d: %s %s", file, line_number, expression, said);
    fprintf(stderr, "%s:%d: %s %s, outside of every actor\n", file, line_number,
            expression, said);
    abort();
}

void _mark_point(const char *file, int line_number)
{
    (void)file;
    (void)line_number;
}
