"""Measure small work as whole processes, from the start of a command to its end.

python -m tests.bench.small_work             three turns
python -m tests.bench.small_work --quick     one turn

A clean of nine files, a clustering of three, an upsert of two rows, a read of one row and its
explanation, on copies of one table of 30 000 trips that real Hudi made. ``reconciler`` runs by
itself in an environment in which no Java can be found, and with ``--executor spark``; real Hudi
runs as a script that starts Spark.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import yaml

from tests.bench.figures import BEST_PEER, WALL, Baseline, Figure, Goal, Measure, cost_measures
from tests.bench.jobs import ROOT, Job, Run, run_alone, take_turns
from tests.bench.process_cost import NO_JAVA, measure_command
from tests.bench.small_work_peer import CLUSTERED_BY, POINT, VERSIONS
from tests.bench.trip_files import HALF_A_YEAR_US, City
from tests.bench.versions import HUDI, OURS
from tests.bench.write_rows import ORDERING, PARTITION
from tests.bench.write_tables import newest_base_files

ON_SPARK: Final = f"{OURS}, on Spark"
ROWS: Final = 30_000
FILES: Final = 3
PROGRAM: Final = Path(sys.executable).parent / "reconciler"
_REMOVED: Final = FILES * (VERSIONS - 1)

CLEAN, CLUSTER, UPSERT, READ, EXPLAIN = (
    f"clean of {_REMOVED} files",
    f"clustering of {FILES} files",
    "upsert of two rows",
    "read of one row",
    "read --explain",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SmallWork:
    """One piece of work: our command's arguments, the spec's fields, and Hudi's name for it.

    ``is_done`` checks the table that is left.
    """

    what: str
    command: Sequence[str]
    declared: Mapping[str, object]
    by_hudi: str | None
    is_done: Callable[[Path], bool] = lambda _: True


def base_files(table: Path) -> int:
    return len(list(table.glob("*/*.parquet")))


def has_new_rows(table: Path) -> bool:
    files = newest_base_files(table)
    newest = max(
        pq.read_table(file, columns=[ORDERING])[ORDERING].to_numpy().max() for file in files
    )
    return bool(newest == 1)


WORK: Final = (
    SmallWork(
        what=CLEAN,
        command=("apply", "spec.yaml", "--auto-approve"),
        declared={"retention": {"fileVersions": 1}},
        by_hudi="clean",
        is_done=lambda table: base_files(table) == FILES,
    ),
    SmallWork(
        what=CLUSTER,
        command=("apply", "spec.yaml", "--auto-approve"),
        declared={"clustering": {"columns": list(CLUSTERED_BY), "when": "always"}},
        by_hudi="cluster",
        is_done=lambda table: base_files(table) > FILES * VERSIONS,
    ),
    SmallWork(
        what=UPSERT,
        command=("write", "spec.yaml", "changed.parquet"),
        declared={},
        by_hudi="upsert",
        is_done=has_new_rows,
    ),
    SmallWork(what=READ, command=("read", "table", "--where", POINT), declared={}, by_hudi="read"),
    SmallWork(
        what=EXPLAIN,
        command=("read", "table", "--where", POINT, "--explain"),
        declared={},
        by_hudi=None,
    ),
)


def make_rows(folder: Path) -> None:
    """Write the rows of the table, and two of them changed."""
    trips = City().trips(0, ROWS, HALF_A_YEAR_US // ROWS)
    regions = np.array([f"region-{number}" for number in range(FILES)])
    trips = trips.append_column(PARTITION, pa.array(regions[np.arange(ROWS) % FILES]))
    for name, rows, changed in (("rows", trips, 0), ("changed", trips.slice(4711, 2), 1)):
        column = pa.array(np.full(len(rows), changed))
        pq.write_table(rows.append_column(ORDERING, column), folder / f"{name}.parquet")


def make_table(folder: Path) -> None:
    """Let real Hudi make the table completely, or not at all."""
    half = folder.with_name(f"{folder.name}.half")
    shutil.rmtree(half, ignore_errors=True)
    half.mkdir(parents=True)
    make_rows(half)
    measure_command(_hudi_command("make", half / "table", half / "rows.parquet"), cwd=ROOT)
    if base_files(half / "table") != FILES * VERSIONS:
        raise SystemExit(f"Hudi made {base_files(half / 'table')} files")
    half.rename(folder)


def _hudi_command(work: str, table: Path, rows: Path) -> list[str]:
    return [sys.executable, "-m", "tests.bench.small_work_peer", work, str(table), str(rows)]


def spec_text(work: SmallWork) -> str:
    spec = {
        "path": "table",
        "timezone": "UTC",
        "concurrency": {"lock": {"provider": "filesystem"}},
        **work.declared,
    }
    whole = {"apiVersion": "reconciler/v1", "kind": "HudiTable", "metadata": {"name": "small"}}
    return yaml.safe_dump(whole | {"spec": spec}, sort_keys=False)


def measure_system(kept: Path, system: str) -> list[Measure]:
    """Run every piece of work on a copy of the table, each in a process of its own."""
    measures = []
    for work in WORK:
        if system == HUDI and work.by_hudi is None:
            continue
        folder = kept.with_name("work")
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(kept, folder)
        (folder / "spec.yaml").write_text(spec_text(work))
        measures += _measure_work(folder, system, work)
        if not work.is_done(folder / "table"):
            raise SystemExit(f"{system} did not do its work: {work.what}")
    return measures


def _measure_work(folder: Path, system: str, work: SmallWork) -> list[Measure]:
    if system == HUDI:
        assert work.by_hudi is not None
        command = _hudi_command(work.by_hudi, folder / "table", folder / "changed.parquet")
        return cost_measures(work.what, measure_command(command, cwd=ROOT))
    command = [str(PROGRAM), *work.command]
    if system == ON_SPARK:
        cost = measure_command([*command, "--executor", "spark"], cwd=folder)
    else:
        cost = measure_command(command, cwd=folder, environment=NO_JAVA)
    return cost_measures(work.what, cost)


def measure(run: Run) -> tuple[Figure, ...]:
    kept = run.folder / "small-work" / "kept"
    if not kept.is_dir():
        make_table(kept)
    return take_turns(
        run, {system: partial(measure_system, kept, system) for system in (OURS, ON_SPARK, HUDI)}
    )


def goals(_: Run) -> tuple[Goal, ...]:
    """Return that small work takes at most half of the time of Spark, and of Hudi."""
    on_spark = Baseline(systems=(ON_SPARK,))
    half = [Goal(what=work.what, unit=WALL, limit=0.5, baseline=on_spark) for work in WORK[:-1]]
    return (*half, Goal(what=CLEAN, unit=WALL, limit=0.5, baseline=BEST_PEER))


JOB = Job(
    name="small-work",
    title="Small work, as whole commands",
    does="""\
Every command is a process of its own, measured from its start until its last process has ended, on
a copy of one table of 30 000 rows in three partitions. `reconciler` runs where no Java can be
found; with `--executor spark`, and for Hudi, the start of Spark counts, because a command of a few
seconds consists of it.""",
    measure=measure,
    goals=goals,
)


if __name__ == "__main__":
    sys.exit(run_alone(JOB))
