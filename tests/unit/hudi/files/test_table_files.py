"""Parse the names of data files as columns."""

from __future__ import annotations

import pyarrow as pa
import pytest

from reconciler.hudi.files import table_files
from reconciler.hudi.files.table_files import (
    FileKind,
    build_files,
    find_rows,
    find_sizes,
    has_files,
    is_named,
    make_present_keys,
)

T1, T2 = "20240101120000000", "20240102120000000"


def test_rows_are_sorted_by_partition_and_name():
    files = build_files(
        [
            ("b", [f"g2-0_0-1-2_{T2}.parquet", f"g1-0_0-1-2_{T1}.parquet"], [2, 1]),
            ("a", [f"g1-0_0-1-2_{T1}.parquet"], [3]),
        ],
        ".parquet",
    )

    assert ("a", "b") == files.partitions
    assert [0, 1, 1] == files.partition.tolist()
    assert [3, 1, 2] == files.size.tolist()
    assert [T1, T1, T2] == [files.instants[code] for code in files.instant]
    assert 3 == len(files.group_partition)  # g1 of a and g1 of b are two groups


def test_base_log_and_cdc_files_are_told_apart():
    names = [
        f"g1-0_0-1-2_{T1}.parquet",
        f".g1-0_{T2}.log.12_0-4-5",
        f".g1-0_{T2}.log.1_0-4-5.cdc",
    ]
    files = build_files([("", names, [1, 2, 3])], ".parquet")
    kinds = dict(zip(files.name.to_pylist(), files.kind.tolist(), strict=True))
    versions = dict(zip(files.name.to_pylist(), files.version.tolist(), strict=True))

    assert {names[0]: FileKind.BASE, names[1]: FileKind.LOG, names[2]: FileKind.CDC} == kinds
    assert {names[0]: 0, names[1]: 12, names[2]: 1} == versions
    assert ["g1-0"] == files.group_id.to_pylist()


def test_strays_have_no_row():
    strays = [
        ".hoodie_partition_metadata",
        f".g1-0_0-1-2_{T1}.parquet.crc",
        f"g1-0_0-1-2_{T1}.orc",
        f"g1-0_0-1-2_{T1}.parquet.tmp",
        "_SUCCESS",
        "part-00000-abc.snappy.parquet",
        f".g1-0_{T1}.log.99999999999_0-1-2",
        f"g1-0_0-1-2_{T1}.parquet\nx",
        "\udcff\udcfe.parquet",
    ]
    files = build_files([("a", strays, [1] * len(strays)), ("b", [], [])], ".parquet")

    assert 0 == len(files)
    assert ("a", "b") == files.partitions


def test_an_undecodable_name_does_not_hide_its_neighbours():
    names = ["\udcff.parquet", f"g1-0_0-1-2_{T1}.parquet"]
    files = build_files([("a", names, [1, 9])], ".parquet")

    assert [names[1]] == files.name.to_pylist()
    assert [9] == files.size.tolist()


def test_a_table_may_have_no_files():
    files = build_files([], ".parquet")

    assert 0 == len(files)
    assert () == files.partitions


def test_non_ascii_names_are_kept():
    files = build_files([("ключ=ä", [f"gä-0_0-1-2_{T1}.parquet"], [1])], ".parquet")

    assert ["gä-0"] == files.group_id.to_pylist()
    assert ("ключ=ä",) == files.partitions


@pytest.mark.parametrize("at_once", [1, 2, 100])
def test_files_are_found_by_their_keys_however_many_are_looked_at_at_once(monkeypatch, at_once):
    monkeypatch.setattr(table_files, "_KEYS_AT_ONCE", at_once)
    names = [f"f{n}_0-0-0_2026010100000000{n}.parquet" for n in range(3)]
    files = build_files([("p=1", names, [1, 2, 3]), ("p=2", names[:2], [4, 5])], ".parquet")
    keys = [f"p=2/{names[0]}", None, f"p=1/{names[2]}", f"p=2/{names[2]}", f"p=2/{names[0]}"]
    column = pa.array(keys, pa.string())

    assert [3, -1, 2, -1, 3] == find_rows(files, column).tolist()
    assert [True, False, True, False, True] == has_files(files, column).tolist()
    assert [4, -1, 3, -1, 4] == find_sizes(files, column).tolist()
    assert [False, False, True, True, False] == is_named(files, column).tolist()
    assert [files.locate_file(row)[0] for row in range(5)] == make_present_keys(files).to_pylist()


def test_a_table_without_files_has_no_file_of_a_key():
    files = build_files([("p=1", [], [])], ".parquet")

    assert [-1] == find_sizes(files, pa.array(["p=1/a"])).tolist()
    assert [] == is_named(files, pa.array(["p=1/a"])).tolist()
    assert [] == make_present_keys(files).to_pylist()
