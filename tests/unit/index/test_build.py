"""Building an index from many footers: shares, unreadable files, and memory."""

from __future__ import annotations

import io
import subprocess
import sys
import threading
import tracemalloc

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from reconciler.arrays import to_arrow
from reconciler.errors import NotFoundError, PermissionDeniedError, UnsupportedError
from reconciler.index.build import (
    IndexRequest,
    ThreadedIndexBuilder,
    combine_parts,
    files_to_batch,
    split_batch,
)
from reconciler.index.model import FileKeys
from reconciler.storage.api import StorageRef
from tests.unit.index.footer_samples import index_facts

REF = StorageRef("memory")
ASKED = IndexRequest(columns=("x",), schema=pa.schema([("x", pa.int64())]))


def parquet(values, *, padding=0, row_group_size=None):
    sink = io.BytesIO()
    table = pa.table({"x": pa.array(values, pa.int64())})
    pairs = {"bloom": "b" * padding} if padding else None
    with pq.ParquetWriter(sink, table.schema) as file:
        file.write_table(table, row_group_size)
        if pairs:
            file.add_key_value_metadata(pairs)
    return sink.getvalue()


class Store:
    """Files by path; some cannot be read. ``most``: the most concurrent readers."""

    def __init__(self, files, refusing=(), location="/t"):
        self.files, self.refusing = files, dict(refusing)
        self.now = self.most = 0
        self.location = location
        self.lock = threading.Lock()

    def read_range(self, path, start, length):
        with self.lock:
            self.now += 1
            self.most = max(self.most, self.now)
        try:
            if path in self.refusing:
                raise self.refusing[path]
            return self.files[path][start : start + length]
        finally:
            with self.lock:
                self.now -= 1

    def keys(self):
        paths = sorted(self.files)
        parts = [path.rpartition("/") for path in paths]
        return FileKeys(
            partition=to_arrow([folder for folder, _, _ in parts]).dictionary_encode(),
            name=to_arrow([name for _, _, name in parts]),
            size=np.array([len(self.files[path]) for path in paths], np.int64),
        )


def build(store, *, at_once=4, asked=ASKED):
    progress = []
    built = ThreadedIndexBuilder(lambda _: store, at_once=at_once).build(
        REF, asked, store.keys(), progress=progress.append
    )
    return built, progress


@pytest.mark.parametrize("at_once", [1, 7])
def test_each_file_has_one_row_however_files_are_split(at_once):
    many = {f"p={n % 3}/f{n:03}.parquet": parquet([n, n + 1]) for n in range(150)}
    store = Store({"a.parquet": parquet([-5, 9]), **many})

    built, progress = build(store, at_once=at_once)

    facts = index_facts(built.index)
    assert (151, 0, ()) == (len(built.index), built.unread_count, built.problems)
    assert 151 == sum(progress)
    assert [64, 64, 23] == sorted(progress, reverse=True)
    assert sorted(store.files) == [
        f"{folder}/{name}".lstrip("/")
        for folder, name in zip(facts["partition"], facts["name"], strict=True)
    ]
    least = dict(zip(facts["name"], built.index.columns["x"].least.to_pylist(), strict=True))
    assert {"a.parquet": -5, **{f"f{n:03}.parquet": n for n in range(150)}} == least
    assert store.most <= at_once


def test_unreadable_files_are_unknown_and_the_first_few_are_reported():
    files = {f"f{n}.parquet": parquet([n]) for n in range(12)}
    refusing = {
        "f0.parquet": NotFoundError("/t/f0.parquet", "is not there"),
        "f1.parquet": PermissionDeniedError("/t/f1.parquet", "may not be read"),
    }
    short = {f"f{n}.parquet": b"PAR1" for n in (2, 3, 4)}
    bad = parquet([5])
    broken = {"f5.parquet": bad[:-60] + b"\xff" * 52 + bad[-8:]}

    built, progress = build(Store({**files, **short, **broken}, refusing))

    rows = dict(zip(built.index.name.to_pylist(), built.index.rows.tolist(), strict=True))
    assert {f"f{n}.parquet" for n in range(6)} == {name for name in rows if rows[name] == -1}
    assert (6, 12) == (built.unread_count, sum(progress))
    damaged = "it has only 4 bytes, too few for a Parquet file; restore the file from a copy"
    assert (
        "/t/f0.parquet: is not there",
        "/t/f1.parquet: may not be read",
        f"f2.parquet: {damaged}",
        f"f3.parquet: {damaged}",
        f"f4.parquet: {damaged}",
    ) == built.problems


def test_footer_that_does_not_parse_is_reported():
    bad = parquet([5])
    built, _ = build(Store({"f.parquet": bad[:-60] + b"\xff" * 52 + bad[-8:]}))

    assert ("f.parquet: its footer cannot be read; restore the file from a copy",) == built.problems


def test_no_files_give_an_empty_index_with_the_columns():
    built, progress = build(Store({}))

    assert (0, ["x"], []) == (len(built.index), list(built.index.columns), progress)


def test_column_that_cannot_be_indexed_is_an_error():
    with pytest.raises(UnsupportedError, match="column y cannot be indexed"):
        build(Store({}), asked=IndexRequest(columns=("y",), schema=ASKED.schema))


