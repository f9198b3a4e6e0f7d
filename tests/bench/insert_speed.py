"""Measure appending twenty batches to a growing table with every system, in one run.

python -m tests.bench.insert_speed                 20 x 100 000 trips, three turns
python -m tests.bench.insert_speed --quick         5 x 5 000 trips, one turn

Ten partitions, files of 16 MiB, below 5/6 of that small. Hudi and ours begin with one table that
real Hudi made, of a row a partition; the others with such a table of their own. Every batch goes
into all partitions, so that a table without a treatment of small files has two hundred of them in
the end. Nobody cleans, vacuums or expires, so that all bytes that were written are there to count.
"""

from __future__ import annotations

import shutil
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import ClassVar, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from tests.bench.figures import (
    BYTES,
    CPU,
    FILES,
    SMALL,
    WALL,
    WRITTEN,
    Baseline,
    Figure,
    Goal,
    Measure,
    cost_measures,
)
from tests.bench.jobs import Job, Run, run_alone, take_turns
from tests.bench.meter import Cost, Meter
from tests.bench.peers import Peer
from tests.bench.process_cost import NO_JAVA, measure_command
from tests.bench.sessions import family
from tests.bench.trip_files import KEY
from tests.bench.versions import DELTA, HUDI, ICEBERG, OURS, SPARK
from tests.bench.write_peer import write_spec
from tests.bench.write_rows import History, history_files
from tests.bench.write_tables import SUMMED, newest_base_files

WORK: Final = "appending all batches"
TARGET: Final = 16 << 20
SMALL_BELOW: Final = TARGET * 5 // 6
#: a system of figures, and the peer's name for it
SYSTEMS: Final = {
    f"{OURS}, steady": "ours-steady",
    f"{OURS}, hudi": "ours-hudi",
    HUDI: "hudi",
    DELTA: "delta",
    f"{DELTA}, compacts from 4 files on": "delta-few",
    ICEBERG: "iceberg",
    SPARK: "spark",
}
#: ours by a command a batch, whose start counts
COMMAND: Final = f"{OURS}, steady, a command a batch"
#: of Hudi's wall and CPU time, and the small files that a partition may have in the end
TIME, MOST_SMALL = 0.5, 3


