"""Measure upserts into a merge-on-read table and their compaction, real Hudi 1.2.0's and ours.

python -m tests.bench.merge_on_read_speed                          4 000 000 rows, 10 x 5 % of them
python -m tests.bench.merge_on_read_speed --rows 400000 --turns 1  a quick look
python -m tests.bench.merge_on_read_speed --only ours --turns 1

Both begin with one table that real Hudi has made by a bulk insert: version 9, ten partitions, its
metadata table as it is by default. Then ten upserts change 5 % of all rows each, spread over all
files, and a compaction merges them. Every turn is a fresh process on two cores with a Spark session
that has run something; its start does not count. The sides take turns, medians of so many.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import pyarrow as pa
import pyarrow.parquet as pq

from reconciler.hudi.files.names import BaseName
from tests.bench.meter import Cost, Meter
from tests.bench.peers import ROOT, Peer
from tests.bench.rewrite_side_by_side import median
from tests.bench.write_rows import History, history_files
from tests.bench.write_tables import SUMMED, Sums, expected_sums

NAMES = {"hudi": "Hudi 1.2.0", "ours": "ours"}
#: at most so much of Hudi's wall time and CPU seconds
UPSERTS, COMPACTION = 0.3, 0.5


class Side(Peer):
    """The process of one writer."""

    PROGRAM: ClassVar[str] = "tests.bench.merge_on_read_peer"


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """What one writer's upserts and compaction cost, and bytes: of log files, of base files."""

    upserts: Cost
    compaction: Cost
    logs: int
    bases: int

    def __str__(self) -> str:
        mib = 2**20
        return (
            f"upserts {self.upserts}  compaction {self.compaction}  "
            f"{self.logs / mib:.0f} MiB of logs -> {self.bases / mib:.0f} MiB of base files"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Bench:
    """The settings that all turns share."""

    folder: Path
    rows: Path
    history: History
    index: str | None
    heap: str
    wanted: Sums

    def loaded(self) -> Path:
        """Create, once, the table that both writers start with."""
        kept = self.folder / "loaded"
        if not kept.is_dir():
            with Side("hudi", self.heap, self.folder) as hudi:
                shutil.rmtree(hudi.table, ignore_errors=True)
                self.ask(hudi, "load", "{seed,insert-00}")
                hudi.table.rename(kept)
        return kept

    def turn(self, system: str) -> Turn:
        """Run one writer from the loaded table to the end of its compaction."""
        loaded = self.loaded()
        with Side(system, self.heap, self.folder) as side:
            shutil.rmtree(side.table, ignore_errors=True)
            shutil.copytree(loaded, side.table)
            with Meter(side.pid) as upserts:
                for operation, name in self.history.steps:
                    if operation == "upsert":
                        self.ask(side, "upsert", name)
            with Meter(side.pid) as compaction:
                self.ask(side, "compact", "")
            logs = sum(file.stat().st_size for file in side.table.glob("*/.*.log.*"))
            bases = newest_base_files(side.table)
            self.check_rows(system, bases)
            return Turn(
                upserts=upserts.cost,
                compaction=compaction.cost,
                logs=logs,
                bases=sum(file.stat().st_size for file in bases),
            )

    def ask(self, side: Side, do: str, name: str) -> None:
        begun = time.perf_counter()
        side.ask(do, rows=str(self.rows / name), index=self.index)
        print(f"    {do} {name} {time.perf_counter() - begun:.2f} s", file=sys.stderr, flush=True)

    def check_rows(self, system: str, bases: list[Path]) -> None:
        """Exit if base files do not hold the last change of every row."""
        columns = ["_hoodie_record_key", "_hoodie_partition_path", *SUMMED]
        rows = pa.concat_tables(pq.ParquetFile(path).read(columns) for path in sorted(bases))
        found = Sums.of(rows, *columns[:2])
        if found != self.wanted:
            raise SystemExit(f"{NAMES[system]} has {found}, and was given {self.wanted}")


def newest_base_files(table: Path) -> list[Path]:
    """Return the newest base file of every file group."""
    newest: dict[str, tuple[str, Path]] = {}
    for path in table.glob("*/*.parquet"):
        name = BaseName.parse(path.name)
        if name is not None:
            newest[name.file_id] = max(newest.get(name.file_id, ("", path)), (name.instant, path))
    return [path for _, path in newest.values()]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=4_000_000)
    parser.add_argument("--upserts", type=int, default=10)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--only", nargs="+", choices=list(NAMES), default=list(NAMES))
    parser.add_argument("--index", help="of Hudi; its default is SIMPLE")
    parser.add_argument("--heap", default="4g", help="of either JVM")
    parser.add_argument("--folder", type=Path, default=ROOT / ".bench" / "merge-on-read")
    arguments = parser.parse_args()
    history = History(rows=arguments.rows, inserts=1, upserts=arguments.upserts)
    folder = arguments.folder.resolve() / f"{arguments.rows}-{arguments.upserts}"
    rows = history_files(folder / "rows", history)
    bench = Bench(
        folder=folder,
        rows=rows,
        history=history,
        index=arguments.index,
        heap=arguments.heap,
        wanted=expected_sums(rows, history),
    )
    taken: dict[str, list[Turn]] = {system: [] for system in arguments.only}
    for number in range(arguments.turns):
        for system in arguments.only:
            turn = bench.turn(system)
            taken[system].append(turn)
            print(f"  turn {number} {NAMES[system]:12}{turn}", flush=True)
    return int(not print_medians(taken))


def print_medians(taken: dict[str, list[Turn]]) -> bool:
    """Print medians and ratios; return whether the measured goals are met."""
    for system, turns in taken.items():
        print(f"{NAMES[system]:12} upserts   {median([turn.upserts for turn in turns])}")
        print(f"{NAMES[system]:12} compaction{median([turn.compaction for turn in turns])}")
    if set(taken) != set(NAMES):
        return True
    are_met = True
    for what, goal in (("upserts", UPSERTS), ("compaction", COMPACTION)):
        ours, theirs = (
            median([getattr(turn, what) for turn in taken[name]]) for name in ("ours", "hudi")
        )
        for unit, ratio in (("wall", ours.wall / theirs.wall), ("CPU", ours.cpu / theirs.cpu)):
            are_met &= ratio <= goal
            verdict = "met" if ratio <= goal else "MISSED"
            print(f"{verdict}: {what}, {unit} {ratio:.2f} of Hudi's, at most {goal}")
    return are_met


if __name__ == "__main__":
    sys.exit(main())
