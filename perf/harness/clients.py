# SPDX-License-Identifier: BSD-2-Clause
"""The clients, and one run of one of them."""

import json
import os
import subprocess


class Void(Exception):
    """A run that says nothing."""


class Client:
    def __init__(self, name, program, warm_up_s, slow_start=1):
        self.name = name
        self.program = program
        self.warm_up_s = warm_up_s
        self.slow_start = slow_start  # its first run is so much longer

    def does(self, workload):
        # Its records cost a thousand times as much as anybody's: it is here
        # to show what becomes of it, and of nobody else, with many futures.
        return self.name != "aiokafka" or bool(workload.futures)

    def counts(self, workload, rate, seconds):
        """Records in all, and how many of them are the warm-up."""
        if self.name == "aiokafka":
            return workload.futures, 0
        if rate is None:
            n = workload.first_count() * self.slow_start
            return n, n // 2
        warm = max(workload.count(rate, self.warm_up_s),
                   workload.first_count() * self.slow_start)
        return warm + workload.count(rate, seconds), warm


def all_of(build, peers):
    """In the order of the tables; those that are not there are not in it."""
    program = os.path.join(peers, "bin", "")
    found = [
        Client("libkp", os.path.join(build, "perf/multi_thread_send"), 0.3),
        Client("librdkafka", program + "librdkafka_send", 0.3),
        # a compiler that has to see the program run before it is good
        Client("java", program + "java_send", 4, slow_start=5),
        Client("franz-go", program + "franz_go_send", 0.5),
        Client("aiokafka", program + "aiokafka_send", 0),
    ]
    return [c for c in found if os.access(c.program, os.X_OK)]


def _said(log):
    with open(log, encoding="utf-8", errors="replace") as f:
        lines = [line.strip() for line in f if line.strip()]
    return lines[-1] if lines else "it said nothing"


def run(client, workload, counts, address, topic, payload, folder, limit_s):
    """One run; its figures, as the client wrote them."""
    total, warm_up = counts
    result, log = (os.path.join(folder, name) for name in ("result", "log"))
    if os.path.exists(result):
        os.unlink(result)
    command = [client.program, "--bootstrap-server", address, "--topic", topic,
               "--num-records", str(total), "--warmup-records", str(warm_up),
               "--payload-file", payload, "--reporting-interval", "3600000",
               "--json", result] + workload.options()
    with open(log, "w", encoding="utf-8") as out:
        try:
            subprocess.run(command, stdout=out, stderr=out,
                           stdin=subprocess.DEVNULL, timeout=limit_s,
                           check=False)
        except subprocess.TimeoutExpired:
            raise Void(f"no end after {limit_s:.0f} s") from None
    try:
        with open(result, encoding="utf-8") as f:
            figures = json.load(f)
    except (OSError, ValueError):
        raise Void(f"no figures: {_said(log)}") from None
    reports = figures["acked"] + figures["failed"] + figures["refused"]
    if reports != total:
        raise Void(f"{total - reports} of {total} records have no report")
    if figures["refused"]:
        raise Void(f"{figures['refused']} records were not taken: {_said(log)}")
    if not figures["measured"]:
        raise Void(f"nothing was acknowledged: {_said(log)}")
    return figures