def test_error_in_a_thread_is_raised():
    files = {f"{n}.parquet": b"" for n in range(200)}

    with pytest.raises(KeyboardInterrupt):
        build(Store(files, dict.fromkeys(files, KeyboardInterrupt())))


def test_order_of_parts_does_not_matter():
    files = {f"f{n}.parquet": parquet([n]) for n in range(5)}
    built = [build(Store({path: data}))[0] for path, data in files.items()]

    assert index_facts(combine_parts(built, ASKED).index) == index_facts(
        combine_parts(built[::-1], ASKED).index
    )


def test_batches_are_split_in_order():
    store = Store({f"p/{n}": b"" for n in range(5)})

    shares = [
        share.column("name").to_pylist() for share in split_batch(files_to_batch(store.keys()), 2)
    ]

    assert [["0", "1"], ["2", "3"], ["4"]] == shares


def test_memory_does_not_grow_with_bloom_filters():
    data = parquet([1, 2], padding=400_000)
    store = Store({f"f{n:03}.parquet": data for n in range(60)})
    build(store)
    tracemalloc.start()
    build(store, at_once=2)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert most < 10 * len(data)  # of 60 files


@pytest.mark.parametrize(("location", "calls"), [("/t", [1, 2, 2, 2]), ("s3://t", [2, 1, 1, 1])])
def test_bloom_filters_are_read_only_from_remote_stores(location, calls):
    store = Store({f"f{n}": parquet([n], padding=400_000 + n) for n in range(4)}, location=location)
    taken = []
    read_range = store.read_range

    def counted(path, start, length):
        taken.append((path, length))
        return read_range(path, start, length)

    store.read_range = counted
    built, _ = build(store, at_once=1)

    assert [0, 1, 2, 3] == built.index.columns["x"].least.to_pylist()
    assert calls[1:] == [sum(path == f"f{n}" for path, _ in taken) for n in (1, 2, 3)]
    most = max(length for path, length in taken if path != "f0")
    assert most < 10_000 if location == "/t" else most > 400_000


def test_footers_of_all_sizes_are_read_by_their_ends_or_as_a_whole():
    """The sizes learned from one file are only a guess for the others."""
    files = {}
    for n in range(60):
        padding = (400_000, 0, 400_000, 70_000)[n % 4]
        values = list(range(n, n + 1 + 50 * (n % 3)))
        files[f"f{n:02}"] = parquet(values, padding=padding, row_group_size=1)
    built, _ = build(Store(files), at_once=1)
    slow, _ = build(Store(files, location="s3://t"), at_once=3)

    assert index_facts(built.index) == index_facts(slow.index)
    assert list(range(60)) == built.index.columns["x"].least.to_pylist()
    assert [n + 50 * (n % 3) for n in range(60)] == built.index.columns["x"].greatest.to_pylist()


def test_file_that_changes_between_two_reads_is_read_again_as_a_whole():
    files = {f"f{n}": parquet([n], padding=400_000) for n in range(3)}
    store = Store(files)
    read_range = store.read_range

    def torn(path, start, length):
        data = read_range(path, start, length)
        return bytes(length) if path == "f1" and 1_000 < length < 10_000 else data

    store.read_range = torn
    built, _ = build(store, at_once=1)

    assert [0, 1, 2] == built.index.columns["x"].least.to_pylist()
    assert 0 == built.unread_count


PROGRAM = """\
import sys
import pyarrow as pa
from reconciler.arrays import to_arrow
from reconciler.index.build import IndexRequest, read_share
from reconciler.index.codec import Provenance, encode_index
from reconciler.storage.open import open_storage
import numpy as np
kinds = {'i': pa.int32(), 'l': pa.int64(), 'y': pa.float64(), 'f': pa.float32(), 's': pa.string(),
         'b': pa.binary(), 't': pa.bool_(), 'd': pa.date32(), 'us': pa.timestamp('us')}
size = to_arrow(np.array([int(sys.argv[2])]))
rows = pa.RecordBatch.from_arrays([to_arrow(['']), to_arrow(['f.parquet']), size],
                                  names=['partition', 'name', 'size'])
request = IndexRequest(columns=tuple(kinds), schema=pa.schema(list(kinds.items())))
built = read_share(open_storage(sys.argv[1]), request, rows, progress=print)
encode_index(built.index, Provenance(table='t', instant='2026', tool='test'))
print(built.index.rows.tolist(), 'pandas' in sys.modules)
"""


def test_building_an_index_imports_no_pandas(tmp_path):
    """Importing pandas takes half a second, as long as reading a thousand footers."""
    table = pa.table(
        {
            "i": pa.array([1, None], pa.int32()),
            "l": [1, 2],
            "y": [1.0, None],
            "f": pa.array([1.0, 2.0], pa.float32()),
            "s": ["a", "b"],
            "b": [b"a", None],
            "t": [True, False],
            "d": pa.array([1, 2], pa.date32()),
            "us": pa.array([1, 2], pa.timestamp("us")),
        }
    )
    pq.write_table(table, tmp_path / "f.parquet", row_group_size=1)
    size = (tmp_path / "f.parquet").stat().st_size
    command = [sys.executable, "-c", PROGRAM, str(tmp_path), str(size)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)

    assert "[2] False" == done.stdout.splitlines()[-1]
