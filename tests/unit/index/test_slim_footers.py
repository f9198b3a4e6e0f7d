"""Footers that are split and merged have the same metadata as the whole ones."""

from __future__ import annotations

import io

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reconciler.index import footers, thrift_compact, thrift_patterns
from reconciler.index.footers import index_footers
from reconciler.index.slim_footers import FooterEnds, FooterSlimmer, SlimFooter, merge_footers
from reconciler.index.thrift_compact import MalformedError
from tests.unit.index.footer_samples import index_facts, write_footer

SCHEMA = pa.schema(
    [
        ("n", pa.int64()),
        ("y", pa.float64()),
        ("s", pa.string()),
        ("b", pa.binary(3)),
        ("l", pa.list_(pa.int32())),
        ("st", pa.struct([("t", pa.timestamp("us")), ("d", pa.decimal128(20, 2))])),
    ]
)
ROW = st.fixed_dictionaries(
    {
        "n": st.none() | st.integers(-(2**63), 2**63 - 1),
        "y": st.none() | st.floats(),
        "s": st.none() | st.text(max_size=4) | st.sampled_from(["x" * n for n in (127, 128, 5000)]),
        "b": st.none() | st.binary(min_size=3, max_size=3),
        "l": st.none() | st.lists(st.integers(0, 9), max_size=3),
        "st": st.none()
        | st.fixed_dictionaries({"t": st.none() | st.integers(0, 9), "d": st.none() | st.just(1)}),
    }
)
WAYS = st.fixed_dictionaries(
    {
        "row_group_size": st.integers(1, 3),
        "version": st.sampled_from(["1.0", "2.6"]),
        "write_statistics": st.sampled_from([True, False, ["n", "s"]]),
        "store_schema": st.booleans(),
        "use_dictionary": st.booleans(),
        "write_page_index": st.booleans(),
        "compression": st.sampled_from(["NONE", "SNAPPY"]),
        "data_page_version": st.sampled_from(["1.0", "2.0"]),
        "sorting_columns": st.sampled_from([None, [pq.SortingColumn(0)]]),
    }
)


@st.composite
def draw_footer(draw, pairs=False):
    table = pa.Table.from_pylist(draw(st.lists(ROW, max_size=5)), SCHEMA)
    if pairs:
        key = st.text(max_size=5)
        pairs = st.dictionaries(key, key | st.just("v" * 300), max_size=4)
        table = table.replace_schema_metadata(draw(pairs))
    return write_footer(table, **draw(WAYS))


def parse_footer(tail):
    return pq.read_metadata(pa.BufferReader(tail))


def footer_metadata(*tails):
    """Return pyarrow's metadata of footers without their pairs and lengths."""
    groups = [group for tail in tails for group in parse_footer(tail).to_dict()["row_groups"]]
    whole = parse_footer(tails[0])
    rows = sum(parse_footer(tail).num_rows for tail in tails)
    return str(groups), whole.schema, whole.created_by, whole.format_version, rows


def slim(tail, *keys):
    found = FooterSlimmer(frozenset(keys)).slim(tail)
    assert found is not None
    return found


@settings(max_examples=60, deadline=None)
@given(draw_footer(pairs=True))
def test_slim_footer_equals_the_whole_one(footer):
    found = slim(footer)

    assert footer_metadata(merge_footers([found])) == footer_metadata(footer)
    assert set(parse_footer(merge_footers([found])).metadata or ()) <= {b"ARROW:schema"}


@settings(max_examples=30, deadline=None)
@given(draw_footer(), draw_footer())
def test_row_groups_of_files_with_one_form_are_merged(one, two):
    slimmer = FooterSlimmer()
    both = [slimmer.slim(tail) for tail in (one, two)]
    if both[0].form == both[1].form:
        assert footer_metadata(merge_footers(both)) == footer_metadata(one, two)


@settings(max_examples=60, deadline=None)
@given(draw_footer())
def test_row_group_ends_where_its_fields_end(footer):
    found = slim(footer).groups
    at = 0
    while at < len(found):
        end, chunks = thrift_patterns.split_row_group(found, at)
        assert thrift_compact.skip_struct(found, at) == end
        assert len(SCHEMA) + 1 == len(chunks)
        assert list(chunks[1:]) == [
            thrift_compact.skip_struct(found, chunk) for chunk in chunks[:-1]
        ]
        at = end


@pytest.mark.parametrize("text", ["x" * 127, "x" * 128, "\x00" * 5])
def test_usual_chunks_match_the_fast_pattern(text):
    found = slim(write_footer(pa.table({"s": [text], "n": [1]})))
    (starts,) = found.chunks
    chunk, rest = (one.compile() for one in thrift_patterns._row_group_matchers())

    assert [len(text) < 128, True] == [chunk(found.groups, at) is not None for at in starts]
    assert rest(found.groups, thrift_compact.skip_struct(found.groups, starts[-1])) is not None
    assert (len(found.groups), starts) == thrift_patterns.split_row_group(found.groups, 0)


