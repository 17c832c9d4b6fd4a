# SPDX-License-Identifier: BSD-2-Clause
"""From runs to medians, ranges and ratios."""

from statistics import median

# Of a run's members, those of which the median is taken.
MEDIANS = ("cpu_ns_per_record", "records_per_s", "rss_mb", "p50_us", "p99_us",
           "p999_us", "requests", "records_per_request", "bytes_per_record",
           "switches_per_1000")


class Cell:
    """One client's runs of one workload against one broker."""

    def __init__(self, client, workload, broker):
        self.client = client
        self.workload = workload
        self.broker = broker
        self.runs = {}  # by round
        self.voids = 0
        self.rate = None

    def add(self, number, figures):
        measured = figures["measured"]
        figures["switches_per_1000"] = 1000 * (
            figures["voluntary_switches"] + figures["involuntary_switches"]
        ) / measured
        self.runs[number] = figures

    def median(self, name):
        found = [r[name] for r in self.runs.values() if r.get(name) is not None]
        return median(found) if found else None

    def span(self, name):
        found = [r[name] for r in self.runs.values()]
        return min(found), max(found)

    def total(self, name):
        return sum(r[name] for r in self.runs.values())

    def row(self):
        low, high = self.span("cpu_ns_per_record")
        return {
            "client": self.client,
            "version": next(iter(self.runs.values()))["version"],
            "workload": self.workload.name,
            "broker": self.broker,
            **{name: self.median(name) for name in MEDIANS},
            "cpu_ns_per_record_min": low,
            "cpu_ns_per_record_max": high,
            "acked": self.total("acked"),
            "failed": self.total("failed"),
            "runs": len(self.runs),
            "void": self.voids,
        }


def best_peer(cells):
    """Of those that lost no record."""
    peers = [c for c in cells
             if c.client != "libkp" and c.runs and not c.total("failed")]
    return min(peers, key=lambda c: c.median("cpu_ns_per_record"),
               default=None)


def ratios(cell, base):
    """Of the two clients' CPU per record, round by round."""
    return [cell.runs[n]["cpu_ns_per_record"] /
            base.runs[n]["cpu_ns_per_record"]
            for n in cell.runs if n in base.runs]
