"""Damage that would make pyarrow end the process is detected before pyarrow reads it."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings

from reconciler.index.footer_validation import (
    LeafColumn,
    find_chunk_starts,
    is_valid_footer,
    list_leaves,
)
from reconciler.index.footers import index_footers
from reconciler.index.slim_footers import FooterSlimmer
from tests.selection import examples
from tests.unit.index.footer_samples import read_facts, write_footer
from tests.unit.index.test_slim_footers import draw_footer, parse_footer

SCHEMA = pa.schema([("x", pa.int64())])
TABLE = pa.table({"x": [7, None, 9]})
#: a footer that is split, and one that is read as a whole because its key is too long
FOOTERS = [
    write_footer(TABLE, store_schema=False),
    write_footer(TABLE.replace_schema_metadata({"k" * 130: "v"})),
]


def replace_bytes(footer, old, new):
    """Return the footer with some bytes replaced and its length adjusted."""
    assert 1 == footer.count(old)
    found = footer[:-8].replace(old, new)
    return found + len(found).to_bytes(4, "little") + b"PAR1"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b"(\x08\t\x00\x00\x00\x00\x00\x00\x00", b"(\x07\t\x00\x00\x00\x00\x00\x00"),
        (b"\x1c\x18\x08\t\x00\x00\x00\x00\x00\x00\x00", b"\x1c\x18\x00"),
        (b"<)\x06\x19&\x02\x04\x00", b"<)\x06\x19\x16\x02\x00"),
        (b"<)\x06\x19&\x02\x04\x00", b"<)\x26\x02\x02\x19&\x02\x04\x00"),
        (b"<)\x06\x19&\x02\x04\x00", b"<\x16\x02\x19\x06\x19&\x02\x04\x00"),
        (b"<)\x06\x19&\x02\x04\x00\x00", b"<)\x06\x19&\x02\x04\x00\x00\x5c\x00"),
        (b"%\x02\x18\x01x", b"%\x02\x18\x01z"),
    ],
    ids=[
        "a short bound",
        "no bound at all",
        "too few levels",
        "levels that it has not",
        "bytes of numbers",
        "an encrypted chunk",
        "another name in the schema",
    ],
)
@pytest.mark.parametrize("footer", FOOTERS, ids=["apart", "whole"])
def test_file_with_chunks_contradicting_its_schema_is_unknown_and_affects_no_other(
    footer, old, new
):
    assert (FooterSlimmer().slim(footer) is None) == (footer is FOOTERS[1])
    files = [("", "a", 1, footer), ("", "b", 1, replace_bytes(footer, old, new))]
    found = index_footers([*files, ("", "c", 1, footer)], ["x"], SCHEMA)

    assert [3, -1, 3] == found.rows.tolist()
    assert [(7, 9, 1, 3), (None, None, -1, -1), (7, 9, 1, 3)] == [
        read_facts(found.columns["x"], row) for row in range(3)
    ]


def test_damage_in_a_column_that_is_not_indexed_is_ignored():
    footer = write_footer(pa.table({"x": [1], "y": [1.5]}), store_schema=False)
    bad = replace_bytes(footer, b"(\x08" + b"\x00" * 6 + b"\xf8?", b"(\x07" + b"\x00" * 6 + b"?")
    found = index_footers([("", "f", 1, bad)], ["x"], SCHEMA)

    assert (1, 1, 0, 1) == read_facts(found.columns["x"])
    assert not is_valid_footer(bad, parse_footer(bad).schema)
    assert is_valid_footer(footer, parse_footer(footer).schema)


@settings(max_examples=examples(30, many=60), deadline=None)
@given(draw_footer(pairs=True))
def test_footers_written_by_pyarrow_are_valid(footer):
    leaves = list_leaves(parse_footer(footer).schema)
    for starts in find_chunk_starts(footer):
        for leaf, at in zip(leaves, starts, strict=True):
            assert leaf.are_valid([(footer, at)])
            assert leaf._is_valid(footer, at)
            is_short = b"x" * 128 not in footer
            assert not is_short or leaf.match_usual_chunk.compile()(footer, at)


def test_leaf_columns_match_the_schema():
    table = pa.table({"l": [[1]], "b": pa.array([b"abc"], pa.binary(3)), "s": ["a"]})
    schema = pq.read_metadata(pa.BufferReader(write_footer(table))).schema

    assert (
        LeafColumn("INT64", 8, (1, 3)),
        LeafColumn("FIXED_LEN_BYTE_ARRAY", 3, (0, 1)),
        LeafColumn("BYTE_ARRAY", None, (0, 1)),
    ) == list_leaves(schema)
