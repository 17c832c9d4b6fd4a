/* SPDX-License-Identifier: BSD-2-Clause */
/* options_check.c - whether options go together, and saying so if not.  The
 * main thread. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "perf/lib/options.h"

bool options_wrong(const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    (void)fputs(TOOL ": ", stderr);
    (void)vfprintf(stderr, fmt, ap);
    (void)fputs("\n", stderr);
    va_end(ap);
    return false;
}

static bool check_keys(const struct options *o)
{
    if (o->keys != KEYS_NONE && o->key_range == 0)
        return options_wrong(
            "--key-distribution %s needs --record-key-range: say "
            "how many different keys, for example "
            "--record-key-range 10000",
            keys_name(o->keys));
    if (o->keys == KEYS_NONE && o->key_range != 0)
        return options_wrong(
            "--record-key-range %zu needs --key-distribution range "
            "or random: without it records have no keys",
            o->key_range);
    if (o->keys == KEYS_NONE && o->key_size != 0)
        return options_wrong(
            "--key-size %zu needs --key-distribution range or random "
            "and --record-key-range: without them records have no "
            "keys",
            o->key_size);
    return true;
}

static bool names_servers(const struct options *o)
{
    if (o->bootstrap != NULL || o->config_file != NULL)
        return true;
    for (size_t i = 0; i < o->property_count; i++)
        if (strcmp(o->properties[i].name, "bootstrap.servers") == 0)
            return true;
    return false;
}

bool options_check(const struct options *o)
{
    if (o->topic == NULL)
        return options_wrong("--topic is missing: say which topic to send to");
    if (o->num_records == 0)
        return options_wrong(
            "--num-records is missing: say how many records to send, "
            "for example --num-records 1000000");
    if (!names_servers(o))
        return options_wrong(
            "--bootstrap-server is missing: say where a broker is, "
            "for example --bootstrap-server localhost:9092");
    if (o->record_size == 0 && o->payload_file == NULL)
        return options_wrong(
            "give --record-size, for example --record-size 100, or "
            "--payload-file with the records' values");
    if (o->record_size != 0 && o->payload_file != NULL)
        return options_wrong(
            "--record-size %zu and --payload-file %s exclude each "
            "other: give one",
            o->record_size, o->payload_file);
    if (o->warmup_records >= o->num_records)
        return options_wrong(
            "--warmup-records %lld must be fewer than --num-records "
            "%lld: the warm-up is part of them",
            (long long)o->warmup_records, (long long)o->num_records);
    if (o->paced && o->throughput <= 0)
        return options_wrong(
            "--paced needs --throughput: say how many records per "
            "second, for example --throughput 20000");
    return check_keys(o);
}
