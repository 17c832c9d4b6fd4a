# SPDX-License-Identifier: BSD-2-Clause
"""The rounds: every client does every workload, in turns."""

import os
import time

from harness import clients, figures, verdicts, workloads
from harness.building import say

PACED_ROUNDS = 7  # percentiles of a rate vary more than costs do


class Comparison:
    def __init__(self, o, folder, end):
        self.o = o
        self.folder = folder
        self.end = end  # the time when no run may begin any more, or None
        self.longest = 0
        self.clients = [c for c in clients.all_of(o.build, o.peers)
                        if c.name in o.clients]
        self.groups = {}  # broker's name: a list of cells a workload
        self.voids = []

    def payload(self, size):
        path = os.path.join(self.folder, f"payload-{size}")
        if not os.path.exists(path):
            workloads.write_payload(path, size)
        return path

    def one_run(self, broker, client, cell, limit_s):
        """Its figures; Void: it has none."""
        counts = client.counts(cell.workload, cell.rate, self.o.seconds)
        payload = self.payload(cell.workload.bytes)
        try:
            address, topic = broker.begin(cell.workload)
            result = clients.run(client, cell.workload, counts, address, topic,
                                 payload, self.folder, limit_s)
        except clients.Void:
            broker.forget()
            raise
        records, size = broker.end()
        acked = result["acked"]
        if records < acked or (not result["failed"] and records != acked):
            raise clients.Void(f"the broker has {records} records of the "
                               f"{acked} that were acknowledged")
        result["bytes_per_record"] = size / records if size else None
        return result

    def attempt(self, number, broker, client, cell):
        began = time.monotonic()
        where = f"{broker.name} {cell.workload.name} {client.name}"
        limit_s = 900 if client.name == "aiokafka" else (
            120 + 20 * self.o.seconds)
        try:
            result = self.one_run(broker, client, cell, limit_s)
        except clients.Void as why:
            cell.voids += 1
            self.voids.append(f"{where}, round {number}: {why}")
            say(f"  {where}: void: {why}")
            return
        cell.rate = result["records_per_s"]
        took = time.monotonic() - began
        if number > 0:
            self.longest = max(self.longest, took)
            cell.add(number, result)
        say(f"  {where}: {result['cpu_ns_per_record']:.0f} ns CPU, "
            f"{result['records_per_s']:,.0f} records/s, {took:.1f} s"
            + (f", {result['failed']} failed" if result["failed"] else "")
            + ("" if number else " (not counted)"))

    def enough_time(self):
        return self.end is None or time.time() + self.longest < self.end

    def round(self, number, broker, cells):
        """Round 0 is for learning how fast a client is."""
        for client, cell in cells:
            once = client.name == "aiokafka"
            if once and number != 1:
                continue
            if number > 1 and not self.enough_time():
                return False
            self.attempt(number, broker, client, cell)
        return True

    def rounds(self, workload):
        return self.o.rounds or (PACED_ROUNDS if workload.paced else 3)

    def cells(self, broker):
        return [[(c, figures.Cell(c.name, w, broker.name))
                 for c in self.clients if c.does(w)]
                for w in self.o.workloads]

    def measure(self, broker):
        every = self.cells(broker)
        self.groups[broker.name] = [[cell for _, cell in cells]
                                    for cells in every]
        last = max(self.rounds(w) for w in self.o.workloads)
        broker.start()
        try:
            for number in range(last + 1):
                say(f"{broker.name}: round {number} of {last}")
                for workload, cells in zip(self.o.workloads, every):
                    if number > self.rounds(workload):
                        continue
                    if not self.round(number, broker, cells):
                        say("  no time for the rest")
                        return
        finally:
            broker.stop()

    def _row(self, cell, cells, groups):
        row = cell.row()
        if cell.client == "libkp" and cell.broker == "embedded":
            row["limit"] = float(cell.workload.limit)
            row["to_best_peer"] = verdicts.ratio_to_best(cells)
            row["not_reached"] = verdicts.missed(cells, groups)
        return row

    def rows(self):
        return [self._row(cell, cells, groups)
                for groups in self.groups.values()
                for cells in groups for cell in cells if cell.runs]
