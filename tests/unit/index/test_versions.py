"""Which versions of an index are valid, and which may be removed."""

from __future__ import annotations

import pytest

from reconciler.index.versions import VersionName, VersionRemoval, read_versions

ONE, TWO = "20260101000000000", "20260202000000000"
WHOLE = [("index-10.parquet", 10)]
TORN = [("index-10.parquet", 5)]


def path(folder, file="index-10.parquet"):
    return f".hoodie/.zindex/{folder}/{file}"


def test_last_version_has_the_highest_number_of_the_newest_instant():
    found = read_versions([(f"{ONE}_10", WHOLE), (f"{TWO}_0", WHOLE), (f"{ONE}_9", WHOLE)])

    assert [f"{ONE}_9", f"{ONE}_10", f"{TWO}_0"] == [str(v.name) for v in found.valid]
    assert found.last == found.valid[-1]
    assert (path(f"{TWO}_0"), 10) == (found.last.path, found.last.size)


@pytest.mark.parametrize("files", [[], TORN, [("index-10.parquet.tmp", 10)], [("a", 10)]])
def test_incomplete_version_is_not_valid(files):
    found = read_versions([(f"{ONE}_0", WHOLE), (f"{TWO}_0", files)])

    assert f"{ONE}_0" == str(found.last.name)


@pytest.mark.parametrize("name", [ONE, f"{ONE}_", f"{ONE}_01", f"_{ONE}_0", f"{ONE}_0.tmp", "x"])
def test_folders_with_other_names_are_ignored(name):
    found = read_versions([(name, [("part-0.parquet", 3)])])

    assert (None, ()) == (found.last, found.version_files)
    assert not found.plan_removal(None)


@pytest.mark.parametrize(
    ("there", "instant", "expected"),
    [
        ([], ONE, f"{ONE}_0"),
        ([f"{ONE}_0"], ONE, f"{ONE}_1"),
        ([f"{ONE}_9", f"{ONE}_10"], ONE, f"{ONE}_11"),
        ([f"{ONE}_3"], TWO, f"{TWO}_0"),
        ([f"{TWO}_3"], ONE, f"{TWO}_4"),  # a restore took the instant back
    ],
)
def test_next_version_sorts_after_all_existing_ones(there, instant, expected):
    assert expected == str(read_versions([(name, WHOLE) for name in there]).next_name(instant))
    assert expected == str(read_versions([(name, TORN) for name in there]).next_name(instant))


def test_superseded_versions_and_left_overs_are_removed():
    found = read_versions(
        [
            (f"{ONE}_0", WHOLE),
            (f"{ONE}_1", TORN),
            (f"{TWO}_0", [*WHOLE, ("x", 1)]),
            (f"{TWO}_1", []),
        ]
    )

    assert VersionRemoval(
        files=(path(f"{ONE}_0"), path(f"{ONE}_1"), path(f"{TWO}_0", "x")),
        folders=tuple(VersionName.parse(n).folder for n in (f"{ONE}_0", f"{ONE}_1", f"{TWO}_1")),
    ) == found.plan_removal(found.last)


def test_newer_valid_version_is_kept():
    found = read_versions([(f"{ONE}_0", WHOLE), (f"{TWO}_0", WHOLE)])

    assert not found.plan_removal(found.valid[0])


def test_nested_folders_are_removed_before_the_folders_that_hold_them():
    found = read_versions(
        [(f"{ONE}_0", []), (f"{ONE}_1", WHOLE), (f"{TWO}_0", WHOLE), ("x", [])],
        nested=[f"{ONE}_0/index-9.parquet", f"{ONE}_1/sub", f"{TWO}_0/sub", "x/sub"],
    )

    assert [
        path(f"{ONE}_0", "index-9.parquet"),
        path(f"{ONE}_1", "sub"),
        path(f"{TWO}_0", "sub"),
    ] == [*found.nested_folders]
    assert found.plan_removal(found.valid[0]) == VersionRemoval(
        files=(),
        folders=(
            path(f"{ONE}_0", "index-9.parquet"),
            path(f"{ONE}_1", "sub"),
            f".hoodie/.zindex/{ONE}_0",
        ),
    )


def test_without_a_version_to_keep_only_left_overs_are_removed():
    found = read_versions([(f"{ONE}_0", WHOLE), (f"{TWO}_0", TORN)])

    assert (path(f"{TWO}_0"),) == found.plan_removal(None).files
