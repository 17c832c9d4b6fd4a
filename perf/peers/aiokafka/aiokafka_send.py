#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""aiokafka_send - what multi_thread_send does, through aiokafka: the same
options, payloads and figures, on the one thread that this client has.

With --outstanding N it has N tasks wait for their record at once, which is how
programs with many concurrent jobs use it.
"""

import argparse
import asyncio
import json
import resource
import sys
import time

import aiokafka

TOOL = "aiokafka_send"
MASK = (1 << 64) - 1


def parse_options():
    p = argparse.ArgumentParser(prog=TOOL, description=__doc__)
    p.add_argument("--bootstrap-server", required=True)
    p.add_argument("--topic", required=True)
    p.add_argument("--num-records", type=int, required=True)
    p.add_argument("--warmup-records", type=int, default=0)
    p.add_argument("--payload-file", required=True)
    p.add_argument("--key-distribution", default="none")
    p.add_argument("--record-key-range", type=int, default=0)
    p.add_argument("--key-size", type=int, default=0)
    p.add_argument("--random-seed", type=int, default=0)
    p.add_argument("--threads", type=int, default=1)
    p.add_argument("--reports", default="callback")
    p.add_argument("--outstanding", type=int, default=0)
    p.add_argument("--reporting-interval", type=int)
    p.add_argument("--command-property", nargs="+", default=[])
    p.add_argument("--json")
    o = p.parse_args()
    if o.threads != 1:
        p.error("--threads: this client has one")
    if o.warmup_records >= o.num_records:
        p.error("--warmup-records must be fewer than --num-records")
    return o


class Payload:
    """The values and keys, drawn as multi_thread_send draws them."""

    def __init__(self, o):
        self.state = o.random_seed & MASK
        with open(o.payload_file, "rb") as f:
            lines = f.read().splitlines()
        self.values = [lines[self.random() % len(lines)]
                       for _ in range(max(4096, len(lines)))]
        self.keys = self.make_keys(o) if o.record_key_range else [None]

    def random(self):
        self.state = (self.state + 0x9E3779B97F4A7C15) & MASK
        z = self.state
        z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 & MASK
        z = (z ^ z >> 27) * 0x94D049BB133111EB & MASK
        return z ^ z >> 31

    def make_keys(self, o):
        count = o.record_key_range
        if o.key_distribution == "random":
            count = min(max(count, 1 << 16), 1 << 20)
        keys = (self.random() % o.record_key_range
                if o.key_distribution == "random" else i
                for i in range(count))
        return [b"%0*d" % (o.key_size, k) for k in keys]


def convert(properties):
    """Java's properties as this client's arguments."""
    out = {}
    for word in properties:
        name, _, value = word.partition("=")
        if name == "acks":
            out["acks"] = "all" if value in ("all", "-1") else int(value)
        elif name == "enable.idempotence":
            out["enable_idempotence"] = value == "true"
        elif name == "linger.ms":
            out["linger_ms"] = int(value)
        elif name == "batch.size":
            out["max_batch_size"] = int(value)
        elif name == "compression.type":
            out["compression_type"] = None if value == "none" else value
        elif name == "request.timeout.ms":
            out["request_timeout_ms"] = int(value)
        elif name not in ("buffer.memory", "delivery.timeout.ms"):
            sys.exit(f"{TOOL}: {name}: this client has nothing like it")
    return out


class Run:
    def __init__(self, o):
        self.o = o
        self.payload = Payload(o)
        self.acked = self.failed = 0
        self.failure = None
        self.at = 0
        self.latencies = []

    def next(self):
        at, p = self.at, self.payload
        self.at += 1
        return p.values[at % len(p.values)], p.keys[at % len(p.keys)]

    def count(self, error, sent_ns):
        if error is None:
            self.acked += 1
            self.latencies.append(time.monotonic_ns() - sent_ns)
        else:
            self.failed += 1
            self.failure = self.failure or repr(error)

    async def send_one(self):
        value, key = self.next()
        sent_ns = time.monotonic_ns()
        try:
            await self.producer.send_and_wait(self.o.topic, value, key)
            self.count(None, sent_ns)
        except Exception as error:
            self.count(error, sent_ns)

    async def send_rounds(self, records):
        while records > 0:
            n = min(records, self.o.outstanding)
            await asyncio.gather(*[self.send_one() for _ in range(n)])
            records -= n

    async def send_all(self, records):
        def done(future, sent_ns):
            self.count(future.exception(), sent_ns)

        for _ in range(records):
            value, key = self.next()
            sent_ns = time.monotonic_ns()
            future = await self.producer.send(self.o.topic, value, key)
            future.add_done_callback(lambda f, t=sent_ns: done(f, t))
        await self.producer.flush()

    async def phase(self, records):
        self.latencies = []
        if self.o.outstanding:
            await self.send_rounds(records)
        else:
            await self.send_all(records)

    async def measure(self):
        o = self.o
        self.producer = aiokafka.AIOKafkaProducer(
            bootstrap_servers=o.bootstrap_server.split(","),
            client_id="perf-producer-client", **convert(o.command_property))
        await self.producer.start()
        try:
            await self.producer.partitions_for(o.topic)
            if o.warmup_records:
                await self.phase(o.warmup_records)
            warm = self.acked
            begin = usage()
            await self.phase(o.num_records - o.warmup_records)
            used = [b - a for a, b in zip(begin, usage())]
            return self.result(used, self.acked - warm)
        finally:
            await self.producer.stop()

    def result(self, used, measured):
        seconds, cpu_s, user_s, system_s, voluntary, involuntary = used
        missing = self.o.num_records - self.acked - self.failed
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        return {
            "tool": TOOL, "version": aiokafka.__version__,
            "acked": self.acked, "failed": self.failed, "refused": 0,
            "missing": missing, "measured": measured, "interrupted": False,
            "elapsed_s": seconds, "records_per_s": measured / seconds,
            "cpu_ns_per_record": cpu_s * 1e9 / measured if measured else None,
            "cpu_user_share": user_s / (user_s + system_s),
            "voluntary_switches": voluntary,
            "involuntary_switches": involuntary,
            "rss_mb": peak, "requests": None, "records_per_request": None,
            **self.percentiles(),
            "settings": {k: v for k, v in vars(self.o).items() if k != "json"},
        }

    def percentiles(self):
        sorted_us = sorted(ns / 1e3 for ns in self.latencies)
        out = {"latency_samples": len(sorted_us)}
        for name, share in (("p50_us", .5), ("p95_us", .95), ("p99_us", .99),
                            ("p999_us", .999), ("max_us", 1)):
            at = min(int(len(sorted_us) * share), len(sorted_us) - 1)
            out[name] = sorted_us[at] if sorted_us else None
        return out


def usage():
    u = resource.getrusage(resource.RUSAGE_SELF)
    return (time.monotonic(), time.process_time(), u.ru_utime, u.ru_stime,
            u.ru_nvcsw, u.ru_nivcsw)


def main():
    o = parse_options()
    run = Run(o)
    r = asyncio.run(run.measure())
    out = sys.stderr if o.json == "-" else sys.stdout
    print(f"aiokafka {r['version']}: {r['acked']} records acknowledged, "
          f"{r['records_per_s']:.0f} records/sec, CPU "
          f"{r['cpu_ns_per_record'] or 0:.1f} ns per record.", file=out)
    if r["failed"]:
        print(f"{TOOL}: {r['failed']} records failed: {run.failure}",
              file=sys.stderr)
    if r["missing"]:
        print(f"{TOOL}: void: {r['missing']} records have no report",
              file=sys.stderr)
    if o.json == "-":
        print(json.dumps(r, indent=2))
    elif o.json:
        with open(o.json, "w", encoding="utf-8") as f:
            json.dump(r, f, indent=2)
    # 0 only if every record was acknowledged
    sys.exit(r["acked"] != o.num_records)


if __name__ == "__main__":
    main()
