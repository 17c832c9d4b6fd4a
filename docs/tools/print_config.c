/* SPDX-License-Identifier: BSD-2-Clause */
/* print_config.c - prints docs/CONFIGURATION.md.
 *
 *     make docs
 *
 * The properties, their defaults and what they do come from
 * kp_config_properties; what values they take, and the names that are no
 * properties, from the tables behind it.  A check fails when the committed page
 * is not what this prints. */
#include <stdio.h>
#include <string.h>

#include "include/kp/kp.h"
#include "lib/config/config_names.h"
#include "lib/config/property.h"

static void print_introduction(void)
{
    puts(
        "<!-- Printed by docs/tools/print_config.c: do not edit. -->\n"
        "# Configuration\n"
        "\n"
        "Properties have the names and the defaults of Apache Kafka's Java "
        "producer, version 4.4. They are set one by one with "
        "`kp_config_set`, or read from a file with `kp_config_load`; "
        "`kp_config_properties` lists them with their values.\n"
        "\n"
        "```c\n"
        "kp_config_on_log(config, KP_LOG_INFO, kp_log_stderr, NULL);\n"
        "kp_config_load(config, \"/etc/orders/producer.properties\", &error);\n"
        "kp_config_set(config, \"linger.ms\", \"20\", &error);\n"
        "```\n"
        "\n"
        "A value that is not allowed is `KP_EINVAL` at once, and the text of "
        "the error names the property, the value and what is allowed. A call "
        "that fails changes nothing. What is set last counts.\n"
        "\n"
        "Contents: [files](#files) · [properties](#properties) · "
        "[checked together](#checked-together) · "
        "[without effect](#accepted-without-effect) · "
        "[refused](#refused-in-this-version) · "
        "[Java classes](#java-classes) · "
        "[librdkafka's names](#librdkafkas-names)\n");
}

static void print_files(void)
{
    puts("## Files\n"
         "\n"
         "`kp_config_load` reads the `.properties` files that Kafka's own "
         "tools use.\n"
         "\n"
         "- A line is `name=value`; `:` or blanks separate as well as `=`. "
         "Blanks before a name and before a value are dropped, and values "
         "lose those at their end.\n"
         "- `#` and `!` begin a comment line. Only a whole line is a "
         "comment.\n"
         "- A backslash at the end of a line continues it; leading blanks of "
         "the next line are dropped.\n"
         "- `\\t`, `\\n`, `\\r`, `\\f` and `\\uXXXX` are escapes, with "
         "surrogate pairs for characters past U+FFFF. Any other character "
         "after a backslash stands for itself: `\\\\`, `\\=`, `\\:`, `\\#`.\n"
         "- Lines end in LF, CRLF or CR; the last one need not.\n"
         "- Bytes are UTF-8 and taken as they are. (Java reads ISO-8859-1, "
         "where the two differ; `\\u` escapes mean the same to both.) A byte "
         "order mark is skipped.\n"
         "- Of several lines with one name the last counts, and only that "
         "one must be right.\n"
         "- A NUL byte, an escape that is cut short, and a file of more than "
         "1 MiB are errors. The text of an error names the file and the "
         "line.\n"
         "- Values are taken as they are written: `${...}` means nothing.\n"
         "\n"
         "A file is shared by many tools, so a name that is not known (a "
         "consumer's, say) is no error in a file: it is passed over with a "
         "WARN line, which says so if a known name is near. "
         "`kp_config_set` refuses it. A file is taken as a whole or not at "
         "all.\n"
         "\n"
         "The config is silent until `kp_config_on_log` was called: call it "
         "first.\n");
}

/* -- Properties -- */

static const char *importance_name(enum property_importance importance)
{
    static const char *const names[] = {"high", "medium", "low"};

    return names[importance];
}

static void print_property(void *arg, const kp_property *property)
{
    const struct property *p = kp__properties;
    char allowed[160];

    (void)arg;
    while (strcmp(p->name, property->name) != 0)
        p++;
    kp__property_allowed(p, allowed, sizeof(allowed));
    printf("### `%s`\n\n%s\n\n", property->name, property->help);
    printf("Allowed: %s · default: ", allowed);
    if (property->default_value[0] != '\0')
        printf("`%s`", property->default_value);
    else
        printf("none");
    printf(" · importance: %s\n\n", importance_name(p->importance));
}

static void print_properties(void)
{
    puts("## Properties\n"
         "\n"
         "Blanks around a value are dropped. Whole numbers are decimal, "
         "without a unit. Times above about 31 years count as 31 years.\n");
    kp_config_properties(NULL, print_property, NULL);
}

/* -- Tables -- */

