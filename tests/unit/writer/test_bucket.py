"""The files of one bucket: of a real table's file group, and of new groups."""

from __future__ import annotations

import hashlib
import os
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from reconciler.errors import FormatError
from reconciler.file_slices.base_file.settings import BLOOM, BLOOM_CODE
from reconciler.file_slices.base_file.writer import BaseFileWriter
from reconciler.file_slices.merge.log_records import LogRecords
from reconciler.file_slices.merge.ordering import to_comparable
from reconciler.hudi.codecs.bloom import BloomBuilder, BloomFilter
from reconciler.hudi.files.names import BaseName
from reconciler.storage.open import open_storage
from reconciler.writer.base_file_merge import FileCounts
from reconciler.writer.bucket import Bucket, BucketRows, BucketSettings, BucketWriter
from tests.bloom_filters import build_bloom_filter
from tests.rewrite_jobs import make_rewrite, unpack_table
from tests.selection import long

PREFIX = "00112233-4455-6677-8899-aabbccddeeff"
KEY, PATH = "_hoodie_record_key", "_hoodie_partition_path"


#: base files of both table versions are alike
@pytest.fixture(params=[long("v6_cow_part"), "v9_cow_part"])
def it(request, tmp_path):
    """Return a table and the contents of its first file group."""
    storage, work, groups = make_rewrite(unpack_table(request.param, tmp_path / "t"))
    (group, *_) = groups
    base = group.slices[0]
    old = pq.read_table(pa.BufferReader(storage.read(base.base)))
    (tmp_path / "local").mkdir()
    return Subject(storage, work, group.partition, base, old, tmp_path / "local")


