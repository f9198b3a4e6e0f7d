"""Measure rewriting groups of base files, in parts or by Spark, without the transaction.

python -m tests.bench.rewrite_speed                        16 000 000 trips on Spark, files of 16 MB
python -m tests.bench.rewrite_speed --rows 2000000 --here  in this process, on a thread per core
python -m tests.bench.rewrite_speed --rows 2000000 --start count the start of Spark too
python -m tests.bench.rewrite_speed --here --profile       and where the time goes
python -m tests.bench.rewrite_speed --codec gzip           as Hudi's own default

The table is made once: base files of a million trips with Hudi's meta columns and footers, in order
of time. CPU seconds count on a busy machine, wall seconds do not. Memory is that of the process
tree at its peak.
"""

from __future__ import annotations

import argparse
import cProfile
import os
import pstats
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from reconciler.file_slices.base_file.meta_columns import CommitStamp
from reconciler.file_slices.base_file.schema import FileSchema
from reconciler.file_slices.base_file.settings import BaseFileSettings
from reconciler.file_slices.merge.avro_schema import META_COLUMNS
from reconciler.file_slices.merge.rules import MergeRules
from reconciler.file_slices.merge.slice_reader import SliceFiles, SliceReadOptions
from reconciler.layout.sizing.split_rule import SplitRule
from reconciler.rewrite.local import LocalRewriter
from reconciler.rewrite.model import RewriteGroup, RewriteJob, RowOrdering
from reconciler.storage.api import StorageRef
from reconciler.storage.open import open_storage
from tests.base_files import write_base_file
from tests.bench.meter import Meter
from tests.bench.trip_files import COLUMNS, HALF_A_YEAR_US, KEY, City

ROWS_A_FILE = 1_000_000
AVRO = {
    pa.string(): '"string"',
    pa.int64(): '"long"',
    pa.int32(): '"int"',
    pa.float64(): '"double"',
}


def avro_schema_of(schema: pa.Schema) -> str:
    fields = ",".join(
        f'{{"name":"{f.name}","type":["null",{AVRO[f.type]}],"default":null}}' for f in schema
    )
    return f'{{"type":"record","name":"trips","fields":[{fields}]}}'