def with_bloom(size=3000, **pairs):
    """Return the end of a file with a long value among its pairs, as in Hudi's files."""
    sink = io.BytesIO()
    table = pa.table({"s": ["k", "z"], "n": [1, 2]})
    with pq.ParquetWriter(sink, table.schema, store_schema=False) as file:
        file.write_table(table)
        file.add_key_value_metadata({"a": "1", "bloom": "b" * size, "c": "3", **pairs})
    data = sink.getvalue()
    return data[-int.from_bytes(data[-8:-4], "little") - 8 :]


def test_requested_pairs_are_kept():
    footer = with_bloom()

    assert {b"a": b"1", b"c": b"3"} == slim(footer, b"a", b"c", b"d").pairs
    assert {b"bloom": b"b" * 3000} == slim(footer, b"bloom").pairs


def test_slim_footer_locates_its_longest_value():
    footer = with_bloom()
    found = slim(footer)

    assert b"b" * 3000 == footer[found.head_bytes : -found.tail_bytes]


def test_gap_must_be_in_a_value_that_is_not_requested():
    footer = with_bloom(200)
    whole = slim(footer)
    starts = range(len(footer) - 8)
    cut = 0
    for start in starts[::3]:
        for end in range(start + 1, len(footer) - 8, 11):
            ends = FooterEnds(first=footer[:start], last=footer[end:], gap=end - start)
            found = FooterSlimmer().slim(ends)
            is_inside = whole.head_bytes <= start and end <= len(footer) - whole.tail_bytes
            cut += is_inside
            if is_inside:
                assert found == whole
            # a shorter value may span the gap too
            assert found is None or (found.form, found.groups, found.pairs) == (
                whole.form,
                whole.groups,
                whole.pairs,
            )
            assert is_inside <= (FooterSlimmer(frozenset({b"bloom"})).slim(ends) is None)
    assert cut > 100


def bytes_from_pairs(footer):
    """Return the bytes of a footer from its pairs on."""
    at = footer.index(slim(footer).groups) + len(slim(footer).groups)
    return footer[at:-8]


@pytest.mark.parametrize("where", [0, 1, 20])
def test_value_that_looks_like_the_end_of_a_footer_is_only_a_value(where):
    end = bytes_from_pairs(with_bloom(100))
    for text in (end, end[:-1], b"\x00" * 3 + end, end + end, end[:1] + b"\x1c\x18\x01a\x18"):
        value = b"x" * where + text
        table = pa.table({"s": pa.array([value, value + b"z"]), "n": [1, 2]})
        footer = write_footer(table, store_schema=False)
        found = index_footers([("", "f", 1, footer)], ["s", "n"], table.schema)

        assert footer_metadata(merge_footers([slim(footer)])) == footer_metadata(footer)
        assert [value] == found.columns["s"].least.to_pylist()
        assert [1] == found.columns["n"].least.to_pylist()


def test_pair_that_looks_like_the_end_of_a_footer_is_only_a_pair():
    end = bytes_from_pairs(with_bloom(100)).decode("latin-1").encode("ascii", "replace")
    footer = with_bloom(100, fake=end, org=end * 3)

    assert footer_metadata(merge_footers([slim(footer)])) == footer_metadata(footer)


def read_by_pyarrow(tail):
    try:
        return parse_footer(tail)
    except (pa.ArrowException, OSError, ValueError, OverflowError):
        return None


def find_writer(found):
    try:
        return found.created_by, found.format_version
    except UnicodeDecodeError:
        return "no text"


@settings(max_examples=150, deadline=None)
@given(draw_footer(pairs=True), st.data())
def test_damage_has_the_same_effect_in_a_slim_footer(footer, data):
    broken = bytearray(footer)
    for _ in range(data.draw(st.integers(1, 2))):
        at = data.draw(st.integers(0, len(footer) - 9))
        broken[at] = data.draw(st.integers(0, 255))
    if data.draw(st.booleans()):
        at = data.draw(st.integers(0, len(footer) - 9))
        del broken[at : at + data.draw(st.integers(1, 9))]
        broken[-8:-4] = (len(broken) - 8).to_bytes(4, "little")
    tail = bytes(broken)
    found = FooterSlimmer().slim(tail)
    if found is not None:
        whole, again = read_by_pyarrow(tail), read_by_pyarrow(merge_footers([found]))
        assert (whole is None) == (again is None)
        if whole is not None:  # and no look at row groups: of some damage there pyarrow dies
            assert found.groups in tail
            assert (whole.num_rows, whole.num_row_groups) == (again.num_rows, again.num_row_groups)
            assert find_writer(whole) == find_writer(again)
            assert whole.schema.equals(again.schema)


