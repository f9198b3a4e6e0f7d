"""File sizes as lines for a terminal."""

from __future__ import annotations

from dataclasses import replace

from reconciler.layout.sizing.simulate_inserts import InsertForecast, SizeRange
from reconciler.layout.sizing.size_report import (
    FileSizeState,
    HistogramBar,
    LogFileSizes,
    OperationFiles,
    PartitionSmallFiles,
)
from reconciler.plans.file_sizes import FileSizeReport, InsertReport
from reconciler.plans.layout_change import LayoutChange, LayoutFigures
from reconciler.plans.model import TablePlan
from reconciler.plans.plan import Plan
from reconciler.render.file_sizes import file_size_lines, small_file_line
from reconciler.render.plan_markdown import plan_markdown
from reconciler.render.plan_text import plan_text
from reconciler.render.terminal import Terminal

MIB = 1 << 20
FIGURES = LayoutFigures(files=8, small=0, bytes=1, overlap=None, sizes=())
STATE = FileSizeState(
    files=12,
    bytes=500 * MIB,
    small=8,
    log_only=0,
    histogram=(
        HistogramBar(least=0, below=2 * MIB, files=6, bytes=6 * MIB),
        HistogramBar(least=2 * MIB, below=30 * MIB, files=0, bytes=0),
        HistogramBar(least=30 * MIB, below=100 * MIB, files=2, bytes=80 * MIB),
        HistogramBar(least=138 * MIB, below=None, files=4, bytes=600 * MIB),
    ),
    partitions=(
        PartitionSmallFiles(partition="dt=2026-01-02", files=9, small=7, pinned=2, bytes=70 * MIB),
        PartitionSmallFiles(partition="dt=1", files=3, small=1, pinned=0, bytes=MIB),
    ),
    operations=(
        OperationFiles(operation="UPSERT", files=8, small=8, bytes=86 * MIB),
        OperationFiles(operation="BULK_INSERT", files=4, small=0, bytes=600 * MIB),
    ),
)
OUTLOOK = InsertForecast(
    partition="dt=1",
    rows=1_000,
    filled=2,
    filled_rows=900,
    filled_sizes=SizeRange(least=90 * MIB, most=120 * MIB),
    rewritten=80 * MIB,
    new=1,
    new_sizes=SizeRange(least=2 * MIB, most=2 * MIB),
    small=2,
)


MERGED = replace(OUTLOOK, merged=2, written=212 * MIB)


def report(state=STATE, small_partitions=2, next_insert=None):
    return FileSizeReport(
        target=120 * MIB,
        small_below=100 * MIB,
        state=state,
        small_partitions=small_partitions,
        next_insert=next_insert,
    )


def table(found, **more):
    return TablePlan(name="t", path="/t", spec={}, spec_digest="", file_sizes=found, **more)


def shown(found, *, full=False, **more):
    return list(file_size_lines(table(found, **more), Terminal(has_color=False), full=full))


def plan(*tables):
    return Plan(created_at="2026-01-01T00:00:00+00:00", tool="", tables=tables)


def test_sizes_are_bars_and_small_files_are_listed_by_partition():
    assert shown(report()) == [
        "  = file sizes  12 base files, 500.0 MiB; 8 small (below 100.0 MiB; target",
        "      120.0 MiB)",
        "      below 2.0 MiB                6 ████████████",
        "      30.0 MiB to 100.0 MiB        2 ████",
        "      138.0 MiB and more           4 ████████",
        "      dt=1                   1 of 3 small     1.0 MiB",
        "      dt=2026-01-02          7 of 9 small    70.0 MiB, 2 used by pending table services",
        "      written last by: upsert 8 files (8 small), bulk insert 4 files",
    ]


def test_where_a_clustering_shows_its_bars_there_are_no_others():
    layout = LayoutChange(below=(), before=FIGURES, after=FIGURES)

    assert not [line for line in shown(report(), layout=layout) if "█" in line]


def test_the_worst_partitions_are_shown_and_the_rest_is_counted():
    partitions = tuple(
        PartitionSmallFiles(partition=f"p{nth}", files=1, small=1, pinned=0, bytes=1)
        for nth in range(20)
    )
    many = report(replace(STATE, partitions=partitions), small_partitions=1_234)

    found = shown(many)
    assert 4 == sum(line.startswith("      p") for line in found)
    assert "      … and 1 230 more partitions with small files" in found
    found = shown(many, full=True)
    assert 20 == sum(line.startswith("      p") for line in found)
    assert "      … and 1 214 more partitions with small files" in found


