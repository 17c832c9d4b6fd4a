/* SPDX-License-Identifier: BSD-2-Clause */
/* main.c - kp-broker: the model as a program, to try a producer against. */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "include/kp/kp.h"
#include "lib/base/str.h"
#include "test/broker/broker.h"

static const char usage[] =
    "Usage: kp-broker [options]\n"
    "\n"
    "A Kafka cluster in one process, for trying a producer: it checks and\n"
    "keeps what is produced, in memory.  The first line it prints is\n"
    "\"bootstrap HOST:PORT,...\".  It runs until SIGTERM or SIGINT, and then\n"
    "prints what each topic got.\n"
    "\n"
    "  --nodes N             brokers, 1 to 128 (1)\n"
    "  --port P              of the first broker; the others follow (any)\n"
    "  --host NAME           that clients are told to connect to (127.0.0.1)\n"
    "  --topic NAME:PARTITIONS[:REPLICATION]\n"
    "                        a topic to begin with; may be given again\n"
    "  --auto-create true|false\n"
    "                        make topics that clients ask for (true)\n"
    "  --partitions N        of a topic made that way (1)\n"
    "  --replication N       of a topic made that way (nodes, at most 3)\n"
    "  --set KEY=VALUE       a setting of the cluster: message.max.bytes,\n"
    "                        min.insync.replicas, replication.delay.ms, ...\n"
    "  --topic-set NAME:KEY=VALUE\n"
    "                        a setting of a topic made with --topic:\n"
    "                        max.message.bytes, message.timestamp.type, ...\n"
    "  --discard             keep no records, and look only at the headers of\n"
    "                        their batches: for measuring a producer\n"
    "  --script FILE         faults, one rule a line, # begins a comment:\n"
    "                          which   api=produce|metadata|api-versions|\n"
    "                                  init-producer-id|connect|any, node=N,\n"
    "                                  topic=NAME, partition=N\n"
    "                          when    skip=N (0), count=N (1; -1: always)\n"
    "                          answer  error=N, append, offset=N,\n"
    "                                  log_start=N, text=BYTES, blame=N,\n"
    "                                  hint=NODE, hint_epoch=N, omit,\n"
    "                                  repeat, stranger, no_brokers,\n"
    "                                  throttle_ms=N, ignore\n"
    "                          time    process_ms=N, answer_ms=N\n"
    "                          bytes   answer=none|stall|close|reset|cut|\n"
    "                                  cut-stall|cut-reset|short|garbage|\n"
    "                                  flip|twice|wrong-id|lie|huge|\n"
    "                                  negative|tiny|unasked|other-api|\n"
    "                                  dribble|half-close|close-after|\n"
    "                                  behind, at=N, dribble_ms=N\n"
    "                          connect take=N: the end when N bytes were read\n"
    "                        test/broker/README.md explains them\n"
    "  --receive-buffer N    SO_RCVBUF of accepted connections, in bytes\n"
    "  --dump                print every record at the end\n"
    "  --help\n";

enum { MAX_TOPICS = 256, MAX_SETTINGS = 64 };

struct arguments {
    struct broker_options options;
    const char *topics[MAX_TOPICS];
    int topic_count;
    const char *settings[MAX_SETTINGS];
    int setting_count;
    const char *topic_settings[MAX_SETTINGS];
    int topic_setting_count;
    const char *script;
    bool dump;
};

/* Says what is wrong with what, and what would be right. */
static _Noreturn void wrong(const char *fmt, ...)
    __attribute__((format(printf, 1, 2)));
static _Noreturn void wrong(const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    fputs("kp-broker: ", stderr);
    (void)vfprintf(stderr, fmt, args);
    va_end(args);
    fputs("\nTry kp-broker --help\n", stderr);
    exit(2);
}

static int32_t number(const char *option, const char *value, int32_t low,
                      int32_t high)
{
    int64_t v;

    if (!kp__str_to_i64(value, &v) || v < low || v > high)
        wrong("%s %s: give a whole number from %d to %d", option, value,
              (int)low, (int)high);
    return (int32_t)v;
}

