/* SPDX-License-Identifier: BSD-2-Clause */
/* explore.c - strategies: depth first over all schedules, and samples.  One
 * thread.
 *
 * A schedule is run from its beginning each time; a prefix of choices leads to
 * the place where it is to differ from the last one. */
#include "test/schedules/explore.h"

#include <string.h>

#define DEPTH_MAX 4096

/* A moment of the current schedule at which a choice was made. */
struct node {
    int chosen;
    uint32_t enabled, sleep, done;
    uint32_t todo;       /* who has to be chosen here, too */
    int preemptions;     /* before it */
    int current;         /* who ran last */
    struct pending step; /* what the chosen one did */
    /* Of each actor, how many of its steps come before this one whatever the
     * schedule; its own number included. */
    uint16_t after[ACTORS_MAX];
};

static struct {
    struct node nodes[DEPTH_MAX];
    int depth, prefix; /* nodes[0 .. prefix-1] are given */
    int bound;         /* -1: none, and equal schedules are left out */
    uint32_t sleep;    /* of the node to come */
    bool redundant;    /* the rest is known from another schedule */
    /* of each actor's last step, see node.after */
    uint16_t after[ACTORS_MAX][ACTORS_MAX];
} dfs;

static uint32_t bit(int actor)
{
    return UINT32_C(1) << actor;
}

static int lowest(uint32_t set)
{
    return __builtin_ctz(set);
}

static bool preempts(const struct node *n, int actor)
{
    return n->current >= 0 && actor != n->current &&
           (n->enabled & bit(n->current)) != 0;
}

/* Who may go on at n and did not yet. */
static uint32_t candidates(const struct node *n)
{
    uint32_t set = n->enabled & ~n->done;

    if (dfs.bound < 0)
        return set & n->todo & ~n->sleep;
    if (n->preemptions >= dfs.bound && n->current >= 0 &&
        (n->enabled & bit(n->current)) != 0)
        set &= bit(n->current);
    return set;
}

/* -- Which schedules differ: dynamic partial order reduction -- */

/* Those that need not come next after n's choice: what they would do was done
 * before in another schedule, and does not depend on it. */
static uint32_t sleep_after(const struct node *n)
{
    uint32_t before = n->sleep | n->done, after = 0;

    for (int i = 0; i < ACTORS_MAX; i++)
        if ((before & bit(i)) != 0 && i != n->chosen &&
            sched_independent(sched_pending(i), &n->step))
            after |= bit(i);
    return after;
}

/* n's step comes after all that it depends on. */
static void order_step(struct node *n)
{
    uint16_t *after = dfs.after[n->chosen];

    for (const struct node *e = n - 1; e >= dfs.nodes; e--)
        if (e->after[e->chosen] > after[e->chosen] &&
            !sched_independent(&e->step, &n->step))
            for (int i = 0; i < ACTORS_MAX; i++)
                if (e->after[i] > after[i])
                    after[i] = e->after[i];
    after[n->chosen]++;
    memcpy(n->after, after, sizeof n->after);
}

/* The last step that `actor` could have done its own before: there it has to be
 * tried. */
static void reverse_race(int actor)
{
    const struct pending *p = sched_pending(actor);

    for (int i = dfs.depth - 1; i >= 0; i--) {
        struct node *e = &dfs.nodes[i];

        if (e->chosen == actor || sched_independent(&e->step, p) ||
            !sched_together(&e->step, p) ||
            e->after[e->chosen] <= dfs.after[actor][e->chosen])
            continue;
        e->todo |= (e->enabled & bit(actor)) != 0 ? bit(actor) : e->enabled;
        return;
    }
}

static void new_node(struct node *n, uint32_t enabled, int current)
{
    const struct node *before = dfs.depth > 0 ? n - 1 : NULL;

    *n = (struct node){.enabled = enabled, .current = current};
    if (before != NULL)
        n->preemptions =
            before->preemptions + (preempts(before, before->chosen) ? 1 : 0);
    if (dfs.bound >= 0)
        return;
    n->sleep = dfs.sleep;
    n->todo = enabled;
    for (int i = 0; i < ACTORS_MAX; i++)
        reverse_race(i);
}

/* False: every choice here is known from another schedule. */
static bool first_choice(struct node *n)
{
    uint32_t set = candidates(n);

    if (set == 0)
        return false;
    n->chosen = n->current >= 0 && (set & bit(n->current)) != 0 ? n->current
                                                                : lowest(set);
    n->todo = bit(n->chosen);
    return true;
}