def test_unreadable_footer_affects_no_other_of_its_form():
    good, bad = (write_footer(pa.table({"x": [n]}), store_schema=False) for n in (1, 2))
    found = slim(bad)
    groups = found.groups.replace(b"\x19\x1c", b"\x19\x0c", 1)  # a group without columns
    at = bad.index(found.groups)
    assert groups != found.groups
    files = [("", "a", 1, good), ("", "b", 1, bad[:at] + groups + bad[at + len(groups) :])]
    rows = index_footers([*files, ("", "c", 1, good)], ["x"], pa.schema([("x", pa.int64())]))

    assert [1, -1, 1] == rows.rows.tolist()
    assert [1, None, 1] == rows.columns["x"].least.to_pylist()


@pytest.mark.parametrize("is_whole", [True, False])
def test_chunk_of_another_type_than_its_column_is_unknown(is_whole):
    """pyarrow would end the process when it reads such statistics."""
    footer = write_footer(pa.table({"x": [1, 2]}), store_schema=False)
    chunk = b"&\x00\x1c\x15\x04"
    assert footer.count(chunk) == 1
    bad = footer.replace(chunk, chunk[:-1] + b"\x0a")
    given = parse_footer(bad) if is_whole else bad
    found = index_footers([("", "f", 1, given)], ["x"], pa.schema([("x", pa.int64())]))

    assert [2] == found.rows.tolist()
    assert [None] == found.columns["x"].least.to_pylist()
    assert [-1] == found.columns["x"].nulls.tolist()


@pytest.mark.parametrize(
    "tail",
    [b"", b"PAR1", b"\xff\xff\xff\x7fPAR1", b"\x00" * 4 + b"PAR1", b"\x15\x02\x01\x00\x00\x00PAR1"],
)
def test_bytes_that_are_not_a_footer_are_not_split(tail):
    assert FooterSlimmer().slim(tail) is None


@pytest.mark.parametrize("data", [b"", b"\x80", b"\xff" * 11])
def test_truncated_number_is_malformed(data):
    with pytest.raises(MalformedError, match="a number is cut off"):
        thrift_compact.read_varint(data, 0)


def test_row_count_beyond_64_bits_is_damage():
    footer = write_footer(pa.table({"x": [1]}), store_schema=False)
    at = len(slim(footer).form.before)
    assert footer[at : at + 2] == b"\x16\x02"
    long = footer[: at + 1] + thrift_compact.encode_varint(2**69) + footer[at + 2 : -8]
    tail = long + len(long).to_bytes(4, "little") + b"PAR1"

    assert FooterSlimmer().slim(tail) is None
    assert [-1] == index_footers([("", "f", 1, tail)], ["x"], pa.schema([("x", pa.int64())])).rows


def test_nesting_depth_is_limited():
    with pytest.raises(MalformedError, match="nested too deeply"):
        thrift_compact.skip_struct(b"\x1c" * 5000, 0)


def test_list_longer_than_the_footer_is_malformed_at_once():
    with pytest.raises(MalformedError):
        thrift_compact.skip_value(
            b"\xf5" + thrift_compact.encode_varint(2**60) + b"\x01", 0, thrift_compact.LIST
        )
    with pytest.raises(MalformedError):
        thrift_compact.skip_value(
            b"\xf1" + thrift_compact.encode_varint(2**60), 0, thrift_compact.LIST
        )


def test_waiting_row_groups_are_limited(monkeypatch):
    tails = [write_footer(pa.table({"x": [n, n + 1]}), row_group_size=1) for n in range(9)]
    files = [("", f"{n}", 1, tail) for n, tail in enumerate(tails)]
    schema = pa.schema([("x", pa.int64())])
    held = []
    together = footers.merge_footers

    def counted(slims):
        held.append(len(slims))
        return together(slims)

    monkeypatch.setattr(footers, "merge_footers", counted)
    whole = index_facts(index_footers(files, ["x"], schema))
    monkeypatch.setattr(footers, "_MAX_WAITING_BYTES", 3 * len(slim(tails[0]).groups))
    parts = index_facts(index_footers(files, ["x"], schema))

    assert whole == parts
    assert [9, 4, 4, 1] == held


def test_slim_footer_and_its_bytes_give_the_same_index():
    footer = with_bloom()
    found = slim(footer)
    assert isinstance(found, SlimFooter)
    schema = pa.schema([("s", pa.string()), ("n", pa.int64())])
    one, two = (
        index_facts(index_footers([("", "f", 1, given)], ["s", "n"], schema))
        for given in (footer, found)
    )

    assert one == two
