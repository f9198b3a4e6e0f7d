"""Opening small tables in memory: the scan, and what is read for it."""

from __future__ import annotations

import json
from itertools import count

import pyarrow as pa
import pytest

from reconciler.errors import BlockedError, FormatError, UnsupportedError, UsageError
from reconciler.hudi.table.properties import compute_checksum
from reconciler.reader.model import PATH, ReadRequest
from reconciler.reader.open_scan import open_scan
from reconciler.storage.open import open_storage
from tests.memory_slices import parquet_bytes, record_schema
from tests.storage_wrappers import RecordingStorage

_number = count()
PROPERTIES = {
    "hoodie.table.name": "t",
    "hoodie.table.type": "COPY_ON_WRITE",
    "hoodie.table.version": "6",
    "hoodie.table.partition.fields": "p",
    "hoodie.populate.meta.fields": "false",
}
OLD = record_schema(("id", "string"), ("p", "string"))
NEW = record_schema(("id", "string"), ("p", "string"), ("n", "long"))
ROWS = pa.table({"id": ["a"], "p": ["x"]})
WIDE = pa.table({"id": ["a"], "p": ["x"], "n": pa.array([1], pa.int64())})


def day(number):
    return f"202601{number:02d}000000000"


def written(schema=None, operation="UPSERT", replaced=None):
    extra = {"schema": schema} if schema else {}
    found = {"partitionToWriteStats": {}, "operationType": operation, "extraMetadata": extra}
    if replaced is not None:
        found["partitionToReplaceFileIds"] = replaced
    return json.dumps(found).encode()


def base(group, number):
    return f"{group}_0-0-0_{day(number)}.parquet"


def table(timeline, files=(), **changes):
    """Make a table. ``timeline``: name -> content; ``files``: path -> Arrow table."""
    storage = open_storage(f"memory://read/{next(_number)}")
    said = PROPERTIES | changes
    said["hoodie.table.checksum"] = str(compute_checksum(said))
    text = "".join(f"{key}={value}\n" for key, value in said.items())
    storage.create(".hoodie/hoodie.properties", text.encode())
    for name, data in timeline.items():
        storage.create(f".hoodie/{name}", data)
    for path, rows in dict(files).items():
        folder = path.rpartition("/")[0]
        marker = f"{folder}/.hoodie_partition_metadata".lstrip("/")
        if storage.stat(marker) is None:
            storage.create(marker, b"")
        storage.create(path, parquet_bytes(rows))
    return RecordingStorage(storage)


def opened(*args, request=None, **changes):
    return open_scan(table(*args, **changes), request or ReadRequest())


TWO = {f"{day(1)}.commit": written(OLD), f"{day(2)}.commit": written(NEW)}


def test_a_scan_names_files_columns_and_partitions():
    scan = opened(TWO, {f"x/{base('f', 1)}": ROWS, f"y z/{base('g', 2)}": WIDE})

    assert ["id", "p", "n"] == scan.schema.names
    assert day(2) == scan.as_of
    assert {PATH: ["x", "y z"], "p": ["x", "y z"]} == scan.partitions.to_pydict()
    assert [
        (0, f"x/{base('f', 1)}", False),
        (1, f"y z/{base('g', 2)}", False),
    ] == [(row["partition"], row["base"], row["evolves"]) for row in scan.slices.to_pylist()]


def test_partitions_without_a_slice_are_not_there():
    scan = opened(TWO, {f"x/{base('f', 9)}": ROWS, f"y/{base('g', 2)}": WIDE})

    assert {PATH: ["y"], "p": ["y"]} == scan.partitions.to_pydict()
    assert [0] == scan.slices.column("partition").to_pylist()


def test_time_travel_shows_the_columns_there_were():
    scan = opened(TWO, {f"x/{base('f', 1)}": ROWS}, request=ReadRequest(as_of=day(1)))

    assert ["id", "p"] == scan.schema.names
    assert day(1) == scan.as_of
    assert day(1) == scan.committed.as_of


def test_columns_are_those_asked_for():
    request = ReadRequest(columns=("n", "id"))

    assert ["n", "id"] == opened(TWO, request=request).schema.names
    with pytest.raises(UsageError, match="no column 'x'"):
        opened(TWO, request=ReadRequest(columns=("x",)))


def test_a_table_service_does_not_change_the_columns():
    timeline = TWO | {f"{day(3)}.commit": written(OLD, operation="COMPACT")}

    assert ["id", "p", "n"] == opened(timeline).schema.names


