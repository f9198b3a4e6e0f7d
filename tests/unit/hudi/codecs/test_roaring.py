"""Sets of row numbers, decoded as the Roaring format specification says."""

from __future__ import annotations

import base64
import struct

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reconciler.hudi.codecs.roaring import encode_positions
from tests.selection import examples

LAW = settings(max_examples=examples(15, many=300), deadline=None)


def decode(text):
    """Return the numbers, and the kinds of the containers."""
    data, kinds, found = base64.b64decode(text), [], []
    (maps,) = struct.unpack_from("<q", data)
    at = 8
    for _ in range(maps):
        (high,) = struct.unpack_from("<I", data, at)
        lows, at = decode_bitmap(data, at + 4, kinds)
        found += [(high << 32) + low for low in lows]
    assert at == len(data)
    return found, kinds


def decode_bitmap(data, at, kinds):
    (cookie,) = struct.unpack_from("<I", data, at)
    start = at
    if cookie & 0xFFFF == 12347:
        count = (cookie >> 16) + 1
        flags = np.unpackbits(
            np.frombuffer(data, np.uint8, -(-count // 8), at + 4), bitorder="little"
        )
        at += 4 + -(-count // 8)
    else:
        (count,) = struct.unpack_from("<I", data, at + 4)
        flags, at = np.zeros(count), at + 8
    heads = np.frombuffer(data, "<u2", 2 * count, at).reshape(-1, 2).tolist()
    at += 4 * count
    offsets = None
    if cookie & 0xFFFF == 12346 or count >= 4:
        offsets = np.frombuffer(data, "<u4", count, at).tolist()
        at += 4 * count
    found = []
    for number, (key, more) in enumerate(heads):
        assert offsets is None or offsets[number] == at - start
        lows, at = decode_container(data, at, bool(flags[number]), more + 1, kinds)
        found += [(key << 16) + low for low in lows]
    return found, at


def decode_container(data, at, is_run, size, kinds):
    if is_run:
        (count,) = struct.unpack_from("<H", data, at)
        runs = np.frombuffer(data, "<u2", 2 * count, at + 2).reshape(-1, 2).tolist()
        kinds.append("run")
        return [low for first, more in runs for low in range(first, first + more + 1)], (
            at + 2 + 4 * count
        )
    if size <= 4096:
        kinds.append("array")
        return np.frombuffer(data, "<u2", size, at).tolist(), at + 2 * size
    kinds.append("bits")
    bits = np.unpackbits(np.frombuffer(data, np.uint8, 8192, at), bitorder="little")
    return np.flatnonzero(bits).tolist(), at + 8192


@pytest.mark.parametrize(
    ("numbers", "kinds"),
    [
        ([7], ["array"]),
        ([0, 2, 4], ["array"]),
        ([*range(70_000)], ["run", "run"]),
        ([*range(0, 20_000, 2)], ["bits"]),
        ([1, 1 << 20, (5 << 32) + 9], ["array"] * 3),
        ([*range(0, 6 << 16, 1 << 15)], ["array"] * 6),
    ],
)
def test_every_kind_of_container_holds_its_numbers(numbers, kinds):
    assert (numbers, kinds) == decode(encode_positions(np.array(numbers)))


@LAW
@given(st.lists(st.integers(0, 1 << 40) | st.integers(0, 1 << 17), min_size=1))
def test_whatever_the_numbers_they_come_back_in_order(numbers):
    assert sorted(set(numbers)) == decode(encode_positions(np.array(numbers)))[0]
