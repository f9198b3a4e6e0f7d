"""Writes to tables with a simple bucket index: one file group a bucket, and each key in its own."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from random import Random

import numpy as np
import pyarrow as pa
import pytest

import reconciler
from reconciler.errors import BusyError, FormatError, ReconcilerError, SpecError, UnsupportedError
from reconciler.hudi.files.key_buckets import BucketRule
from reconciler.hudi.load import load_properties
from reconciler.storage.open import open_storage
from reconciler.writer import stages
from reconciler.writer.request import WriteMode
from tests.crash.test_writes_beside import OVERWRITES
from tests.crash.write_drill import LATE, act_after, put_timeline_file
from tests.record_indexes import add_record_index, find_places, read_indexed_places
from tests.selection import long
from tests.write_runs import WriteRuns, make_rows

SPEC = """\
apiVersion: reconciler/v1
kind: HudiTable
metadata: {{name: t}}
spec:
  path: {path}
  timezone: UTC
  files: {{target: 1MiB, small: 1MiB}}
  concurrency: {{lock: {{provider: filesystem}}}}
  table:
    type: {type}
    version: {version}
    recordKey: [id]
    partitionBy: [p]
    ordering: [ts]
    hiveStyle: false
    {index}
"""
INDEX = "index: {{type: bucket, buckets: {}}}"
FOUR = INDEX.format(4)
KINDS = [
    long(9, "COPY_ON_WRITE"),
    (6, "MERGE_ON_READ"),
    long(8, "MERGE_ON_READ"),
    long(6, "COPY_ON_WRITE"),
    long(8, "COPY_ON_WRITE"),
    long(9, "MERGE_ON_READ"),
]


def make_runs(folder, version=9, type_="COPY_ON_WRITE", index=FOUR):
    """Return runs that write to a table in a folder; the first makes it."""
    file = Path(folder) / "spec.yaml"
    file.write_text(SPEC.format(path=Path(folder) / "t", version=version, type=type_, index=index))
    (spec,) = reconciler.load_specs(file)
    return WriteRuns(spec)


def rows(keys, ts=1, p=None):
    return make_rows(*((key, p or "ab"[key % 2], ts, f"v{ts}") for key in keys))


def list_groups(runs):
    """Return (partition, file id) of each file group with files."""
    found = set()
    for path in Path(runs.spec.path).rglob("*"):
        name = path.name.lstrip(".")
        if ".hoodie" in path.parts or not re.match(r"[0-9a-f]{8}-", name):
            continue
        found.add((path.parent.name, name.partition("_")[0]))
    return sorted(found)


def list_buckets(runs):
    return [(partition, int(file_id[:8])) for partition, file_id in list_groups(runs)]


def find_bucket(runs, keys):
    """Return the buckets of keys, by partition."""
    index = runs.spec.table.index
    rule = BucketRule(
        buckets=index.buckets,
        fields=("id",),
        record_key=("id",),
        table_version=runs.spec.table.version,
    )
    numbers = rule.find_buckets(pa.array([str(key) for key in keys])).tolist()
    return sorted({("ab"[key % 2], number) for key, number in zip(keys, numbers, strict=True)})


@pytest.mark.parametrize(("version", "type_"), KINDS)
def test_every_operation_keeps_one_file_group_a_bucket(tmp_path, version, type_):
    it = make_runs(tmp_path, version, type_, INDEX.format(2))
    model = {}

    def put(keys, ts, way=WriteMode.UPSERT):
        done = it.write(rows(keys, ts), way)
        model.update({key: (key, "ab"[key % 2], ts, f"v{ts}") for key in keys})
        return done

    put(range(20), 1, WriteMode.INSERT)
    assert list_buckets(it) == find_bucket(it, range(20))
    first = list_groups(it)
    put([3, 4, 30, 31], 2)
    put(range(40, 60), 3, WriteMode.BULK_INSERT)
    put(range(60, 70), 4, WriteMode.INSERT)
    gone = [4, 40, 5, 999]
    it.write(rows(gone).select(["id", "p"]), WriteMode.DELETE)
    for key in gone:
        model.pop(key, None)
    put([4, 60], 6)

    assert it.read_rows() == sorted(model.values(), key=str)
    assert list_groups(it) == first  # every bucket had rows from the first write on

    over = [key for key in range(100, 110) if key % 2 == 0]
    it.write(rows(over, 7), WriteMode.INSERT_OVERWRITE)
    model = {key: row for key, row in model.items() if key % 2}
    model.update({key: (key, "a", 7, "v7") for key in over})
    put([100, 1], 8)
    assert it.read_rows() == sorted(model.values(), key=str)
    it.write(rows([]), WriteMode.DELETE_PARTITION, partitions=["b"])
    put([1, 3], 9)
    model = {key: row for key, row in model.items() if key % 2 == 0 or key in (1, 3)}
    assert it.read_rows() == sorted(model.values(), key=str)


def list_files(runs, suffix):
    """Return the names of files in partitions, sorted."""
    found = Path(runs.spec.path).glob(f"*/{suffix}")
    return sorted(path.name for path in found if ".hoodie" not in path.parts)


def test_the_first_rows_of_a_bucket_make_a_base_file_and_later_ones_log_files(tmp_path):
    it = make_runs(tmp_path, 8, "MERGE_ON_READ", INDEX.format(2))

    made = it.write(rows([2], p="a"), WriteMode.INSERT)
    (first,) = list_files(it, "*.parquet")
    added = it.write(rows([2, 4, 6, 8, 10], ts=2, p="a"), WriteMode.INSERT)

    assert (1, 0) == (made.created_groups, made.log_files)
    bases = list_files(it, "*.parquet")
    (other,) = set(bases) - {first}
    assert {"00000000", "00000001"} == {first[:8], other[:8]}
    assert first.partition("_")[0].endswith("-0")
    assert (1, 1, 1) == (added.created_groups, added.appended_groups, added.log_files)
    (log,) = list_files(it, ".0*.log.*")
    assert log.startswith(f".{first.partition('_')[0]}_")
    assert [(key, "a", 2, "v2") for key in (10, 2, 4, 6, 8)] == it.read_rows()


def write_as_flink(runs, batch, monkeypatch):
    """Write all rows to log files, as Flink does."""
    assign = stages.assign_to_buckets

    def append(*given):
        found = assign(*given)
        return replace(found, appends=np.ones(len(found.group), np.bool_))

    with monkeypatch.context() as flink:
        flink.setattr(stages, "assign_to_buckets", append)
        runs.write(batch)


@pytest.mark.parametrize("version", [6, long(8), long(9)])
def test_another_number_of_buckets_is_refused_where_all_rows_are_in_log_files(
    tmp_path, monkeypatch, version
):
    write_as_flink(
        make_runs(tmp_path, version, "MERGE_ON_READ", INDEX.format(2)), rows(range(20)), monkeypatch
    )
    it = make_runs(tmp_path, version, "MERGE_ON_READ", INDEX.format(4))

    with pytest.raises(UnsupportedError, match=r"\.log\..*belongs to bucket \d with 4 buckets"):
        it.write(rows(range(20), ts=2))
    assert 20 == len(it.read_rows())


@pytest.mark.parametrize("version", [6, long(8)])
def test_buckets_of_log_files_alone_as_flink_makes_them_are_followed(
    tmp_path, monkeypatch, version
):
    it = make_runs(tmp_path, version, "MERGE_ON_READ", INDEX.format(1))
    write_as_flink(it, rows([2, 4, 6]), monkeypatch)
    assert ([], [("a", 0)]) == (list_files(it, "*.parquet"), list_buckets(it))

    it.write(rows([2, 8], ts=2))
    it.write(rows([4]), WriteMode.DELETE)
    it.write(rows([10], ts=3), WriteMode.INSERT)

    assert ([], [("a", 0)]) == (list_files(it, "*.parquet"), list_buckets(it))
    assert [(10, "a", 3, "v3"), (2, "a", 2, "v2"), (6, "a", 1, "v1"), (8, "a", 2, "v2")] == (
        it.read_rows()
    )


def test_a_file_group_grows_past_any_target_because_a_bucket_is_one_file(tmp_path):
    it = make_runs(tmp_path, index=INDEX.format(1))
    file = tmp_path / "spec.yaml"
    file.write_text(file.read_text().replace("1MiB", "480kB"))  # most of it is the bloom filter
    (it.spec,) = reconciler.load_specs(file)
    random = Random(1)
    wide = [(key, "a", 1, random.randbytes(1000).hex()) for key in range(300)]

    it.write(make_rows(*wide), WriteMode.BULK_INSERT)
    done = it.write(make_rows((5000, *wide[0][1:])), WriteMode.INSERT)

    assert (0, 1, 1) == (done.created_groups, done.rewritten_groups, done.files)
    assert done.bytes > 1.5 * 480_000
    assert 301 == len(it.read_rows())


def test_keys_that_are_absent_are_counted_where_files_are_rewritten(tmp_path):
    it = make_runs(tmp_path, index=INDEX.format(1))
    it.write(rows([2, 4]))

    done = it.write(rows([2, 6, 7]), WriteMode.DELETE)

    assert (1, 2) == (done.counts.deletes, done.counts.absent_deletes)
    assert [(4, "a", 1, "v1")] == it.read_rows()


def test_an_insert_brings_a_key_twice_into_a_base_file_as_in_hudi(tmp_path):
    it = make_runs(tmp_path, index=INDEX.format(1))
    it.write(rows([2], ts=1), WriteMode.INSERT)
    it.write(rows([2], ts=2), WriteMode.INSERT)

    assert [(2, "a", 1, "v1"), (2, "a", 2, "v2")] == it.read_rows()


def test_a_part_of_the_record_key_may_be_hashed(tmp_path):
    it = make_runs(tmp_path)
    text = Path(tmp_path / "spec.yaml").read_text()
    hashed = text.replace("recordKey: [id]", "recordKey: [id, x]").replace(
        FOUR, "index: {type: bucket, buckets: 16, keys: [x]}"
    )
    Path(tmp_path / "spec.yaml").write_text(hashed)
    (it.spec,) = reconciler.load_specs(tmp_path / "spec.yaml")
    some = [(key, "a", 1, text) for key in range(8) for text in ("one", "two")]

    it.write(make_rows(*some))
    it.write(make_rows(*((key, p, 2, text) for key, p, _, text in some)))

    rule = BucketRule(buckets=16, fields=("x",), record_key=("id", "x"), table_version=9)
    wanted = rule.find_buckets(pa.array(["id:1,x:one", "id:1,x:two"])).tolist()
    assert sorted(("a", number) for number in wanted) == list_buckets(it)
    assert sorted(((key, p, 2, text) for key, p, _, text in some), key=str) == it.read_rows()


def test_overwriting_the_whole_table_may_change_the_number_of_buckets(tmp_path):
    make_runs(tmp_path, index=INDEX.format(3)).write(rows(range(30)))
    it = make_runs(tmp_path, index=INDEX.format(2))

    with pytest.raises(UnsupportedError, match="is none of them; declare the number"):
        it.write(rows([2]))
    it.write(rows(range(30), ts=2), WriteMode.INSERT_OVERWRITE_TABLE)
    it.write(rows(range(30), ts=3))

    assert 30 == len(it.read_rows())


# what is refused


def test_an_index_that_is_not_declared_is_refused_with_what_to_declare(tmp_path):
    make_runs(tmp_path, index=INDEX.format(2)).write(rows(range(20)))
    it = make_runs(tmp_path, index="")

    with pytest.raises(UnsupportedError, match=r"declare spec.table with index.*at least 2"):
        it.write(rows([2]))
    done = it.write(rows([]), WriteMode.DELETE_PARTITION, partitions=["a"])
    assert 1 == len(done.partitions_deleted)


@pytest.mark.parametrize(
    ("index", "words"),
    [
        (INDEX.format(2), "file group 00000002-.* is none of them"),
        (INDEX.format(6), r"which belongs to bucket \d with 6 buckets of id"),
        (INDEX.format(100_000), "which belongs to bucket"),
    ],
)
def test_another_number_of_buckets_is_refused_before_a_row_is_read(tmp_path, index, words):
    make_runs(tmp_path, index=INDEX.format(3)).write(rows(range(0, 60, 2)))
    it = make_runs(tmp_path, index=index)

    with pytest.raises(UnsupportedError, match=words):
        it.write(rows([2], p="c"))
    assert 30 == len(it.read_rows())


def test_a_partition_with_another_number_of_buckets_is_refused_when_rows_come_to_it(
    tmp_path, monkeypatch
):
    make_runs(tmp_path, index=INDEX.format(1)).write(rows(range(0, 20, 2)))
    it = make_runs(tmp_path, index=INDEX.format(2))
    monkeypatch.setattr("reconciler.writer.index_bucket_facts.check_sample", lambda *_: None)
    it.write(rows(range(1, 21, 2)))  # partition b has 2, and a has 1

    with pytest.raises(ReconcilerError, match=r"^a/.* which belongs to bucket"):
        it.write(rows(range(21)))
    it.write(rows(range(1, 31, 2)))


def test_a_table_whose_rows_another_index_placed_is_refused(tmp_path):
    make_runs(tmp_path, index="").write(rows([1, 2]))
    it = make_runs(tmp_path)

    with pytest.raises(UnsupportedError, match="has no number of a bucket: another index placed"):
        it.write(rows([1]))


@pytest.mark.parametrize(
    ("folder", "words"),
    [
        ("consistent_hashing_metadata/a", "consistent-hashing bucket index"),
        ("partition_bucket_index_meta/configs", "expressions for partitions"),
    ],
)
def test_other_bucket_indexes_are_refused_by_name(tmp_path, folder, words):
    it = make_runs(tmp_path)
    it.write(rows([1]))
    (Path(it.spec.path) / ".hoodie/.bucket_index" / folder).mkdir(parents=True)

    with pytest.raises(UnsupportedError, match=words):
        it.write(rows([1]))


def test_two_file_groups_of_a_bucket_and_those_without_locks_are_refused(tmp_path):
    it = make_runs(tmp_path, index=INDEX.format(1))
    it.write(rows([2]))
    (base,) = Path(it.spec.path).glob("a/*.parquet")
    twin = base.with_name(f"00000000-ffff{base.name[13:]}")
    twin.write_bytes(base.read_bytes())
    drop_metadata(it)

    with pytest.raises(UnsupportedError, match="are the same bucket, so Hudi's writers fail too"):
        it.write(rows([2]))

    base.unlink()
    twin.rename(
        twin.with_name(f"00000000-0000-0000-0000-000000000000-0_{base.name.partition('_')[2]}")
    )
    with pytest.raises(UnsupportedError, match="non-blocking concurrency control"):
        it.write(rows([2]))


def drop_metadata(runs):
    """Let readers list folders: the metadata table does not know the files of a test."""
    properties = Path(runs.spec.path) / ".hoodie/hoodie.properties"
    text = re.sub(r"(?m)^hoodie.table.metadata.partitions=.*$", "", properties.read_text())
    properties.write_text(text)


def test_a_key_that_releases_of_hudi_hash_differently_is_refused_in_version_6(tmp_path):
    it = make_runs(tmp_path, 6)
    text = Path(tmp_path / "spec.yaml").read_text()
    Path(tmp_path / "spec.yaml").write_text(text.replace("recordKey: [id]", "recordKey: [x]"))
    (it.spec,) = reconciler.load_specs(tmp_path / "spec.yaml")

    it.write(make_rows((1, "a", 1, "plain")))
    with pytest.raises(ReconcilerError, match="record key '10:30': releases of Hudi"):
        it.write(make_rows((1, "a", 1, "10:30")))


def test_hashed_columns_outside_the_record_key_are_an_error_of_the_spec(tmp_path):
    with pytest.raises(SpecError, match=r"spec.table.index.keys: x is no column of table.recordK"):
        make_runs(tmp_path, index="index: {type: bucket, buckets: 4, keys: [x]}")


def test_a_file_that_is_gone_is_named_by_a_bulk_insert_because_it_would_be_rewritten(tmp_path):
    it = make_runs(tmp_path, index=INDEX.format(1))
    it.write(rows([2]))
    (base,) = Path(it.spec.path).glob("a/*.parquet")
    it.write(rows([4]))
    base, older = sorted(Path(it.spec.path).glob("a/*.parquet"), key=lambda path: path == base)
    base.unlink()
    drop_metadata(it)

    with pytest.raises(FormatError, match=rf"{base.name}: is gone, which a completed write made"):
        it.write(rows([6]), WriteMode.BULK_INSERT)
    assert older.exists()


# other writers


def test_an_insert_waits_for_a_pending_overwrite_because_it_follows_file_groups(tmp_path):
    it = make_runs(tmp_path, 6)
    it.write(rows([2]))
    put_timeline_file(it, f"{LATE}.replacecommit.requested", OVERWRITES)
    put_timeline_file(it, f"{LATE}.replacecommit.inflight")

    with pytest.raises(BusyError, match=rf"replacecommit {LATE} .* let Hudi roll it back"):
        it.write(rows([4]), WriteMode.INSERT)


def write_beside(runs, batch, way=WriteMode.UPSERT):
    """Return storage in which another run writes after this one's first file of partition a."""
    other = WriteRuns(runs.spec)
    other.clock, other.count = runs.clock, 100
    living = frozenset({runs.count + 1})
    return act_after(r"^a/.*\.parquet$", lambda: other.write(batch, way, living=living))


