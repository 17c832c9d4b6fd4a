/* SPDX-License-Identifier: BSD-2-Clause */
/* shrink.c - a smaller run that fails by the same check: fewer steps, faults,
 * records, actors, features.
 *
 * What is left out leaves the rest of the seed's draws as they were, so that
 * most of what is not to blame can go.  Not the smallest there is: the smallest
 * that was met. */
#include <string.h>

#include "test/sim/sim.h"

#define TRIES_MAX 400

struct shrinking {
    uint64_t seed;
    char id[16];
    struct sim_limits best;
    int tries;
};

static void id_of(const char *text, char id[16])
{
    size_t n = strcspn(text, ":");

    if (n > 15)
        n = 15;
    memcpy(id, text, n);
    id[n] = '\0';
}

static bool still(struct shrinking *h, const struct sim_limits *l)
{
    struct sim_failure f;
    char id[16];

    if (h->tries++ >= TRIES_MAX || !sim_fails(h->seed, l, &f))
        return false;
    id_of(f.text, id);
    if (strcmp(id, h->id) != 0)
        return false;
    h->best = *l;
    return true;
}

/* The smallest value of one number, by halving. */
static void fewer(struct shrinking *h, int *of_best, int known)
{
    int low = 0, high = known;

    while (low < high) {
        int middle = low + (high - low) / 2;
        struct sim_limits l = h->best;

        *(int *)(void *)((char *)&l + ((char *)of_best - (char *)&h->best)) =
            middle;
        if (still(h, &l))
            high = middle;
        else
            low = middle + 1;
    }
}

static void without_features(struct shrinking *h, uint64_t on)
{
    for (int f = 0; f < F_COUNT; f++) {
        struct sim_limits l = h->best;

        if ((on >> f & 1) == 0 || (l.off >> f & 1) != 0)
            continue;
        l.off |= UINT64_C(1) << f;
        (void)still(h, &l);
    }
}

struct sim_limits sim_shrink(uint64_t seed, const struct sim_limits *from,
                             const struct sim_failure *known)
{
    struct shrinking h = {.seed = seed, .best = *from};
    const struct sim_size *size = &known->size;

    id_of(known->text, h.id);
    fewer(&h, &h.best.steps, size->steps);
    without_features(&h, size->on);
    fewer(&h, &h.best.faults, size->faults);
    fewer(&h, &h.best.records, size->records);
    fewer(&h, &h.best.actors, size->actors);
    without_features(&h, size->on);
    fewer(&h, &h.best.steps,
          size->steps < h.best.steps ? size->steps : h.best.steps);
    return h.best;
}