def test_a_table_without_partitions_lists_none():
    flat = replace(STATE, partitions=(replace(STATE.partitions[0], partition=""),))

    assert not [line for line in shown(report(flat)) if "(root)" in line]


def test_a_table_with_log_files_only_has_no_base_files():
    none = replace(STATE, files=0, small=0, log_only=1, histogram=(), partitions=(), operations=())

    assert shown(report(none)) == [
        "  = file sizes  no base files; 1 more file slice with log files only"
    ]


def test_log_files_are_counted_beside_the_base_files_that_they_change():
    logs = LogFileSizes(files=5, bytes=3 * MIB, slices=2)

    assert " ".join(shown(report(replace(STATE, log_files=logs)))[:2]).endswith(
        "8 small (below 100.0 MiB; target       120.0 MiB); 5 log files on 2 of them, 3.0 MiB"
    )


def test_the_next_rows_go_into_small_files_and_new_ones():
    simulated = InsertReport(
        rows=1_000,
        because="all of them into dt=1",
        partition_count=1,
        total=OUTLOOK,
        partitions=(OUTLOOK,),
    )

    assert shown(report(next_insert=simulated))[-4:] == [
        "  = next insert  1 000 rows in 1 partition: 900 into 2 small files (then",
        "      90.0 MiB to 120.0 MiB; 80.0 MiB rewritten), 100 into 1 new file (2.0 MiB);",
        "      2 of these files would still be small",
        "      all of them into dt=1",
    ]


def test_bytes_written_are_compared_with_those_of_the_new_rows():
    simulated = InsertReport(
        rows=1_000,
        because="all of them into dt=1",
        partition_count=1,
        total=MERGED,
        brought=20 * MIB,
        written_per_byte=3.456,
    )

    assert shown(report(next_insert=simulated))[-6:] == [
        "  = next insert  1 000 rows: 900 into 2 small files (then 90.0 MiB to 120.0 MiB;",
        "      80.0 MiB rewritten; the rows of 2 join another file), 100 into 1 new file",
        "      (2.0 MiB); 2 of these files would still be small",
        "      all of them into dt=1",
        "      writes 212.0 MiB for 20.0 MiB of new rows; inserts like this one write",
        "        3.5 bytes per byte until files are full",
    ]


def test_only_the_partitions_with_most_rows_are_shown():
    parts = tuple(replace(OUTLOOK, partition=f"p{nth}") for nth in range(20))
    simulated = InsertReport(
        rows=9, because="b", partition_count=30, total=OUTLOOK, partitions=parts
    )
    found = shown(report(next_insert=simulated))

    assert 4 == sum(line.startswith("      p") for line in found)
    assert (
        "      p3        1 000 rows  2 filled to 90.0 MiB to 120.0 MiB, 1 new of 2.0 MiB" in found
    )
    assert found[-1] == "      … and 26 more partitions"
    assert shown(report(next_insert=simulated), full=True)[-1] == "      … and 10 more partitions"


def test_a_missing_simulation_has_its_reason():
    simulated = InsertReport(rows=1, because="not simulated: who knows")

    assert shown(report(next_insert=simulated))[-1] == (
        "  = next insert  1 row, not simulated: who knows"
    )


def test_an_unchanged_table_with_small_files_has_one_sentence():
    found = plan_text(plan(table(report())), Terminal())

    assert "    = file sizes  12 base files, 500.0 MiB; 8 small (below" in found
    assert "█" not in found
    assert "█" in plan_text(plan(table(report())), Terminal(), full=True)
    assert [] == list(
        small_file_line(table(report(replace(STATE, small=0))), Terminal(has_color=False))
    )


def test_an_unchanged_table_shows_its_simulation():
    simulated = InsertReport(rows=1, because="not simulated: who knows")
    asked = plan(table(report(next_insert=simulated)))

    assert "= next insert  1 row, not simulated: who knows" in plan_text(asked, Terminal())
    assert "= next insert  1 row, not simulated: who knows" in plan_markdown(asked)
    assert "next insert" not in plan_markdown(plan(table(report())))


def test_without_sizes_there_are_no_lines():
    assert [] == shown(None)
