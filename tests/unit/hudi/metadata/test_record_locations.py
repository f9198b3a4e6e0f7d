from __future__ import annotations

import json

import pyarrow as pa
import pytest

from reconciler.errors import UnsupportedError
from reconciler.hudi.codecs import hfile_reader
from reconciler.hudi.metadata.index_definitions import DEFINITIONS
from reconciler.hudi.metadata.record_locations import build_location_blocks
from reconciler.hudi.metadata.table import MetadataSlice
from tests.memory_source import MemorySource


class Table:
    """A record index with a number of file groups, and the keys of files by path."""

    def __init__(self, groups, keys, definition=None):
        self.source = MemorySource()
        self.source.files = {}
        if definition is not None:
            definitions = {"indexDefinitions": {"record_index": definition}}
            self.source.files[DEFINITIONS] = json.dumps(definitions).encode()
        self.names = [f"record-index-{number:04}-0" for number in range(groups)]
        self.keys = keys

    def list_slices(self, partition):
        return tuple(
            MetadataSlice(
                partition=partition,
                file_group=name,
                base=None,
                logs=(),
                newest_instant="0",
                next_log_version=1,
            )
            for name in self.names
        )

    def blocks(self):
        """Return file group -> key -> value."""
        places = [(path, len(path), path.encode()) for path in self.keys]
        found = {}
        for group in build_location_blocks(self, places, self.read, "{}"):
            found[group.file_slice.file_group] = dict(
                hfile_reader.parse_hfile(group.content, "f").scan_all()
            )

            assert group.rows == len(found[group.file_slice.file_group])
            assert [] == group.deleted_keys
        return found

    def deleted(self, *keys):
        """Return file group -> (written keys, None without a block; deleted keys)."""
        places = [(path, len(path), path.encode()) for path in self.keys]
        arrays = [pa.array(batch, pa.string()) for batch in keys]
        return {
            group.file_slice.file_group: (
                None
                if group.content is None
                else [*dict(hfile_reader.parse_hfile(group.content, "f").scan_all())],
                group.deleted_keys,
            )
            for group in build_location_blocks(self, places, self.read, "{}", arrays)
        }

    def read(self, path, size):
        assert size == len(path)
        return [pa.array(some, pa.string()) for some in self.keys[path]]


def test_every_key_is_in_the_file_group_of_its_hash():
    table = Table(2, {"f": [["aa", "b"], ["ab", "é😀"]], "g": [["ac"], []]})

    assert {
        "record-index-0000-0": {
            b"aa": b"f",
            b"ac": b"g",
            b"b": b"f",
            "é😀".encode(): b"f",
        },
        "record-index-0001-0": {b"ab": b"f"},
    } == table.blocks()


def test_the_last_row_of_a_key_counts():
    table = Table(1, {"f": [["k", "a"], ["k"]], "g": [["k"]], "h": [["z"]]})

    assert {"record-index-0000-0": {b"a": b"f", b"k": b"g", b"z": b"h"}} == table.blocks()


def test_groups_without_keys_get_nothing():

    assert ["record-index-0001-0"] == [*Table(2, {"f": [["ab"]]}).blocks()]
    assert {} == Table(2, {"f": [[]]}).blocks()


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        (["a", None], "f: has rows without a record key"),
        (["a" * 32_768], "f: has a key that is too long"),
    ],
)
def test_keys_that_no_index_holds_are_refused(keys, message):
    with pytest.raises(UnsupportedError, match=message):
        Table(1, {"f": [keys]}).blocks()


def test_a_key_of_maximum_length_is_indexed():
    (found,) = Table(1, {"f": [["a" * 32_767]]}).blocks().values()

    assert {b"a" * 32_767: b"f"} == found


@pytest.mark.parametrize("value", ["true", "TRUE", "perhaps"])
def test_a_partitioned_index_is_refused(value):
    table = Table(1, {"f": [["a"]]}, {"indexOptions": {"isPartitioned": value}})
    with pytest.raises(UnsupportedError, match="keeps keys per partition"):
        table.blocks()


@pytest.mark.parametrize("definition", [{}, {"indexOptions": {"isPartitioned": "false"}}])
def test_an_index_marked_as_not_partitioned_is_written(definition):
    table = Table(1, {"f": [["a"]]}, definition)

    assert {"record-index-0000-0": {b"a": b"f"}} == table.blocks()


def test_file_groups_with_a_gap_are_refused():
    table = Table(3, {"f": [["a"]]})
    del table.names[1]
    with pytest.raises(UnsupportedError, match="keeps keys per partition"):
        table.blocks()


def test_a_removed_key_is_deleted_in_the_file_group_of_its_hash():
    table = Table(2, {"f": [["aa"]]})

    assert {
        "record-index-0000-0": ([b"aa"], ["b", "é😀"]),
        "record-index-0001-0": (None, ["ab"]),
    } == table.deleted(["é😀", "ab"], ["b", "ab"], [])


def test_a_moved_key_is_written_and_not_deleted():
    assert {"record-index-0000-0": ([b"a", b"k"], ["z"])} == Table(
        1, {"f": [["k"]], "g": [["a"]]}
    ).deleted(["k", "z", "a"])


def test_a_deletion_without_key_is_refused():
    with pytest.raises(UnsupportedError, match="deleted keys: has rows without a record key"):
        Table(1, {}).deleted([None])
