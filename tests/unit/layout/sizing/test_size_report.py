"""Measured file sizes, and forecasts of the next insert."""

from __future__ import annotations

import pytest

from reconciler.layout.sizing.assign import assign_rows, make_insert_workload
from reconciler.layout.sizing.assignment_rules import (
    CopyOnWrite,
    FileSizeLimits,
    HudiRule,
    MergeOnRead,
    SteadyRule,
)
from reconciler.layout.sizing.record_size import RecordSize
from reconciler.layout.sizing.simulate_inserts import (
    InsertForecast,
    SizeRange,
    apportion_rows,
    combine_forecasts,
    estimate_amplification,
    simulate_inserts,
    sum_by_partition,
)
from reconciler.layout.sizing.size_report import (
    HistogramBar,
    LogFileSizes,
    OperationFiles,
    PartitionSmallFiles,
    measure_file_sizes,
)
from reconciler.layout.sizing.tiers import MIB, FileTiers
from reconciler.units import MAX_SIZE
from tests.unit.layout.sizing.file_groups import make_groups

SIZES = FileSizeLimits(target=1_280, small=1_000)
STEADY = SteadyRule(sizes=SIZES, record_size=RecordSize(fixed=80, per_row=10.0, because=""))


def test_histogram_has_a_bar_end_at_the_small_limit():
    groups = make_groups({"p": {"a": 19, "b": 20, "c": 999, "d": 1_000, "e": 1_472, "f": 9_000}})
    bars = measure_file_sizes(groups, SIZES).histogram

    assert [0, 20, 80, 320, 640, 1_000, 1_280, 1_472] == [bar.least for bar in bars]
    assert [1, 1, 0, 0, 1, 1, 0, 2] == [bar.files for bar in bars]
    assert HistogramBar(least=1_472, below=None, files=2, bytes=10_472) == bars[-1]
    assert 12_510 == sum(bar.bytes for bar in bars)


def test_small_limit_of_zero_adds_no_bar_end():
    bars = measure_file_sizes(
        make_groups({"p": {"a": 19}}), FileSizeLimits(target=1_280, small=0)
    ).histogram

    assert [0, 20, 80, 320, 640, 1_280, 1_472] == [bar.least for bar in bars]


def test_no_bar_ends_beyond_the_greatest_size_that_a_plan_holds():
    greatest = FileSizeLimits(target=MAX_SIZE, small=1_000)
    bars = measure_file_sizes(make_groups({"p": {"a": 19, "b": 5_000}}), greatest).histogram

    assert MAX_SIZE == bars[-2].below == bars[-1].least
    assert [1, 1] == [bar.files for bar in bars if bar.files]


def test_partitions_with_most_small_files_come_first():
    groups = make_groups(
        {"p": {"a": 1, "b": 5_000}, "q": {"c": 2, "d": 3, "e": 5_000}, "r": {"f": 5_000}},
        clustering=["c", "e"],
    )

    assert (
        PartitionSmallFiles(partition="q", files=3, small=2, pinned=1, bytes=5),
        PartitionSmallFiles(partition="p", files=2, small=1, pinned=0, bytes=1),
    ) == measure_file_sizes(groups, SIZES).partitions


def test_operations_with_most_small_files_come_first():
    groups = make_groups(
        {"p": {"a": 1, "b": 2, "c": 5_000, "d": 3}},
        begun={"a": "1", "b": "2", "c": "2", "d": "3"},
    )
    found = measure_file_sizes(groups, SIZES, {"1": "INSERT", "2": "UPSERT"}).operations

    assert (
        OperationFiles(operation="UPSERT", files=2, small=1, bytes=5_002),
        OperationFiles(operation="INSERT", files=1, small=1, bytes=1),
        OperationFiles(operation="unknown", files=1, small=1, bytes=3),
    ) == found


def test_only_base_files_that_readers_see_count():
    groups = make_groups({"p": {"a": 1, "b": (None, 7), "c": (4, 9), "d": 8}}, replaced=["d"])
    found = measure_file_sizes(groups, SIZES)

    assert (2, 5, 2, 1) == (found.files, found.bytes, found.small, found.log_only)


def test_log_files_that_readers_see_are_counted_with_the_base_files_that_they_change():
    groups = make_groups({"p": {"a": 1, "b": (None, 7), "c": (4, 9), "d": (8, 1)}}, replaced=["d"])

    assert LogFileSizes(files=2, bytes=16, slices=1) == measure_file_sizes(groups, SIZES).log_files
    assert measure_file_sizes(make_groups({"p": {"a": 1}}), SIZES).log_files is None


def test_empty_table_has_no_sizes():
    found = measure_file_sizes(make_groups({}), SIZES)

    assert (0, 0, (), ()) == (found.files, found.bytes, found.partitions, found.operations)


def test_every_row_is_apportioned():

    assert {"a": 67, "b": 33} == apportion_rows(100, {"a": 2, "b": 1})
    assert {"a": 1, "b": 0} == apportion_rows(1, {"a": 1, "b": 1})
    assert {} == apportion_rows(5, {})
    assert 10**18 == sum(apportion_rows(10**18, {"a": 1, "b": 1, "c": 1}).values())


