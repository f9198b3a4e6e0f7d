"""Measure the cost of an index of column statistics: building from footers, and querying.

python -m tests.bench.index_speed                     both
python -m tests.bench.index_speed --only ask          1 000 000 files, three columns
python -m tests.bench.index_speed --only build        10 000 files, real Hudi 1.2.0 beside us
python -m tests.bench.index_speed --only build --no-hudi

The files are copies of one that real Hudi wrote, with the bloom filter that it puts into a footer,
440 kB. Hudi builds its metadata table from nothing, with the same sixteen columns in column_stats,
in a warm JVM; ours is a process from its start to its end. Medians; CPU is user and system.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import psutil
import pyarrow as pa
import pyarrow.parquet as pq

from reconciler.index.codec import Provenance, encode_index
from reconciler.index.file_keys import find_rows
from reconciler.index.may_match import may_match
from reconciler.index.model import PARTITION, ColumnStats, FileIndex
from reconciler.index.predicates.parse import parse
from reconciler.index.version_store import list_versions, publish_version, read_newest
from reconciler.storage.open import open_storage
from tests.bench.make_table import Shape, make_table
from tests.bench.meter import cpu_seconds, resident
from tests.bench.trip_files import City
from tests.oracle.hudi import RealHudi

ROOT = Path(__file__).parents[2] / ".bench" / "index"
GOAL_FROM_DISK, GOAL_WARM, GOAL_BUILD = 1.5, 0.15, 1 / 8
AVRO = {"int64": "long", "int32": "int", "double": "double", "string": "string"}
ASKED = {
    "one key": "c0 = 123456789",
    "three columns": "c0 BETWEEN 400000000 AND 420000000 AND c1 > 0.9 AND c2 LIKE 'k00%'",
    "alternatives": "(c0 < 1000000 OR c1 < 0.001) AND c2 IN ('k00000001', 'k00500000x', 'z')",
}


@dataclass(frozen=True, kw_only=True)
class Cost:
    """CPU and wall seconds, and megabytes at the peak."""

    cpu: float
    wall: float
    megabytes: float = 0.0

    def __str__(self) -> str:
        return f"{self.cpu:8.3f} CPU s {self.wall:8.3f} s {self.megabytes:7.0f} MB"


def median(costs: list[Cost]) -> Cost:
    return Cost(
        cpu=statistics.median(c.cpu for c in costs),
        wall=statistics.median(c.wall for c in costs),
        megabytes=max(c.megabytes for c in costs),
    )


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


def measure_queries(files: int, turns: int) -> bool:
    """Measure each predicate cold and warm; return whether the goals are met."""
    table = ROOT / f"ask-{files}"
    storage = open_storage(str(table))
    if not list_versions(storage).valid:
        table.mkdir(parents=True, exist_ok=True)
        data = encode_index(large_index(files), Provenance(table="t", instant="2026", tool="bench"))
        publish_version(storage, list_versions(storage), "20260101120000000", data.to_pybytes())
    is_met = True
    for name, where in ASKED.items():
        measured = [query_in_new_process(table, where) for _ in range(turns)]
        cold = median([cost for cost, _, _ in measured])
        warm = statistics.median(seconds for _, seconds, _ in measured)
        is_met &= cold.wall <= GOAL_FROM_DISK and warm <= GOAL_WARM
        print(f"{name:16} from disk {cold}   warm {warm * 1000:7.1f} ms   {measured[0][2]} files")
    print(
        f"goals: {GOAL_FROM_DISK} s from disk, {GOAL_WARM * 1000:.0f} ms warm:", goal_text(is_met)
    )
    return is_met


def query_in_new_process(table: Path, where: str) -> tuple[Cost, float, int]:
    """Measure in a new process, without the imports, which every read needs anyway."""
    command = [sys.executable, "-m", "tests.bench.index_speed", "--ask", str(table), where]
    cost, warm, kept = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
    return Cost(**cost), warm, kept


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
    print(json.dumps([cost, min(warm), int(kept.sum())]))


# --- to build it ---------------------------------------------------------------------------------


def measure_builds(files: int, turns: int, *, is_beside: bool) -> bool:
    """Measure our build and Hudi's; return whether the goal is met."""
    table = ROOT / f"build-{files}"
    if not (table / ".hoodie" / "timeline").is_dir():
        make(table, files)
    columns = City().trips(0, 1, 1).column_names
    ours = median([measure_our_build(table, columns) for _ in range(turns)])
    print(f"reconciler        {ours}")
    if not is_beside:
        return True
    first, hudi = measure_hudi_build(table, columns, turns)
    print(f"Hudi 1.2.0, first {first}\nHudi 1.2.0, warm  {hudi}")
    is_met = ours.cpu <= GOAL_BUILD * hudi.cpu
    print(
        f"{hudi.cpu / ours.cpu:.1f} times less CPU; at least {1 / GOAL_BUILD:.0f}:",
        goal_text(is_met),
    )
    return is_met


def make(table: Path, files: int) -> None:
    """Create a table of copies of a base file that real Hudi wrote."""
    with tempfile.TemporaryDirectory() as folder:
        rows = City().trips(0, 500, 1)
        pq.write_table(rows, Path(folder, "rows.parquet"))
        hudi = RealHudi("1.2.0")
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
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, cwd=folder)
        cost = measure_process(process)
    if process.returncode:
        raise SystemExit(f"reconciler apply ended with {process.returncode}")
    if not list_versions(open_storage(str(table))).valid:
        raise SystemExit("no index was published")
    return cost


def measure_process(process: subprocess.Popen[bytes]) -> Cost:
    """Return the cost of a process and its children until it ends."""
    started = time.perf_counter()
    cpu, memory = 0.0, 0
    while process.poll() is None:
        with suppress(psutil.Error):
            cpu = max(cpu, cpu_seconds(process.pid))
            memory = max(memory, resident(process.pid, shared=True))
        time.sleep(0.1)
    return Cost(cpu=cpu, wall=time.perf_counter() - started, megabytes=memory / 2**20)


def measure_hudi_build(table: Path, columns: list[str], turns: int) -> tuple[Cost, Cost]:
    """Return the first cost in a JVM, and the median of the later ones."""
    hudi = RealHudi("1.2.0", heap="4g!", timeout=3600)
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
    costs = [Cost(cpu=one["cpu"], wall=one["wall"]) for one in taken]
    return costs[0], median(costs[1:])


def goal_text(is_met: bool) -> str:
    return "met" if is_met else "MISSED"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", choices=("ask", "build"))
    parser.add_argument("--files", type=int, help="1 000 000 to ask, 10 000 to build")
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--no-hudi", action="store_true")
    parser.add_argument("--ask", nargs=2, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.ask:
        query_once(*arguments.ask)
        return 0
    is_met = True
    if arguments.only != "build":
        is_met &= measure_queries(arguments.files or 1_000_000, arguments.turns)
    if arguments.only != "ask":
        is_met &= measure_builds(
            arguments.files or 10_000, arguments.turns, is_beside=not arguments.no_hudi
        )
    return int(not is_met)


if __name__ == "__main__":
    sys.exit(main())
