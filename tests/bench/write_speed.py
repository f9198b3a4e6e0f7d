"""Measure writing a table with real Hudi 1.2.0 and with this tool, in one run.

python -m tests.bench.write_speed                            20 x 250 000 trips, 10 x 5 % of them
python -m tests.bench.write_speed --rows 25000 --turns 1     a quick look
python -m tests.bench.write_speed --only ours --turns 1

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
from pathlib import Path
from typing import ClassVar

from tests.bench.meter import Cost, Meter
from tests.bench.peers import ROOT, Peer
from tests.bench.rewrite_side_by_side import median
from tests.bench.write_rows import History, history_files
from tests.bench.write_tables import Sums, TableContents, expected_sums, read_contents

NAMES = {"hudi": "Hudi 1.2.0", "ours": "ours"}
#: of Hudi's time, its number of files and the bytes that it rewrites
TIME, FILES, REWRITTEN = 0.5, 1.0, 1.0


class Writing(Peer):
    """The process of one writer."""

    PROGRAM: ClassVar[str] = "tests.bench.write_peer"


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """The cost of one writer's history, of its inserts and its upserts, and the final table."""

    inserts: Cost
    upserts: Cost
    left: TableContents

    @property
    def cost(self) -> Cost:
        return Cost(
            wall=self.inserts.wall + self.upserts.wall,
            cpu=self.inserts.cpu + self.upserts.cpu,
            megabytes=max(self.inserts.megabytes, self.upserts.megabytes),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Bench:
    """The settings that all turns share."""

    folder: Path
    rows: Path
    history: History
    sizes: dict[str, int]
    index: str | None
    heap: str

    def seeded(self) -> Path:
        """Create, once, the table that both writers start with."""
        kept = self.folder / "seeded"
        if not kept.is_dir():
            with Writing("hudi", self.heap, self.folder) as hudi:
                shutil.rmtree(hudi.table, ignore_errors=True)
                self.write(hudi, "insert", "seed")
                hudi.table.rename(kept)
        return kept

    def turn(self, system: str) -> Turn:
        """Run one writer from the initial table to its last upsert."""
        seeded = self.seeded()
        costs = {}
        with Writing(system, self.heap, self.folder) as side:
            shutil.rmtree(side.table, ignore_errors=True)
            shutil.copytree(seeded, side.table)
            for operation in ("insert", "upsert"):
                with Meter(side.pid) as meter:
                    for name in (of for at, of in self.history.steps if at == operation):
                        self.write(side, operation, name)
                costs[operation] = meter.cost
            return Turn(
                inserts=costs["insert"], upserts=costs["upsert"], left=read_contents(side.table)
            )

    def write(self, side: Writing, operation: str, name: str) -> None:
        begun = time.perf_counter()
        where = {"rows": str(self.rows / name), "operation": operation, "index": self.index}
        side.ask("write", **where, **self.sizes)
        print(f"    {name} {time.perf_counter() - begun:.2f} s", file=sys.stderr, flush=True)


def check_sums(turn: Turn, system: str, wanted: Sums, writes: int) -> None:
    """Exit if a table does not have the expected rows."""
    if turn.left.sums != wanted:
        raise SystemExit(f"{NAMES[system]} has {turn.left.sums}, and was given {wanted}")
    if turn.left.commits != writes + 1:
        raise SystemExit(f"{NAMES[system]}: {turn.left.commits} commits of {writes + 1}")


def main() -> int:
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
    arguments = parser.parse_args()
    history = History(rows=arguments.rows, inserts=arguments.inserts, upserts=arguments.upserts)
    folder = (
        arguments.folder.resolve() / f"{arguments.rows}-{arguments.inserts}-{arguments.upserts}"
    )
    rows = history_files(folder / "rows", history)
    bench = Bench(
        folder=folder,
        rows=rows,
        history=history,
        sizes={
            "target": int(arguments.target * 2**20),
            "small": int(arguments.target * 2**20 * 5 / 6),
        },
        index=arguments.index,
        heap=arguments.heap,
    )
    wanted = expected_sums(rows, history)
    taken: dict[str, list[Turn]] = {system: [] for system in arguments.only}
    for number in range(arguments.turns):
        for system in arguments.only:
            turn = bench.turn(system)
            check_sums(turn, system, wanted, len(history.steps))
            taken[system].append(turn)
            print(f"  turn {number} {NAMES[system]:12}{turn.cost}  {turn.left}", flush=True)
    return int(not print_medians(taken))


def print_medians(taken: dict[str, list[Turn]]) -> bool:
    """Print medians and ratios; return whether the measured goals are met."""
    for system, turns in taken.items():
        print(f"{NAMES[system]:12} inserts{median([turn.inserts for turn in turns])}")
        print(f"{NAMES[system]:12} upserts{median([turn.upserts for turn in turns])}")
        print(f"{NAMES[system]:12} all    {median([turn.cost for turn in turns])}")
    if set(taken) != set(NAMES):
        return True
    ours, theirs = (median([turn.cost for turn in taken[name]]) for name in ("ours", "hudi"))
    found, of = (taken[name][-1].left for name in ("ours", "hudi"))
    print(f"memory: {ours.megabytes / theirs.megabytes:.2f} of Hudi's")
    ratios = [
        ("wall", ours.wall / theirs.wall, TIME),
        ("CPU", ours.cpu / theirs.cpu, TIME),
        ("files", found.files / of.files, FILES),
        ("bytes rewritten", found.rewritten / of.rewritten, REWRITTEN),
    ]
    for what, ratio, goal in ratios:
        arguments = "met" if ratio <= goal else "MISSED"
        print(f"{arguments}: {what} {ratio:.2f} of Hudi's, at most {goal}")
    return all(ratio <= goal for _, ratio, goal in ratios)


if __name__ == "__main__":
    sys.exit(main())
