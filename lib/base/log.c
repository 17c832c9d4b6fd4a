/* SPDX-License-Identifier: BSD-2-Clause */
/* log.c - lines for the application's log function.  Any thread.
 *
 * The lock guards what is remembered of the last line and is never held while
 * the application's function runs.  Every line given to a logger is either
 * shown or counted in the `repeated` of one shown later. */
#include "lib/base/log.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/mem.h"
#include "lib/base/mutex.h"
#include "lib/base/str.h"
#include "lib/base/thread.h"

#define HOLD_NS (10 * KP_NS_PER_SEC)
#define TEXT_SIZE 512
#define COMPONENT_SIZE 32

struct line {
    kp_level level;
    int32_t repeated;
    char component[COMPONENT_SIZE];
    char text[TEXT_SIZE];
};

struct logger {
    /* fixed at birth */
    kp_level level;
    kp_log_fn fn;
    void *arg;
    char *client_id;
    const struct clock *clock;
    /* guarded by lock */
    struct mutex lock;
    struct line last; /* level -1: none; repeated: held back since shown */
    int64_t hold_until_ns;
};

struct logger *kp__logger_create(kp_level level, kp_log_fn fn, void *arg,
                                 const char *client_id,
                                 const struct clock *clock)
{
    struct logger *l = kp__zalloc(sizeof(*l));

    if (l == NULL)
        return NULL;
    l->client_id = kp__strdup(client_id != NULL ? client_id : "");
    if (l->client_id == NULL) {
        kp__free(l);
        return NULL;
    }
    l->level = level;
    l->fn = fn;
    l->arg = arg;
    l->clock = clock;
    l->last.level = -1;
    kp__mutex_init(&l->lock);
    return l;
}

static void show(const struct logger *l, const struct line *line)
{
    kp_log shown = {
        .level = line->level,
        .repeated = line->repeated,
        .client_id = l->client_id,
        .component = line->component,
        .text = line->text,
    };
    bool in_callback = kp__in_callback();
    int cancel_state, saved = errno;

    /* The application's function may be a cancellation point; our caller is
     * not.  It must not call us; if it does, it may run on the I/O thread, where
     * it is told so rather than left to wait for itself. */
    cancel_state = kp__cancel_off();
    kp__set_in_callback(true);
    l->fn(l->arg, &shown);
    if (kp__in_callback()) /* else it forked, and this is the child */
        kp__set_in_callback(in_callback);
    kp__cancel_on(cancel_state);
    errno = saved;
}

/* The lines held back, as one: the last of them, after the others.  False if
 * there is none. */
static bool take_held(struct logger *l, struct line *out)
{
    if (l->last.repeated == 0)
        return false;
    *out = l->last;
    out->repeated--;
    l->last.repeated = 0;
    return true;
}

void kp__logger_destroy(struct logger *l)
{
    struct line held;

    if (l == NULL)
        return;
    if (take_held(l, &held))
        show(l, &held);
    kp__mutex_fini(&l->lock);
    kp__free(l->client_id);
    kp__free(l);
}

static bool wanted(const struct logger *l, kp_level level)
{
    return l != NULL && l->fn != NULL && level <= l->level;
}

static bool same(const struct line *a, const struct line *b)
{
    return a->level == b->level && strcmp(a->component, b->component) == 0 &&
           strcmp(a->text, b->text) == 0;
}

/* Remember `line`.  Returns whether to show it now, with its `repeated` set;
 * and in *has_held whether `held` must be shown first. */
static bool admit(struct logger *l, struct line *line, struct line *held,
                  bool *has_held)
{
    int64_t now_ns = l->clock->mono_coarse_ns(l->clock->arg);
    bool repeats = same(line, &l->last);

    *has_held = false;
    if (repeats && now_ns < l->hold_until_ns) {
        l->last.repeated++;
        return false;
    }
    if (repeats)
        line->repeated = l->last.repeated;
    else
        *has_held = take_held(l, held);
    l->last = *line;
    l->last.repeated = 0;
    l->hold_until_ns = kp__ns_add(now_ns, HOLD_NS);
    return true;
}

static void deliver(struct logger *l, struct line *line)
{
    struct line held;
    bool has_held, now;

    kp__mutex_lock(&l->lock);
    now = admit(l, line, &held, &has_held);
    kp__mutex_unlock(&l->lock);
    if (has_held)
        show(l, &held);
    if (now)
        show(l, line);
}

/* One line: no half character at the end, and nothing that breaks it. */
static void tidy(char *text)
{
    text[kp__str_whole(text, strlen(text))] = '\0';
    for (; *text != '\0'; text++)
        if ((unsigned char)*text < 0x20 || *text == 0x7f)
            *text = ' ';
}

static void fill(struct line *line, kp_level level, const char *component,
                 const char *fmt, va_list args)
{
    line->level = level;
    line->repeated = 0;
    (void)kp__format(line->component, sizeof(line->component), "%s", component);
    (void)vsnprintf(line->text, sizeof(line->text), fmt, args);
}

void kp__log(struct logger *l, kp_level level, const char *component,
             const char *fmt, ...)
{
    struct line line;
    va_list args;

    if (!wanted(l, level))
        return;
    va_start(args, fmt);
    fill(&line, level, component, fmt, args);
    va_end(args);
    tidy(line.text);
    deliver(l, &line);
}

/* True for one caller an interval, who gets the number of those refused. */
static bool pass(struct log_limit *limit, int64_t now_ns, int64_t interval_ns,
                 uint32_t *held)
{
    /* Relaxed: the word and the count guard nothing but themselves. */
    int64_t next =
        atomic_load_explicit(&limit->next_ns, memory_order_relaxed);

    if (now_ns < next ||
        !atomic_compare_exchange_strong_explicit(
            &limit->next_ns, &next, kp__ns_add(now_ns, interval_ns),
            memory_order_relaxed, memory_order_relaxed)) {
        atomic_fetch_add_explicit(&limit->held, 1, memory_order_relaxed);
        return false;
    }
    *held = atomic_exchange_explicit(&limit->held, 0, memory_order_relaxed);
    return true;
}

bool kp__log_limited(struct logger *l, struct log_limit *limit,
                     int64_t interval_ns, kp_level level,
                     const char *component, const char *fmt, ...)
{
    struct line line;
    uint32_t held;
    va_list args;
    size_t n;

    if (!wanted(l, level))
        return true;
    if (!pass(limit, l->clock->mono_coarse_ns(l->clock->arg), interval_ns,
              &held))
        return false;
    va_start(args, fmt);
    fill(&line, level, component, fmt, args);
    va_end(args);
    tidy(line.text);
    n = strlen(line.text);
    if (held != 0)
        (void)kp__format(line.text + n, sizeof(line.text) - n,
                         " (%u like it held back)", (unsigned)held);
    deliver(l, &line);
    return true;
}
