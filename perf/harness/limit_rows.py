# SPDX-License-Identifier: BSD-2-Clause
"""The rows of perf/limits: what each asks, and how it is measured.

Records are 100 bytes that look like JSON and have no key; acks=all, idempotent;
three nodes of the embedded broker in discard mode, 8 partitions.  What a row
does otherwise stands in it.
"""

import json
import os
import subprocess
from statistics import median

from harness import brokers
from harness.clients import Void
from harness.limits import Figure, Row

MB = 1 << 20


class Bench:
    """Runs programs of perf/ against an embedded broker of their own."""

    def __init__(self, build, folder, rounds, seconds):
        self.build = build
        self.folder = folder
        self.rounds = rounds
        self.seconds = seconds  # of watching, where nothing happens

    def program(self, name):
        return os.path.join(self.build, "perf", name)

    def send(self, records, *options, nodes=3, partitions=8, properties=()):
        """multi_thread_send; its figures.  A tenth more is the warm-up."""
        broker = brokers.Embedded(self.build, nodes)
        warm_up = records // 10
        address, topic = broker.begin_with(partitions)
        try:
            figures = self._run("multi_thread_send", address, topic, records,
                                warm_up, *options, "--command-property",
                                "acks=all", *properties)
            got = broker.end()[0]
            # acknowledged without exception, and by the broker's own count
            if figures["acked"] != records + warm_up or got != records + warm_up:
                raise Void(f"{figures['acked']} acknowledged, {got} stored "
                           f"of {records + warm_up}")
            return figures
        except (OSError, ValueError, subprocess.SubprocessError) as error:
            raise Void(str(error)) from None
        finally:
            broker.kill()

    def _run(self, name, address, topic, records, warm_up, *options):
        result = os.path.join(self.folder, "result")
        subprocess.run(
            [self.program(name), "--bootstrap-server", address, "--topic",
             topic, "--num-records", str(records + warm_up),
             "--warmup-records", str(warm_up), "--reporting-interval",
             "3600000", "--json", result, *options],
            stdout=subprocess.DEVNULL, stdin=subprocess.DEVNULL, timeout=170,
            check=True)
        with open(result, encoding="utf-8") as f:
            return json.load(f)

    def tool_ns(self, records, *options):
        """The same program with a producer that does nothing."""
        try:
            return self._run("bench_tool", "none:9092", "none", records,
                             records // 10, *options)["cpu_ns_per_record"]
        except (OSError, ValueError, subprocess.SubprocessError) as error:
            raise Void(f"bench_tool: {error}") from None

    def cpu_ns(self, *arguments, **named):
        return self.send(*arguments, **named)["cpu_ns_per_record"]

    def ratio(self, first, second):
        """Of two costs, measured in turns: the median of the rounds' ratios,
        and both medians."""
        pairs = [(first(), second()) for _ in range(self.rounds)]
        return (median(a / b for a, b in pairs),
                median(a for a, _ in pairs), median(b for _, b in pairs))

    def state(self, name, *arguments, partitions=8, known=None):
        """A bench_* program; its figures.  known(broker) is called when the
        program knows its topic and waits."""
        broker = brokers.Embedded(self.build)
        address, topic = broker.begin_with(partitions)
        try:
            with subprocess.Popen(
                    [self.program(name), address, topic, *arguments],
                    stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                    text=True) as process:
                if known is not None:
                    if process.stdout.readline() != "known\n":
                        raise Void(f"{name} did not get to know its topic")
                    known(broker)
                try:
                    said = process.communicate(
                        "\n" if known is not None else None, timeout=170)[0]
                finally:
                    process.kill()
            if process.returncode != 0:
                raise Void(f"{name}: status {process.returncode}")
            return json.loads(said)
        except (OSError, ValueError, subprocess.SubprocessError) as error:
            raise Void(f"{name}: {error}") from None
        finally:
            broker.kill()


def _flat(batch, linger=5):
    return (f"batch.size={batch}", f"linger.ms={linger}",
            f"buffer.memory={64 * MB}")


def _threads(bench, row):
    def cost(size, records, threads):
        return lambda: bench.cpu_ns(records, "--record-size", str(size),
                                    "--threads", str(threads),
                                    properties=_flat(MB))

    small, small8, small1 = bench.ratio(cost(100, 12_000_000, 8),
                                        cost(100, 12_000_000, 1))
    large, large8, large1 = bench.ratio(cost(1024, 3_000_000, 8),
                                        cost(1024, 3_000_000, 1))
    row.set(small, large)
    row.details = {"cpu_ns_100B_8_threads": small8,
                   "cpu_ns_100B_1_thread": small1,
                   "cpu_ns_1KB_8_threads": large8,
                   "cpu_ns_1KB_1_thread": large1}


def _hot(bench, row):
    costs = [bench.cpu_ns(8_000_000, "--record-size", "100", "--threads", "8",
                          partitions=1, properties=_flat(MB))
             for _ in range(bench.rounds)]
    row.set(median(costs))
    row.details = {"cpu_ns_per_record": costs}


def _futures(bench, row):
    def cost(*options):
        return lambda: bench.cpu_ns(6_000_000, "--record-size", "200",
                                    *options, partitions=1,
                                    properties=_flat(16384, linger=0))

    ratio, futures, none = bench.ratio(
        cost("--reports", "future", "--outstanding", "30000"),
        cost("--reports", "none"))
    row.set(ratio)
    row.details = {"cpu_ns_futures": futures, "cpu_ns_none": none}


def _send_and_wait(bench, row):
    runs = [bench.state("bench_send_and_wait", "linger.ms=0")
            for _ in range(bench.rounds)]
    row.set(median(r["cpu_us_per_record"] for r in runs),
            sum(r["failed"] for r in runs),
            max(r["core_percent_after"] for r in runs))
    row.details = {"runs": runs}


def _blocked(bench, row):
    def blocked(batch):
        return bench.state("bench_blocked", f"buffer.memory={4 * MB}",
                           "linger.ms=5", f"batch.size={batch}")

    runs = [blocked(MB) for _ in range(bench.rounds)]
    small = [blocked(16384) for _ in range(bench.rounds)]
    row.set(median(r["cpu_us_per_grant"] for r in runs),
            median(r["longest_to_median"] for r in runs),
            sum(r["refused"] + r["failed"] for r in runs + small))
    row.details = {"runs": runs, "runs_16KB_batches": small}


def _idle(bench, row):
    run = bench.state("bench_idle", "--seconds", str(bench.seconds),
                      partitions=1000)
    row.set(run["wakeups_per_s"], run["cpu_ms"] * 60 / run["seconds"])
    row.details = run


def _outage(bench, row):
    seconds = ("--seconds", str(bench.seconds // 2))
    gone = bench.state("bench_outage", *seconds, partitions=12,
                       known=lambda broker: broker.kill())
    silent = bench.state("bench_outage", *seconds, partitions=12,
                         known=lambda broker: broker.silence())
    for run in (gone, silent):
        if run["still_queued"] != run["records"]:
            raise Void("bench_outage: records ended although no broker ran")
    row.set(gone["core_percent"], silent["core_percent"])
    row.details = {"gone": gone, "silent": silent}


def _memory(bench, row):
    run = bench.state("bench_memory", f"buffer.memory={256 * MB}",
                      f"batch.size={MB}", "linger.ms=5",
                      known=lambda broker: broker.silence())
    if run["buffered"] != run["records"]:
        raise Void("bench_memory: the broker answered")
    row.set(run["bytes_per_record"])
    row.details = run


def _size(bench, row):
    def cost(nodes, partitions):
        return lambda: bench.cpu_ns(12_000_000, "--record-size", "100",
                                    nodes=nodes, partitions=partitions,
                                    properties=_flat(MB))

    by_partitions, many, few = bench.ratio(cost(3, 10_000), cost(3, 12))
    by_brokers, wide, narrow = bench.ratio(cost(100, 1000), cost(3, 1000))
    row.set(by_partitions, by_brokers)

    def slow(partitions):
        """At a low rate, where weighing partitions would show."""
        return bench.cpu_ns(5000, "--record-size", "100", "--throughput",
                            "1000", "--paced", partitions=partitions,
                            properties=("linger.ms=0",))

    row.details = {"cpu_ns_10000_partitions_1000_per_s": slow(10_000),
                   "cpu_ns_12_partitions_1000_per_s": slow(12),
                   "cpu_ns_10000_partitions": many, "cpu_ns_12_partitions": few,
                   "cpu_ns_100_brokers": wide, "cpu_ns_3_brokers": narrow}


def _tool(bench, row):
    size = ("--record-size", "100")
    ratio, tool, whole = bench.ratio(
        lambda: bench.tool_ns(30_000_000, *size),
        lambda: bench.cpu_ns(12_000_000, *size, properties=_flat(MB)))
    row.set(ratio)
    row.details = {"cpu_ns_tool": tool, "cpu_ns_whole": whole}


def all_rows():
    return [
        Row("threads", "8 threads against 1, 1 MB batches, CPU per record",
            [Figure("100 B, ratio", 1.2), Figure("1 KB, ratio", 1.2)],
            _threads),
        Row("hot-partition", "8 threads into one partition, 1 MB batches",
            [Figure("CPU a record", 100, "ns", 0)], _hot),
        Row("futures", "30,000 outstanding futures of 200 B against the same "
            "records with --reports none, 16 KB batches, linger 0",
            [Figure("CPU per record, ratio", 1.5)], _futures),
        Row("send-and-wait", "1,000 threads that each send and wait",
            [Figure("CPU a record", 15, "us"),
             Figure("records that failed", 0, "", 0),
             Figure("of a core, 1 s after the end", 1, "%")], _send_and_wait),
        Row("blocked", "2,000 threads blocked on a full buffer of 4 MB, 1 MB "
            "batches",
            [Figure("CPU a grant", 15, "us"),
             Figure("longest wait to the median", 3),
             Figure("sends that failed", 0, "", 0)], _blocked),
        # a thousandth of what ps shows is CPU that nobody sees
        Row("idle", "idle, 1,000 partitions used before",
            [Figure("wake-ups a second", 1),
             Figure("CPU in 60 s", 10, "ms")], _idle),
        Row("outage", "topics known, then all brokers stopped, 100,000 records "
            "queued", [Figure("of a core, brokers gone", 1, "%"),
                       Figure("of a core, brokers silent", 1, "%")], _outage),
        Row("memory", "RSS of a buffered 100 B record with a callback: "
            "buffer.memory 256 MB full, 1 MB batches, silent broker",
            [Figure("bytes a record", 135, "B", 1)], _memory),
        Row("size", "10,000 partitions against 12, 100 brokers against 3, CPU "
            "per record, 1 MB batches",
            [Figure("partitions, ratio", 1.3), Figure("brokers, ratio", 1.3)],
            _size),
        Row("tool", "multi_thread_send with a producer that does nothing, "
            "against the whole, 1 MB batches, 1 thread",
            [Figure("CPU per record, ratio", 0.2)], _tool),
    ]
