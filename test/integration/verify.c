/* SPDX-License-Identifier: BSD-2-Clause */
/* verify - compares the journals of kp_sender with what independent readers
 * found in the log.
 *
 *   --journal FILE   what was sent and told (one or more)
 *   --kcat FILE      kcat -f '%p %o %T %K %S\n%k%s'
 *   --records FILE   KpLog
 *   --batches FILE   DumpLogSegments
 *   --all-acked --all-found --copies-ok --any-order --strangers-ok
 *   --other-stamps   the broker wrote its own timestamps
 *   --retried        batches may have been sent again: see check.c
 *   --any-start      of sequences: the topic was made anew
 *   --margin-ms N    lateness that a busy machine may add (3000)
 *
 * Without a reader the log is taken to be empty.  Each kind of reader is a view
 * of its own.  A file given twice in one kind is another log, such as that of a
 * topic that was deleted.  Exit 0: no problem.
 */
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "test/integration/sender/clock.h"
#include "test/integration/verify/batches.h"
#include "test/integration/verify/check.h"
#include "test/integration/verify/problem.h"
#include "test/integration/verify/stats.h"

#define FILES_MAX 16

struct files {
    const char *path[FILES_MAX];
    size_t count;
};

struct job {
    struct files journals, kcat, records, batches;
    struct expectations want;
    bool any_start;
};

static const struct option names[] = {
    {"journal", required_argument, NULL, 'j'},
    {"kcat", required_argument, NULL, 'k'},
    {"records", required_argument, NULL, 'r'},
    {"batches", required_argument, NULL, 'b'},
    {"all-acked", no_argument, NULL, 'A'},
    {"all-found", no_argument, NULL, 'F'},
    {"copies-ok", no_argument, NULL, 'C'},
    {"any-order", no_argument, NULL, 'O'},
    {"strangers-ok", no_argument, NULL, 'S'},
    {"other-stamps", no_argument, NULL, 'T'},
    {"retried", no_argument, NULL, 'R'},
    {"any-start", no_argument, NULL, 's'},
    {"margin-ms", required_argument, NULL, 'm'},
    {NULL, 0, NULL, 0},
};

static void add_file(struct files *files, const char *path)
{
    if (files->count == FILES_MAX)
        exit(2);
    files->path[files->count++] = path;
}

static void option(struct job *job, int letter)
{
    switch (letter) {
    case 'j':
        add_file(&job->journals, optarg);
        break;
    case 'k':
        add_file(&job->kcat, optarg);
        break;
    case 'r':
        add_file(&job->records, optarg);
        break;
    case 'b':
        add_file(&job->batches, optarg);
        break;
    case 'A':
        job->want.all_acked = true;
        break;
    case 'F':
        job->want.all_found = true;
        break;
    case 'C':
        job->want.copies_ok = true;
        break;
    case 'O':
        job->want.any_order = true;
        break;
    case 'S':
        job->want.strangers_ok = true;
        break;
    case 'T':
        job->want.stamps = false;
        break;
    case 'R':
        job->want.retried = true;
        break;
    case 's':
        job->any_start = true;
        break;
    case 'm':
        job->want.margin_ns = strtoll(optarg, NULL, 10) * NS_PER_MS;
        break;
    default:
        exit(2);
    }
}

static void forget(struct known_list *known)
{
    for (size_t i = 0; i < known->count; i++) {
        known->at[i].copies = 0;
        known->at[i].log = 0;
        known->at[i].at_offset = false;
        known->at[i].first_found = NULL;
    }
}

static void check_view(struct known_list *known, const struct files *files,
                       void (*read)(struct found_list *, const char *),
                       const struct expectations *want, const char *view)
{
    struct found_list found[FILES_MAX] = {{0}};
    size_t all = 0;
    if (files->count == 0)
        return;
    forget(known);
    for (size_t i = 0; i < files->count; i++) {
        read(&found[i], files->path[i]);
        all += found[i].count;
    }
    known_index(known, found[0].whole_hash, want->stamps);
    for (size_t i = 0; i < files->count; i++)
        check_found(known, &found[i], (uint32_t)i + 1, want);
    check_known(known, want);
    check_lanes(known);
    printf("%s %zu records\n", view, all);
    free(known->index);
    for (size_t i = 0; i < files->count; i++)
        free(found[i].at);
}

/* No log: as if it were empty. */
static void check_alone(const struct known_list *known,
                        const struct expectations *want)
{
    check_known(known, want);
    printf("no log\n");
}

static void check_batches(const struct files *files, bool any_start)
{
    for (size_t i = 0; i < files->count; i++)
        printf("batches %" PRIu64 " records\n",
               batches_check(files->path[i], any_start));
}

int main(int argc, char **argv)
{
    struct job job = {.want = {.stamps = true, .margin_ns = 3 * NS_PER_S}};
    struct known_list known = {0};
    int letter;
    while ((letter = getopt_long(argc, argv, "", names, NULL)) != -1)
        option(&job, letter);
    if (optind != argc || job.journals.count == 0) {
        fprintf(stderr, "verify --journal FILE ...\n");
        return 2;
    }
    for (size_t i = 0; i < job.journals.count; i++)
        known_add(&known, job.journals.path[i]);
    printf("journal %zu records\n", known.count);
    check_view(&known, &job.kcat, found_read_kcat, &job.want, "kcat");
    check_view(&known, &job.records, found_read_records, &job.want, "log");
    if (job.kcat.count + job.records.count == 0 && job.batches.count == 0)
        check_alone(&known, &job.want);
    check_batches(&job.batches, job.any_start);
    stats_print(&known);
    return problems_print() == 0 ? 0 : 1;
}
