# SPDX-License-Identifier: BSD-2-Clause
"""Which of what is asked of a workload is reached.

Asked is the share in perf/workloads, and besides it: of codecs, output hardly
larger than the best peer's; of futures, a cost that hardly depends on how many
are outstanding; of paced ones, less than every peer in each figure.  Of all of
them, that no record fails.
"""

from statistics import median

from harness import figures

SIZE_AT_MOST = 1.03  # of the best peer's bytes a record
FLAT_WITHIN = 1.15   # the dearest of the futures' workloads to the cheapest
PACED = {"p50_us": "p50", "p99_us": "p99", "cpu_ns_per_record": "CPU"}


def ours(cells):
    return next((c for c in cells if c.client == "libkp" and c.runs), None)


def ratio_to_best(cells):
    """The median of the rounds' ratios, or None."""
    libkp, best = ours(cells), figures.best_peer(cells)
    if libkp is None or best is None:
        return None
    found = figures.ratios(libkp, best)
    return median(found) if found else None


def size_ratio(cells):
    """Of what came in at the broker, for one record; None: not known."""
    libkp, best = ours(cells), figures.best_peer(cells)
    if libkp is None or best is None:
        return None
    mine, theirs = (c.median("bytes_per_record") for c in (libkp, best))
    return mine / theirs if mine and theirs else None


def flatness(groups):
    """Of libkp's workloads with futures that were run: the dearest to the
    cheapest; None: there are not two."""
    costs = [cell.median("cpu_ns_per_record")
             for cell in map(ours, groups)
             if cell is not None and cell.workload.futures]
    return max(costs) / min(costs) if len(costs) > 1 else None


def _paced(libkp, cells):
    peers = [c for c in cells if c is not libkp and c.runs]
    return [short for name, short in PACED.items()
            if any(libkp.median(name) >= c.median(name) for c in peers)]


def missed(cells, groups):
    """What is not reached, in words; an empty list if all is; None if there is
    nothing to compare."""
    ratio, libkp = ratio_to_best(cells), ours(cells)
    if ratio is None:
        return None
    out = []
    if libkp.workload.paced:
        out += _paced(libkp, cells)
    elif ratio > float(libkp.workload.limit):
        out.append("CPU")
    size = size_ratio(cells)
    if libkp.workload.codec != "none":
        if size is None:
            out.append("size not known")
        elif size > SIZE_AT_MOST:
            out.append(f"size {size:.2f}")
    flat = flatness(groups)
    if libkp.workload.futures and flat is not None and flat > FLAT_WITHIN:
        out.append(f"not flat, {flat:.2f}")
    if libkp.total("failed"):
        out.append(f"{libkp.total('failed')} failed")
    return out


def text(cells, groups):
    found = missed(cells, groups)
    if found is None:
        return "-"
    return "not reached: " + ", ".join(found) if found else "reached"
