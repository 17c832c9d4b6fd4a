# SPDX-License-Identifier: BSD-2-Clause
"""Tables for a person, in Markdown that also reads well as it is."""

from statistics import median

from harness import figures, verdicts

HEAD = ("workload", "client", "CPU ns/record", "range", "to best peer",
        "records/s", "RSS MB", "p50 us", "p99 us", "p99.9 us", "bytes/record",
        "requests", "records/request", "switches/1000", "failed")
SUMMARY = ("workload", "libkp", "best peer", "", "ratio", "range", "size",
           "at most", "")


def number(value, digits=0):
    return "-" if value is None else f"{value:,.{digits}f}"


def render(head, rows):
    head, rows = list(head), [list(r) for r in rows]
    widths = [max(len(r[i]) for r in [head, *rows]) for i in range(len(head))]

    def line(words):
        cells = (w.ljust(n) if i < 2 else w.rjust(n)
                 for i, (w, n) in enumerate(zip(words, widths)))
        return "| " + " | ".join(cells) + " |"

    rule = "|" + "|".join("-" * (n + 1) + ("-" if i < 2 else ":")
                          for i, n in enumerate(widths)) + "|"
    return "\n".join([line(head), rule, *map(line, rows)])


def _row(cell, best):
    low, high = cell.span("cpu_ns_per_record")
    to_best = "-"
    if best is not None:
        found = figures.ratios(cell, best)
        to_best = number(median(found), 2) if found else "-"
    return (cell.workload.name, cell.client,
            number(cell.median("cpu_ns_per_record")),
            f"{number(low)}-{number(high)}", to_best,
            number(cell.median("records_per_s")),
            number(cell.median("rss_mb")), number(cell.median("p50_us")),
            number(cell.median("p99_us")), number(cell.median("p999_us")),
            number(cell.median("bytes_per_record"), 1),
            number(cell.median("requests")),
            number(cell.median("records_per_request")),
            number(cell.median("switches_per_1000"), 2),
            number(cell.total("failed")))


def main(groups):
    """groups: the cells of one workload each, of one broker."""
    rows = []
    for cells in groups:
        best = figures.best_peer(cells)
        rows += [_row(c, best) for c in cells if c.runs]
    return render(HEAD, rows)


def _summary(cells, groups, limits):
    best, libkp = figures.best_peer(cells), verdicts.ours(cells)
    ratio = verdicts.ratio_to_best(cells)
    if ratio is None:
        return []
    found = figures.ratios(libkp, best)
    limit, size = libkp.workload.limit, verdicts.size_ratio(cells)
    row = [libkp.workload.name, number(libkp.median("cpu_ns_per_record")),
           number(best.median("cpu_ns_per_record")), best.client,
           number(ratio, 2),
           f"{number(min(found), 2)}-{number(max(found), 2)}",
           number(size, 2)]
    if limits:
        row += [f"{number(float(limit), 2)} ({limit})",
                verdicts.text(cells, groups)]
    return [row]


def summary(groups, limits):
    """libkp beside the best peer, and what is asked for where it is asked."""
    rows = [row for cells in groups for row in _summary(cells, groups, limits)]
    head = SUMMARY if limits else SUMMARY[:-2]
    return render(head, rows) if rows else ""
