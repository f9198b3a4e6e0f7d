from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from reconciler import arrays
from reconciler.plans import columns
from reconciler.plans.document import load_plan
from reconciler.plans.model import Impact, NamedFiles, Note, Observed, RollbackStep, Selection
from reconciler.render.plan_markdown import plan_markdown
from reconciler.render.plan_text import plan_text
from reconciler.render.terminal import Terminal
from tests.unit.render.test_plan_markdown import plan, table

SEEN = Observed(table_version=9, table_type="COPY_ON_WRITE", last_completed="20261121041500123")


def text(*tables, **options) -> str:
    return plan_text(plan(*tables), Terminal(), **options)


def test_the_last_line_sums_up_and_names_the_digest():
    *_, summary, last = text(table("t")).splitlines()

    assert "Plan: 1 table: 1 to change; 1 file to remove (5 bytes)." == summary
    assert re.fullmatch(r"Digest: sha256:[0-9a-f]{64}", last)


def selected(*tables, of: int, by: tuple[str, ...]) -> list[str]:
    chosen = Selection(tables=len(tables), total=of, by=by)
    found = plan_text(replace(plan(*tables), selection=chosen), Terminal())
    return found.splitlines()


def test_a_plan_of_some_tables_shows_the_total_and_the_selectors():
    lines = selected(
        table("a"), table("b", steps=()), table("c", steps=()), of=30, by=("--name sales.*",)
    )

    assert "3 of 30 tables selected (--name 'sales.*'): 1 to change, 2 unchanged" == lines[0]
    assert (
        "Plan: 3 of 30 tables: 1 to change, 2 unchanged; 1 file to remove (5 bytes)." == lines[-2]
    )


def test_a_plan_of_no_table_shows_the_total():
    lines = selected(of=30, by=("--changed-since origin/main",))

    assert [
        "0 of 30 tables selected (--changed-since origin/main)",
        "Nothing to apply.",
        "",
    ] == lines[:3]
    assert "Plan: 0 of 30 tables; no files to remove." == lines[-2]


def test_selectors_of_others_are_few_and_move_no_cursor():
    by = ("--name \x1b[2Jx", "-l a=b", "-l c=d", "-l e=f", "-l g=h", "-l i=j")
    (first, *_) = selected(table("t"), of=2, by=by)

    assert first.startswith(
        "1 of 2 tables selected (--name '\\x1b[2Jx' -l a=b -l c=d -l e=f and 2 more): 1 to"
    )


@pytest.mark.parametrize(
    ("because", "expected"),
    [
        ("nothing to do: no file slice exceeds 1 commit", "= nothing to clean  no file slice"),
        ("no clustering: 1 file slice is not small", "= no clustering  1 file slice is not small"),
    ],
)
def test_a_table_with_steps_shows_which_work_is_not_due(because, expected):
    found = text(table("t", warnings=(Note("nothingToDo", because),)))

    assert f"  {expected}" in found
    assert "warning" not in found


def test_a_table_with_a_refused_step_is_not_blocked_as_a_whole():
    refusal = Note("columns", "the table has no column 'x'", step="cluster")
    found = text(table("t", refusals=(refusal,)), table("u", steps=(), refusals=(refusal,)))
    lines = found.splitlines()

    assert lines[0] == "2 tables: 2 blocked in part"
    assert lines[1].endswith("Applying removes 1 file.")
    assert 2 == found.count("! cluster refused  the table has no column 'x' [columns]")
    assert "- clean" in found


def test_colour_changes_nothing_but_colour():
    tables = (table("t"), table("u", refusals=(Note("r", "why " * 30),)), table("v", steps=()))
    painted = plan_text(plan(*tables), Terminal(has_color=True))

    assert "\x1b[31m" in painted
    assert text(*tables) == re.sub(r"\x1b\[[0-9;]*m", "", painted)


def test_no_text_of_others_moves_the_cursor():
    found = text(
        table("t\x1b[2J\r\n\x07", path="/w/\x9b31m", warnings=(Note("r", "a\x1b]0;x\x07"),))
    )

    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]", found)


def test_sentences_fit_in_80_columns():
    found = text(table("t", warnings=(Note("rule", "some words " * 60),)))

    assert all(len(line) <= 80 for line in found.splitlines()[:-1])