static void add(const char *option, const char **list, int *count, int max,
                const char *value)
{
    if (*count == max)
        wrong("%s %s: %d of them is the most there may be; leave some out",
              option, value, max);
    list[(*count)++] = value;
}

static bool truth(const char *value)
{
    if (strcmp(value, "true") != 0 && strcmp(value, "false") != 0)
        wrong("--auto-create %s: give true or false", value);
    return value[0] == 't';
}

static const struct option options[] = {
    {"nodes", required_argument, NULL, 'n'},
    {"port", required_argument, NULL, 'p'},
    {"host", required_argument, NULL, 'H'},
    {"topic", required_argument, NULL, 't'},
    {"auto-create", required_argument, NULL, 'a'},
    {"partitions", required_argument, NULL, 'P'},
    {"replication", required_argument, NULL, 'R'},
    {"set", required_argument, NULL, 's'},
    {"topic-set", required_argument, NULL, 'T'},
    {"discard", no_argument, NULL, 'd'},
    {"script", required_argument, NULL, 'f'},
    {"receive-buffer", required_argument, NULL, 'b'},
    {"dump", no_argument, NULL, 'D'},
    {"help", no_argument, NULL, 'h'},
    {NULL, 0, NULL, 0},
};

static void take_option(struct arguments *a, int option, const char *value)
{
    struct kb_config *g = &a->options.config;

    switch (option) {
    case 'n':
        g->nodes = number("--nodes", value, 1, 128);
        break;
    case 'p':
        a->options.port = number("--port", value, 0, 65535);
        break;
    case 'H':
        g->host = value;
        break;
    case 't':
        add("--topic", a->topics, &a->topic_count, MAX_TOPICS, value);
        break;
    case 'a':
        g->auto_create = truth(value);
        break;
    case 'P':
        g->partitions = number("--partitions", value, 1, 100000);
        break;
    case 'R':
        g->replication = number("--replication", value, 1, 8);
        break;
    case 's':
        add("--set", a->settings, &a->setting_count, MAX_SETTINGS, value);
        break;
    case 'T':
        add("--topic-set", a->topic_settings, &a->topic_setting_count,
            MAX_SETTINGS, value);
        break;
    case 'd':
        g->discard = true;
        break;
    case 'f':
        a->script = value;
        break;
    case 'b':
        a->options.receive_buffer =
            number("--receive-buffer", value, 1, 1 << 30);
        break;
    case 'D':
        a->dump = true;
        break;
    case 'h':
        fputs(usage, stdout);
        exit(0);
    default:
        exit(2);
    }
}

static void take_arguments(struct arguments *a, int argc, char **argv)
{
    int option;

    memset(a, 0, sizeof(*a));
    kp_broker_defaults(&a->options);
    while ((option = getopt_long(argc, argv, "", options, NULL)) != -1)
        take_option(a, option, optarg);
    if (optind < argc)
        wrong("%s: not an option; options begin with --", argv[optind]);
    if (a->dump && a->options.config.discard)
        wrong("--dump and --discard exclude each other: what is not kept "
              "cannot be printed");
    if (a->options.port > 0 &&
        a->options.port + a->options.config.nodes - 1 > 65535)
        wrong("--port %d: the last of --nodes %d would be at %d, and 65535 is "
              "the last port there is; begin lower",
              a->options.port, a->options.config.nodes,
              a->options.port + a->options.config.nodes - 1);
}

static void create_topic(struct kb_cluster *c, const char *spec)
{
    char name[300];
    const char *colon = strchr(spec, ':');
    int partitions = 0, replication = 0, used = 0;
    int16_t error;

    if (colon == NULL || (size_t)(colon - spec) >= sizeof(name))
        wrong("--topic %s: write NAME:PARTITIONS[:REPLICATION], for example "
              "orders:6",
              spec);
    memcpy(name, spec, (size_t)(colon - spec));
    name[colon - spec] = 0;
    if (sscanf(colon, ":%d%n:%d%n", &partitions, &used, &replication, &used) <
            1 ||
        colon[used] != 0)
        wrong("--topic %s: write NAME:PARTITIONS[:REPLICATION], for example "
              "orders:6",
              spec);
    error = kb_topic_create(c, name, partitions, replication, kb_now_ns(c));
    if (error != 0)
        wrong("--topic %s: %s: %s", spec, kp_err_name(error),
              kp_err_text(error));
}