def test_a_write_that_says_no_columns_leaves_those_before_it():
    timeline = TWO | {f"{day(3)}.replacecommit": written(replaced={"x": []})}

    assert ["id", "p", "n"] == opened(timeline).schema.names


def test_where_only_a_table_service_says_columns_they_are_its():
    timeline = {f"{day(3)}.commit": written(NEW, operation="COMPACT")}
    created = {"hoodie.table.create.schema": OLD}

    assert ["id", "p", "n"] == opened(timeline, **created).schema.names


def test_a_table_that_nobody_wrote_to_has_the_columns_it_was_made_with():
    scan = opened({}, **{"hoodie.table.create.schema": OLD})

    assert (["id", "p"], None, 0) == (scan.schema.names, scan.as_of, len(scan.slices))


def test_a_table_of_which_nothing_says_the_columns_has_those_of_its_newest_file():
    files = {f"x/{base('f', 1)}": ROWS, f"x/{base('g', 2)}": WIDE}
    timeline = {f"{day(1)}.commit": written(), f"{day(2)}.commit": written()}

    assert ["id", "p", "n"] == opened(timeline, files).schema.names


def test_an_empty_table_has_no_columns():

    assert [] == opened({}).schema.names


def test_files_of_another_type_than_the_table_are_marked():
    narrow = pa.table({"id": ["a"], "p": ["x"], "n": pa.array([1], pa.int32())})
    files = {f"x/{base('f', 1)}": narrow, f"x/{base('g', 1)}": narrow, f"x/{base('h', 2)}": WIDE}
    scan = opened(TWO, files)

    assert [True, True, False] == scan.slices.column("evolves").to_pylist()


def test_a_bootstrap_skeleton_is_marked_and_not_opened():
    name = "x/f_0-0-0_00000000000001.parquet"
    scan = opened(TWO, {name: pa.table({"other": [1]})})

    assert [True] == scan.slices.column("evolves").to_pylist()


def test_a_damaged_footer_names_the_file():
    storage = table(TWO, {f"x/{base('f', 2)}": WIDE})
    storage.replace(f"x/{base('f', 2)}", b"PAR1 no parquet PAR1")

    with pytest.raises(FormatError, match=base("f", 2)):
        open_scan(storage, ReadRequest())


def test_the_newest_slices_need_no_clean():
    storage = table(TWO | {f"{day(3)}.clean": b"damaged"}, {f"x/{base('f', 2)}": WIDE})

    assert 1 == len(open_scan(storage, ReadRequest()).slices)
    assert 1 == len(open_scan(storage, ReadRequest(kind="readOptimized")).slices)
    with pytest.raises(FormatError, match="clean"):
        open_scan(storage, ReadRequest(as_of=day(1)))


def test_a_pending_restore_is_refused():
    with pytest.raises(BlockedError, match="restore"):
        opened(TWO | {f"{day(3)}.restore.inflight": b""})


def test_time_travel_before_the_timeline_is_refused_with_the_earliest_instant():
    with pytest.raises(BlockedError, match=rf"the earliest readable time is {day(1)}"):
        opened(TWO, request=ReadRequest(as_of="2025"))


META = {"hoodie.populate.meta.fields": "true"}


def test_an_incremental_read_names_the_writes_whose_rows_count():
    files = {f"x/{base('f', 1)}": ROWS, f"x/{base('g', 2)}": WIDE}
    request = ReadRequest(kind="incremental", begin=day(1))
    scan = opened(TWO, files, request=request, **META)

    assert (day(2),) == scan.commit_times
    assert [f"x/{base('g', 2)}"] == scan.slices.column("base").to_pylist()


def test_an_incremental_read_shows_the_columns_there_are_now():
    request = ReadRequest(kind="incremental", begin="0", end=day(1))
    scan = opened(TWO, {f"x/{base('f', 1)}": ROWS}, request=request, **META)

    assert ["id", "p", "n"] == scan.schema.names[5:]
    assert (day(1),) == scan.commit_times


def test_an_incremental_read_from_the_beginning_is_the_table_as_of_its_end():
    files = {f"x/{base('f', 1)}": ROWS, f"x/{base('g', 2)}": WIDE}
    request = ReadRequest(kind="incremental", end=day(1))
    scan = opened(TWO, files, request=request)

    assert scan.commit_times is None
    assert [f"x/{base('f', 1)}"] == scan.slices.column("base").to_pylist()


def test_rows_without_meta_columns_do_not_say_when_they_were_written():
    with pytest.raises(UnsupportedError, match="table t has no meta columns"):
        opened(TWO, request=ReadRequest(kind="incremental", begin=day(1)))
