"""Footers read by Spark's workers tell what threads of this process find in them."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import reconciler
from reconciler.index.build import IndexRequest, ThreadedIndexBuilder
from reconciler.index.codec import Provenance, encode_index
from reconciler.index.model import FileKeys
from reconciler.index.spark import SparkIndexBuilder
from reconciler.spec.load import load_specs
from reconciler.state.index_state_reader import build_file_keys
from reconciler.state.observe import observe
from reconciler.storage.open import open_storage
from tests.spark.frames import PYSPARK
from tests.trees import unpack

pytestmark = PYSPARK

TABLES = Path(__file__).parents[1] / "tables"
SAID = Provenance(table="t", instant="20260101000000000", tool="test")
COLUMNS = "[b, i, l, f, d, s, bin, d7, d18, d38, dt, ts, nul, p]"
SPEC = """\
apiVersion: reconciler/v1
kind: HudiTable
metadata: {{name: t}}
spec:
  path: {path}
  timezone: UTC
  index: {{columns: {columns}}}
  concurrency: {{lock: {{provider: filesystem}}}}
"""


def asked(path: Path, folder: Path) -> tuple[IndexRequest, FileKeys]:
    """What an index step asks of a table's footers."""
    spec = folder / "spec.yaml"
    spec.write_text(SPEC.format(path=path, columns=COLUMNS))
    (declared,) = load_specs([spec])
    state = observe(open_storage(str(path)), declared, observed_ms=0)
    known = state.index_state
    assert known is not None
    of = IndexRequest(columns=tuple(known.wanted), schema=known.schema, supplied=known.supplied)
    return of, build_file_keys(state, known.files)


@pytest.fixture
def table(tmp_path) -> Path:
    """A table of Hudi's with so many files that every task has some, one of them damaged."""
    path = unpack(TABLES / "indexed/1.2.0.zip", tmp_path / "table")
    first, *rest = sorted(path.glob("p=*/*.parquet"))
    for number in range(20):
        for file in (first, *rest):
            group, _, tail = file.name.partition("_")
            shutil.copy(file, file.with_name(f"{group[:-4]}{number:02d}-0_{tail}"))
    first.write_bytes(first.read_bytes()[:-4] + b"JUNK")
    return path


def test_workers_and_threads_make_the_same_bytes(spark, table, tmp_path):
    of, files = asked(table, tmp_path)
    ref = open_storage(str(table)).ref
    told: list[int] = []
    here: list[int] = []

    there = SparkIndexBuilder(spark, min_files=1).build(ref, of, files, progress=told.append)
    threads = ThreadedIndexBuilder(open_storage).build(ref, of, files, progress=here.append)

    assert 63 == len(files) == len(there.index) == sum(told) == sum(here)
    assert encode_index(threads.index, SAID).equals(encode_index(there.index, SAID))
    assert (1, threads.problems) == (there.unread_count, there.problems)
    (said,) = there.problems
    assert said.endswith("it does not end like a Parquet file; restore the file from a copy")
    assert 62 == int((there.index.rows > 0).sum())


def test_a_few_files_need_no_job(spark, table, tmp_path):
    of, files = asked(table, tmp_path)
    tracker = spark.sparkContext.statusTracker()
    before = len(tracker.getJobIdsForGroup())
    ref = open_storage(str(table)).ref

    found = SparkIndexBuilder(spark, min_files=64).build(ref, of, files, progress=lambda _: None)

    assert (63, before) == (len(found.index), len(tracker.getJobIdsForGroup()))


def test_an_apply_builds_through_spark(spark, table, tmp_path, monkeypatch):
    monkeypatch.setattr("reconciler.index.spark.MIN_FILES_FOR_JOB", 1)
    monkeypatch.setattr("reconciler.index.spark.ThreadedIndexBuilder", None)
    asked(table, tmp_path)
    specs = reconciler.load_specs(tmp_path / "spec.yaml")
    result = reconciler.apply(reconciler.plan(specs), spark=spark)

    (done,) = [outcome.indexed for outcome in result.tables[0].outcomes]
    assert (0, 63, 63, 1) == (result.exit_code, done.files, done.footers, done.unread)
    assert () == reconciler.plan(specs).tables[0].steps
