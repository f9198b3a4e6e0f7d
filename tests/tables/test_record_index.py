"""Read key locations from the record index of a real table."""

from __future__ import annotations

import pytest

from reconciler.transaction.metadata import write_sync
from reconciler.writer.request import WriteMode
from tests.manual_write import ManualWrite
from tests.moving_tables import MovingTable, make_row
from tests.record_indexes import (
    add_record_index,
    find_places,
    load_record_index,
    read_indexed_places,
)
from tests.tables.test_metadata_commit_sync import INDEXED, VERSIONS, is_in, named
from tests.trees import unpack
from tests.write_runs import make_rows

KEYS = [f"k{number}" for number in range(9)]


@pytest.fixture(params=VERSIONS)
def write(request, tmp_path):
    """A table with every index and five rows: k1 and k2 in p=a, k3 to k5 in p=b."""
    return ManualWrite(unpack(INDEXED / f"{request.param}.zip", tmp_path))


def test_every_key_has_the_location_of_its_row_and_others_have_none(write):
    assert is_in(write) == read_indexed_places(write.folder, KEYS)
    assert {"k1", "k2", "k3", "k4", "k5"} == is_in(write).keys()


def test_changed_locations_count_once_their_write_completes(write):
    before = is_in(write)
    write.begin()
    for number, name in enumerate(write.before["p=a"]):
        gone = {"k1", "k2"} & set(write.keys_of("p=a", name))
        write.update_group("p=a", number, gone=sorted(gone))
    moved = write.changed_row("p=a", "k1", **named("k1", "p=c"))
    write.start_group("p=c", [moved], ("p=b", write.before["p=b"][0]))
    write.sync()
    assert before == read_indexed_places(write.folder, KEYS)
    write.complete()

    assert is_in(write) == read_indexed_places(write.folder, KEYS)
    assert ("p=c", "k2" in is_in(write)) == (is_in(write)["k1"][0], False)


def test_an_index_by_partition_is_not_used_for_all_keys(write):
    folder = write.folder / ".hoodie/metadata/record_index"
    for path in folder.glob(".record-index-*"):
        path.rename(folder / path.name.replace("record-index-", "record-index-p=a-"))

    assert load_record_index(write.folder) is None


@pytest.mark.parametrize(
    ("rows", "way", "read"),
    [
        ([(1, "a"), (2, "b")], WriteMode.UPSERT, set()),
        ([(1, "a"), (4, "b")], WriteMode.UPSERT, {"b"}),
        ([(1, "a")], WriteMode.DELETE, {"a"}),
        ([(2, "a")], WriteMode.UPSERT, {"a", "b"}),
        ([(1, "a"), (4, "c")], WriteMode.UPSERT, {"c"}),
        ([(1, "a"), (4, "b")], WriteMode.INSERT_OVERWRITE, {"a", "b"}),
    ],
    ids=[
        "updates",
        "an insert",
        "a deletion",
        "a new partition",
        "a new file",
        "overwritten files",
    ],
)
def test_only_files_whose_keys_change_are_compared(tmp_path, monkeypatch, rows, way, read):
    """Key 1 is in partition a; 2 and 3 are in b. The comparison holds up other writers."""
    table = MovingTable(tmp_path)
    table.insert(1, partition="a")
    table.insert(2, partition="b")
    add_record_index(table.spec.path)
    compared, read_keys = set(), write_sync.read_record_keys

    def watch(storage, path, size):
        compared.add(path.partition("/")[0].removeprefix("p="))
        return read_keys(storage, path, size)

    monkeypatch.setattr(write_sync, "read_record_keys", watch)
    before = find_places(table.spec.path)
    table.write(make_rows(*(make_row(*row, ts=2) for row in rows)), way)

    places = find_places(table.spec.path)
    assert read == compared
    assert bool(read) == (places != before)
    assert places == read_indexed_places(table.spec.path, ["1", "2", "3", "4"])
