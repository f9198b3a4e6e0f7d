"""Measure the life of a table with real Hudi 1.2.0 and with this tool, in one run.

python -m tests.bench.write_speed                            20 x 250 000 trips, 10 x 5 % of them
python -m tests.bench.write_speed --rows 25000 --turns 1     a quick look
python -m tests.bench.write_speed --target 120               Hudi's default sizes
python -m tests.bench.write_speed --index BLOOM              Hudi looks for keys by bloom filters

Both begin with one table that real Hudi has made, of a row for each of ten partitions: version 9
with its metadata table as it is by default. Then 20 batches of inserts go into all partitions, and
10 upserts that change 5 % of all rows each. Every turn is a fresh process on two cores with a Spark
session that has run something; its start does not count. The sides take turns, medians of so many.
Both have the same Parquet files of rows to read, write Snappy, are told the same sizes, and have
cleaning and archiving switched off.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import ClassVar

from tests.bench.figures import (
    BYTES,
    CPU,
    FILES,
    WALL,
    Baseline,
    Goal,
    Measure,
    cost_measures,
)
from tests.bench.jobs import ROOT, Job, Run, take_turns
from tests.bench.meter import Meter
from tests.bench.peers import Peer
from tests.bench.ratio_table import print_job
from tests.bench.versions import HUDI, OURS
from tests.bench.write_rows import History, history_files
from tests.bench.write_tables import Sums, TableContents, expected_sums, read_contents

NAMES = {"ours": OURS, "hudi": HUDI}
REWRITTEN = "MB rewritten"


class Writing(Peer):
    """The process of one writer."""

    PROGRAM: ClassVar[str] = "tests.bench.write_peer"


@dataclass(frozen=True, slots=True, kw_only=True)
class Bench:
    """The settings that all turns share."""

    folder: Path
    rows: Path
    history: History
    sizes: dict[str, int]
    index: str | None
    heap: str
    wanted: Sums

    def seeded(self) -> Path:
        """Create, once, the table that both writers start with."""
        kept = self.folder / "seeded"
        if not kept.is_dir():
            with Writing("hudi", self.heap, self.folder) as hudi:
                shutil.rmtree(hudi.table, ignore_errors=True)
                self.write(hudi, "insert", "seed")
                hudi.table.rename(kept)
        return kept

    def turn(self, system: str) -> list[Measure]:
        """Run one writer from the initial table to its last upsert, and check the rows."""
        seeded = self.seeded()
        measures = []
        with Writing(system, self.heap, self.folder) as side:
            shutil.rmtree(side.table, ignore_errors=True)
            shutil.copytree(seeded, side.table)
            for operation in ("insert", "upsert"):
                with Meter(side.pid) as meter:
                    for name in (of for at, of in self.history.steps if at == operation):
                        self.write(side, operation, name)
                measures += cost_measures(f"all {operation}s", meter.cost)
            left = read_contents(side.table)
        self.check(system, left)
        values = {FILES: left.files, BYTES: left.bytes / 2**20, REWRITTEN: left.rewritten / 2**20}
        return measures + [
            Measure(what="the table", unit=unit, value=value) for unit, value in values.items()
        ]

    def check(self, system: str, left: TableContents) -> None:
        """Exit if the table does not have the expected rows."""
        if left.sums != self.wanted:
            raise SystemExit(f"{NAMES[system]} has {left.sums}, and was given {self.wanted}")
        if left.commits != len(self.history.steps) + 1:
            raise SystemExit(f"{NAMES[system]}: {left.commits} commits")

    def write(self, side: Writing, operation: str, name: str) -> None:
        begun = time.perf_counter()
        where = {"rows": str(self.rows / name), "operation": operation, "index": self.index}
        side.ask("write", **where, **self.sizes)
        print(f"    {name} {time.perf_counter() - begun:.2f} s", file=sys.stderr, flush=True)


def goals(_: Run) -> list[Goal]:
    """Return what Hudi's wall and CPU time, files and rewritten bytes allow."""
    of_hudi = Baseline(systems=(HUDI,))
    times = [
        Goal(what=what, unit=unit, limit=0.5, baseline=of_hudi)
        for what in ("all inserts", "all upserts")
        for unit in (WALL, CPU)
    ]
    left = [
        Goal(what="the table", unit=unit, limit=1, baseline=of_hudi) for unit in (FILES, REWRITTEN)
    ]
    return times + left


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=250_000, help="of a batch")
    parser.add_argument("--inserts", type=int, default=20, help="batches")
    parser.add_argument("--upserts", type=int, default=10)
    parser.add_argument("--target", type=float, default=16, help="MiB of a file; 5/6 is small")
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--only", nargs="+", choices=list(NAMES), default=list(NAMES))
    parser.add_argument("--index", help="of Hudi; its default is SIMPLE")
    parser.add_argument("--heap", default="4g", help="of either JVM")
    parser.add_argument("--folder", type=Path, default=ROOT / ".bench" / "writes")
    return parser.parse_args()


def main() -> int:
    arguments = parse_arguments()
    history = History(rows=arguments.rows, inserts=arguments.inserts, upserts=arguments.upserts)
    name = f"{arguments.rows}-{arguments.inserts}-{arguments.upserts}"
    folder = arguments.folder.resolve() / name
    rows = history_files(folder / "rows", history)
    target = int(arguments.target * 2**20)
    bench = Bench(
        folder=folder,
        rows=rows,
        history=history,
        sizes={"target": target, "small": target * 5 // 6},
        index=arguments.index,
        heap=arguments.heap,
        wanted=expected_sums(rows, history),
    )
    run = Run(turns=arguments.turns)
    figures = take_turns(run, {NAMES[side]: partial(bench.turn, side) for side in arguments.only})
    job = Job(name="writes", title="Writing", does="", measure=lambda _: figures, goals=goals)
    return int(not print_job(job, run, figures))


if __name__ == "__main__":
    sys.exit(main())
