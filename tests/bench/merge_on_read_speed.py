"""Measure upserts into a merge-on-read table and their compaction, real Hudi 1.2.0's and ours.

python -m tests.bench.merge_on_read_speed             4 000 000 rows, 10 x 5 % of them
python -m tests.bench.merge_on_read_speed --quick     200 000 rows, two upserts, one turn

Both begin with one table that real Hudi has made by a bulk insert: version 9, ten partitions, its
metadata table as it is by default. Then ten upserts change 5 % of all rows each, spread over all
files, and a compaction merges them. Every turn is a fresh process on two cores with a Spark session
that has run something; its start does not count. The sides take turns.
"""

from __future__ import annotations

import shutil
import sys
import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import ClassVar

import pyarrow as pa
import pyarrow.parquet as pq

from tests.bench.figures import (
    BYTES,
    CPU,
    WALL,
    Baseline,
    Figure,
    Goal,
    Measure,
    cost_measures,
)
from tests.bench.jobs import Job, Run, run_alone, take_turns
from tests.bench.meter import Meter
from tests.bench.peers import Peer
from tests.bench.versions import HUDI, OURS
from tests.bench.write_rows import History, history_files
from tests.bench.write_tables import SUMMED, Sums, expected_sums, newest_base_files

NAMES = {"ours": OURS, "hudi": HUDI}
UPSERTS, COMPACTION = "upserts into log files", "compaction"


class Side(Peer):
    """The process of one writer."""

    PROGRAM: ClassVar[str] = "tests.bench.merge_on_read_peer"


@dataclass(frozen=True, slots=True, kw_only=True)
class Bench:
    """The settings that all turns share."""

    folder: Path
    rows: Path
    history: History
    wanted: Sums
    heap: str = "4g"

    def loaded(self) -> Path:
        """Create, once, the table that both writers start with."""
        kept = self.folder / "loaded"
        if not kept.is_dir():
            with Side("hudi", self.heap, self.folder) as hudi:
                shutil.rmtree(hudi.table, ignore_errors=True)
                self.ask(hudi, "load", "{seed,insert-00}")
                hudi.table.rename(kept)
        return kept

    def turn(self, system: str) -> list[Measure]:
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
        compacted = sum(file.stat().st_size for file in bases)
        return [
            *cost_measures(UPSERTS, upserts.cost),
            Measure(what=UPSERTS, unit=BYTES, value=logs / 2**20),
            *cost_measures(COMPACTION, compaction.cost),
            Measure(what=COMPACTION, unit=BYTES, value=compacted / 2**20),
        ]

    def ask(self, side: Side, do: str, name: str) -> None:
        begun = time.perf_counter()
        side.ask(do, rows=str(self.rows / name), index=None)
        print(f"    {do} {name} {time.perf_counter() - begun:.2f} s", file=sys.stderr, flush=True)

    def check_rows(self, system: str, bases: list[Path]) -> None:
        """Exit if base files do not hold the last change of every row."""
        columns = ["_hoodie_record_key", "_hoodie_partition_path", *SUMMED]
        rows = pa.concat_tables(pq.ParquetFile(path).read(columns) for path in sorted(bases))
        found = Sums.of(rows, *columns[:2])
        if found != self.wanted:
            raise SystemExit(f"{NAMES[system]} has {found}, and was given {self.wanted}")


def measure(run: Run) -> tuple[Figure, ...]:
    history = History(rows=run.pick(4_000_000, 200_000), inserts=1, upserts=run.pick(10, 2))
    folder = run.folder / "merge-on-read" / f"{history.rows}-{history.upserts}"
    rows = history_files(folder / "rows", history)
    bench = Bench(folder=folder, rows=rows, history=history, wanted=expected_sums(rows, history))
    return take_turns(run, {name: partial(bench.turn, side) for side, name in NAMES.items()})


def goals(_: Run) -> list[Goal]:
    of_hudi = Baseline(systems=(HUDI,))
    return [
        Goal(what=what, unit=unit, limit=limit, baseline=of_hudi)
        for what, limit in ((UPSERTS, 0.3), (COMPACTION, 0.5))
        for unit in (WALL, CPU)
    ]


JOB = Job(
    name="merge-on-read",
    title="Upserts into log files, and their compaction",
    does="""\
Both begin with one table of 4 000 000 rows in ten partitions that real Hudi has made by a bulk
insert. Ten upserts change 5 % of all rows each, spread over all files, and a compaction merges
them then. Hudi looks for keys with its default index, which is SIMPLE on Spark.""",
    measure=measure,
    goals=goals,
)


if __name__ == "__main__":
    sys.exit(run_alone(JOB))
