"""Measure a rebuild of the whole metadata table, and real Hudi 1.2.0's bootstrap of the same.

python -m tests.bench.metadata_rebuild_speed             20 000 files in 200 partitions
python -m tests.bench.metadata_rebuild_speed --quick     1 000 files, one turn

Every base file has 100 rows with keys of its own. The metadata table has files, column_stats of
eight columns, partition_stats and record_index. Ours is ``reconciler apply`` of a spec with
``metadata.repair: rebuild`` in a new process, from its start to its end, and its result is
verified; Hudi's is in a new JVM, the start of Spark not counted.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import psutil
import pyarrow as pa
import pyarrow.parquet as pq

from reconciler.hudi.load import load_properties
from reconciler.storage.open import open_storage
from reconciler.verification.verify import verify_metadata
from tests.bench.figures import CPU, MEMORY, Baseline, Figure, Goal, Measure, cost_measures
from tests.bench.jobs import Job, Run, run_alone, take_turns
from tests.bench.make_table import Shape, make_table
from tests.bench.meter import Cost, resident
from tests.bench.process_cost import measure_command
from tests.bench.versions import HUDI, HUDI_VERSION, OURS
from tests.oracle.hudi import RealHudi

GROUPS, ROWS = 100, 100
WORK = "building the metadata table"
PARTITIONS = ("column_stats", "files", "partition_stats", "record_index")
SCHEMA = {
    "type": "record",
    "name": "t_record",
    "namespace": "hoodie.t",
    "fields": [
        {"name": name, "type": ["null", kind], "default": None}
        for name, kind in (
            ("id", "string"),
            ("p", "string"),
            ("ts", "long"),
            ("x", "double"),
            ("n", "int"),
        )
    ],
}
OPTIONS = {
    "hoodie.metadata.enable": "true",
    "hoodie.metadata.index.column.stats.enable": "true",
    "hoodie.metadata.record.index.enable": "true",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "p",
    "hoodie.write.auto.upgrade": "false",
}
SPEC = """\
apiVersion: reconciler/v1
kind: HudiTable
metadata: {{name: bench}}
spec:
  path: {path}
  metadata: {{repair: rebuild}}
  concurrency: {{lock: {{provider: filesystem}}}}
"""


def make(table: Path, files: int) -> None:
    """Create a table whose base files have keys of their own."""
    shape = Shape(partitions=files // GROUPS, groups=GROUPS, versions=1)
    make_table(table, shape, schema=SCHEMA)
    rng = np.random.default_rng(7)
    for partition in range(shape.partitions):
        path = shape.partition(partition)
        for number, name in enumerate(shape.list_names(partition)):
            file = table / path / name
            file.unlink()
            first = (partition * GROUPS + number) * ROWS
            pq.write_table(make_rows(path, name, first, shape.instants[0], rng), file)


def make_rows(
    partition: str, name: str, first: int, instant: str, rng: np.random.Generator
) -> pa.Table:
    keys = [f"key-{number:012d}" for number in range(first, first + ROWS)]
    return pa.table(
        {
            "_hoodie_commit_time": [instant] * ROWS,
            "_hoodie_commit_seqno": [f"{instant}_0_{number}" for number in range(ROWS)],
            "_hoodie_record_key": keys,
            "_hoodie_partition_path": [partition] * ROWS,
            "_hoodie_file_name": [name] * ROWS,
            "id": keys,
            "p": [partition] * ROWS,
            "ts": rng.integers(0, 10**12, ROWS),
            "x": rng.random(ROWS),
            "n": rng.integers(0, 10**6, ROWS).astype(np.int32),
        }
    )


def measure_hudi(table: Path) -> Cost:
    """Let Hudi build the metadata table from nothing, in a new JVM."""
    hudi = RealHudi(HUDI_VERSION, heap="4g!", timeout=3600)
    try:
        (taken,) = hudi.timed_index_build(hudi.table(table), OPTIONS, 1)
        (java,) = (p for p in psutil.Process().children(recursive=True) if p.name() == "java")
        memory = resident(java.pid, shared=True)
    finally:
        hudi.close()
    return Cost(cpu=taken["cpu"], wall=taken["wall"], megabytes=memory / 2**20)


def measure_ours(table: Path) -> Cost:
    """Make the listing wrong, and run ``reconciler apply``."""
    rename_a_file(table)
    with tempfile.TemporaryDirectory() as folder:
        spec = Path(folder, "spec.yaml")
        spec.write_text(SPEC.format(path=table))
        program = Path(sys.executable).parent / "reconciler"
        command = [str(program), "apply", str(spec), "--auto-approve"]
        cost = measure_command(command, cwd=Path(folder))
    live = load_properties(open_storage(str(table))).metadata_partitions
    if live != PARTITIONS:
        raise SystemExit(f"the metadata table has {', '.join(live)}")
    found = verify_metadata(open_storage(str(table)), None)
    if found.difference_count:
        raise SystemExit(f"the metadata table has {found.difference_count} differences")
    return cost


def rename_a_file(table: Path) -> None:
    """Give a base file another write token, or its own one again; its file group stays."""
    file = min(table.glob("p000000/*.parquet"))
    file_id, token, rest = file.name.split("_")
    other = "0-0-0" if token == "0-0-1" else "0-0-1"
    file.rename(file.with_name(f"{file_id}_{other}_{rest}"))


def measure(run: Run) -> tuple[Figure, ...]:
    """Measure Hudi first: it makes the metadata table that ours rebuilds."""
    files = run.pick(20_000, 1_000)
    table = run.folder / "metadata" / str(files)
    if not (table / ".hoodie" / "timeline").is_dir():
        make(table, files)
    sides = {HUDI: measure_hudi, OURS: measure_ours}
    return take_turns(run, {name: partial(_measures, by, table) for name, by in sides.items()})


def _measures(measure_side: Callable[[Path], Cost], table: Path) -> list[Measure]:
    return cost_measures(WORK, measure_side(table))


def goals(_: Run) -> list[Goal]:
    of_hudi = Baseline(systems=(HUDI,))
    return [
        Goal(what=WORK, unit=CPU, limit=0.25, baseline=of_hudi),
        Goal(what=WORK, unit=MEMORY, limit=1500),
    ]


JOB = Job(
    name="metadata",
    title="Building the metadata table",
    does="""\
The metadata table of 20 000 base files with 2 000 000 keys is built from nothing: the listing, the
statistics of columns and partitions, and the record index. Ours is a whole process of
`reconciler apply`; the start of Hudi's JVM and Spark does not count.""",
    measure=measure,
    goals=goals,
)


if __name__ == "__main__":
    sys.exit(run_alone(JOB))
