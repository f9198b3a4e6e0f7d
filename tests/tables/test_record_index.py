"""Read key locations from the record index of a real table."""

from __future__ import annotations

import pytest

from tests.manual_write import ManualWrite
from tests.record_indexes import load_record_index, read_indexed_places
from tests.tables.test_metadata_commit_sync import INDEXED, VERSIONS, is_in, named
from tests.trees import unpack

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
