"""Which partitions a clustering looks at."""

from __future__ import annotations

import pytest

from reconciler.spec.partition_filter import PartitionFilter, find_excluded_partitions

DAYS = [f"dt=2026-01-0{day}" for day in range(1, 7)]


def kept(**asked):
    return [
        path[-2:]
        for path in DAYS
        if path not in find_excluded_partitions(DAYS, PartitionFilter(**asked))
    ]


@pytest.mark.parametrize(
    ("asked", "days"),
    [
        ({}, ["01", "02", "03", "04", "05", "06"]),
        ({"include": ("dt=2026-01-02", "*6")}, ["02", "06"]),
        ({"include": ("/.*0[35]/",)}, ["03", "05"]),
        ({"include": ("/0[35]/",)}, []),  # the whole path must match
        ({"exclude": ("dt=2026-*-0?",)}, []),
        ({"from_": "dt=2026-01-05"}, ["05", "06"]),
        ({"to": "dt=2026-01-02"}, ["01", "02"]),
        ({"skip_latest": 1, "latest": 2}, ["04", "05"]),
        ({"skip_latest": 9}, []),
        ({"latest": 9}, ["01", "02", "03", "04", "05", "06"]),
        ({"exclude": ("*6",), "latest": 1}, ["05"]),  # the latest of what is left
    ],
)
def test_filters_choose_partitions(asked, days):
    assert days == kept(**asked)


def test_a_star_stops_at_a_slash():
    paths = ["a=1/b=1", "a=1"]

    assert ["a=1/b=1"] == list(find_excluded_partitions(paths, PartitionFilter(include=("a=*",))))
    assert ["a=1"] == list(find_excluded_partitions(paths, PartitionFilter(include=("a=*/b=*",))))


def test_every_partition_that_is_left_out_says_why():
    asked = PartitionFilter(
        include=("/.*0[1-5]/",),
        exclude=("*-02",),
        from_=DAYS[0],
        to=DAYS[3],
        skip_latest=1,
        latest=1,
    )

    assert {
        DAYS[0]: "its partition is not among the 1 latest (clustering.partitions.latest)",
        DAYS[1]: "clustering.partitions.exclude has its partition, by *-02",
        DAYS[3]: "its partition is among the 1 latest (clustering.partitions.skipLatest)",
        DAYS[4]: f"its partition comes after clustering.partitions.to, {DAYS[3]}",
        DAYS[5]: "its partition is not in clustering.partitions.include",
    } == find_excluded_partitions(DAYS, asked)


def test_the_partition_of_a_table_without_any_is_one_like_others():
    assert {} == find_excluded_partitions([""], PartitionFilter(latest=1))
