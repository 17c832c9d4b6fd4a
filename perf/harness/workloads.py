# SPDX-License-Identifier: BSD-2-Clause
"""Reads perf/workloads, and makes what they send."""

import fractions
import random

# So many that among the values that are drawn from them there are 4,096
# different ones: more than a compressor's window holds.
VALUES = 6600
KEY_BYTES = 16
WORDS = ("order created payment shipped customer warehouse invoice pending "
         "refund priority eu-west-1 us-east-2 status amount currency "
         "quantity").split()


class Workload:
    def __init__(self, line):
        (self.name, size, threads, batch, partitions, linger, keys,
         self.codec, how, limit) = line.split()
        self.bytes = int(size)
        self.threads = int(threads)
        self.batch = int(batch)
        self.partitions = int(partitions)
        self.linger = int(linger)
        self.keys = 0 if keys == "-" else int(keys)
        self.limit = fractions.Fraction(limit)
        how, _, number = how.partition(":")
        self.paced = int(number) if how == "paced" else 0
        self.futures = int(number) if how == "futures" else 0

    def options(self):
        """For any of the clients' programs, but for how much and where to."""
        out = ["--threads", str(self.threads)]
        if self.keys:
            out += ["--record-key-range", str(self.keys), "--key-distribution",
                    "random", "--key-size", str(KEY_BYTES)]
        if self.paced:
            out += ["--throughput", str(self.paced), "--paced"]
        if self.futures:
            out += ["--reports", "future", "--outstanding", str(self.futures)]
        else:
            out += ["--reports", "callback"]
        return out + ["--command-property", "acks=all",
                      "enable.idempotence=true", "buffer.memory=67108864",
                      f"linger.ms={self.linger}", f"batch.size={self.batch}",
                      f"compression.type={self.codec}"]

    def first_count(self):
        """A run short enough for any client, to learn its rate from."""
        if self.paced:
            return self.paced
        if self.futures:
            return 2 * self.futures
        if self.codec == "gzip":
            return 20_000
        return 300_000 if self.bytes < 1000 else 100_000

    def count(self, rate, seconds):
        """Records that take about so long."""
        n = max(int((self.paced or rate) * seconds), self.first_count())
        step = self.futures or 1
        return (n + step - 1) // step * step


def read(path):
    with open(path, encoding="ascii") as f:
        lines = [line for line in f if line.strip() and line[0] != "#"]
    return [Workload(line) for line in lines]


def _value(source, size):
    text = '{"id":%d,"user":"u%06d"' % (source.getrandbits(32),
                                        source.randrange(1_000_000))
    while len(text) < size:
        if source.randrange(2):
            text += ',"%s":%d' % (source.choice(WORDS),
                                  source.randrange(100_000))
        else:
            text += ',"%s":"%s"' % (source.choice(WORDS), source.choice(WORDS))
    return text[:size - 1] + "}"


def write_payload(path, size):
    """Values of one size, like those that multi_thread_send makes."""
    source = random.Random(size)
    with open(path, "w", encoding="ascii") as f:
        for _ in range(VALUES):
            f.write(_value(source, size) + "\n")
