/* SPDX-License-Identifier: BSD-2-Clause */
/* proxy - TCP links that can be harmed.
 *
 *   proxy LISTEN:TARGET...
 *
 * The first pair of ports is link 1.  Commands on standard input, one a line,
 * "LINK COMMAND [NUMBER]":
 *   delay MS              pass every byte on so much later, both ways
 *   hold, hold-up, hold-down   pass nothing on, both ways or one
 *   cut N, cut-down N     reset a connection after N more bytes of the link
 *   rst, fin              end every connection
 *   refuse                reset new connections
 *   swallow               accept new connections and connect them to nothing
 *   go                    all faults are over; what was held goes on its way
 * It ends with its input. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "test/chaos/proxy/link.h"

#define LINKS_MAX 8
#define NS_PER_MS INT64_C(1000000)

static struct link links[LINKS_MAX];
static int link_count;

static int64_t clock_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 * NS_PER_MS + t.tv_nsec;
}

static bool harm(struct link *l, const char *word, long number)
{
    if (strcmp(word, "delay") == 0)
        l->weather[UP].delay_ns = l->weather[DOWN].delay_ns =
            number * NS_PER_MS;
    else if (strcmp(word, "hold") == 0)
        l->weather[UP].held = l->weather[DOWN].held = true;
    else if (strcmp(word, "hold-up") == 0)
        l->weather[UP].held = true;
    else if (strcmp(word, "hold-down") == 0)
        l->weather[DOWN].held = true;
    else if (strcmp(word, "cut") == 0)
        l->weather[UP].cut = number;
    else if (strcmp(word, "cut-down") == 0)
        l->weather[DOWN].cut = number;
    else if (strcmp(word, "rst") == 0 || strcmp(word, "fin") == 0)
        link_end_all(l, word[0] == 'r');
    else if (strcmp(word, "refuse") == 0)
        l->refuses = true;
    else if (strcmp(word, "swallow") == 0)
        l->swallows = true;
    else if (strcmp(word, "go") == 0)
        link_restore(l);
    else
        return false;
    return true;
}

static void obey(const char *line)
{
    char word[32] = "";
    int number;
    long argument = 0;

    if (sscanf(line, "%d %31s %ld", &number, word, &argument) < 2 ||
        number < 1 || number > link_count ||
        !harm(&links[number - 1], word, argument))
        fprintf(stderr, "proxy: not understood: %s\n", line);
}

/* False: the end of the input. */
static bool read_commands(void)
{
    static char line[128];
    static size_t used;
    char c;
    ssize_t n;

    while ((n = read(STDIN_FILENO, &c, 1)) == 1) {
        if (c != '\n') {
            if (used + 1 < sizeof line)
                line[used++] = c;
            continue;
        }
        line[used] = '\0';
        used = 0;
        obey(line);
        return true;
    }
    return n < 0;
}

static int wait_ms(int64_t due_ns, int64_t now_ns)
{
    if (due_ns == INT64_MAX)
        return -1;
    return due_ns <= now_ns ? 0 : (int)((due_ns - now_ns) / NS_PER_MS) + 1;
}

static void turn(void)
{
    static struct pollfd polls[1 + LINKS_MAX * LINK_POLLS];
    int begin[LINKS_MAX], n = 0;
    int64_t now_ns = clock_ns(), due_ns = INT64_MAX;

    polls[n++] = (struct pollfd){STDIN_FILENO, POLLIN, 0};
    for (int i = 0; i < link_count; i++) {
        begin[i] = n;
        n += link_polls(&links[i], polls + n, now_ns, &due_ns);
    }
    if (poll(polls, (nfds_t)n, wait_ms(due_ns, now_ns)) < 0)
        return;
    now_ns = clock_ns();
    for (int i = 0; i < link_count; i++)
        link_turn(&links[i], polls + begin[i], now_ns);
    if (polls[0].revents != 0 && !read_commands())
        exit(0);
}

int main(int argc, char **argv)
{
    (void)signal(SIGPIPE, SIG_IGN);
    for (int i = 1; i < argc && link_count < LINKS_MAX; i++) {
        int port, target;

        if (sscanf(argv[i], "%d:%d", &port, &target) != 2) {
            fprintf(stderr, "proxy LISTEN:TARGET...\n");
            return 2;
        }
        link_open(&links[link_count++], port, target);
    }
    for (;;)
        turn();
}
