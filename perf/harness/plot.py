# SPDX-License-Identifier: BSD-2-Clause
"""A picture of the rows: CPU time per record, a group of bars a workload."""

import shutil
import subprocess

ORDER = ("libkp", "librdkafka", "java", "franz-go", "aiokafka")
COLOURS = {"libkp": "#c0392b", "librdkafka": "#2c3e50", "java": "#7f8c8d",
           "franz-go": "#2980b9", "aiokafka": "#bdc3c7"}


def _block(rows, name, clients, workloads):
    """Data of one broker: a line a workload, a column a client."""
    value = {(r["workload"], r["client"]): r["cpu_ns_per_record"] for r in rows}
    lines = [f"${name} << END"]
    for w in workloads:
        cells = (f"{value[w, c]:.1f}" if (w, c) in value else "NaN"
                 for c in clients)
        lines.append(f"{w} " + " ".join(cells))
    return "\n".join([*lines, "END"])


def _panel(name, clients, title):
    bars = ", ".join(
        f"${name} using {i + 2}:xtic(1) title '{c}' "
        f"linecolor rgb '{COLOURS[c]}'" for i, c in enumerate(clients))
    return f"set title '{title}'\nplot {bars}"


def script(rows, path):
    brokers = [b for b in ("embedded", "kafka")
               if any(r["broker"] == b for r in rows)]
    workloads = list(dict.fromkeys(r["workload"] for r in rows))
    width = max(900, 75 * len(workloads) + 200)
    parts = [f"set terminal svg size {width},{480 * len(brokers)} "
             "font 'sans,12' background '#ffffff'",
             f"set output '{path}'",
             "set style data histogram",
             "set style histogram clustered gap 1",
             "set style fill solid border -1",
             "set logscale y", "set yrange [10:*]", "set grid ytics",
             "set xtics rotate by -30",
             "set ylabel 'CPU ns per acknowledged record'",
             "set key outside top center horizontal",
             "set datafile missing 'NaN'"]
    panels = []
    for b in brokers:
        mine = [r for r in rows if r["broker"] == b]
        clients = [c for c in ORDER if any(r["client"] == c for r in mine)]
        lines = list(dict.fromkeys(r["workload"] for r in mine))
        parts.append(_block(mine, b, clients, lines))
        title = "embedded broker" if b == "embedded" else "real Kafka"
        panels.append(_panel(b, clients, title))
    parts.append(f"set multiplot layout {len(brokers)},1")
    return "\n".join(parts + panels + ["unset multiplot", ""])


def write(rows, path):
    """False: gnuplot is not there, or cannot."""
    if shutil.which("gnuplot") is None or not rows:
        return False
    return subprocess.run(["gnuplot"], input=script(rows, path), text=True,
                          check=False).returncode == 0
