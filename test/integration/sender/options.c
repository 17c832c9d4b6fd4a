/* SPDX-License-Identifier: BSD-2-Clause */
/* options.c - reads the command line of kp_sender.  One thread. */
#include "test/integration/sender/options.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>

#include "test/integration/sender/clock.h"

static const struct option names[] = {
    {"bootstrap", required_argument, NULL, 'b'},
    {"topic", required_argument, NULL, 't'},
    {"journal", required_argument, NULL, 'j'},
    {"run", required_argument, NULL, 'r'},
    {"threads", required_argument, NULL, 'n'},
    {"records", required_argument, NULL, 'c'}, /* a thread */
    {"size", required_argument, NULL, 's'},
    {"form", required_argument, NULL, 'f'},
    {"keys", required_argument, NULL, 'k'},
    {"partitions", required_argument, NULL, 'p'},
    {"partition", required_argument, NULL, 'P'},
    {"lane-partitions", required_argument, NULL, 'L'},
    {"large-at", required_argument, NULL, 'i'},
    {"large-size", required_argument, NULL, 'I'},
    {"reports", required_argument, NULL, 'R'},
    {"outstanding", required_argument, NULL, 'o'},
    {"rate", required_argument, NULL, 'a'},
    {"seconds", required_argument, NULL, 'S'},
    {"nowait", no_argument, NULL, 'N'},
    {"refused-pause-ms", required_argument, NULL, 'u'},
    {"stack-kib", required_argument, NULL, 'K'},
    {"close-ms", required_argument, NULL, 'l'},
    {"status", no_argument, NULL, 'q'},
    {"log", no_argument, NULL, 'g'},
    {NULL, 0, NULL, 0},
};

static void set(struct options *o, const char *name, const char *value)
{
    kp_error error = {0};
    if (kp_config_set(o->config, name, value, &error) == KP_OK)
        return;
    fprintf(stderr, "%s=%s: %s\n", name, value, error.text);
    exit(2);
}

static void set_pair(struct options *o, char *pair)
{
    char *equals = strchr(pair, '=');
    if (equals == NULL || o->property_count == 32) {
        fprintf(stderr, "-X %s: name=value is needed\n", pair);
        exit(2);
    }
    o->properties[o->property_count++] = strdup(pair);
    *equals = '\0';
    set(o, pair, equals + 1);
}

static enum report_kind report_kind_of(const char *name)
{
    if (strcmp(name, "future") == 0)
        return REPORT_FUTURE;
    if (strcmp(name, "callback") == 0)
        return REPORT_CALLBACK;
    if (strcmp(name, "queue") == 0)
        return REPORT_QUEUE;
    fprintf(stderr, "--reports %s: future, callback or queue\n", name);
    exit(2);
}

static enum form known_form(const char *name)
{
    enum form form = form_of(name);
    if (form != FORM_COUNT)
        return form;
    fprintf(stderr, "--form %s: unknown\n", name);
    exit(2);
}

static uint32_t number(const char *text)
{
    return (uint32_t)strtoul(text, NULL, 10);
}

/* What a load consists of. */
static bool load_option(struct load *l, int option, char *value)
{
    switch (option) {
    case 't':
        l->topic = value;
        return true;
    case 'r':
        l->run = value;
        return true;
    case 'c':
        l->records = number(value);
        return true;
    case 's':
        l->value_size = number(value);
        return true;
    case 'k':
        l->key_count = number(value);
        return true;
    case 'p':
        l->partitions = number(value);
        return true;
    case 'P':
        l->fixed = (int32_t)number(value);
        return true;
    case 'L':
        l->by_lane = true;
        l->partitions = number(value);
        return true;
    case 'i':
        l->large_seq = number(value);
        return true;
    case 'I':
        l->large_size = number(value);
        return true;
    case 'R':
        l->kind = report_kind_of(value);
        return true;
    case 'o':
        l->outstanding = number(value);
        return true;
    case 'N':
        l->flags = KP_NOWAIT;
        return true;
    case 'u':
        l->refused_ns = number(value) * NS_PER_MS;
        return true;
    case 'K':
        l->stack_size = (size_t)number(value) << 10;
        return true;
    case 'q':
        l->tell_status = true;
        return true;
    default:
        return false;
    }
}

static void own_option(struct options *o, int option, char *value)
{
    switch (option) {
    case 'b':
        set(o, "bootstrap.servers", value);
        break;
    case 'X':
        set_pair(o, value);
        break;
    case 'j':
        o->journal_path = value;
        break;
    case 'n':
        o->threads = number(value);
        break;
    case 'f':
        o->form = known_form(value);
        break;
    case 'a':
        o->rate = strtod(value, NULL);
        break;
    case 'S':
        o->seconds = strtod(value, NULL);
        break;
    case 'l':
        o->close_ms = (int64_t)number(value);
        break;
    case 'g':
        o->log = true;
        break;
    default:
        exit(2);
    }
}

static void defaults(struct options *o)
{
    o->load.run = "run";
    o->load.kind = REPORT_CALLBACK;
    o->load.outstanding = 10000;
    o->load.records = 1000;
    o->load.value_size = 100;
    o->load.fixed = -1;
    o->threads = 1;
    o->form = FORM_TEXT;
    o->close_ms = 150000;
    if (kp_config_create(&o->config) != KP_OK)
        exit(2);
}

void options_read(struct options *o, int argc, char **argv)
{
    int option;
    defaults(o);
    while ((option = getopt_long(argc, argv, "X:", names, NULL)) != -1) {
        if (!load_option(&o->load, option, optarg))
            own_option(o, option, optarg);
    }
    if (o->load.topic == NULL || o->journal_path == NULL) {
        fprintf(stderr, "--bootstrap, --topic and --journal are needed\n");
        exit(2);
    }
    if (o->rate > 0)
        o->load.gap_ns =
            (int64_t)((double)NS_PER_S * (double)o->threads / o->rate);
}

const char *options_property(const struct options *o, const char *name,
                             const char *fallback)
{
    size_t size = strlen(name);
    for (uint32_t i = 0; i < o->property_count; i++) {
        const char *pair = o->properties[i];
        if (strncmp(pair, name, size) == 0 && pair[size] == '=')
            fallback = pair + size + 1;
    }
    return fallback;
}
