/* SPDX-License-Identifier: BSD-2-Clause */
/* sched.c - actors on coroutines.  One thread.
 *
 * Invariant: an actor that is not running stands at a scheduling point, and
 * `pending` says what it will do next. */
#include "test/schedules/sched.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

#include "test/schedules/seams.h"

#define STACK_SIZE ((size_t)256 << 10)
#define TRACE_LINES 150 /* printed: the last ones */
#define STEPS_MAX 20000 /* more is an actor that never ends */

struct actor {
    ucontext_t context;
    char *stack;
    struct pending pending;
    bool finished;
    struct late_store late;
};

static struct actor actors[ACTORS_MAX];
static int actor_count, current = -1;
static ucontext_t scheduler;
static void (*body)(int id);
static char violation[512];
static bool violated;

static struct {
    int actor;
    struct pending pending;
} trace[STEPS_MAX];
static int trace_count;

/* -- The actors' side -- */

static void back_to_scheduler(void)
{
    if (swapcontext(&actors[current].context, &scheduler) != 0)
        abort();
}

void sched_point(enum sched_kind kind, const volatile void *at,
                 const char *file, int line)
{
    if (current < 0)
        return; /* setting up, or looking at what is left */
    actors[current].pending = (struct pending){kind, at, file, line};
    back_to_scheduler();
    seams_late_store(&actors[current].late, kind);
}

void sched_store(volatile void *to, const void *from, size_t size)
{
    if (current >= 0 && sched_planted() == PLANT_LATE_STORE)
        seams_store_late(&actors[current].late, to, from, size);
    else
        memcpy((void *)(uintptr_t)to, from, size);
}

int sched_current(void)
{
    return current;
}

void sched_violation(const char *format, ...)
{
    va_list args;

    if (!violated) {
        va_start(args, format);
        (void)vsnprintf(violation, sizeof violation, format, args);
        va_end(args);
    }
    violated = true;
    if (current >= 0)
        back_to_scheduler(); /* never to come back */
}

const char *sched_violation_text(void)
{
    return violated ? violation : NULL;
}

static void actor_main(void)
{
    sched_point(SCHED_START, NULL, "", 0);
    body(current);
    seams_late_store(&actors[current].late, SCHED_UNLOCK);
    actors[current].finished = true;
    actors[current].pending = (struct pending){SCHED_DONE, NULL, "", 0};
    back_to_scheduler();
}

/* -- The scheduler's side -- */

const struct pending *sched_pending(int actor)
{
    return &actors[actor].pending;
}

/* What an operation touches: a value, and who sleeps on a word. */
enum { NOTHING, READS, WRITES };

static int touches_value(const struct pending *p)
{
    switch (p->kind) {
    case SCHED_START:
    case SCHED_DONE:
    case SCHED_RESUME:
    case SCHED_WAKE:
        return NOTHING;
    case SCHED_LOAD:
    case SCHED_WAIT:
    case SCHED_POLL_FD:
    case SCHED_POLL_SOON:
    case SCHED_POLL_TIME:
        return READS;
    default:
        return WRITES;
    }
}

static bool touches_line(const struct pending *p)
{
    return p->kind == SCHED_WAIT || p->kind == SCHED_RESUME ||
           p->kind == SCHED_WAKE;
}

bool sched_independent(const struct pending *a, const struct pending *b)
{
    int x, y;

    if (a->at != b->at || (touches_line(a) && touches_line(b)))
        return a->at != b->at;
    x = touches_value(a);
    y = touches_value(b);
    return x == NOTHING || y == NOTHING || (x == READS && y == READS);
}

/* Only one who holds a lock unlocks it, when nobody else can lock it. */
bool sched_together(const struct pending *a, const struct pending *b)
{
    bool held = a->kind == SCHED_UNLOCK || b->kind == SCHED_UNLOCK;

    return !held || a->kind == SCHED_TRYLOCK || b->kind == SCHED_TRYLOCK;
}

static void start_actor(int id)
{
    struct actor *a = &actors[id];

    if (a->stack == NULL)
        a->stack = malloc(STACK_SIZE);
    if (a->stack == NULL || getcontext(&a->context) != 0)
        abort();
    a->finished = false;
    a->late = (struct late_store){0};
    a->pending = (struct pending){SCHED_START, NULL, "", 0};
    a->context.uc_stack.ss_sp = a->stack;
    a->context.uc_stack.ss_size = STACK_SIZE;
    a->context.uc_link = NULL;
    makecontext(&a->context, actor_main, 0);
}

