"""Measure clustering a table with real Hudi, Delta, Iceberg, plain Spark and this tool, in one run.

python -m tests.bench.rewrite_side_by_side                    all shapes, three turns
python -m tests.bench.rewrite_side_by_side --shapes wide      200 000 rows of 400 columns alone
python -m tests.bench.rewrite_side_by_side --shapes trips --rows 1000000 --target 1
python -m tests.bench.rewrite_side_by_side --shapes trips --only ours spark --turns 1

Every turn is a fresh process on two cores with a Spark session that has run something; its start
does not count. Theirs are z-orders of three columns, ours is the kd-tree by plan and apply, on the
table that Hudi's bulk insert made. Plain Spark is the floor: it sorts the rows of that table's base
files, Hudi's columns included, into as many files as their bytes need. All write Snappy, and no
more files than planned. Memory is that of the process tree at its peak, every page once.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from tests.bench.curve_data import Query
from tests.bench.figures import (
    BEST_PEER,
    BYTES,
    CPU,
    FILES,
    MEMORY,
    SHARE,
    WALL,
    Baseline,
    Figure,
    Goal,
    Measure,
    cost_measures,
)
from tests.bench.jobs import Job, Run, take_turns
from tests.bench.peers import Peer
from tests.bench.pruner import read_file_ranges
from tests.bench.ratio_table import print_job
from tests.bench.row_shapes import SHAPES, RowShape
from tests.bench.versions import DELTA, HUDI, ICEBERG, OURS, SPARK

NAMES = {"hudi": HUDI, "delta": DELTA, "iceberg": ICEBERG, "spark": SPARK, "ours": OURS}
#: the JVM's memory; ours is a driver beside Python workers
HEAP, OUR_HEAP = "4g", "1g"
#: megabytes of our process tree
MOST_MEMORY = 4096


@dataclass(frozen=True, kw_only=True)
class ShapeBench:
    """Rows of a shape as tables of all systems; ``target``: bytes of a new file."""

    shape: RowShape
    rows: int
    target: int
    folder: Path

    def prepare(self) -> Path:
        """Write the rows and load Hudi's table, unless they are there; return the rows' folder."""
        rows = self.shape.make(self.folder / "rows", self.rows)
        if not (self.folder / "loaded" / "hudi").is_dir():
            with Peer("hudi", HEAP, self.folder) as hudi:
                hudi.fresh(rows, self.shape.key)
        return rows

    def cluster(self, system: str, rows: Path, mix: Sequence[Query]) -> list[Measure]:
        """Rewrite the table of a system; SystemExit if it loses rows."""
        shape, what = self.shape, self.shape.name
        with Peer(system, OUR_HEAP if system == "ours" else HEAP, self.folder) as peer:
            peer.fresh(rows, shape.key)
            cost = peer.cluster(shape.columns, self.target, exact=True)
            files = peer.files()
        found = read_file_ranges(files, shape.columns if mix else [])
        if found.rows.sum() != self.rows:
            raise SystemExit(f"{NAMES[system]}: {found.rows.sum()} rows of {self.rows}")
        measures = [
            *cost_measures(what, cost),
            Measure(what=what, unit=FILES, value=len(files)),
            Measure(what=what, unit=BYTES, value=int(found.bytes.sum()) / 1e6),
        ]
        if mix:
            share = float(found.shares_read(mix).mean())
            measures.append(Measure(what=what, unit=SHARE, value=share))
        return measures


def measure_shape(
    run: Run, shape: RowShape, *, rows: int, target: float, systems: Iterable[str] = tuple(NAMES)
) -> tuple[Figure, ...]:
    """Measure systems on one shape; ``target``: MiB of a new file."""
    folder = run.folder.resolve() / "peers" / f"{shape.name}-{rows}"
    bench = ShapeBench(shape=shape, rows=rows, target=int(target * 2**20), folder=folder)
    files = bench.prepare()
    mix = shape.mix(files) if shape.mix else []
    return take_turns(
        run, {NAMES[system]: partial(bench.cluster, system, files, mix) for system in systems}
    )


def measure(run: Run) -> list[Figure]:
    return [
        figure
        for shape in SHAPES.values()
        for figure in measure_shape(
            run,
            shape,
            rows=run.pick(shape.rows, shape.rows // 10),
            target=run.pick(shape.target, shape.target / 8),
        )
    ]


def goals(_: Run) -> list[Goal]:
    """Return the limits of time beside the floor and the peers, of memory, and of bytes."""
    floor, hudi = Baseline(systems=(SPARK,)), Baseline(systems=(HUDI,))
    return [
        *(Goal(what="trips", unit=unit, limit=1.0, baseline=floor) for unit in (WALL, CPU)),
        Goal(what="trips", unit=MEMORY, limit=MOST_MEMORY),
        Goal(what="trips", unit=WALL, limit=0.6, baseline=BEST_PEER),
        *(
            Goal(what=name, unit=unit, limit=1.0, baseline=BEST_PEER)
            for name in ("wide", "nested")
            for unit in (WALL, CPU)
        ),
        *(Goal(what=name, unit=BYTES, limit=1.0, baseline=hudi) for name in SHAPES),
    ]


JOB = Job(
    name="clustering",
    title="Clustering a table by three columns",
    does="""\
Each system rewrites a table whole: 16 000 000 trips of 16 columns, 200 000 rows of 400 columns, and
1 000 000 orders with structs, lists and maps. Theirs are z-orders, ours is the kd-tree, on a table
that real Hudi has made, with its meta columns and bloom filters. Spark alone sorts that table's
base files by the same columns, over a range partition, into as many files.""",
    measure=measure,
    goals=goals,
)


def main() -> int:
    parser = argparse.ArgumentParser(description=JOB.title)
    parser.add_argument("--shapes", nargs="+", choices=SHAPES, default=list(SHAPES))
    parser.add_argument("--only", nargs="+", choices=NAMES, default=list(NAMES))
    parser.add_argument("--rows", type=int, help="by default the shape's own number")
    parser.add_argument("--target", type=float, help="MiB of a file")
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--folder", type=Path, default=Run().folder)
    arguments = parser.parse_args()
    run = Run(turns=arguments.turns, folder=arguments.folder)
    figures: list[Figure] = []
    for shape in (SHAPES[name] for name in arguments.shapes):
        figures += measure_shape(
            run,
            shape,
            rows=arguments.rows or shape.rows,
            target=arguments.target or shape.target,
            systems=arguments.only,
        )
    return int(not print_job(JOB, run, tuple(figures)))


if __name__ == "__main__":
    sys.exit(main())