static void apply_setting(struct kb_cluster *c, const char *setting)
{
    char key[200];
    const char *equals = strchr(setting, '=');

    if (equals == NULL || (size_t)(equals - setting) >= sizeof(key))
        wrong("--set %s: write KEY=VALUE, for example "
              "min.insync.replicas=2",
              setting);
    memcpy(key, setting, (size_t)(equals - setting));
    key[equals - setting] = 0;
    if (!kb_set(c, key, equals + 1))
        wrong("--set %s: no such setting, or it takes no such value; "
              "test/broker/README.md lists them",
              setting);
}

static void apply_topic_setting(struct kb_cluster *c, const char *setting)
{
    char copy[600];
    char *key, *value;

    if (strlen(setting) >= sizeof(copy))
        wrong("--topic-set %.40s...: longer than %zu bytes", setting,
              sizeof(copy) - 1);
    memcpy(copy, setting, strlen(setting) + 1);
    key = strchr(copy, ':');
    value = key == NULL ? NULL : strchr(key, '=');
    if (value == NULL)
        wrong("--topic-set %s: write NAME:KEY=VALUE, for example "
              "orders:max.message.bytes=1000",
              setting);
    *key++ = 0;
    *value++ = 0;
    if (!kb_topic_set(c, copy, key, value))
        wrong("--topic-set %s:%s=%s: no topic of that name was made with "
              "--topic, or there is no such setting, or it takes no such value; "
              "test/broker/README.md lists them",
              copy, key, value);
}

static void read_script(struct kb_cluster *c, const char *path)
{
    FILE *f = fopen(path, "r");
    char line[1024];
    int number_of_line = 0;

    if (f == NULL)
        wrong("--script %s: %s; give a file of rules", path, strerror(errno));
    while (fgets(line, sizeof(line), f) != NULL) {
        const char *at = line + strspn(line, " \t\r\n");
        struct kb_rule rule;
        const char *problem;

        number_of_line++;
        if (*at == 0 || *at == '#')
            continue;
        problem = kb_rule_parse(line, &rule);
        if (problem != NULL)
            wrong("--script %s line %d: %s", path, number_of_line, problem);
        (void)kb_rule_add(c, &rule);
    }
    (void)fclose(f);
}

static void prepare(struct kb_cluster *c, void *arg)
{
    const struct arguments *a = arg;
    int i;

    for (i = 0; i < a->setting_count; i++)
        apply_setting(c, a->settings[i]);
    for (i = 0; i < a->topic_count; i++)
        create_topic(c, a->topics[i]);
    for (i = 0; i < a->topic_setting_count; i++)
        apply_topic_setting(c, a->topic_settings[i]);
    if (a->script != NULL)
        read_script(c, a->script);
}

static void finish(struct kb_cluster *c, void *arg)
{
    const struct arguments *a = arg;

    if (a->dump)
        kb_dump(c, stdout);
    kb_print_totals(c, stdout);
}

int main(int argc, char **argv)
{
    struct arguments a;
    struct broker_server *s;
    sigset_t ends;
    int sig;

    take_arguments(&a, argc, argv);
    (void)sigemptyset(&ends);
    (void)sigaddset(&ends, SIGTERM);
    (void)sigaddset(&ends, SIGINT);
    (void)pthread_sigmask(SIG_BLOCK, &ends, NULL);
    s = kp_broker_start(&a.options);
    if (s == NULL)
        wrong("cannot start: %s", kp_broker_start_error());
    kp_broker_with(s, prepare, &a);
    printf("bootstrap %s\n", kp_broker_bootstrap(s));
    (void)fflush(stdout);
    (void)sigwait(&ends, &sig);
    kp_broker_with(s, finish, &a);
    kp_broker_stop(s);
    return ferror(stdout) || fflush(stdout) != 0 ? 1 : 0;
}
