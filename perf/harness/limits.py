# SPDX-License-Identifier: BSD-2-Clause
"""What is asked of libkp alone: rows of figures, each with its limit."""

from harness import tables

HEAD = ("row", "figure", "measured", "at most", "")


class Figure:
    """One number of a row.  measured None: it is not known."""

    def __init__(self, name, limit, unit="", digits=2):
        self.name = name
        self.limit = limit
        self.unit = unit
        self.digits = digits
        self.measured = None

    def met(self):
        return self.measured is not None and self.measured <= self.limit

    def verdict(self):
        if self.measured is None:
            return "not measured"
        return "met" if self.met() else "not met"

    def text(self, value):
        if value is None:
            return "-"
        unit = f" {self.unit}" if self.unit else ""
        return tables.number(value, self.digits) + unit

    def as_json(self):
        return {"figure": self.name, "measured": self.measured,
                "limit": self.limit, "unit": self.unit, "met": self.met()}


class Row:
    """measure(bench, row) fills in the figures, and may keep details."""

    def __init__(self, name, what, figures, measure):
        self.name = name
        self.what = what
        self.figures = figures
        self.measure = measure
        self.details = {}
        self.problem = None  # why it was not measured

    def set(self, *values):
        for figure, value in zip(self.figures, values, strict=True):
            figure.measured = value

    def met(self):
        return all(f.met() for f in self.figures)

    def lines(self):
        """One line a figure; the first one names the row."""
        for i, f in enumerate(self.figures):
            yield (self.name if i == 0 else "", f.name, f.text(f.measured),
                   f.text(f.limit), f.verdict())

    def as_json(self):
        return {"row": self.name, "what": self.what, "met": self.met(),
                "figures": [f.as_json() for f in self.figures],
                "problem": self.problem, "details": self.details}


def table(rows):
    return tables.render(HEAD, [line for row in rows for line in row.lines()])


def status(rows):
    """Of the program: 0 all met, 1 some not, 2 some not measured."""
    if any(f.measured is None for row in rows for f in row.figures):
        return 2
    return 0 if rows and all(row.met() for row in rows) else 1
