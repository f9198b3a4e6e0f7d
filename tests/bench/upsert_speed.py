"""Measure an upsert of 5 % of a table's rows, and one of few files, with every system.

python -m tests.bench.upsert_speed                2 000 000 and 20 000 000 rows, three turns
python -m tests.bench.upsert_speed --quick        500 000 rows, one turn

All have the same trips, unpartitioned (a join by key needs no help then), in files of 250 000 rows
sorted by key, loaded once by each system itself; ours are tables that Hudi has made with its
defaults or with its record index, in Snappy as the others. The texts of keys have one length, and
so the order of their numbers. Each merges the same Parquet file by key, where a greater ``changed``
wins. Copy-on-write tables are compared with copy-on-write tables, and log files with deletion
vectors and delete files. Peers and ours on Spark are fresh processes with two cores and a session
that has run something; its start does not count. Ours without a variant is the whole command
``reconciler write``, from its start to its end, without Java. Afterwards each system reads its
table, and sums of columns have to be right.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import product
from pathlib import Path
from typing import ClassVar, Final

from tests.bench.figures import BEST_PEER, CPU, Baseline, Figure, Goal, Measure, cost_measures
from tests.bench.jobs import Job, Run, run_alone, take_turns
from tests.bench.meter import Cost, Meter
from tests.bench.peers import Peer
from tests.bench.process_cost import NO_JAVA, measure_command
from tests.bench.upsert_peer import declare
from tests.bench.upsert_rows import Batch, batch_file, expected_sums, table_files
from tests.bench.versions import DELTA, HUDI, ICEBERG, OURS

ON_SPARK: Final = f"{OURS}, a DataFrame"
INDEXED: Final = f"{OURS}, table with record index"
#: a system of figures, and the process that runs it; "" for the command
COPYING: Final = {
    OURS: "",
    ON_SPARK: "ours",
    INDEXED: "",
    f"{HUDI}, record index": "hudi",
    DELTA: "delta",
    ICEBERG: "iceberg",
}
LOGGING: Final = {
    OURS: "",
    ON_SPARK: "ours-mor",
    f"{HUDI}, record index": "hudi-mor",
    f"{DELTA}, deletion vectors": "delta-vectors",
    f"{ICEBERG}, delete files": "iceberg-mor",
}
#: of the best peer's CPU seconds; of the CPU seconds with an eighth or a tenth of the files
SHARE, GROWTH = 0.5, 1.5
#: rows that change in few files, and those files
FEW, FEW_FILES = 25_000, 2


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

    @property
    def source(self) -> Path:
        return table_files(self.folder / "rows", self.rows)

    @property
    def file(self) -> Path:
        return batch_file(self.folder / f"{self.batch.name}.parquet", self.batch, self.rows)

    def load(self, maker: str) -> Path:
        """Create, once, the table that a system makes of the rows."""
        kept = self.folder / "loaded" / maker
        if not kept.is_dir():
            with Side(maker, self.heap, self.folder) as side:
                shutil.rmtree(side.table, ignore_errors=True)
                side.ask("load", rows=str(self.source))
                kept.parent.mkdir(exist_ok=True)
                side.table.rename(kept)
        return kept

    def measure(self, what: str, maker: str, peer: str) -> list[Measure]:
        """Return what one upsert costs; SystemExit if a sum is wrong."""
        source, file, start = self.source, self.file, self.load(maker)
        cost = self.run_peer(peer, start, file) if peer else self.run_command(start, file)
        system = peer or "ours"
        with Side(system, self.heap, self.folder) as side:
            found, wanted = side.ask("sums"), expected_sums(source, file)
        if found != wanted:
            raise SystemExit(f"the table of {system} has {found}, not {wanted}")
        return cost_measures(what, cost)

    def run_peer(self, peer: str, start: Path, file: Path) -> Cost:
        with Side(peer, self.heap, self.folder) as side:
            _restore(start, side.table)
            with Meter(side.pid) as meter:
                side.ask("upsert", batch=str(file))
        return meter.cost

    def run_command(self, start: Path, file: Path) -> Cost:
        table = self.folder / "work" / "ours"
        _restore(start, table)
        program = Path(sys.executable).parent / "reconciler"
        command = [str(program), "write", str(declare(table)), str(file)]
        return measure_command(command, cwd=self.folder, environment=NO_JAVA)


def _restore(start: Path, table: Path) -> None:
    """Copy a loaded table; data files, which no system changes, are linked."""
    shutil.rmtree(table, ignore_errors=True)
    shutil.copytree(start, table, copy_function=_copy)


def _copy(source: str, target: str) -> None:
    if source.endswith(".parquet"):
        os.link(source, target)
    else:
        shutil.copy2(source, target)


def list_systems(
    case: Case, what: str, systems: Mapping[str, str]
) -> dict[str, Callable[[], list[Measure]]]:
    """Return how to measure each system."""
    plain = "hudi-plain" if systems is COPYING else "hudi-plain-mor"
    found = {}
    for system, peer in systems.items():
        maker = peer if peer and not peer.startswith("ours") else plain
        maker = "hudi" if system == INDEXED else maker
        found[system] = partial(case.measure, what, maker, peer)
    return found


def describe(rows: int, kind: str) -> str:
    return f"5 % of {rows:,} rows, {kind}".replace(",", " ", f"{rows:,}".count(","))


def describe_few(rows: int) -> str:
    return f"{FEW:,} rows of {FEW_FILES} files of {rows // 250_000}".replace(",", " ")


KINDS: Final = {"copy-on-write": COPYING, "log files or deletion vectors": LOGGING}


def list_sizes(run: Run) -> tuple[int, ...]:
    """Return the rows of the tables."""
    return run.pick((2_000_000, 20_000_000), (500_000,))


def list_grown_sizes(run: Run) -> tuple[int, int]:
    """Return the rows of a table and of one with eight or ten times its files."""
    return run.pick((2_000_000, 20_000_000), (500_000, 4_000_000))


def measure(run: Run) -> tuple[Figure, ...]:
    figures: tuple[Figure, ...] = ()
    folder = run.folder / "upserts"
    for rows, (kind, systems) in product(list_sizes(run), KINDS.items()):
        case = Case(rows=rows, batch=Batch.of_share(rows), folder=folder / str(rows))
        figures += take_turns(run, list_systems(case, describe(rows, kind), systems))
    for rows in list_grown_sizes(run):
        batch = Batch.of_files(FEW, FEW_FILES)
        case = Case(rows=rows, batch=batch, folder=folder / str(rows))
        figures += take_turns(run, list_systems(case, describe_few(rows), {OURS: ""}))
    return figures


def goals(run: Run) -> list[Goal]:
    found = [
        Goal(what=describe(rows, kind), unit=CPU, limit=SHARE, baseline=BEST_PEER, system=system)
        for rows, (kind, systems) in product(list_sizes(run), KINDS.items())
        for system in systems
        if system.startswith(OURS)
    ]
    small, large = map(describe_few, list_grown_sizes(run))
    return [*found, Goal(what=large, unit=CPU, limit=GROWTH, baseline=Baseline(what=small))]


JOB = Job(
    name="upserts",
    title="Upserts of 5 % of the rows, at random",
    does="""\
Each system upserts the same Parquet file by key into its own table of the same trips, in files of
250 000 rows: 5 % of the rows, at random. Tables whose files are rewritten are compared with each
other, and log files with deletion vectors and delete files. `reconciler` is the whole command
without Java, its start counted; the others, and ours from a DataFrame, are warm Spark sessions.
Then 25 000 rows of two files change in a smaller and in a larger table: cost that follows touched
files is equal.""",
    measure=measure,
    goals=goals,
)

if __name__ == "__main__":
    sys.exit(run_alone(JOB))
