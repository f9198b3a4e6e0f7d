"""Writes to merge-on-read tables that real Hudi wrote, and what readers find in them."""

from __future__ import annotations

import io
import subprocess
import zipfile
from functools import cache
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import reconciler
from reconciler.errors import BusyError, UnsupportedError
from reconciler.file_slices.merge.log_records import read_data_batches
from reconciler.hudi.codecs.log_blocks import BlockType, HeaderKey, read_blocks
from reconciler.hudi.load import load_properties
from reconciler.layout.sizing.assignment_rules import MergeOnRead
from reconciler.storage.open import open_storage
from reconciler.storage.read_only import ReadOnlyStorage
from reconciler.verification.verify import verify_metadata
from reconciler.writer import facts
from reconciler.writer.lookup_costs import LookupWay
from reconciler.writer.request import WriteMode
from reconciler.writer.stream_batches import has_batch, make_batch_extra
from tests.crash.clustering_drill import get_outcome
from tests.crash.compaction_drill import make_compacting
from tests.crash.write_drill import copy_table, get_timeline_folder, make_shared_folder
from tests.selection import long
from tests.table_sessions import write_spec
from tests.write_runs import WriteRuns, make_rows, read_snapshot

TABLES = Path(__file__).parent
LOGGED = TABLES.parent / "cases/smallfiles/written/0.15.0__m04_inmemory_logindex.zip"
#: the columns of tables whose compactions real Hudi has planned
BY_TEXT = pa.schema(
    [
        ("id", pa.string()),
        ("p", pa.string()),
        ("ts", pa.int64()),
        ("x", pa.string()),
        ("n", pa.float64()),
    ]
)
COLUMNS = ("id", "p", "ts", "name", "x")
SPEC = """\
apiVersion: reconciler/v1
kind: HudiTable
metadata: {{name: t}}
spec:
  path: {path}
  timezone: UTC
  concurrency: {{lock: {{provider: filesystem}}}}
"""


def open_table(name, folder):
    """Unpack a table and return runs that write to it."""
    subprocess.run(["unzip", "-qo", TABLES / f"{name}.zip", "-d", folder], check=True)
    (folder / "spec.yaml").write_text(SPEC.format(path=folder / name))
    (spec,) = reconciler.load_specs(folder / "spec.yaml")
    return WriteRuns(spec)


def read_table(it, columns=COLUMNS):
    return sorted(read_snapshot(open_storage(it.spec.path), columns), key=str)


def list_logs(it):
    return {path for path in Path(it.spec.path).rglob(".*.log.*") if path.suffix != ".crc"}


def show_new_blocks(it, before):
    """Return type and header of each block that was written since, by file."""
    return [
        (block.type, block.header)
        for path in sorted(list_logs(it) - before)
        if ".hoodie" not in path.parts
        for block in read_blocks(path.read_bytes(), path.name)
    ]


@cache
def write_table(version):
    """Write a table with two rows in one base file once for all tests, which copy it."""
    folder = Path(make_shared_folder(), f"log-writes-{version}")
    folder.mkdir()
    runs = WriteRuns(write_spec(folder, version=version, kind="MERGE_ON_READ"))
    runs.write(make_rows((1, "a", 1, "one"), (2, "a", 1, "two")))
    return runs


@pytest.fixture(params=[long(6), 9])
def it(request, tmp_path):
    """Return runs on a copy of the table."""
    return copy_table(write_table(request.param), tmp_path / "t", own_clock=True)


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("v8_mor_part", BlockType.AVRO_DATA),
        long("v9_mor_part", BlockType.AVRO_DATA),
        ("v6_mor_nopart", BlockType.PARQUET_DATA),
        long("v8_mor_nopart", BlockType.PARQUET_DATA),
        ("v6_lazy_mor_tls", BlockType.AVRO_DATA),
    ],
)
def test_updates_of_a_table_of_hudi_go_to_blocks_of_the_kind_that_its_writers_use(
    tmp_path, name, kind
):
    it = open_table(name, tmp_path)
    before, logs = read_table(it), list_logs(it)
    changed = [(*row[:2], row[2] + 1, "ours", 0.5) for row in before[:2]]
    schema = pa.schema(
        [
            ("id", pa.int64()),
            ("p", pa.string()),
            ("ts", pa.int32()),
            ("name", pa.string()),
            ("x", pa.float64()),
        ]
    )

    outcome = it.write(make_rows(*changed, schema=schema))

    assert sorted([*changed, *before[2:]], key=str) == read_table(it)
    assert (0, 2) == (outcome.counts.inserts, outcome.counts.updates)
    assert {kind} == {found for found, _header in show_new_blocks(it, logs)}