static int choose_next(void *arg, uint32_t enabled, int current)
{
    struct node *n = &dfs.nodes[dfs.depth];

    (void)arg;
    if (dfs.redundant || dfs.depth == DEPTH_MAX)
        return lowest(enabled); /* only to its end */
    if (dfs.depth >= dfs.prefix) {
        new_node(n, enabled, current);
        if (!first_choice(n)) {
            dfs.redundant = true;
            return lowest(enabled);
        }
    } else if ((enabled & bit(n->chosen)) == 0) {
        sched_violation("the same choices gave another run");
        return -1;
    }
    if (dfs.bound < 0) {
        n->step = *sched_pending(n->chosen);
        order_step(n);
        dfs.sleep = sleep_after(n);
    }
    dfs.depth++;
    return n->chosen;
}

/* The last choice that can be made another way; false: there is none. */
static bool backtrack(void)
{
    while (dfs.depth > 0) {
        struct node *n = &dfs.nodes[dfs.depth - 1];
        uint32_t set;

        n->done |= bit(n->chosen);
        set = candidates(n);
        if (set != 0) {
            n->chosen = lowest(set);
            dfs.prefix = dfs.depth;
            return true;
        }
        dfs.depth--;
    }
    return false;
}

static bool run_once(const struct scenario *s, int actors,
                     const struct strategy *strategy)
{
    s->set_up(actors);
    if (sched_run(actors, s->actor, strategy) != END_GOOD)
        return false;
    s->check();
    return sched_violation_text() == NULL;
}

static struct explored depth_first(const struct scenario *s, int actors,
                                   uint64_t cap)
{
    struct strategy strategy = {choose_next, NULL};
    struct explored e = {0};
    uint64_t runs = 0;

    dfs.prefix = 0;
    do {
        dfs.depth = 0;
        dfs.sleep = 0;
        dfs.redundant = false;
        memset(dfs.after, 0, sizeof dfs.after);
        e.bad = !run_once(s, actors, &strategy);
        if (!dfs.redundant || e.bad)
            e.schedules++;
        if (e.bad || ++runs == cap)
            return e;
    } while (backtrack());
    e.complete = true;
    return e;
}

struct explored explore_all(const struct scenario *s, int actors, uint64_t cap)
{
    dfs.bound = -1;
    return depth_first(s, actors, cap);
}

struct explored explore_bounded(const struct scenario *s, int bound,
                                uint64_t cap)
{
    dfs.bound = bound;
    return depth_first(s, s->small, cap);
}

/* -- Samples: priorities that change at a few random steps, which finds a bug
 * of depth d with a known probability; or an even choice each time -- */

#define CHANGES 4
#define LENGTH 120 /* changes fall within so many steps */

static struct {
    uint64_t state;
    bool even;
    int priority[ACTORS_MAX];
    int change_at[CHANGES];
    int steps, lowest;
} dice;

static uint64_t roll(uint64_t n)
{
    dice.state = dice.state * UINT64_C(6364136223846793005) +
                 UINT64_C(1442695040888963407);
    return (dice.state >> 33) % n;
}

static void dice_start(uint64_t seed)
{
    memset(&dice, 0, sizeof dice);
    dice.state = seed * UINT64_C(0x9e3779b97f4a7c15) + 1;
    (void)roll(2);
    dice.even = roll(4) == 0;
    for (int i = 0; i < ACTORS_MAX; i++)
        dice.priority[i] = (int)roll(1000);
    for (int i = 0; i < CHANGES; i++)
        dice.change_at[i] = (int)roll(LENGTH);
}

static int first_of(uint32_t enabled)
{
    int best = lowest(enabled);

    for (int i = best + 1; i < ACTORS_MAX; i++)
        if ((enabled & bit(i)) != 0 && dice.priority[i] > dice.priority[best])
            best = i;
    return best;
}

static int choose_by_dice(void *arg, uint32_t enabled, int current)
{
    int next;

    (void)arg;
    (void)current;
    if (dice.even) {
        next = lowest(enabled);
        for (uint64_t n = roll((uint64_t)__builtin_popcount(enabled)); n > 0;
             n--) {
            enabled &= enabled - 1;
            next = lowest(enabled);
        }
        return next;
    }
    next = first_of(enabled);
    for (int i = 0; i < CHANGES; i++)
        if (dice.change_at[i] == dice.steps)
            dice.priority[next] = --dice.lowest;
    dice.steps++;
    return first_of(enabled);
}

struct explored explore_seeds(const struct scenario *s, uint64_t base,
                              uint64_t count)
{
    struct strategy strategy = {choose_by_dice, NULL};
    struct explored e = {0};

    for (e.seed = base; e.schedules < count; e.seed++) {
        dice_start(e.seed);
        e.bad = !run_once(s, s->large, &strategy);
        e.schedules++;
        if (e.bad)
            break;
    }
    return e;
}