static void (*switched)(int actor);

void sched_on_switch(void (*fn)(int actor))
{
    switched = fn;
}

static void let_run(int id)
{
    seams_swap_own(id);
    if (switched != NULL)
        switched(id);
    current = id;
    if (swapcontext(&scheduler, &actors[id].context) != 0)
        abort();
    current = -1;
    seams_swap_own(id);
}

int sched_join(const char *file, int line)
{
    sched_point(SCHED_JOIN, NULL, file, line);
    return 0;
}

/* The last resort: a clock that is waited for goes on. */
static uint32_t waiting_for_time(void)
{
    uint32_t set = 0;

    for (int i = 0; i < actor_count; i++)
        if (actors[i].pending.kind == SCHED_POLL_SOON ||
            actors[i].pending.kind == SCHED_POLL_TIME)
            set |= UINT32_C(1) << i;
    return set;
}

static uint32_t enabled_actors(bool *all_finished)
{
    uint32_t enabled = 0;

    *all_finished = true;
    for (int i = 0; i < actor_count; i++) {
        if (actors[i].finished)
            continue;
        *all_finished = false;
        if (actors[i].pending.kind == SCHED_JOIN
                ? actors[0].finished
                : seams_enabled(i, &actors[i].pending))
            enabled |= UINT32_C(1) << i;
    }
    return enabled != 0 ? enabled : waiting_for_time();
}

static const char *const kind_names[] = {"begins",
                                         "ends",
                                         "loads",
                                         "stores",
                                         "changes",
                                         "locks",
                                         "tries to lock",
                                         "unlocks",
                                         "waits",
                                         "goes on",
                                         "wakes",
                                         "sets the fd",
                                         "clears the fd",
                                         "polls the fd",
                                         "polls the fd and the clock",
                                         "polls the fd, then the clock",
                                         "joins"};

static void describe(const struct pending *p, char *out, size_t size)
{
    const char *file = strrchr(p->file, '/');

    (void)snprintf(out, size, "%s %p (%s:%d)", kind_names[p->kind],
                   (void *)(uintptr_t)p->at, file != NULL ? file + 1 : p->file,
                   p->line);
}

static enum sched_end stuck(void)
{
    char text[400] = "nobody can go on:", what[128];

    for (int i = 0; i < actor_count; i++) {
        if (actors[i].finished)
            continue;
        describe(&actors[i].pending, what, sizeof what);
        (void)snprintf(text + strlen(text), sizeof text - strlen(text),
                       " actor %d %s;", i, what);
    }
    sched_violation("%s", text);
    return END_BAD;
}

static enum sched_end step(const struct strategy *s, int *last, bool *over)
{
    bool all_finished;
    uint32_t enabled = enabled_actors(&all_finished);
    int next;

    *over = true;
    if (all_finished)
        return END_GOOD;
    if (enabled == 0)
        return stuck();
    if (trace_count == STEPS_MAX) {
        sched_violation("no end after %d steps", STEPS_MAX);
        return END_BAD;
    }
    next = s->choose(s->arg, enabled, *last);
    if (next < 0)
        return END_PRUNED;
    trace[trace_count].actor = next;
    trace[trace_count++].pending = actors[next].pending;
    let_run(next);
    *last = next;
    *over = violated;
    return violated ? END_BAD : END_GOOD;
}

enum sched_end sched_run(int count, void (*actor)(int id),
                         const struct strategy *strategy)
{
    enum sched_end end;
    int last = -1;
    bool over;

    actor_count = count;
    body = actor;
    violated = false;
    trace_count = 0;
    seams_reset();
    for (int i = count; i < ACTORS_MAX; i++)
        actors[i].pending = (struct pending){SCHED_DONE, NULL, "", 0};
    for (int i = 0; i < count; i++) {
        start_actor(i);
        let_run(i); /* to its first point */
    }
    do
        end = step(strategy, &last, &over);
    while (!over);
    return end;
}

void sched_print_trace(void)
{
    char what[128];
    int from = trace_count > TRACE_LINES ? trace_count - TRACE_LINES : 0;

    for (int i = from; i < trace_count; i++) {
        describe(&trace[i].pending, what, sizeof what);
        printf("    %3d  actor %d %s\n", i, trace[i].actor, what);
    }
}