class Inserter(Peer):
    """The process of one system that appends."""

    PROGRAM: ClassVar[str] = "tests.bench.insert_peer"

    def write(self, rows: Path) -> None:
        self.ask(
            "write",
            rows=str(rows),
            operation="insert",
            index=None,
            target=TARGET,
            small=SMALL_BELOW,
            assign="hudi" if self.system == "ours-hudi" else "steady",
            few=self.system == "delta-few",
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Batches:
    """The rows that all systems append, and the folder of their tables."""

    folder: Path
    rows: Path
    history: History
    heap: str = "4g"

    @property
    def paths(self) -> list[Path]:
        return [self.rows / name for _, name in self.history.steps]

    def first_table(self, system: str) -> Path:
        """Return the table of a row a partition, which its system makes once."""
        maker = {"ours": "hudi"}.get(family(system), family(system))
        kept = self.folder / "loaded" / maker
        if not kept.is_dir():
            with Inserter(maker, self.heap, self.folder) as peer:
                shutil.rmtree(peer.table, ignore_errors=True)
                peer.write(self.rows / "seed")
                kept.parent.mkdir(exist_ok=True)
                shutil.copytree(peer.table, kept)
        return kept

    def measure(self, system: str) -> list[Measure]:
        """Append all batches in a new process; check the rows and measure the files."""
        first = self.first_table(system)
        with Inserter(system, self.heap, self.folder) as peer:
            shutil.rmtree(peer.table, ignore_errors=True)
            shutil.copytree(first, peer.table)
            with Meter(peer.pid) as meter:
                for rows in self.paths:
                    peer.write(rows)
            files = peer.files()
        return cost_measures(WORK, meter.cost) + self.measure_files(peer.table, files)

    def measure_commands(self) -> list[Measure]:
        """Append all batches by a command each, which is a process without Spark."""
        table = self.folder / "work" / "ours_command"
        shutil.rmtree(table, ignore_errors=True)
        shutil.copytree(self.first_table("ours-command"), table)
        spec = write_spec({"table": str(table), "target": TARGET, "small": SMALL_BELOW})
        costs = [self._run_command(spec, rows) for rows in self.paths]
        files = [str(file) for file in newest_base_files(table)]
        whole = Cost(
            wall=sum(cost.wall for cost in costs),
            cpu=sum(cost.cpu for cost in costs),
            megabytes=max(cost.megabytes for cost in costs),
        )
        return cost_measures(WORK, whole) + self.measure_files(table, files)

    def _run_command(self, spec: Path, rows: Path) -> Cost:
        program = Path(sys.executable).parent / "reconciler"
        command = [str(program), "write", str(spec), str(rows), "--operation", "insert"]
        return measure_command(command, cwd=self.folder, environment=NO_JAVA)

    def measure_files(self, table: Path, files: Sequence[str]) -> list[Measure]:
        """Check the rows of a table, measure its files, and remove it: it has every version."""
        check_rows(files, [self.rows / "seed", *self.paths])
        brought = sum(_size(path) for path in self.paths)
        written = sum(
            file.stat().st_size
            for file in table.rglob("*.parquet")
            if not {".hoodie", "_delta_log"} & set(file.relative_to(table).parts)
        )
        sizes = [(Path(file).parent, Path(file).stat().st_size) for file in files]
        small = Counter(folder for folder, size in sizes if size < SMALL_BELOW)
        values = {
            FILES: len(files),
            BYTES: sum(size for _, size in sizes) / 2**20,
            WRITTEN: written / brought,
            SMALL: max(small.values(), default=0),
        }
        shutil.rmtree(table)
        return [Measure(what=WORK, unit=unit, value=value) for unit, value in values.items()]


def check_rows(files: Sequence[str], sources: Iterable[Path]) -> None:
    """Exit if the files do not have the rows of the sources: all keys once, equal sums."""
    wanted, found = (_sums(paths) for paths in ([str(path) for path in sources], files))
    if wanted != found:
        raise SystemExit(f"the table has {found}, and was given {wanted}")


def _sums(paths: Iterable[str]) -> tuple[int, ...]:
    columns = [KEY, *SUMMED]
    parts = [_read(Path(path), columns) for path in paths]
    table = pa.concat_tables(parts)
    sums = [
        round(pc.sum(pc.round(pc.multiply(table[name], times))).as_py())
        for name, times in SUMMED.items()
    ]
    return table.num_rows, pc.count_distinct(table[KEY]).as_py(), *sums


def _read(path: Path, columns: list[str]) -> pa.Table:
    files = sorted(path.glob("*.parquet")) if path.is_dir() else [path]
    return pa.concat_tables(pq.ParquetFile(file).read(columns) for file in files)


def _size(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.glob("*.parquet"))


def measure(run: Run) -> tuple[Figure, ...]:
    history = History(rows=run.pick(100_000, 5_000), inserts=run.pick(20, 5), upserts=0)
    folder = run.folder / "inserts" / f"{history.rows}-{history.inserts}"
    rows = history_files(folder / "rows", history)
    batches = Batches(folder=folder, rows=rows, history=history)
    systems: dict[str, Callable[[], list[Measure]]] = {
        name: partial(batches.measure, system) for name, system in SYSTEMS.items()
    }
    return take_turns(run, systems | {COMMAND: batches.measure_commands})


def goals(_: Run) -> tuple[Goal, ...]:
    steady = f"{OURS}, steady"
    of_hudi = Baseline(systems=(HUDI,))
    return (
        Goal(what=WORK, unit=CPU, limit=TIME, baseline=of_hudi, system=steady),
        Goal(what=WORK, unit=WALL, limit=TIME, baseline=of_hudi, system=steady),
        Goal(what=WORK, unit=SMALL, limit=MOST_SMALL, system=steady),
    )


JOB = Job(
    name="inserts",
    title="Inserts into a growing table",
    does="""\
Each system appends twenty batches of 100 000 rows, one after the other, to a table of ten
partitions with files of 16 MiB, and every batch has rows of all partitions. Ours assigns rows to
files by its own rule (`steady`) and by Hudi's (`hudi`) in a Spark session. It also runs as a
command for each batch, which starts no Spark; its own start counts. Delta has optimised writes and
auto-compaction switched on. By default it compacts when fifty files are small; it is also shown
compacting from four on. Iceberg and Spark alone append and never compact.
Bytes written are those of all data files, divided by those of the batches as Parquet files.""",
    measure=measure,
    goals=goals,
)


if __name__ == "__main__":
    sys.exit(run_alone(JOB))