def base_files(folder: Path, rows: int, form: BaseFileSettings) -> None:
    """Write trips to base files unless they exist."""
    if folder.is_dir():
        return
    half = folder.with_name(f"{folder.name}.half")
    shutil.rmtree(half, ignore_errors=True)
    half.mkdir(parents=True)
    city = City()
    for number, first in enumerate(range(0, rows, ROWS_A_FILE)):
        count = min(ROWS_A_FILE, rows - first)
        trips = city.trips(first, count, HALF_A_YEAR_US // rows)
        schema = FileSchema.from_avro(avro_schema_of(trips.schema), "trips")
        stamp = CommitStamp(instant="20260101000000000", task=number)
        name = f"{number:08d}-0000-0000-0000-000000000000-0_0-1-{number}_{stamp.instant}.parquet"
        with (half / name).open("wb") as sink:
            write_base_file(_with_meta(trips), sink, name, schema, form, stamp=stamp)
    half.rename(folder)


def _with_meta(trips: pa.Table) -> Iterator[pa.RecordBatch]:
    keys = trips.column(KEY).cast(pa.string())
    none = pa.array([""] * len(trips))
    meta = dict(zip(META_COLUMNS, [none, none, keys, none, none], strict=True))
    for name in reversed(META_COLUMNS):
        trips = trips.add_column(0, name, meta[name])
    yield from trips.to_batches(100_000)


def make_job(
    folder: Path, target: int, form: BaseFileSettings, ordering: RowOrdering
) -> tuple[RewriteJob, RewriteGroup]:
    names = sorted(path.name for path in folder.iterdir() if path.suffix == ".parquet")
    sizes = [(folder / name).stat().st_size for name in names]
    trips = City().trips(0, 10, 1)
    schema = FileSchema.from_avro(avro_schema_of(trips.schema), "trips")
    work = RewriteJob(
        instant="20260102000000000",
        seed="0" * 32,
        reading=SliceReadOptions(rules=MergeRules(), schema=schema.columns),
        schema=schema,
        form=form,
        ordering=ordering,
        split=SplitRule(target=target),
    )
    slices = (SliceFiles(base=n, base_size=s) for n, s in zip(names, sizes, strict=True))
    outputs = max(1, round(sum(sizes) / target))
    group = RewriteGroup(
        number=0, partition="", slices=tuple(slices), outputs=outputs, bytes=sum(sizes)
    )
    return work, group


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=16_000_000)
    parser.add_argument("--target", type=float, default=16, help="MB of a file")
    parser.add_argument("--codec", default="snappy")
    parser.add_argument("--curve", default="kd-tree", help="none: packed")
    parser.add_argument("--cores", type=int, default=2)
    parser.add_argument("--here", action="store_true", help="in this process, without Spark")
    parser.add_argument("--start", action="store_true", help="count the start of Spark")
    parser.add_argument("--profile", action="store_true")
    parser.add_argument(
        "--folder", type=Path, default=Path(tempfile.gettempdir()) / "rewrite-bench"
    )
    arguments = parser.parse_args()
    form = BaseFileSettings(codec=arguments.codec)
    folder = arguments.folder.resolve() / f"trips-{arguments.rows}-{arguments.codec}"
    base_files(folder, arguments.rows, form)
    ordering = RowOrdering()
    if arguments.curve != "none":
        ordering = RowOrdering(columns=tuple(COLUMNS), curve=arguments.curve, mapping="rank")
    work, group = make_job(folder, int(arguments.target * 1e6), form, ordering)
    made = folder.with_name(f"{folder.name}-made")
    shutil.rmtree(made, ignore_errors=True)
    shutil.copytree(folder, made, copy_function=os.link)
    spark = partial(_on_spark, counts_start=arguments.start)
    run = _here if arguments.here else spark
    profile = cProfile.Profile(time.process_time) if arguments.profile else None
    cost, result = run(StorageRef(str(made)), work, group, arguments.cores, profile)
    if profile:
        pstats.Stats(profile).sort_stats("tottime").print_stats(45)
    sizes = np.array([file.size for file in result.files])
    assert result.read == result.written
    print(
        f"{cost}  {arguments.rows} rows, {group.bytes / 1e6:.0f} MB, {group.outputs} files wanted"
    )
    print(
        f"{len(sizes)} files, {result.splits} of them split off, {sizes.sum() / 1e6:.0f} MB: mean "
        f"{sizes.mean() / 1e6:.2f}, least {sizes.min() / sizes.mean():.3f} and greatest "
        f"{sizes.max() / sizes.mean():.3f} times that"
    )
    shutil.rmtree(made)
    return 0


def _here(ref: StorageRef, work: RewriteJob, group: RewriteGroup, cores: int, profile: Any) -> Any:
    pa.set_cpu_count(1)
    rewriter = LocalRewriter(open_storage, threads=cores)
    if profile:
        profile.enable()
    with Meter(os.getpid()) as meter:
        (made,) = rewriter.rewrite(ref, work, [group], progress=lambda _: None)
    if profile:
        profile.disable()
    return meter.cost, made


def _on_spark(
    ref: StorageRef,
    work: RewriteJob,
    group: RewriteGroup,
    cores: int,
    _profile: Any,
    *,
    counts_start: bool,
) -> Any:
    from reconciler.cli.spark import open_spark_session  # noqa: PLC0415
    from reconciler.rewrite.spark import SparkRewriter  # noqa: PLC0415

    opened = open_spark_session(f"local[{cores}]", {}, in_python=True)
    with ExitStack() as stack:
        if counts_start:
            meter = stack.enter_context(Meter(os.getpid()))
            session = stack.enter_context(opened)
        else:
            session = stack.enter_context(opened)
            session.sparkContext.parallelize(range(cores), cores).map(lambda n: n).collect()
            meter = stack.enter_context(Meter(os.getpid()))
        (made,) = SparkRewriter(session).rewrite(ref, work, [group], progress=lambda _: None)
    return meter.cost, made


if __name__ == "__main__":
    sys.exit(main())
