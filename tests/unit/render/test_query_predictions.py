"""The declared queries as lines for a terminal."""

from __future__ import annotations

from reconciler.plans.compact_step import CompactStep
from reconciler.plans.layout_change import LayoutChange, LayoutFigures, Sampled
from reconciler.plans.model import Note, TablePlan
from reconciler.render.query_predictions import prediction_lines
from reconciler.render.terminal import Terminal

FIGURES = LayoutFigures(files=8, small=0, bytes=1, overlap=None, sizes=())
STEP = CompactStep(order="logBytes", groups=None, expected=())
SAMPLED = Sampled(row_groups=64, total_row_groups=1200, rows=1_000_000)


def one(name, files, size, error=0.0):
    return {
        "query": name,
        "filesBefore": files[0],
        "filesAfter": files[1],
        "bytesBefore": size[0],
        "bytesAfter": size[1],
        "error": error,
    }


def shown(predictions, sampled=None, *, full=False, compacts=False, refusals=()):
    layout = LayoutChange(below=(), before=FIGURES, after=FIGURES, sampled=sampled)
    plan = TablePlan(
        name="t",
        path="/t",
        spec={},
        spec_digest="",
        predictions=tuple(predictions),
        layout=layout if sampled else None,
        steps=(STEP,) if compacts else (),
        refusals=refusals,
    )
    return list(prediction_lines(plan, Terminal(has_color=False), full=full))


def test_a_query_has_files_and_bytes_before_and_after_and_an_error():
    found = shown(
        [one("one customer", (80, 3), (1 << 30, 1 << 25), 0.12), one("all", (8, 8), (9, 9), 0.1)],
        SAMPLED,
    )

    assert found == [
        "  = queries  2 queries, today → predicted from 64 of 1 200 row groups (1 000 000",
        "      rows)",
        "      one customer      80 → 3 files  1.0 GiB → 32.0 MiB ±12 %",
        "      all                8 → 8 files  9 bytes → 9 bytes ±10 %",
    ]


def test_without_a_clustering_a_query_has_only_todays_reads():
    assert shown([one("q", (1, 1), (2048, 2048))]) == [
        "  = queries  1 query, today's reads",
        "      q            1 file  2.0 KiB",
    ]


def merging(before, after):
    names = ("slices", "logFiles", "logBytes", "rows")
    return {
        f"{name}{when}": value
        for when, values in (("Before", before), ("After", after))
        for name, value in zip(names, values, strict=True)
    }


def test_what_a_query_merges_is_below_its_figures():
    same = merging((3, 21, 1677721, None), (3, 21, 1677721, None))

    assert shown([one("q", (4, 4), (2048, 2048)) | {"merging": same}]) == [
        "  = queries  1 query, today's reads",
        "      q           4 files  2.0 KiB",
        "        merges 21 log files, 1.6 MiB, into 3 slices",
    ]


def test_what_is_left_to_merge_after_a_compaction_follows():
    some = merging((3, 21, 1677721, 4000), (1, 7, 307200, 900))
    nothing = merging((1, 1, 9, 12), (0, 0, 0, 0))
    both = [
        one("some", (4, 4), (2048, 1024), 0.1) | {"merging": some},
        one("nothing", (1, 1), (20, 11), 0.1) | {"merging": nothing},
    ]

    assert shown(both, compacts=True) == [
        "  = queries  2 queries, today → predicted after the compaction",
        "      some          4 → 4 files  2.0 KiB → 1.0 KiB ±10 %",
        "        merges 21 log files, 1.6 MiB, into 3 slices (4 000 rows) → 7, 300.0 KiB,",
        "          into 1 slice (900 rows)",
        "      nothing        1 → 1 file  20 bytes → 11 bytes ±10 %",
        "        merges 1 log file, 9 bytes, into 1 slice (12 rows) → nothing",
    ]
    assert shown(both, compacts=True, refusals=(Note("r", "b", step="compact"),))[0] == (
        "  = queries  with the refused compaction: 2 queries, today → predicted after the"
    )
    assert shown(both, SAMPLED, compacts=True)[:2] == [
        "  = queries  2 queries, today → predicted from 64 of 1 200 row groups (1 000 000",
        "      rows) and the compaction",
    ]


def test_a_query_that_may_read_nothing_has_its_error_in_bytes():
    assert shown([one("q", (1, 0), (6554, 0), 4687.0)], compacts=True)[1:] == [
        "      q      1 → no files  6.4 KiB → 0 bytes, at most 4.6 KiB",
    ]
    assert shown([one("q", (1, 0), (6554, 0), 0.0)], compacts=True)[1:] == [
        "      q      1 → no files  6.4 KiB → 0 bytes ±0 %",
    ]


def test_only_the_queries_that_read_most_are_shown():
    many = [one(f"q{nth}", (nth, nth), (nth, nth)) for nth in range(12)]
    found = shown(many)

    assert 10 == len(found)
    assert found[1].startswith("      q11 ")
    assert found[-1] == "      … and 4 more queries; show --full lists all"
    assert 13 == len(shown(many, full=True))


def test_without_queries_there_are_no_lines():
    assert [] == shown([])
