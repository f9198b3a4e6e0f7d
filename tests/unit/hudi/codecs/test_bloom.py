"""Build and query bloom filters over record keys."""

from __future__ import annotations

import base64
import struct

import numpy as np
import pyarrow as pa
import pytest

from reconciler.errors import FormatError
from reconciler.hudi.codecs import bloom
from reconciler.hudi.codecs.bloom import BloomBuilder, BloomFilter, BloomShape, infer_type_code
from tests.bloom_filters import build_bloom_filter

#: bytes that Java treats as signed, and keys of every length that the hash handles separately
KEYS = ["a", "ab", "abc", "abcd", "é", "aé", "漢字", "😀", "order:17,customer:x", "k" * 37]
#: filters of Hudi 1.2.0: BloomFilterFactory.createBloomFilter(4, 0.01, 8, type)
SIMPLE = "/////wAAAAcBAAAAJ/7f33d/"
ROWS = "/////wAAAAcBAAAAJwAAAAQAAAAGAAAAAv////8AAAAHAQAAACf+mN0zf/////8AAAAHAQAAACfSxxNFfQ=="


@pytest.mark.parametrize(("code", "text"), [("SIMPLE", SIMPLE), ("DYNAMIC_V0", ROWS)])
def test_the_bits_are_those_of_real_hudi(code, text):
    shape = BloomShape.from_options(code, entries=4, error=0.01, max_entries=8)

    assert text == build_bloom_filter(pa.array(KEYS), shape).text


@pytest.mark.parametrize(("code", "text"), [("SIMPLE", SIMPLE), ("DYNAMIC_V0", ROWS)])
def test_the_type_is_inferred_from_the_text(code, text):

    assert code == infer_type_code(text, "f")


def test_the_type_is_inferred_from_a_text_of_one_row():

    assert "DYNAMIC_V0" == infer_type_code(
        build_bloom_filter(pa.array(["a"]), BloomShape.from_options()).text, "f"
    )


def test_hudis_defaults_are_the_defaults():
    expected = BloomShape(
        code="DYNAMIC_V0", bits=2587966, hashes=30, entries=60000, max_entries=100000
    )

    assert expected == BloomShape.from_options()


@pytest.mark.parametrize(("entries", "error"), [(0, 0.1), (1, 0.0), (1, 1.0), (10**8, 1e-9)])
def test_options_that_hudi_cannot_use_are_refused(entries, error):
    with pytest.raises(ValueError, match="bloom filter"):
        BloomShape.from_options(entries=entries, error=error)


@pytest.mark.parametrize("entries", [1, 3, 4, 100])
def test_keys_that_come_in_parts_make_the_same_filter(monkeypatch, entries):
    keys = pa.array(KEYS * 3)
    shape = BloomShape.from_options(entries=entries, error=0.01, max_entries=2 * entries)
    whole = build_bloom_filter(keys, shape).text
    monkeypatch.setattr(bloom, "_BATCH_KEYS", 4)
    parts = BloomBuilder(shape)
    for start in range(0, len(keys), 5):
        parts.add(keys.slice(start, 5))

    assert whole == parts.build().text


@pytest.mark.parametrize("code", ["SIMPLE", "DYNAMIC_V0"])
@pytest.mark.parametrize("largest", [1 << 26, 0])  # bits of a filter with a byte for each
@pytest.mark.parametrize("count", [0, 3, 4, 5, 8, 9, 10])
def test_a_filter_is_continued_as_if_all_keys_had_come_at_once(monkeypatch, code, largest, count):
    monkeypatch.setattr(bloom, "_MAX_FLAGS", largest)
    shape = BloomShape.from_options(code, entries=4, error=0.01, max_entries=8)
    first = build_bloom_filter(pa.array(KEYS[:count], pa.string()), shape)
    known = BloomFilter.parse(first.text, code, "f", max_entries=8)

    builder = BloomBuilder.from_filter(known, count)
    builder.add(pa.array(KEYS[count:], pa.string()))

    assert known.has_form_of(count)
    assert build_bloom_filter(pa.array(KEYS), shape).text == builder.build().text


@pytest.mark.parametrize("count", [0, 4, 7, 9, 11])
def test_the_filter_of_another_number_of_keys_has_another_form(count):
    shape = BloomShape.from_options("DYNAMIC_V0", entries=4, error=0.01, max_entries=8)

    assert not build_bloom_filter(pa.array(KEYS[:8]), shape).has_form_of(count)


@pytest.mark.parametrize("code", ["SIMPLE", "DYNAMIC_V0"])
@pytest.mark.parametrize("count", [0, 4, 5, 11])
def test_the_length_of_the_text_is_known_before(code, count):
    builder = BloomBuilder(BloomShape.from_options(code, entries=4, error=0.01, max_entries=100))
    builder.add(pa.array(KEYS[:count], pa.string()))

    assert len(builder.build().text) == builder.text_bytes


def test_a_packed_large_filter_has_the_same_bits(monkeypatch):
    shape = BloomShape.from_options("SIMPLE", entries=4, error=0.01)
    monkeypatch.setattr(bloom, "_MAX_FLAGS", 8)

    assert SIMPLE == build_bloom_filter(pa.array(KEYS), shape).text


def test_keys_are_looked_up_in_their_own_order():
    shape = BloomShape.from_options(entries=4, error=1e-9, max_entries=100)
    found = build_bloom_filter(pa.array(KEYS[::2]), shape)
    expected = [at % 2 == 0 for at in range(len(KEYS))]

    assert expected == found.contains(pa.array(KEYS)).tolist()


def test_no_keys_make_one_empty_row():
    found = build_bloom_filter(
        pa.array([], pa.string()), BloomShape.from_options(entries=4, error=0.01)
    )

    assert (0, [0] * 5) == (found.last_row_count, found.rows[0].tolist())
    assert not found.contains(pa.array(KEYS)).any()
    assert np.zeros(0, np.bool_).tolist() == found.contains(pa.array([], pa.string())).tolist()


def head(version=-1, hashes=2, kind=1, bits=8):
    return struct.pack(">iibi", version, hashes, kind, bits)


@pytest.mark.parametrize(
    ("data", "code", "problem"),
    [
        (head() + b"\1", "OTHER", "unknown filter type 'OTHER'"),
        (head(version=1) + b"\1", "SIMPLE", "unknown version 1"),
        (head(kind=0) + b"\1", "SIMPLE", "unknown hash function 0"),
        (head(bits=0), "SIMPLE", "2 hashes over 0 bits"),
        (head(hashes=2 + 2**25) + b"\1", "SIMPLE", "33554434 hashes over 8 bits"),
        (head(), "SIMPLE", "the filter is truncated"),
        (head()[:5], "SIMPLE", "the bloom filter cannot be decoded"),
        (head() + b"\1\2", "SIMPLE", "1 extra bytes"),
        (head() + struct.pack(">iii", 0, 1, 1), "DYNAMIC_V0", "a key count is"),
        (head() + struct.pack(">iii", 4, 1, 1) + head(bits=9) + b"\1\2", "DYNAMIC_V0", "9 bits"),
        (head() + struct.pack(">iii", 4, 1, 2**31 - 1), "DYNAMIC_V0", "cannot be decoded"),
    ],
)
def test_damage_names_the_file(data, code, problem):
    with pytest.raises(FormatError, match=problem) as caught:
        BloomFilter.parse(base64.b64encode(data), code, "p/f.parquet")

    assert "p/f.parquet" in str(caught.value)
