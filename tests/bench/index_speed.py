"""Measure the cost of an index of column statistics: building from footers, and querying.

python -m tests.bench.index_speed             1 000 000 files asked, 10 000 footers read
python -m tests.bench.index_speed --quick     a tenth of them, one turn

The files are copies of one that real Hudi wrote, with the bloom filter that it puts into a footer,
440 kB. Hudi builds its metadata table from nothing, with the same sixteen columns in column_stats,
in a warm JVM; ours is a process from its start to its end. Medians; CPU is user and system.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from reconciler.index.codec import Provenance, encode_index
from reconciler.index.file_keys import find_rows
from reconciler.index.may_match import may_match
from reconciler.index.model import PARTITION, ColumnStats, FileIndex
from reconciler.index.predicates.parse import parse
from reconciler.index.version_store import list_versions, publish_version, read_newest
from reconciler.storage.open import open_storage
from tests.bench.figures import (
    CPU,
    WALL,
    Baseline,
    Figure,
    Goal,
    Measure,
    collect_figures,
    cost_measures,
)
from tests.bench.jobs import Job, Run, run_alone
from tests.bench.make_table import Shape, make_table
from tests.bench.meter import Cost
from tests.bench.process_cost import measure_command
from tests.bench.trip_files import City
from tests.bench.versions import HUDI, HUDI_VERSION, OURS
from tests.oracle.hudi import RealHudi

GOAL_FROM_DISK, GOAL_WARM, GOAL_BUILD = 1.5, 0.15, 1 / 8
AVRO = {"int64": "long", "int32": "int", "double": "double", "string": "string"}
BUILD = "build from the footers"
ASKED = {
    "one key": "c0 = 123456789",
    "three columns": "c0 BETWEEN 400000000 AND 420000000 AND c1 > 0.9 AND c2 LIKE 'k00%'",
    "alternatives": "(c0 < 1000000 OR c1 < 0.001) AND c2 IN ('k00000001', 'k00500000x', 'z')",
}


# --- to ask it -----------------------------------------------------------------------------------


def large_index(files: int) -> FileIndex:
    """Return an index of files in a thousand partitions, with eight columns."""
    rng = np.random.default_rng(7)
    number = np.arange(files)
    folders = pa.array([f"dt={code:06d}" for code in range(1000)])
    partition = pa.DictionaryArray.from_arrays(
        pa.array(number * 1000 // files, pa.int32()), folders
    )
    name = pa.array([f"{n:08x}-1dfa-4c7b-8000-{n:012x}-0_{n % 97}-5-7_26.parquet" for n in number])
    low = rng.integers(0, 10**9, files)
    part = rng.random(files)
    text = np.char.add("k", np.char.zfill(number.astype(str), 8))
    columns = {
        "c0": stats(pa.array(low), pa.array(low + 10**6)),
        "c1": stats(pa.array(part), pa.array(part + 0.01)),
        "c2": stats(pa.array(text), pa.array(np.char.add(text, "x"))),
    }
    for nth in range(3, 8):
        low = rng.integers(0, 10**12, files)
        columns[f"c{nth}"] = stats(pa.array(low), pa.array(low + 10**9))
    return FileIndex(
        partition=partition.cast(PARTITION),
        name=name,
        size=rng.integers(10**6, 10**8, files),
        rows=np.full(files, 10**5),
        columns=columns,
    )


def stats(least: pa.Array, greatest: pa.Array) -> ColumnStats:
    yes = np.ones(len(least), np.bool_)
    return ColumnStats(
        least=least,
        greatest=greatest,
        nulls=np.zeros(len(least), np.int64),
        values=np.full(len(least), 10**5),
        is_exact_least=yes,
        is_exact_greatest=yes,
        is_nan_free=yes,
    )


def measure_queries(table: Path, files: int, turns: int) -> list[Figure]:
    """Measure each predicate in new processes: with what reading the index takes, and warm."""
    storage = open_storage(str(table))
    if not list_versions(storage).valid:
        table.mkdir(parents=True, exist_ok=True)
        data = encode_index(large_index(files), Provenance(table="t", instant="2026", tool="bench"))
        publish_version(storage, list_versions(storage), "20260101120000000", data.to_pybytes())
    taken = []
    for name, where in ASKED.items():
        for _ in range(turns):
            cold, seconds = query_in_new_process(table, where)
            taken += cost_measures(f"{name}, from disk", cold)
            taken.append(Measure(what=f"{name}, warm", unit=WALL, value=seconds))
    return list(collect_figures((OURS, one) for one in taken))


def query_in_new_process(table: Path, where: str) -> tuple[Cost, float]:
    """Measure in a new process, without the imports, which every read needs anyway."""
    command = [sys.executable, "-m", "tests.bench.index_speed", "--ask", str(table), where]
    cost, warm = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
    return Cost(**cost), warm


def query_once(table: str, where: str) -> None:
    """Read the needed part of the index and evaluate the predicate, twice."""
    import resource  # noqa: PLC0415

    kinds = {"c0": pa.int64(), "c1": pa.float64(), "c2": pa.string()}
    schema = pa.schema(list(kinds.items()))
    storage = open_storage(table)
    names = tuple(name for name in kinds if name in where)
    cpu, wall = time.process_time(), time.perf_counter()
    found = read_newest(storage, list_versions(storage), names)
    assert found is not None, "an index was published"
    index = found[1]
    kept = may_match(parse(where), index, schema=schema, zone="UTC")
    some = np.arange(0, len(index), 10)
    row = find_rows(index, index.take(some))
    cost = {
        "cpu": time.process_time() - cpu,
        "wall": time.perf_counter() - wall,
        "megabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }
    assert (row == some).all(), "files are found by their names"
    warm = []
    for _ in range(5):
        started = time.perf_counter()
        again = may_match(parse(where), index, schema=schema, zone="UTC")
        warm.append(time.perf_counter() - started)
    assert (again == kept).all()
    print(json.dumps([cost, min(warm)]))


# --- to build it ---------------------------------------------------------------------------------


def measure_builds(table: Path, files: int, turns: int) -> list[Figure]:
    """Measure our build in new processes, and Hudi's in a warm JVM."""
    if not (table / ".hoodie" / "timeline").is_dir():
        make(table, files)
    columns = City().trips(0, 1, 1).column_names
    ours = [measure_our_build(table, columns) for _ in range(turns)]
    taken = [(OURS, one) for cost in ours for one in cost_measures(BUILD, cost)]
    for system, costs in measure_hudi_build(table, columns, turns).items():
        taken += [(system, one) for cost in costs for one in cost_measures(BUILD, cost)[:2]]
    return list(collect_figures(taken))