@pytest.mark.parametrize("version", ["0.15.0", long("1.0.2"), long("1.2.0")])
def test_log_files_leave_every_index_right_and_a_pending_compaction_to_be_finished(
    tmp_path, version
):
    drill = make_compacting(version, tmp_path / "t")
    it = WriteRuns(drill.spec)
    it.clock = drill.clock
    first, second, third, *others = read_table(it, BY_TEXT.names)
    changed = [(*row[:2], row[2] + 90, "ours", 0.5) for row in (first, second)]
    new = ("a99", "a", 1, "new", 0.5)
    live, wrong = describe_indexes(it)

    it.write(make_rows(*changed, new, schema=BY_TEXT))
    it.write(make_rows(third, schema=BY_TEXT), WriteMode.DELETE)

    expected = sorted([*changed, new, *others], key=str)
    assert (expected, live, wrong) == (read_table(it, BY_TEXT.names), *describe_indexes(it))
    result = drill.apply(drill.plan())
    assert (0, ["completed"]) == (result.exit_code, [get_outcome(result)["how"]])
    after, wrong_after = describe_indexes(it)
    assert (expected, live) == (read_table(it, BY_TEXT.names), after)
    assert wrong_after <= wrong


def describe_indexes(it):
    """Return the live indexes, and what is wrong in them: Hudi 1.0 narrows partition_stats."""
    storage = ReadOnlyStorage(open_storage(it.spec.path))
    differences = verify_metadata(storage, None).differences
    return (
        load_properties(storage).metadata_partitions,
        {(one.metadata_partition, one.partition, one.column) for one in differences},
    )


def test_rows_that_hudi_put_into_log_files_are_found_and_new_ones_join_them(tmp_path):
    # the table's writers have an index that finds rows in log files, so no row has a base file
    with zipfile.ZipFile(LOGGED) as archive:
        archive.extractall(tmp_path)
        rows = pq.read_table(io.BytesIO(archive.read("input.parquet")))
    (tmp_path / "spec.yaml").write_text(SPEC.format(path=tmp_path / "table"))
    (spec,) = reconciler.load_specs(tmp_path / "spec.yaml")
    it = WriteRuns(spec)
    columns = rows.schema.names
    before = read_table(it, columns)
    time = columns.index("ts")
    newer = [(*row[:time], row[time] + 1, *row[time + 1 :]) for row in before[:3]]
    new = tuple(rows.slice(0, 1).to_pylist()[0].values())

    outcome = it.write(make_rows(*newer, new, schema=rows.schema))

    assert sorted([*newer, *before[3:], new], key=str) == read_table(it, columns)
    assert (1, 3, 0) == (outcome.counts.inserts, outcome.counts.updates, outcome.files)


def test_a_key_that_log_files_have_deleted_is_in_one_file_only_when_it_comes_back(it):
    it.write(make_rows((1, "a", 1, None)), WriteMode.DELETE)
    it.write(make_rows((1, "a", 2, "again")), WriteMode.INSERT)

    it.write(make_rows((1, "a", 3, "changed")))

    assert [(1, "a", 3, "changed"), (2, "a", 1, "two")] == it.read_rows()


def test_a_key_that_log_files_have_deleted_comes_back_in_its_file_group(it):
    it.write(make_rows((1, "a", 1, None)), WriteMode.DELETE)
    outcome = it.write(make_rows((1, "a", 2, "again")))

    assert [(1, "a", 2, "again"), (2, "a", 1, "two")] == it.read_rows()
    assert (0, 1) == (outcome.created_groups, outcome.appended_groups)


@pytest.mark.long
def test_rows_are_found_beside_log_files_whose_writes_are_archived(it):
    it.write(make_rows((1, "a", 2, "ONE")))
    timeline = get_timeline_folder(it)
    kept = it.write(make_rows((2, "a", 2, "TWO"))).instant
    for file in timeline.glob("*commit*"):
        if not file.name.startswith(kept):
            file.unlink()

    outcome = it.write(make_rows((1, "a", 3, "one"), (2, "a", 3, "two")))

    assert [(1, "a", 3, "one"), (2, "a", 3, "two")] == it.read_rows()
    assert (0, 2) == (outcome.counts.inserts, outcome.counts.updates)