static void print_cross_checks(void)
{
    puts("## Checked together\n"
         "\n"
         "`kp_producer_create` looks at all values together, by Java's rules. "
         "What contradicts something that was set is `KP_EINVAL`; a default "
         "gives way to what was set, with a WARN line.\n"
         "\n"
         "| values | result |\n"
         "|---|---|\n"
         "| `bootstrap.servers` not set, or without an entry | `KP_EINVAL` |\n"
         "| `enable.idempotence=true` set, with `acks` not `all` or with "
         "`retries=0` | `KP_EINVAL` |\n"
         "| `enable.idempotence` not set, with `acks` not `all` or with "
         "`retries=0` | idempotence is off, WARN |\n"
         "| `max.in.flight.requests.per.connection` above 5 without "
         "`enable.idempotence=false` | `KP_EINVAL` |\n"
         "| `enable.idempotence=false` set, with retries and more than 1 in "
         "flight | WARN: the order may change |\n"
         "| `delivery.timeout.ms` set below `linger.ms` + "
         "`request.timeout.ms` | `KP_EINVAL` |\n"
         "| `delivery.timeout.ms` not set, and below that sum | it is raised "
         "to the sum, WARN |\n"
         "| `partitioner.rack.aware=true` without `client.rack` | `KP_EINVAL` "
         "|\n"
         "| `reconnect.backoff.ms` set, `reconnect.backoff.max.ms` not | the "
         "pause does not grow, WARN |\n"
         "| `reconnect.backoff.ms`, `retry.backoff.ms` or "
         "`socket.connection.setup.timeout.ms` above its maximum | always the "
         "maximum, WARN |\n"
         "| `batch.size` above `buffer.memory` | batches of at most "
         "`buffer.memory`, WARN |\n"
         "| `partitioner.class` beside `kp_config_set_partitioner` | the "
         "function decides, WARN |\n"
         "| `partitioner.availability.timeout.ms` above 0 with "
         "`partitioner.adaptive.partitioning.enable=false` | no effect, WARN "
         "|\n"
         "| `compression.type` names a codec that this build lacks | "
         "`KP_ENOTSUP` |\n");
}

static void print_without_effect(void)
{
    size_t i;

    puts("## Accepted without effect\n"
         "\n"
         "Their values are checked, and nothing else happens.\n"
         "\n"
         "| property | why |\n"
         "|---|---|");
    for (i = 0; i < PROPERTY_COUNT; i++)
        if (kp__properties[i].effect == EFFECT_NONE)
            printf("| `%s` | %s |\n", kp__properties[i].name,
                   kp__properties[i].help);
    puts("");
}

static void print_refused(void)
{
    size_t i;

    puts("## Refused in this version\n"
         "\n"
         "This version has neither TLS, SASL nor transactions. Whoever asks "
         "for them must not get a producer without, so these are "
         "`KP_ENOTSUP` from `kp_config_set` and `kp_config_load`. The config "
         "remembers it: `kp_producer_create` then says `KP_ENOTSUP` too, even "
         "if the first error was overlooked. To do without, make a new "
         "config.\n"
         "\n"
         "| property | what is lacking |\n"
         "|---|---|");
    for (i = 0; i < PROPERTY_COUNT; i++)
        if (kp__properties[i].effect == EFFECT_DEFAULT_ONLY)
            printf("| `%s`, other than `%s` | %s |\n", kp__properties[i].name,
                   kp__properties[i].default_value, kp__properties[i].help);
    for (i = 0; i < kp__config_name_count; i++) {
        const struct config_name *row = &kp__config_names[i];

        if (row->kind == NAME_LACKING || row->kind == NAME_LACKING_PREFIX)
            printf("| `%s%s` | %s |\n", row->name,
                   row->kind == NAME_LACKING_PREFIX ? "*" : "", row->note);
    }
    puts("");
}

static void print_java_classes(void)
{
    size_t i;

    puts("## Java classes\n"
         "\n"
         "These name classes for a Java producer to load. In a file they are "
         "passed over with a WARN line, so that a file may serve both; "
         "`kp_config_set` refuses them with `KP_EINVAL`.\n"
         "\n"
         "| property | here |\n"
         "|---|---|");
    for (i = 0; i < kp__config_name_count; i++)
        if (kp__config_names[i].kind == NAME_JAVA_CLASS)
            printf("| `%s` | %s |\n", kp__config_names[i].name,
                   kp__config_names[i].note);
    puts("\n"
         "`partitioner.class` decides where records go, so it is never passed "
         "over: `org.apache.kafka.clients.producer.RoundRobinPartitioner` is "
         "the one class that is known here, and any other is `KP_EINVAL`. "
         "Write it as a function for `kp_config_set_partitioner`.\n");
}

static void print_librdkafka(void)
{
    const struct config_name *row;

    puts("## librdkafka's names\n"
         "\n"
         "These are aliases. The values are those of the property: unlike "
         "librdkafka's, `delivery.timeout.ms=0` is no time at all, and "
         "`linger.ms` is a whole number.\n"
         "\n"
         "| alias | property |\n"
         "|---|---|");
    for (row = kp__config_names; row < kp__config_names + kp__config_name_count;
         row++)
        if (row->kind == NAME_ALIAS)
            printf("| `%s` | `%s` |\n", row->name,
                   kp__properties[row->property].name);
    puts("\n"
         "Its other names for a producer are refused with `KP_EINVAL`, from a "
         "file too, since they often count in other units:\n"
         "\n"
         "| librdkafka | instead |\n"
         "|---|---|");
    for (row = kp__config_names; row < kp__config_names + kp__config_name_count;
         row++)
        if (row->kind == NAME_LIBRDKAFKA)
            printf("| `%s` | %s%s%s%s |\n", row->name,
                   row->java != NULL ? row->java : "no counterpart",
                   row->note != NULL ? " (" : "",
                   row->note != NULL ? row->note : "",
                   row->note != NULL ? ")" : "");
}

int main(void)
{
    print_introduction();
    print_files();
    print_properties();
    print_cross_checks();
    print_without_effect();
    print_refused();
    print_java_classes();
    print_librdkafka();
    return ferror(stdout) != 0;
}
