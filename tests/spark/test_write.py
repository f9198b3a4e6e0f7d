"""A write on Spark's workers does what one in this process does."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from reconciler.errors import ReconcilerError
from reconciler.hudi.timeline.markers import marker_folder
from reconciler.spark.staging import choose_staging, open_file_staging, open_shuffle_staging
from reconciler.writer import stages
from reconciler.writer.bucket_task import write_bucket
from reconciler.writer.job import RowOperation
from reconciler.writer.key_search import search_keys_in_files
from reconciler.writer.key_stage import prepare_rows
from reconciler.writer.spark import SparkWriter, runs_here
from tests.selection import long
from tests.spark.frames import PYSPARK
from tests.unit.writer.ledger import ROWS, Ledger, few_a_file, row, wide

pytestmark = PYSPARK

#: None: on threads of this process
STAGINGS = pytest.mark.parametrize("staging", [None, long(open_file_staging), open_shuffle_staging])
SQL = "id long, p string, ts long, name string, _hoodie_is_deleted boolean"


class OnSpark:
    """``Ledger``'s writer: its parts become a DataFrame of as many partitions."""

    def __init__(self, session, ref, **more):
        self.session, self.writer = session, SparkWriter(session, ref, **more)

    def write(self, parts, work, *, assigned):
        rows = [row for part in parts for batch in part for row in batch.to_pylist()]
        values = [tuple(one.get(name) for name in ROWS.names) for one in rows]
        rdd = self.session.sparkContext.parallelize(values, max(len(parts), 1))
        frame = self.session.createDataFrame(rdd, SQL)
        if work.row_job.operation is RowOperation.DELETE:
            frame = frame.select("id", "p")
        return self.writer.write(frame, work, assigned=assigned)


def scratch():
    """What a write has left in the session's folder."""
    from pyspark import SparkFiles  # noqa: PLC0415

    return list(Path(SparkFiles.getRootDirectory()).iterdir())


def history(table):
    """New partitions, then updates, inserts into small files and deletions, then deletes."""
    return [
        table.insert(*(row(n, "ab"[n % 2], name=wide(n)) for n in range(90))).counts,
        table.upsert(
            *(row(n, "ab"[n % 2], ts=2, name=wide(-n)) for n in range(0, 120, 3)),
            *(row(n, "ab"[n % 2], ts=1 + n % 3, name=wide(-n)) for n in range(0, 120, 3)),
            row(5, "b", ts=3, deleted=True),
            row(1, "c"),
        ).counts,
        table.delete(*(row(n, "ab"[n % 2]) for n in range(0, 120, 7))).counts,
    ]


@STAGINGS
def test_a_history_ends_as_in_this_process(staging, spark, tmp_path):
    ours, twin = (Ledger(tmp_path / name, few_a_file(30)) for name in "ab")
    ours.writer = OnSpark(spark, ours.storage.ref, shuffle_partitions=3, staging=staging)

    assert history(ours) == history(twin)
    assert ours.rows() == twin.rows()
    assert [key for key, _ in ours.files.items()] == [key for key, _ in twin.files.items()]
    for found, expected in zip(ours.tables().values(), twin.tables().values(), strict=True):
        columns = ["_hoodie_file_name"]
        assert found.drop_columns(columns).equals(expected.drop_columns(columns))
    assert [] == scratch()


class DiesOnce:
    """The first attempt at every task of a stage dies when it has done all of its work."""

    def __init__(self, stage, folder):
        self.stage, self.folder = stage, folder

    def __call__(self, *arguments):
        yield from self.stage(*arguments)
        seen = Path(self.folder) / f"{self.stage.__name__}-{arguments[-2]}"
        if not seen.exists():
            seen.touch()
            raise OSError("the machine is gone")