@pytest.mark.parametrize("version", [6, long(9)])
def test_rows_that_only_log_files_of_archived_writes_have_are_found(tmp_path, monkeypatch, version):
    it = copy_table(write_table(version), tmp_path / "t", own_clock=True)
    with monkeypatch.context() as patched:
        patched.setattr(facts, "find_table_kind", lambda *_, **__: MergeOnRead(indexes_logs=True))
        it.write(make_rows((3, "a", 1, "three")))
    kept = it.write(make_rows((2, "a", 2, "TWO"))).instant
    for file in get_timeline_folder(it).glob("*commit*"):
        if not file.name.startswith(kept):
            file.unlink()

    outcome = it.write(make_rows((3, "a", 2, "THREE")))

    assert [(1, "a", 1, "one"), (2, "a", 2, "TWO"), (3, "a", 2, "THREE")] == it.read_rows()
    assert (0, 1) == (outcome.counts.inserts, outcome.counts.updates)


def test_what_log_files_have_deleted_is_not_deleted_again(it):
    it.write(make_rows((1, "a", 1, None)), WriteMode.DELETE)
    outcome = it.write(make_rows((1, "a", 1, None)), WriteMode.DELETE)

    assert ("nothing", 1) == (outcome.status, outcome.counts.absent_deletes)
    assert LookupWay.FILES is outcome.lookup.way


def test_an_older_row_stays_behind_the_newer_one(it):
    it.write(make_rows((1, "a", 0, "older"), (2, "a", 1, "same time")))

    assert [(1, "a", 1, "one"), (2, "a", 1, "same time")] == it.read_rows()


def test_a_batch_of_a_stream_is_appended_once(it):
    batch = make_batch_extra("s", 7)
    it.write(make_rows((1, "a", 5, "x")), extra=batch)
    logs = list_logs(it)

    assert has_batch(open_storage(it.spec.path), "s", 7)
    with pytest.raises(BusyError, match="batch 7 of stream s"):
        it.write(make_rows((1, "a", 5, "x")), extra=batch)
    assert logs == list_logs(it)


def test_new_rows_fill_small_slices_without_log_files(it):
    outcome = it.write(make_rows((3, "a", 1, "three")))

    assert (1, 0) == (outcome.rewritten_groups, outcome.appended_groups)
    it.write(make_rows((1, "a", 2, "ONE")))
    outcome = it.write(make_rows((4, "a", 1, "four"), (2, "a", 2, "TWO")))
    assert (1, 0, 1) == (
        outcome.created_groups,
        outcome.rewritten_groups,
        outcome.appended_groups,
    )
    assert 4 == len(it.read_rows())


def test_changes_name_the_rows_of_the_base_file_that_they_replace(tmp_path):
    it = WriteRuns(write_spec(tmp_path, version=9, kind="MERGE_ON_READ"))
    first = it.write(make_rows(*((key, "a", 1, "x") for key in range(5)))).instant
    logs = list_logs(it)
    it.write(make_rows((3, "a", 2, "y"), (1, "a", 2, "y")))
    (path,) = (path for path in list_logs(it) - logs if ".hoodie" not in path.parts)
    header = show_new_blocks(it, logs)[0][1]
    (block,) = read_blocks(path.read_bytes(), path.name)
    (batch,) = read_data_batches(block, ["id"])

    assert [1, 3] == batch.column("id").to_pylist()

    assert first == header[HeaderKey.BASE_FILE_INSTANT_TIME_OF_RECORD_POSITIONS]
    assert header[HeaderKey.RECORD_POSITIONS]


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("hoodie.record.merge.mode=CUSTOM", "record merge mode CUSTOM"),
        ("hoodie.table.partial.update.mode=IGNORE_DEFAULTS", "partial updates"),
        ("hoodie.table.cdc.enabled=true", "change data"),
    ],
)
def test_what_is_not_merged_here_is_refused_by_name(it, line, problem):
    properties = Path(it.spec.path, ".hoodie", "hoodie.properties")
    key = line.partition("=")[0]
    kept = [text for text in properties.read_text().splitlines() if not text.startswith(key)]
    properties.write_text("\n".join([*kept, line, ""]))

    with pytest.raises(UnsupportedError, match=problem):
        it.write(make_rows((1, "a", 2, "two")))
