# SPDX-License-Identifier: BSD-2-Clause
"""The parts of perf/compare."""
