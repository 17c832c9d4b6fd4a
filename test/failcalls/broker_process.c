/* SPDX-License-Identifier: BSD-2-Clause */
/* broker_process.c - the embedded broker in a process of its own.
 *
 * A question is a struct through a pipe, and so is the answer; the child ends
 * when the parent's end of the pipe does. */
#include "test/failcalls/broker_process.h"

#include <check.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "test/broker/broker.h"

#define ANSWER_MAX 512

struct question {
    char what; /* 'c'reate, 't'ake */
    char topic[63];
    char rule[128];
};
struct answer {
    uint32_t count;
    uint32_t numbers[ANSWER_MAX];
};

static pid_t child;
static int to_child, from_child;

/* False: the other end is gone. */
static bool get(int fd, void *to, size_t size)
{
    char *at = to;

    while (size > 0) {
        ssize_t n = read(fd, at, size);

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
        at += n;
        size -= (size_t)n;
    }
    return true;
}

static bool put(int fd, const void *from, size_t size)
{
    const char *at = from;

    while (size > 0) {
        ssize_t n = write(fd, at, size);

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
        at += n;
        size -= (size_t)n;
    }
    return true;
}

/* -- the child -- */

static void take_log(const struct kb_cluster *c, const char *topic,
                     int32_t partition, struct answer *a)
{
    struct kb_log *log = kb_log_open(c, topic, partition);
    struct kb_record r;

    while (log != NULL && kb_log_next(log, &r) && a->count < ANSWER_MAX)
        if (r.value_size >= sizeof(uint32_t))
            memcpy(&a->numbers[a->count++], r.value, sizeof(uint32_t));
    if (log != NULL)
        kb_log_close(log);
}

static void begin(struct kb_cluster *c, const struct question *q)
{
    struct kb_rule rule;

    (void)kb_topic_create(c, q->topic, 2, 1, kb_now_ns(c));
    kb_rule_remove(c, -1);
    if (q->rule[0] == '\0')
        return;
    if (kb_rule_parse(q->rule, &rule) != NULL)
        _exit(1);
    (void)kb_rule_add(c, &rule);
}

static void answer(struct broker_server *s, const struct question *q,
                   struct answer *a)
{
    struct kb_cluster *c = kp_broker_lock(s);

    a->count = 0;
    if (q->what == 'c') {
        begin(c, q);
    } else {
        take_log(c, q->topic, 0, a);
        take_log(c, q->topic, 1, a);
        (void)kb_topic_delete(c, q->topic, kb_now_ns(c));
    }
    kp_broker_unlock(s);
}

_Noreturn static void serve(int in, int out)
{
    static struct answer a;
    struct broker_options o;
    struct broker_server *s;
    struct question q;
    int port;

    kp_broker_defaults(&o);
    o.config.auto_create = false;
    s = kp_broker_start(&o);
    if (s == NULL)
        _exit(1);
    port = kp_broker_port(s, 1);
    if (!put(out, &port, sizeof(port)))
        _exit(1);
    while (get(in, &q, sizeof(q))) {
        answer(s, &q, &a);
        if (!put(out, &a, sizeof(a)))
            break;
    }
    _exit(0);
}

/* -- the parent -- */

int broker_process_start(void)
{
    int down[2], up[2], port = 0;

    ck_assert_int_eq(pipe(down), 0);
    ck_assert_int_eq(pipe(up), 0);
    child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        (void)close(down[1]);
        (void)close(up[0]);
        serve(down[0], up[1]);
    }
    (void)close(down[0]);
    (void)close(up[1]);
    to_child = down[1];
    from_child = up[0];
    ck_assert_msg(get(from_child, &port, sizeof(port)),
                  "the broker did not start");
    return port;
}

void broker_process_stop(void)
{
    (void)close(to_child);
    (void)close(from_child);
    (void)kill(child, SIGKILL);
    while (waitpid(child, NULL, 0) < 0 && errno == EINTR)
        continue;
}

static void ask(char what, const char *topic, const char *rule,
                struct answer *a)
{
    struct question q = {.what = what};

    (void)snprintf(q.topic, sizeof(q.topic), "%s", topic);
    (void)snprintf(q.rule, sizeof(q.rule), "%s", rule);
    ck_assert(put(to_child, &q, sizeof(q)));
    ck_assert(get(from_child, a, sizeof(*a)));
}

void broker_process_topic(const char *name, const char *rule)
{
    struct answer a;

    ask('c', name, rule, &a);
}

size_t broker_process_take(const char *name, uint32_t *out, size_t max)
{
    struct answer a;

    ask('t', name, "", &a);
    ck_assert_uint_le(a.count, max);
    memcpy(out, a.numbers, a.count * sizeof(*out));
    return a.count;
}
