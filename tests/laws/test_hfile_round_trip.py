"""Entries written to an HFile are read back, all at once or key by key."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reconciler.hudi.codecs import hfile_reader, hfile_writer
from reconciler.hudi.codecs.log_blocks import BlockType, HeaderKey, encode_block, read_blocks
from reconciler.hudi.metadata.index_keys import split_by_file_group
from reconciler.hudi.metadata.listing import merge_file_sizes

KEYS = st.binary(max_size=300)
NAMES = st.dictionaries(st.sampled_from("abcd"), st.none() | st.integers(1, 9))


@given(st.dictionaries(KEYS, st.binary(max_size=3000), min_size=1), st.sets(KEYS, max_size=5))
@settings(max_examples=60, deadline=None)
def test_every_entry_round_trips_and_no_other_exists(cells, others):
    file = hfile_reader.parse_hfile(hfile_writer.encode_hfile(sorted(cells.items()), "{}"), "f")

    assert sorted(cells.items()) == list(file.scan_all())
    assert cells == file.get([*cells, *others - cells.keys()])


@given(
    st.dictionaries(
        KEYS, st.sampled_from([b"", b"a" * 90, b"b" * 30_000, b"c" * 70_000]), min_size=1
    ),
    st.integers(1, 5),
    st.booleans(),
)
@settings(max_examples=60, deadline=None)
def test_arrays_give_the_same_bytes_as_cells(cells, together, is_base_file):
    keys = pa.array(sorted(cells), pa.binary())
    values = pa.array([cells[key] for key in sorted(cells)], pa.binary())
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(hfile_writer, "_BATCH_ROWS", together)
        made = hfile_writer.encode_hfile_arrays(keys, values, "{}", is_base_file=is_base_file)

        mixed = hfile_writer.encode_hfile_arrays(
            keys,
            values[::-1],
            "{}",
            rows=pa.array(range(len(keys))[::-1]),
            is_base_file=is_base_file,
        )

    assert hfile_writer.encode_hfile(sorted(cells.items()), "{}", is_base_file=is_base_file) == made
    assert made == mixed


@given(st.sets(st.text("ab", min_size=3, max_size=9), min_size=1), st.integers(20, 30_000))
@settings(max_examples=60, deadline=None)
def test_samples_include_the_first_entry_of_every_block(keys, size):
    cells = {key.encode(): b"v" * size for key in keys}
    firsts = {key[:2]: key for key in sorted(cells, reverse=True)}
    samples = list(
        hfile_reader.parse_hfile(
            hfile_writer.encode_hfile(sorted(cells.items()), "{}"), "f"
        ).sample_prefixes(2)
    )

    assert sorted(set(samples)) == samples
    assert set(firsts.values()) <= dict(samples).keys() <= cells.keys()


@given(
    st.sampled_from([kind for kind in BlockType if kind is not BlockType.CORRUPT]),
    st.dictionaries(st.sampled_from(HeaderKey), st.text()),
    st.binary(),
)
def test_log_blocks_round_trip(kind, header, content):
    (block,) = read_blocks(encode_block(kind, list(header.items()), content), "f")

    assert (kind, header, content) == (block.type, block.header, block.content)


def compute_java_hash(text):
    value = 0
    for letter in text:
        value = 31 * value + ord(letter) & 0xFFFFFFFF
    return value - (1 << 32) if value >> 31 else value


@given(st.lists(st.text("abcXYZ+/=", min_size=12, max_size=12), max_size=9), st.integers(1, 12))
def test_key_belongs_to_the_file_group_of_its_java_hash(keys, groups):
    found = split_by_file_group(keys, groups)

    assert groups == len(found)
    assert sorted(keys) == sorted(key for some in found for key in some)
    for group, some in enumerate(found):
        assert all(group == abs(compute_java_hash(key)) % groups for key in some)


@given(NAMES, NAMES)
def test_deleted_listing_entries_are_removed(older, newer):
    merged = dict(older)
    merge_file_sizes(merged, newer)
    listed = {name for name, size in merged.items() if size is not None}
    before = {name for name, size in older.items() if size is not None}

    assert (before | {n for n, s in newer.items() if s is not None}) - {
        n for n, s in newer.items() if s is None
    } == listed