def noise(number, length=64):
    """Return text that no codec compresses below half."""
    return hashlib.shake_256(str(number).encode()).hexdigest(length // 2)


class Subject:
    def __init__(self, storage, work, partition, base, old, folder):
        self.storage, self.partition, self.base, self.old = storage, partition, base, old
        self.folder, self.rewrite = folder, work

    def write(self, rows, *, base=True, target=1 << 30, attempt=3):
        of = self.rewrite
        work = BucketSettings(
            reading=of.reading,
            schema=of.schema,
            form=of.form,
            target=target,
            range_columns=("id",),
        )
        bucket = Bucket(
            number=7,
            partition=self.partition,
            prefix=PREFIX,
            base=self.base if base else None,
        )
        writing = BucketWriter(
            settings=work,
            instant=of.instant,
            bucket=bucket,
            attempt=attempt,
            folder=self.folder,
        )
        return writing.write(rows, self.storage)

    def rows(self, *numbers, ts=1000, name=lambda n: f"new {n}"):
        """Rows for the partition, a number each."""
        return pa.RecordBatch.from_pylist(
            [
                {KEY: str(n), PATH: self.partition, "id": n, "ts": ts, "name": name(n), "x": 0.5,
                 "p": self.partition.rpartition("=")[2]}
                for n in numbers
            ],
            schema=pa.schema(
                [(KEY, pa.string()), (PATH, pa.string())]
                + [f for f in self.rewrite.reading.wanted.columns if not f.name.startswith("_h")]
            ),
        )  # fmt: skip

    def records(self, batch, deletes=()):
        keys = [*batch.column(KEY).to_pylist(), *deletes]
        ts = pa.array([*batch.column("ts").to_pylist(), *([10**6] * len(deletes))], pa.int32())
        return LogRecords(
            keys=pa.array(keys, pa.string()),
            row=np.array([*range(len(batch)), *([-1] * len(deletes))], np.int64),
            is_final=np.zeros(len(keys), np.bool_),
            ordering=(to_comparable(ts, "ts"),),
            table=pa.Table.from_batches([batch]),
        )

    def read(self, made):
        path = f"{made.partition}/{made.file.name}" if made.partition else made.file.name
        return pq.read_table(pa.BufferReader(self.storage.read(path)))

    def footer(self, made):
        path = f"{made.partition}/{made.file.name}" if made.partition else made.file.name
        return pq.read_metadata(pa.BufferReader(self.storage.read(path))).metadata

    @property
    def footer_of_base(self):
        return pq.read_metadata(pa.BufferReader(self.storage.read(self.base.base))).metadata

    def set_base_filter(self, text):
        """Write the base file again with another text of its bloom filter."""
        path = f"{self.storage.location}/{self.base.base}"
        metadata = {**self.footer_of_base, BLOOM.encode(): text.encode()}
        table = pq.read_table(path)
        with pq.ParquetWriter(path, table.schema, store_schema=False) as writer:
            writer.write_table(table)
            writer.add_key_value_metadata(metadata)
        self.base = replace(self.base, base_size=os.path.getsize(path))

    def keys_of(self, made):
        return [key for one in made for key in self.keys(self.read(one))]

    def keys(self, table):
        return table.column(KEY).to_pylist()


def test_an_upsert_goes_on_with_the_file_group_and_leaves_its_other_rows_alone(it):
    first, second, third, *others = it.keys(it.old)
    change = it.records(it.rows(int(first)), deletes=[second])

    (made,) = it.write(BucketRows(records=change, inserts=lambda: [it.rows(9001, 9002)]))

    assert BaseName.parse(made.file.name).file_id == BaseName.parse(made.previous_name).file_id
    assert made.counts == FileCounts(inserts=2, updates=1, deletes=1)
    table = it.read(made)
    assert it.keys(table) == [first, third, *others, "9001", "9002"]
    kept = it.old.slice(2).drop_columns(["_hoodie_file_name"])
    assert table.slice(1, len(kept)).drop_columns(["_hoodie_file_name"]).equals(kept)
    assert set(table.column("_hoodie_file_name").to_pylist()) == {made.file.name}


def footer_filter(it, made):
    """Return the filter in a footer, and the one that all keys of the file make."""
    metadata = it.footer(made)
    text, code = metadata[BLOOM.encode()].decode(), metadata.get(BLOOM_CODE.encode(), b"SIMPLE")
    shape = BloomFilter.parse(text, code.decode(), "f").shape
    return text, build_bloom_filter(pa.array(it.keys(it.read(made))), shape).text


@pytest.mark.parametrize("deletes", [0, 1])
@pytest.mark.parametrize("inserts", [(), (9001, 9002)])
def test_its_bloom_filter_is_that_of_all_its_keys(it, monkeypatch, inserts, deletes):
    hashed = []
    add = BloomBuilder.add
    monkeypatch.setattr(
        BloomBuilder, "add", lambda self, keys: (hashed.extend(keys.to_pylist()), add(self, keys))
    )
    first, second, *_ = it.keys(it.old)
    change = it.records(it.rows(int(first), 9000), deletes=[second][:deletes])

    (made,) = it.write(BucketRows(records=change, inserts=lambda: [it.rows(*inserts)]))

    new = ["9000", *map(str, inserts)]
    assert hashed == (it.keys(it.read(made)) if deletes else new)  # keys in the old filter are not
    found, expected = footer_filter(it, made)
    assert found == expected


def test_a_bloom_filter_that_lacks_keys_of_its_file_is_not_taken_over(it):
    old = it.footer_of_base
    text = old[BLOOM.encode()].decode()
    empty = build_bloom_filter(
        pa.array([], pa.string()),
        BloomFilter.parse(text, old.get(BLOOM_CODE.encode(), b"SIMPLE").decode(), "f").shape,
    )
    lying = replace(empty, last_row_count=len(it.old))
    it.set_base_filter(lying.text)
    first, *_ = it.keys(it.old)

    (made,) = it.write(BucketRows(records=it.records(it.rows(int(first)))))

    found, expected = footer_filter(it, made)
    assert found == expected
    assert [] == list(it.folder.iterdir())


def test_only_new_rows_carry_the_commit_and_each_has_a_number_of_its_own(it):
    first, *_ = it.keys(it.old)

    (made,) = it.write(
        BucketRows(
            records=it.records(it.rows(int(first))), inserts=lambda: [it.rows(9001), it.rows(9002)]
        )
    )

    table = it.read(made)
    own = [t == it.rewrite.instant for t in table.column("_hoodie_commit_time").to_pylist()]
    assert own == [True, *([False] * (len(it.old) - 1)), True, True]
    numbers = table.column("_hoodie_commit_seqno").to_pylist()
    assert [n for n, is_own in zip(numbers, own, strict=True) if is_own] == [
        f"{it.rewrite.instant}_7_{n}" for n in range(3)
    ]


def test_its_statistic_names_the_file_that_it_follows(it):
    first, *_ = it.keys(it.old)

    (made,) = it.write(BucketRows(records=it.records(it.rows(int(first)))))

    stat = made.stat
    assert stat["prevBaseFile"] == made.previous_name == it.base.base.rpartition("/")[2]
    assert stat["prevCommit"] == BaseName.parse(made.previous_name).instant
    assert (stat["numWrites"], stat["numUpdateWrites"], stat["numInserts"]) == (len(it.old), 1, 0)


def test_rows_that_are_only_inserted_stay_beside_rows_of_the_same_key(it):
    first, *_ = it.keys(it.old)

    (made,) = it.write(BucketRows(inserts=lambda: [it.rows(int(first))]))

    assert it.keys(it.read(made)).count(first) == 2


def test_a_group_begins_with_a_file_of_its_own(it):
    (made,) = it.write(BucketRows(inserts=lambda: [it.rows(1), it.rows(2)]), base=False)

    assert made.previous_name is None
    assert BaseName.parse(made.file.name).file_id == f"{PREFIX}-0"
    assert it.keys(it.read(made)) == ["1", "2"]
    assert made.stat["prevCommit"] == "null"


def test_no_file_grows_beyond_the_target_for_new_rows(it):
    batches = [it.rows(*range(n, n + 2000), name=noise) for n in range(0, 40_000, 2000)]
    target = 500_000

    made = it.write(BucketRows(inserts=lambda: batches), base=False, target=target)

    assert len(made) > 1
    assert max(one.file.size for one in made) <= 1.15 * target
    assert [BaseName.parse(m.file.name).file_id for m in made] == [
        f"{PREFIX}-{n}" for n in range(len(made))
    ]
    assert it.keys_of(made) == [str(n) for n in range(40_000)]


def test_what_a_group_has_no_room_for_begins_another(it):
    rows = [it.rows(*range(5000, 25_000), name=noise)]

    old, *more = it.write(BucketRows(inserts=lambda: rows), target=500_000)

    assert old.previous_name is not None
    assert more
    assert [BaseName.parse(m.file.name).file_id for m in more] == [
        f"{PREFIX}-{n + 1}" for n in range(len(more))
    ]
    assert it.keys_of([old, *more]) == [*it.keys(it.old), *(str(n) for n in range(5000, 25_000))]


@pytest.mark.parametrize("base", [True, False])
def test_rows_of_any_width_end_a_file_in_time(it, base):
    """Some rows are so wide that two of them exceed the limit of a file."""
    rows = [it.rows(*range(5000, 5200), name=lambda n: noise(n, 300_000 if n % 20 == 7 else 64))]

    made = it.write(BucketRows(inserts=lambda: rows), base=base, target=1_500_000)

    assert len(made) > 1
    assert all(one.file.size <= 1.15 * 1_500_000 for one in made)
    assert it.keys_of(made)[-200:] == [str(n) for n in range(5000, 5200)]


def test_a_few_rows_too_many_begin_no_small_file(it):
    """One file was planned, and its rows are somewhat wider than estimated."""
    rows = [it.rows(*range(n, n + 500), name=noise) for n in range(5000, 9000, 500)]
    (whole,) = it.write(BucketRows(inserts=lambda: rows), base=False)
    target = int(whole.file.size / 1.12)

    made = it.write(BucketRows(inserts=lambda: rows), base=False, target=target, attempt=4)

    assert [4000] == [one.file.rows for one in made]


def test_a_row_that_is_too_wide_for_a_file_begins_the_next_one(it):
    (made,) = it.write(BucketRows(inserts=lambda: [it.rows(*range(5000, 9000), name=noise)]))
    path = f"{made.partition}/{made.file.name}"
    it.base = replace(it.base, base=path, base_size=made.file.size)
    target = int(made.file.size / 0.8)

    wide = it.rows(20_000, name=lambda n: noise(n, target))
    found = it.write(BucketRows(inserts=lambda: [wide]), target=target, attempt=4)

    assert [made.file.rows, 1] == [one.file.rows for one in found]
    assert all(one.file.size <= 1.15 * target for one in found)


@pytest.mark.parametrize("base", [True, False])
def test_a_row_beyond_the_target_leaves_the_others_together(it, base):
    target = 1_500_000
    wide = it.rows(*range(5000, 9000), name=lambda n: noise(n, 6 * target if n == 7000 else 64))

    made = it.write(BucketRows(inserts=lambda: [wide]), base=base, target=target)

    assert [2000, 1, 1999] == [one.counts.inserts for one in made]


def test_a_file_that_goes_on_is_not_encoded_twice(it, monkeypatch):
    (made,) = it.write(BucketRows(inserts=lambda: [it.rows(*range(5000, 9000), name=noise)]))
    storage, path = it.storage, f"{made.partition}/{made.file.name}"
    it.base = replace(it.base, base=path, base_size=storage.stat(path).size)
    encoded = []
    monkeypatch.setattr(BaseFileWriter, "_measure_sample", lambda self: encoded.append(self.name))
    target = int(1.2 * made.file.size)

    new = [it.rows(*range(20_000, 24_000), name=noise)]
    one, *more = it.write(BucketRows(inserts=lambda: new), target=target, attempt=4)

    assert more
    assert one.file.name not in encoded
    assert one.file.size == pytest.approx(1.08 * target, rel=0.05)


def test_every_file_comes_after_its_marker_and_nothing_stays_on_the_local_disk(it):
    made = it.write(BucketRows(inserts=lambda: [it.rows(1)]), base=False)

    folder = f".hoodie/.temp/{it.rewrite.instant}/{it.partition}"
    markers = {entry.name for entry in it.storage.list(folder)}
    assert markers == {f"{one.file.name}.marker.CREATE" for one in made}
    assert [] == list(it.folder.iterdir())


def test_two_attempts_write_files_of_other_names_for_one_group(it):
    rows = BucketRows(inserts=lambda: [it.rows(1)])

    (one,), (two,) = it.write(rows, attempt=1), it.write(rows, attempt=2)

    assert one.file.name != two.file.name
    assert BaseName.parse(one.file.name).file_id == BaseName.parse(two.file.name).file_id


def test_a_damaged_base_file_is_named_and_nothing_is_brought_to_the_table(it):
    path = it.storage.location + "/" + it.base.base
    before = set(it.storage.list(it.partition))
    with open(path, "r+b") as file:
        file.seek(8)
        file.write(b"\0" * 200)

    with pytest.raises(FormatError, match=it.base.base):
        it.write(BucketRows(records=it.records(it.rows(1))))

    assert {e.name for e in open_storage(it.storage.location).list(it.partition)} == {
        e.name for e in before
    }
