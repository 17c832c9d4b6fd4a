/* SPDX-License-Identifier: BSD-2-Clause */
/* help.c - what multi_thread_send --help prints. */
#include <stdio.h>

#include "perf/lib/options.h"

static const char text[] =
    "usage: multi_thread_send --bootstrap-server HOST:PORT --topic TOPIC\n"
    "           --num-records N (--record-size BYTES | --payload-file FILE)\n"
    "           [options]\n"
    "\n"
    "Send records to a Kafka topic from several threads and measure it.\n"
    "Options of kafka-producer-perf-test, with its meanings:\n"
    "  --bootstrap-server LIST    brokers to start from; wins over properties\n"
    "  --topic TOPIC              where to send\n"
    "  --num-records N            records in all, from all threads together\n"
    "  --record-size BYTES        size of a value; they look like JSON\n"
    "  --payload-file FILE        take the values from here instead\n"
    "  --payload-delimiter TEXT   what separates them (\\n)\n"
    "  --throughput N             records per second at most; -1: no limit "
    "(-1)\n"
    "  --warmup-records N         the first N of the records are not measured\n"
    "  --command-property K=V...  properties of the producer\n"
    "  --command-config FILE      a file of properties\n"
    "  --print-metrics            print the producer's metrics at the end\n"
    "  --reporting-interval MS    between two lines of progress (5000)\n"
    "  --record-key-range N       keys are numbers from 0 to N - 1\n"
    "  --key-distribution HOW     none, range (in turn) or random (none)\n"
    "  --random-seed N            for keys and generated values (0)\n"
    "Our own:\n"
    "  --threads N                sending threads (1)\n"
    "  --reports HOW              how a delivery is learned of: future, "
    "callback,\n"
    "                             queue or none (callback)\n"
    "  --outstanding N            each thread sends N, waits for all N, "
    "repeats\n"
    "  --key-size BYTES           pad keys with zeroes to this size\n"
    "  --paced                    send evenly at --throughput and count "
    "latency\n"
    "                             from the time a record was due\n"
    "  --send-many N              N records with each call\n"
    "  --json FILE|-              results and settings as one JSON object\n"
    "  --help                     this\n"
    "\n"
    "Ctrl-C stops sending, delivers what was taken and still reports; a "
    "second\n"
    "one ends at once.  Exit status: 0 if every record was acknowledged, 1 if\n"
    "not, 2 if the command line or the set-up is wrong.\n";

void options_help(void)
{
    (void)fputs(text, stdout);
}