def make(table: Path, files: int) -> None:
    """Create a table of copies of a base file that real Hudi wrote."""
    with tempfile.TemporaryDirectory() as folder:
        rows = City().trips(0, 500, 1)
        pq.write_table(rows, Path(folder, "rows.parquet"))
        hudi = RealHudi(HUDI_VERSION)
        try:
            hudi.sql(
                f"CREATE TABLE bench_index USING hudi TBLPROPERTIES (primaryKey = 'trip_id', "
                f"preCombineField = 'pickup_us') LOCATION '{folder}/t' "
                f"AS SELECT * FROM parquet.`{folder}/rows.parquet`"
            )
        finally:
            hudi.close()
        base = next(Path(folder, "t").glob("*.parquet"))
        own = pq.read_schema(base)
        names = [field for field in own if not field.name.startswith("_hoodie_")]
        schema = {
            "type": "record",
            "name": "t_record",
            "namespace": "hoodie.t",
            "fields": [
                {"name": f.name, "type": ["null", AVRO[str(f.type)]], "default": None}
                for f in names
            ]
            + [{"name": "p", "type": ["null", "string"], "default": None}],
        }
        shape = Shape(partitions=files // 100, groups=100, versions=1)
        make_table(table, shape, base=base, schema=schema)
    properties = table / ".hoodie" / "hoodie.properties"
    arguments = properties.read_text().replace("fields=id", "fields=trip_id")
    properties.write_text(arguments.replace("ordering.fields=ts", "ordering.fields=pickup_us"))


def measure_our_build(table: Path, columns: list[str]) -> Cost:
    """Run ``reconciler apply`` of a spec with an index in a new process."""
    shutil.rmtree(table / ".hoodie" / ".zindex", ignore_errors=True)
    with tempfile.TemporaryDirectory() as folder:
        spec = Path(folder, "spec.yaml")
        spec.write_text(
            "apiVersion: reconciler/v1\nkind: HudiTable\nmetadata: {name: bench}\n"
            f"spec:\n  path: {table}\n  index: {{columns: [{', '.join(columns)}]}}\n"
            "  concurrency: {lock: {provider: none}}\n"
        )
        program = Path(sys.executable).parent / "reconciler"
        command = [str(program), "apply", str(spec), "--auto-approve"]
        cost = measure_command(command, cwd=Path(folder))
    if not list_versions(open_storage(str(table))).valid:
        raise SystemExit("no index was published")
    return cost


def measure_hudi_build(table: Path, columns: list[str], turns: int) -> dict[str, list[Cost]]:
    """Return the cost of the first build in a JVM, and those of later ones."""
    hudi = RealHudi(HUDI_VERSION, heap="4g!", timeout=3600)
    options = {
        "hoodie.metadata.enable": "true",
        "hoodie.metadata.index.column.stats.enable": "true",
        "hoodie.metadata.index.column.stats.column.list": ",".join(columns),
        "hoodie.metadata.index.partition.stats.enable": "false",
        "hoodie.datasource.write.recordkey.field": "trip_id",
        "hoodie.datasource.write.partitionpath.field": "p",
        "hoodie.write.auto.upgrade": "false",
    }
    try:
        taken = hudi.timed_index_build(hudi.table(table), options, turns + 1)
    finally:
        hudi.close()
    if any("column_stats" not in one["partitions"] for one in taken):
        raise SystemExit(f"Hudi built {taken[0]['partitions']}")
    costs = [Cost(cpu=one["cpu"], wall=one["wall"], megabytes=0) for one in taken]
    return {f"{HUDI}, first": costs[:1], HUDI: costs[1:]}


def measure(run: Run) -> list[Figure]:
    """Measure both; our processes run before Hudi's JVM starts."""
    run.begin_turn(0, "all turns of all systems")
    folder = run.folder / "index"
    asked, built = run.pick(1_000_000, 100_000), run.pick(10_000, 1_000)
    queries = measure_queries(folder / f"ask-{asked}", asked, run.turns)
    return queries + measure_builds(folder / f"build-{built}", built, run.turns)


def goals(_: Run) -> list[Goal]:
    asked = [
        goal
        for name in ASKED
        for goal in (
            Goal(what=f"{name}, from disk", unit=WALL, limit=GOAL_FROM_DISK),
            Goal(what=f"{name}, warm", unit=WALL, limit=GOAL_WARM),
        )
    ]
    of_hudi = Baseline(systems=(HUDI,))
    return [*asked, Goal(what=BUILD, unit=CPU, limit=GOAL_BUILD, baseline=of_hudi)]


JOB = Job(
    name="index",
    title="An index of column statistics",
    does="""\
Three conditions are asked of an index of 1 000 000 files: with reading what is needed of it from
disk, and again when it is in memory. Then an index of sixteen columns is built from the footers of
10 000 files, ours as a whole process of `reconciler apply`, Hudi's `column_stats` in a JVM that has
done it before (and its first time).""",
    measure=measure,
    goals=goals,
)


def main() -> int:
    if sys.argv[1:2] == ["--ask"]:
        query_once(*sys.argv[2:])
        return 0
    return run_alone(JOB)


if __name__ == "__main__":
    sys.exit(main())