def test_next_rows_are_shared_among_partitions_of_the_last_writes():
    recent = [{"a": 10, "b": 0}, {"a": 5, "c": 5}]

    assert {"a": 6, "c": 2} == apportion_rows(8, sum_by_partition(recent))


def test_next_rows_fill_small_files_and_create_new_ones():
    """A full file has 120 rows; ``a`` takes 78 of 200 rows, and 122 go to a new file."""
    groups = make_groups({"p": {"a": 500, "b": 1_100}})

    assert (
        InsertForecast(
            partition="p",
            rows=200,
            filled=1,
            filled_rows=78,
            filled_sizes=SizeRange(least=1_280, most=1_280),
            rewritten=500,
            new=1,
            new_sizes=SizeRange(least=1_300, most=1_300),
            small=0,
            written=2_580,
        ),
        InsertForecast(
            partition="q",
            rows=10,
            filled=0,
            filled_rows=0,
            filled_sizes=None,
            rewritten=0,
            new=1,
            new_sizes=SizeRange(least=180, most=180),
            small=1,
            written=180,
        ),
    ) == simulate_inserts(groups, {"p": 200, "q": 10}, CopyOnWrite(), STEADY)


def test_forecasts_of_partitions_are_combined():
    groups = make_groups({"p": {"a": 500, "b": 1_100}})
    found = combine_forecasts(simulate_inserts(groups, {"p": 200, "q": 10}, CopyOnWrite(), STEADY))

    assert (
        InsertForecast(
            partition=None,
            rows=210,
            filled=1,
            filled_rows=78,
            filled_sizes=SizeRange(least=1_280, most=1_280),
            rewritten=500,
            new=2,
            new_sizes=SizeRange(least=180, most=1_300),
            small=1,
            written=2_760,
        )
        == found
    )


def test_table_without_a_completed_write_has_no_files_to_fill():
    groups = make_groups({"p": {"a": 500}})
    (found,) = simulate_inserts(groups, {"p": 10}, CopyOnWrite(), STEADY, has_commits=False)

    assert (0, 1) == (found.filled, found.new)


def test_hudi_rule_can_be_simulated():
    found = simulate_inserts(
        make_groups({"p": {"a": 500}}),
        {"p": 200},
        CopyOnWrite(),
        HudiRule(sizes=SIZES, average=1_024),
    )

    assert [(0, 100, 0)] == [(one.filled, one.new, one.small) for one in found]


def test_appended_rows_rewrite_nothing():
    groups = make_groups({"p": {"a": 500}})

    def rewritten(kind):
        return [one.rewritten for one in simulate_inserts(groups, {"p": 20}, kind, STEADY)]

    assert [0] == rewritten(MergeOnRead(indexes_logs=True))
    assert [500] == rewritten(MergeOnRead()) == rewritten(CopyOnWrite())


TIERED = SteadyRule(
    sizes=FileSizeLimits(target=120 * MIB, small=100 * MIB),
    record_size=RecordSize(fixed=440_000, per_row=100.0, because=""),
    tiers=FileTiers(),
)


def test_a_forecast_counts_files_whose_rows_join_another_one():
    groups = make_groups({"p": {"a": 5 * MIB, "b": 5 * MIB, "c": 5 * MIB}})
    (found,) = simulate_inserts(groups, {"p": 4 * MIB // 100}, CopyOnWrite(), TIERED)

    assert (3, 2, 0) == (found.filled, found.merged, found.new)
    assert 4 * MIB // 100 == found.filled_rows
    assert 15 * MIB == found.rewritten
    assert found.written == pytest.approx(19 * MIB, abs=8)


@pytest.mark.parametrize(
    ("kib", "expected"), [(50, 27.7), (256, 11.3), (1024, 6.8), (4096, 3.9), (16384, 2.3)]
)
def test_small_batches_are_written_as_often_as_the_cube_root_of_their_number(kib, expected):
    """As the table in docs/writing.md says."""
    rows = kib * 1024 // 100

    assert estimate_amplification(TIERED, rows) == pytest.approx(expected, abs=0.1)
    assert 1.0 == estimate_amplification(TIERED, rows, appends=True)


FEW_ROWS = SteadyRule(
    sizes=FileSizeLimits(target=20_000, small=16_000),
    record_size=RecordSize(fixed=500, per_row=1000.0, because=""),
    tiers=FileTiers(free_bytes=0),
)


@pytest.mark.parametrize(("rule", "rows", "inserts"), [(TIERED, 40_000, 63), (FEW_ROWS, 1, 40)])
def test_amplification_is_that_of_inserts_one_after_the_other(rule, rows, inserts):
    """Also if a file has as many rows as before, but others."""
    files, written, made = {}, 0, 0
    for _ in range(inserts):
        groups = make_groups({"p": files} if files else {})
        workload = make_insert_workload({"p": rows})
        found = assign_rows(groups, workload, CopyOnWrite(), rule)
        ids = groups.file_id.to_pylist()
        for at, size in zip(found.group.tolist(), found.expected_size.tolist(), strict=True):
            made += at < 0
            files[ids[at] if at >= 0 else f"f{made:03}"] = size
        written += int(found.expected_size.sum())

    expected = written / (inserts * rows * rule.record_size.per_row)
    assert estimate_amplification(rule, rows) == pytest.approx(expected, abs=0.05)