def test_two_writes_that_begin_the_same_bucket_do_not_both_complete(tmp_path):
    it = make_runs(tmp_path, index=INDEX.format(1))
    it.write(rows([1]))
    beside = write_beside(it, rows([2], p="a"), WriteMode.INSERT)

    with pytest.raises(BusyError, match="has made a file group of bucket 0 meanwhile"):
        it.write(rows([4], p="a"), WriteMode.INSERT, around=beside)

    it.write(rows([4], p="a"), WriteMode.INSERT)
    assert [("a", 0), ("b", 0)] == list_buckets(it)
    assert 3 == len(it.read_rows())


def test_writes_to_different_buckets_of_a_partition_both_complete(tmp_path):
    it = make_runs(tmp_path, index=INDEX.format(2))
    (first, *_), (second, *_) = (
        [key for key in range(2, 40, 2) if find_bucket(it, [key]) == [("a", number)]]
        for number in (0, 1)
    )
    it.write(rows([1]))
    beside = write_beside(it, rows([second]))

    it.write(rows([first]), around=beside)

    assert sorted([1, first, second]) == sorted(key for key, *_ in it.read_rows())


def get_live_indexes(runs):
    return set(load_properties(open_storage(runs.spec.path)).metadata_partitions)


def test_a_record_index_is_dropped_where_log_files_may_have_new_keys(tmp_path):
    it = make_runs(tmp_path, 8, "MERGE_ON_READ", INDEX.format(1))
    it.write(rows([2]))
    add_record_index(it.spec.path)
    it.write(rows([2]), WriteMode.DELETE)
    assert {"files", "record_index"} == get_live_indexes(it)

    done = it.write(rows([2, 4]))

    assert {"files"} == get_live_indexes(it)
    assert ["metadata"] == [note.rule for note in done.warnings]
    assert "does not tell which keys of log files are new" in str(done.warnings[0])


def test_a_record_index_knows_new_keys_of_base_files(tmp_path):
    it = make_runs(tmp_path, index=INDEX.format(1))
    it.write(rows([2]))
    add_record_index(it.spec.path)
    it.write(rows([2, 4, 1], ts=2))
    it.write(rows([2, 9]), WriteMode.DELETE)

    keys = [str(number) for number in range(10)]
    assert {"files", "record_index"} == get_live_indexes(it)
    assert find_places(it.spec.path) == read_indexed_places(it.spec.path, keys)
