"""Compare predictions of a plan with measurements after an apply, on a table of trips.

python -m tests.bench.predictions                             400 000 trips, 71 files, all curves
python -m tests.bench.predictions --rows 4000000 --curve kd-tree
python -m tests.bench.predictions --groups 5                  at most so many row groups sampled
python -m tests.bench.predictions --all                       a line for every query

The table is the one that real Hudi's bulk insert made; a hundred queries are declared. A prediction
holds if it is off by no more than a fifth, or two files, and of bytes a fifth or 2 % of the table.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

import reconciler
from reconciler.cli.java import use_java
from reconciler.index.footers import index_footers
from reconciler.planners.prediction.file_reads import find_reads
from reconciler.plans.plan import Plan
from reconciler.state.sampling import forecast_input, row_sample
from tests.bench.curve_data import where
from tests.bench.peers import ROOT, Peer
from tests.bench.sessions import open_session
from tests.bench.trip_files import COLUMNS, KEY, query_mix, trip_files

CURVES = ("kd-tree", "hilbert", "z-order", "linear")
WHOLE = 10**12
#: what a prediction may be off: of itself, in files, of the table's bytes
SHARE, FILES, BYTES = 0.2, 2, 0.02


@dataclass(frozen=True, kw_only=True)
class Measured:
    """Files and bytes read by each query; ``total``: bytes of the table."""

    files: np.ndarray
    bytes: np.ndarray
    total: int


def copy_table(folder: Path, rows: int, heap: str) -> Path:
    """Return a linked copy of the table that real Hudi wrote."""
    files = trip_files(folder / "rows", rows)
    if not (folder / "loaded" / "hudi").is_dir():
        with Peer("hudi", heap, folder) as hudi:
            hudi.fresh(files, KEY)
    table = folder / "work" / "predicted"
    shutil.rmtree(table, ignore_errors=True)
    shutil.copytree(folder / "loaded" / "hudi", table, copy_function=_copy)
    return table


def _copy(source: str, target: str) -> None:
    if source.endswith(".parquet"):
        Path(target).hardlink_to(source)
    else:
        shutil.copy2(source, target)


def spec_of(table: Path, curve: str, files: int, queries: list[str]) -> Path:
    """Write the spec of a clustering next to the table."""
    size = sum(file.stat().st_size for file in table.glob("*.parquet"))
    spec = {
        "path": str(table),
        "timezone": "UTC",
        "files": {"target": f"{size // files + 1}B", "small": f"{WHOLE}B"},
        "clustering": {"columns": COLUMNS, "curve": curve, "when": "always"},
        "queries": [
            {"name": f"query {nth}", "where": arguments} for nth, arguments in enumerate(queries)
        ],
        "concurrency": {"lock": {"provider": "filesystem", "path": ".hoodie", "expire": 0}},
    }
    whole = {"apiVersion": "reconciler/v1", "kind": "HudiTable", "metadata": {"name": "bench"}}
    file = table.with_name(f"{table.name}.spec.yaml")
    file.write_text(json.dumps(whole | {"spec": spec}))  # YAML has JSON in it
    return file


def measure_reads(files: list[Path], queries: list[str]) -> Measured:
    """Measure what queries read of files, by their footers."""
    schema = pq.read_schema(files[0])
    index = index_footers(
        [("", file.name, file.stat().st_size, pq.read_metadata(file)) for file in files],
        COLUMNS,
        schema,
    )
    found = find_reads(queries, index, index.size, schema=schema)
    return Measured(files=found.files, bytes=found.bytes, total=int(index.size.sum()))


def print_errors(plan: Plan, after: Measured, *, every: bool) -> bool:
    """Print the errors of the predictions; return whether all are within limits."""
    predictions = plan.tables[0].predictions
    files = np.array([one["filesAfter"] for one in predictions])
    size = np.array([one["bytesAfter"] for one in predictions])
    bars = np.array([one["error"] for one in predictions])
    off_files, off_bytes = np.abs(files - after.files), np.abs(size - after.bytes)
    holds = off_files <= np.maximum(SHARE * after.files, FILES)
    holds_bytes = off_bytes <= np.maximum(SHARE * after.bytes, BYTES * after.total)
    within = (off_files <= bars * files) & (off_bytes <= bars * size)
    for nth, one in enumerate(predictions):
        if every or not (holds[nth] and holds_bytes[nth]):
            print(
                f"  {one['query']:10} {one['filesBefore']:4} → {files[nth]:4} ±{bars[nth]:.0%}, "
                f"measured {after.files[nth]:4} files; {size[nth] / after.total:.3f}, measured "
                f"{after.bytes[nth] / after.total:.3f} of the bytes"
            )
    print(
        f"  {holds.sum()} of {len(holds)} hold in files, {holds_bytes.sum()} in bytes; "
        f"{within.sum()} within their error bars ({bars.mean():.0%} on average); at most "
        f"{off_files.max()} files and {off_bytes.max() / after.total:.1%} of the bytes off"
    )
    return bool(holds.all() and holds_bytes.all())


def run(arguments: argparse.Namespace, spark: SparkSession, curve: str, folder: Path) -> bool:
    table = copy_table(folder, arguments.rows, arguments.heap)
    queries = [where(query) for query in query_mix(folder / "rows")]
    specs = reconciler.load_specs(spec_of(table, curve, arguments.files, queries))
    before = set(table.glob("*.parquet"))
    wall, cpu = time.monotonic(), time.process_time()
    plan = reconciler.plan(specs)
    wall, cpu = time.monotonic() - wall, time.process_time() - cpu
    layout = plan.tables[0].layout
    assert layout is not None, plan.tables[0]
    print(f"{curve}: planned in {wall:.1f} s ({cpu:.1f} s of CPU), {layout.sampled}")
    result = reconciler.apply(plan, spark=spark)
    if result.exit_code:
        raise SystemExit(f"the clustering was not applied: {result}")
    files = sorted(set(table.glob("*.parquet")) - before)
    print(f"  {len(before)} files became {len(files)}")
    return print_errors(plan, measure_reads(files, queries), every=arguments.all)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=400_000)
    parser.add_argument("--files", type=int, default=71)
    parser.add_argument("--curve", nargs="+", choices=CURVES, default=CURVES)
    parser.add_argument("--groups", type=int, default=row_sample.SampleLimits().groups)
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--heap", default="1g", help="of the driver's JVM")
    parser.add_argument("--folder", type=Path, default=ROOT / ".bench" / "peers")
    arguments = parser.parse_args()
    forecast_input.SampleLimits = partial(row_sample.SampleLimits, groups=arguments.groups)
    os.environ["PYSPARK_PYTHON"] = sys.executable
    use_java()
    folder = arguments.folder.resolve() / f"trips-{arguments.rows}"
    (folder / "work").mkdir(parents=True, exist_ok=True)
    spark = open_session("ours", arguments.heap, str(folder / "work"))
    held = [run(arguments, spark, curve, folder) for curve in arguments.curve]
    return int(not all(held))


if __name__ == "__main__":
    sys.exit(main())
