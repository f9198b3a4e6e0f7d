"""Measure an upsert of 5 % of a table's rows with Hudi, Delta, Iceberg and this tool.

python -m tests.bench.upsert_speed                               2 000 000 rows, 3 turns each
python -m tests.bench.upsert_speed --rows 20000000 --turns 1
python -m tests.bench.upsert_speed --few 25000 --files 2         rows of two files alone

All have the same trips, unpartitioned (a join by key needs no help then), in files of 250 000 rows
sorted by key, loaded once by each system itself; ours are tables that Hudi has made with its
defaults or with its record index, in Snappy as the others. Each merges the same Parquet file by
key, where a greater ``changed`` wins. Copy-on-write tables are compared with copy-on-write tables,
and log files with deletion vectors and delete files. Every turn is a fresh process on two cores
with a session that has run something; its start does not count. ``here`` is ``reconciler write``
without Spark. Afterwards each system reads its table, and sums of columns have to be right.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Final

from tests.bench.meter import Cost, Meter
from tests.bench.peers import ROOT, Peer
from tests.bench.upsert_rows import Batch, batch_file, expected_sums, table_files

NAMES: Final = {
    "hudi": "Hudi 1.2.0, record index",
    "delta": "Delta 3.3.2",
    "iceberg": "Iceberg 1.10.0, copy-on-write",
    "ours": "ours, copy-on-write",
    "ours-here": "ours, copy-on-write, no Spark",
    "ours-indexed": "ours, Hudi's table with record index",
    "ours-indexed-here": "ours, Hudi's table with record index, no Spark",
    "hudi-mor": "Hudi 1.2.0, record index, merge-on-read",
    "delta-vectors": "Delta 3.3.2, deletion vectors",
    "iceberg-mor": "Iceberg 1.10.0, merge-on-read",
    "ours-mor": "ours, merge-on-read",
    "ours-mor-here": "ours, merge-on-read, no Spark",
}
#: systems of which the best is compared with ours
COPYING: Final = ("hudi", "delta", "iceberg")
LOGGING: Final = ("hudi-mor", "delta-vectors", "iceberg-mor")
#: at most of the best other one's CPU seconds
GOAL: Final = 0.5
#: the system that loads another one's table
_LOADED_BY: Final = {
    "ours": "hudi-plain",
    "ours-here": "hudi-plain",
    "ours-mor": "hudi-plain-mor",
    "ours-mor-here": "hudi-plain-mor",
    "ours-indexed": "hudi",
    "ours-indexed-here": "hudi",
}


class Side(Peer):
    """The process of one writer."""

    PROGRAM: ClassVar[str] = "tests.bench.upsert_peer"


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A table of so many rows and what is merged into it; ``folder`` keeps loaded tables."""

    rows: int
    batch: Batch
    folder: Path
    heap: str = "4g"

    @classmethod
    def below(cls, folder: Path, rows: int, batch: Batch, heap: str = "4g") -> Case:
        """Return the case whose tables are kept below a folder."""
        return cls(rows=rows, batch=batch, folder=folder.resolve() / str(rows), heap=heap)

    @property
    def source(self) -> Path:
        return table_files(self.folder / "rows", self.rows)

    @property
    def file(self) -> Path:
        return batch_file(self.folder / f"{self.batch.name}.parquet", self.batch, self.rows)


def loaded(case: Case, system: str) -> Path:
    """Create, once, the table that a system starts with."""
    maker = _LOADED_BY.get(system, system)
    kept = case.folder / "loaded" / maker
    if not kept.is_dir():
        with Side(maker, case.heap, case.folder) as side:
            shutil.rmtree(side.table, ignore_errors=True)
            side.ask("load", rows=str(case.source))
            kept.parent.mkdir(exist_ok=True)
            side.table.rename(kept)
    return kept


def measure(case: Case, system: str, wanted: list[int]) -> Cost:
    """Return what one upsert costs in a fresh process; SystemExit if a sum is wrong."""
    start = loaded(case, system)
    with Side(system, case.heap, case.folder) as side:
        shutil.rmtree(side.table, ignore_errors=True)
        shutil.copytree(start, side.table, copy_function=_copy)
        with Meter(side.pid) as meter:
            side.ask("upsert", batch=str(case.file))
        found = side.ask("sums") if "here" not in system else None
        table = side.table
    if found is None:  # a session of its own, beside the measured process
        with Side("ours", case.heap, case.folder) as reading:
            shutil.rmtree(reading.table, ignore_errors=True)
            table.rename(reading.table)
            found = reading.ask("sums")
    if found != wanted:
        raise SystemExit(f"{NAMES[system]} has {found}, not {wanted}")
    return meter.cost


def _copy(source: str, target: str) -> None:
    """Link data files, which no system changes, and copy others."""
    if source.endswith(".parquet"):
        os.link(source, target)
    else:
        shutil.copy2(source, target)


def measure_all(case: Case, systems: list[str], turns: int) -> dict[str, list[Cost]]:
    """Return the costs of each system, which take turns."""
    wanted = expected_sums(case.source, case.file)
    taken: dict[str, list[Cost]] = {system: [] for system in systems}
    for number in range(turns):
        for system in systems:
            cost = measure(case, system, wanted)
            taken[system].append(cost)
            print(f"  turn {number} {NAMES[system]:46} {cost}", file=sys.stderr, flush=True)
    return taken


def median_cpu(costs: list[Cost]) -> float:
    return statistics.median(cost.cpu for cost in costs)


def print_table(taken: dict[str, list[Cost]]) -> bool:
    """Print medians and ratios to the best other system; return whether the goal is met."""
    are_met = True
    for others, is_mor in ((COPYING, False), (LOGGING, True)):
        best = min((median_cpu(taken[name]) for name in others if name in taken), default=None)
        for system, costs in taken.items():
            if ("mor" in system or system == "delta-vectors") != is_mor:
                continue
            wall = statistics.median(cost.wall for cost in costs)
            memory = statistics.median(cost.megabytes for cost in costs)
            line = (
                f"{NAMES[system]:46} {median_cpu(costs):8.2f} CPU s {wall:8.2f} s {memory:6.0f} MB"
            )
            if best is not None and system.startswith("ours"):
                ratio = median_cpu(costs) / best
                are_met &= ratio <= GOAL
                line += (
                    f"  {ratio:.2f} of the best other one's: {'met' if ratio <= GOAL else 'MISSED'}"
                )
            print(line, flush=True)
    return are_met


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--share", type=float, default=0.05, help="of the rows that change")
    parser.add_argument("--few", type=int, help="change so many rows, of --files files alone")
    parser.add_argument("--files", type=int, default=2)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--only", nargs="+", choices=list(NAMES), default=list(NAMES))
    parser.add_argument("--heap", default="4g", help="of every JVM")
    parser.add_argument("--folder", type=Path, default=ROOT / ".bench" / "upserts")
    arguments = parser.parse_args()
    batch = (
        Batch.of_share(arguments.rows, arguments.share)
        if arguments.few is None
        else Batch.of_files(arguments.few, arguments.files)
    )
    case = Case.below(arguments.folder, arguments.rows, batch, arguments.heap)
    return int(not print_table(measure_all(case, arguments.only, arguments.turns)))


if __name__ == "__main__":
    sys.exit(main())