@pytest.mark.parametrize("staging", [long(open_file_staging), open_shuffle_staging])
def test_a_task_that_dies_is_tried_again_and_doubles_no_row(
    staging, sessions, tmp_path, monkeypatch
):
    seen = tmp_path / "seen"
    seen.mkdir()
    table = Ledger(tmp_path / "t", few_a_file(30))
    table.insert(*(row(n, "ab"[n % 2], name=wide(n)) for n in range(60)))
    for stage in (prepare_rows, search_keys_in_files, write_bucket):
        monkeypatch.setattr(stages, stage.__name__, DiesOnce(stage, str(seen)))
    session = sessions.with_conf("local[2,2]")  # a task may fail once
    table.writer = OnSpark(session, table.storage.ref, shuffle_partitions=2, staging=staging)
    done = table.upsert(*(row(n, "ab"[n % 2], ts=2, name=wide(-n)) for n in range(30, 90)))
    assert [] == scratch()

    assert sum(table.rows().values()) == 90
    assert {(ts, key >= 30) for _, key, ts, _ in table.rows()} == {(1, False), (2, True)}
    assert {one.name.partition("-")[0] for one in seen.iterdir()} == {
        "prepare_rows",
        "search_keys_in_files",
        "write_bucket",
    }
    folder = marker_folder(f"20300101000000{table.number:03}")
    markers = {file.name for file in (tmp_path / "t" / folder).rglob("*.marker.CREATE")}
    files = {f"{made.file.name}.marker.CREATE" for made in done.files}
    assert files < markers
    assert len(markers) == 2 * len(files)


@pytest.mark.parametrize("staging", [open_file_staging, long(open_shuffle_staging)])
def test_what_a_task_dies_of_is_told_in_one_sentence(staging, spark, tmp_path):
    table = Ledger(tmp_path)
    table.writer = OnSpark(spark, table.storage.ref, staging=staging)

    with pytest.raises(ReconcilerError) as raised:
        table.insert(row(1), row(None))

    said = str(raised.value)
    assert "record key id: null or empty in 1 of" in said
    assert "\n" not in said
    assert [] == scratch()


def test_a_damaged_base_file_is_named(spark, tmp_path):
    table = Ledger(tmp_path)
    table.insert(row(1))
    (((partition, _), (name, _)),) = table.files.items()
    (tmp_path / partition / name).write_bytes(b"no parquet")
    table.writer = OnSpark(spark, table.storage.ref)

    with pytest.raises(ReconcilerError, match=f"{partition}/{name}"):
        table.upsert(row(1, ts=2))
    assert [] == scratch()


def test_workers_of_one_host_hold_rows_in_files(spark):
    class Elsewhere:
        master = "local-cluster[2,1,1024]"

    assert open_file_staging is choose_staging(spark.sparkContext)
    assert open_shuffle_staging is choose_staging(Elsewhere)


@pytest.mark.parametrize(
    ("master", "cores", "is_here"),
    [
        ("local[2]", 2, True),
        ("local[2,4]", 2, False),  # repeats a task that fails
        ("local[64]", 64, False),
        ("local-cluster[2,1,1024]", 2, False),
        ("spark://one:7077", 2, False),
    ],
)
def test_threads_do_what_workers_on_the_same_few_cores_would_do(master, cores, is_here):
    class Context:
        pass

    Context.master, Context.defaultParallelism = master, cores

    assert is_here == runs_here(Context)


def test_moments_keep_their_instants_whatever_the_zone_of_the_session(sessions, tmp_path):
    from datetime import UTC, datetime  # noqa: PLC0415

    schema = pa.schema(
        [
            ("id", pa.int64()),
            ("p", pa.string()),
            ("ts", pa.int64()),
            ("at", pa.timestamp("us", "UTC")),
        ]
    )
    moment = datetime(2026, 3, 4, 5, 6, 7, 89, tzinfo=UTC)
    session = sessions.with_conf(sql_session_timeZone="Asia/Kathmandu")
    frame = session.createDataFrame(
        [(1, "a", 1, moment)], "id long, p string, ts long, at timestamp"
    )
    table = Ledger(tmp_path, schema=schema)
    work = table.work(RowOperation.UPSERT)
    done = SparkWriter(session, table.storage.ref).write(frame, work, assigned=lambda _found: None)
    table.publish(done)

    ((_, found),) = table.tables().items()
    assert found.column("at").to_pylist() == [moment]
