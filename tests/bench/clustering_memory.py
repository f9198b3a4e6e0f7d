"""Measure the memory of clustering 16 000 000 trips, and of four times as many.

python -m tests.bench.clustering_memory --quick

The tables are those of ``rewrite_side_by_side``, loaded by real Hudi, which takes a while once.
"""

from __future__ import annotations

import sys
from dataclasses import replace

from tests.bench.figures import MEMORY, Baseline, Figure, Goal
from tests.bench.jobs import Job, Run, run_alone
from tests.bench.rewrite_side_by_side import measure_shape
from tests.bench.row_shapes import SHAPES

#: how many times as many rows, and what they may take of the memory of the fewer
TIMES, MOST = 4, 1.1
TRIPS = SHAPES["trips"]
MORE = f"trips, {TIMES} times as many"


def measure(run: Run) -> list[Figure]:
    rows = run.pick(TRIPS.rows, 200_000)
    few = measure_shape(run, TRIPS, rows=rows, target=TRIPS.target, systems=["ours"])
    many = measure_shape(run, TRIPS, rows=TIMES * rows, target=TRIPS.target, systems=["ours"])
    return [*few, *(replace(figure, what=MORE) for figure in many)]


def goals(_: Run) -> list[Goal]:
    return [Goal(what=MORE, unit=MEMORY, limit=MOST, baseline=Baseline(what=TRIPS.name))]


JOB = Job(
    name="clustering-memory",
    title="Memory of clustering four times as many rows",
    does="""\
The clustering of 16 000 000 trips, and of 64 000 000, both into files of 16 MiB. The memory is that
of the driver, its JVM and all Python workers at its peak, every shared page once.""",
    measure=measure,
    goals=goals,
)


if __name__ == "__main__":
    sys.exit(run_alone(JOB))
