from __future__ import annotations

from random import Random

import pyarrow as pa
import pytest

from reconciler.hudi.files import table_files
from reconciler.hudi.files.uniform_names import split_uniform_names
from tests.selection import examples

FIRST = "f1-0_0-1-0_20260101000000000.parquet"


def test_ids_and_instants_of_one_length_are_split():
    names = pa.array([FIRST, "é2-0_12345-1-0_20260102000000000.parquet"])
    shifted = pa.array(["x", "f2-0_0-1-0_20260103000000000.parquet"])[1:]

    assert split_uniform_names(pa.array([FIRST, FIRST.replace("f1", "f2")]), ".parquet") is not None
    assert split_uniform_names(names, ".parquet") is None  # é has two bytes
    ids, instants = split_uniform_names(shifted, ".parquet")
    assert (ids.to_pylist(), instants.to_pylist()) == (["f2-0"], ["20260103000000000"])


@pytest.mark.parametrize(
    "other",
    [
        "",
        "_",
        "f-10_0-1-0_20260101000000000.parquet.crc",
        ".f1-_20260101000000000.log.1_0-1-0",
        "f1-00_0-1-0_20260101000000000.parquet",
        "f1-0_0-1-0_20260101000000.parquet",
        "f1-0__20260101000000000.parquet",
        "f1-0_0_1_20260101000000000.parquet",
        "f1-0_0.1_20260101000000000.parquet",
        "f.-0_0-1-0_20260101000000000.parquet",
        "f1-0_0/1_20260101000000000.parquet",
        "f1-0_0-1-0_2026010100000000x.parquet",
        "f1-0_0-1-0_20260101000000000xparquet",
        "f1-0_0-1-0_20260101000000000.parquex",
        "f1-0_0-1-0_2026010100000000٣.parquet",
    ],
)
def test_another_shape_is_left_to_the_pattern(other):
    assert split_uniform_names(pa.array([FIRST, other]), ".parquet") is None
    assert split_uniform_names(pa.array([other, FIRST]), ".parquet") is None


def test_parts_are_those_that_the_pattern_finds(monkeypatch):
    chance = Random("names")
    split = 0
    for _ in range(examples(300, many=20_000)):
        names = make_names(chance)
        extension = chance.choice([".parquet", ".parquet", ".orc", ".a_b"])
        found = split_uniform_names(pa.array(names), extension)
        split += found is not None
        parsed = table_files._parse_names(pa.array(names), extension)
        with monkeypatch.context() as patch:
            patch.setattr(table_files, "split_uniform_names", lambda *_: None)
            expected = table_files._parse_names(pa.array(names), extension)
        assert [list(map(str, part)) for part in expected] == [
            list(map(str, part)) for part in parsed
        ]
    assert split > 30


def make_names(chance):
    """Return names of one shape, of which some may have a byte changed, taken away or added."""
    size, digits = chance.choice([1, 4, 38]), chance.choice([1, 14, 17])
    extension = chance.choice([".parquet", ".parquet", ".orc", ".a_b"])
    names = []
    for number in range(chance.randrange(1, 5)):
        token = chance.choice(["0-1-0", "12-345-6", "t", "ü"])
        name = f"{number:0{size}}_{token}_{number:0{digits}}{extension}"
        if chance.random() < 0.15:
            at, put = chance.randrange(len(name)), chance.choice(["_", ".", "/", "0", "é", ""])
            name = name[:at] + put + name[at + chance.randrange(2) :]
        names.append(name)
    return names