@pytest.mark.parametrize(
    ("before", "after", "says"),
    [
        ("20261022041500123", "20261114041500123", "2026-10-22 04:15 → 2026-11-14 04:15"),
        ("20261022041500123", "20261114041500123", "shrinks from 30 days to 7 days"),
        ("20261114041500123", "20261114041500123", "back to 2026-11-14 04:15, as before (7 days)"),
        ("20261114041500123", None, "2026-11-14 04:15 → nothing"),
        ("20261121041400000", "20261121041430000", "20261121041400000 → 20261121041430000"),
        ("001", "002", "001 → 002"),
    ],
)
def test_the_time_travel_window_is_shown_in_words(before, after, says):
    impact = Impact(files_removed=1, earliest_readable_before=before, earliest_readable_after=after)
    found = text(table("t", observed=SEEN, impact=impact))

    assert says in " ".join(found.split())


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"spec": {}}, "no retention declared: nothing is removed"),
        ({"spec": {"retention": {"commits": 1}}}, "as declared"),
        (
            {"warnings": (Note("idle", "nothing to do: the newest commit is old"),)},
            "the newest commit is old",
        ),
        (
            {
                "spec": {"retention": {"commits": 1}},
                "warnings": (Note("pendingClean", "clean 1 may be at work"),),
            },
            "clean 1 may be at work",
        ),
    ],
)
def test_an_unchanged_table_has_a_reason(fields, says):
    found = text(replace(table("a.b", steps=(), impact=Impact()), **fields))

    assert f"= a.b  {says}" in found
    assert 1 == found.count(says)


def test_a_count_of_nothing_is_never_a_zero():
    found = text(table("t", steps=(), impact=Impact(), observed=SEEN), table("u"))

    assert not re.search(r"\b0 (file|table|partition|byte)", found)


def test_the_full_text_names_every_file_once():
    assert 1 == text(table("t", says="name.parquet"), full=True).count(
        "- name.parquet  base, 5 bytes"
    )


def rollback(*names: str) -> RollbackStep:
    partition = columns.build_dictionary(np.zeros(len(names), np.int32), ["p=1"])
    return RollbackStep(
        instant="20261121041500123",
        action="commit",
        files=NamedFiles(partition=partition, name=arrays.to_arrow(sorted(names))),
        because="commit 1 of ann was left inflight: its process is dead; apply rolls it back",
    )


def test_a_rollback_shows_its_files_and_is_no_removal():
    lines = text(table("t", steps=(rollback("a", "b"),), impact=Impact())).splitlines()

    assert "Applying rolls back 1 dead write and removes no other files." == lines[1]
    (at,) = [number for number, line in enumerate(lines) if "- rollback" in line]
    assert "  - rollback  commit 20261121041500123, 2 files: commit 1 of ann was left" == lines[at]
    assert "; no files to remove, 1 dead write to roll back." in lines[-2]


def test_a_rollback_comes_before_other_work():
    step = table("t").steps[0]
    lines = text(table("t", steps=(rollback(), step))).splitlines()

    assert "Net change: -5 bytes. Applying rolls back 1 dead write and removes 1 file." == lines[1]
    assert any("- rollback  commit 20261121041500123, no files: " in line for line in lines)


def test_the_full_text_names_every_file_of_a_rollback():
    said = text(table("t", steps=(rollback("a", "\x1b[2Jb"),), impact=Impact()), full=True)

    assert "      p=1\n        - \\x1b[2Jb\n        - a\n" in said


def test_a_comment_shows_a_rollback_as_the_text_does():
    step = rollback("a", "b")
    comment = plan_markdown(plan(table("t", steps=(step,), impact=Impact())))

    assert "Applying rolls back **1 dead write** and removes no other files." in comment
    assert "\n- rollback  commit 20261121041500123, 2 files: " in comment


CLUSTERED = load_plan(
    (Path(__file__).parents[2] / "cases" / "render" / "clustering" / "plan.json").read_bytes(),
    "plan.json",
)


def test_the_net_change_of_bytes_comes_first():
    lines = plan_text(CLUSTERED, Terminal(width=200)).splitlines()

    assert lines[1].startswith(
        "Net change: about +2.6 GiB until a clean removes the replaced files."
    )
    assert "108 files, 5.8 GiB (+2.5 GiB), as of 20261120041500123" in "\n".join(lines)


def test_a_reason_is_shown_once_however_many_groups_share_it():
    found = plan_text(CLUSTERED, Terminal(width=400))

    assert 1 == found.count("8 groups: 6 to 24 of 6 to 24 base files are below files.small")
    assert 4 == found.count("(above smallFileShareAbove 0.3)")  # of three tables


def test_partitions_are_in_the_order_of_their_paths():
    found = plan_text(CLUSTERED, Terminal())
    paths = re.findall(r"^      (dt=\S+) ", found, re.MULTILINE)

    assert len(paths) == 8
    assert sorted(paths) == paths


def test_file_ids_are_shown_in_the_full_text_only():
    file_id = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-")

    assert not file_id.search(plan_text(CLUSTERED, Terminal()))
    assert file_id.search(plan_text(CLUSTERED, Terminal(), full=True))


@pytest.mark.parametrize("width", [60, 80, 120, 200])
def test_lines_fit_the_terminal_and_no_word_is_broken(width):
    shown = plan_text(CLUSTERED, Terminal(width=width))
    *lines, digest = shown.splitlines()

    assert all(len(line) <= width for line in lines)
    assert digest.startswith("Digest: sha256:")
    bars = str.maketrans("", "", " ▏▎▍▌▋▊▉█")
    assert shown.split("Digest")[0].translate(bars).replace("\n", "") == (
        plan_text(CLUSTERED, Terminal(width=400)).split("Digest")[0].translate(bars)
    ).replace("\n", "")
