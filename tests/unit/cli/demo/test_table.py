"""What became of files, as lines."""

from __future__ import annotations

from reconciler.cli.demo.table import count_new_groups, format_changes
from reconciler.render.terminal import Terminal

MIB = 1024 * 1024
BEFORE = {("day=1", "aaaaaaaa-bb"): MIB // 2, ("day=1", "cccccccc-dd"): MIB}
AFTER = {**BEFORE, ("day=1", "aaaaaaaa-bb"): MIB, ("day=2", "eeeeeeee-ff"): MIB // 4}


def test_every_file_has_a_line_with_what_it_was_and_is():
    assert list(format_changes(BEFORE, AFTER, MIB, Terminal(has_color=False))) == [
        "  day=1           aaaaaaaa   512.0 KiB →    1.0 MiB  ██████░░░░░░",
        "                  cccccccc     1.0 MiB →    1.0 MiB  ████████████",
        "  day=2           eeeeeeee         new →  256.0 KiB  ░░░",
    ]


def test_only_what_was_added_is_green():
    filled, kept, new = format_changes(BEFORE, AFTER, MIB, Terminal(has_color=True))

    assert "██████\x1b[32m░░░░░░\x1b[0m" in filled
    assert "\x1b" not in kept
    assert "  \x1b[32m░░░\x1b[0m" in new


def test_a_bar_ends_where_a_file_is_full():
    (line,) = format_changes({}, {("p", "aaaaaaaa-bb"): 3 * MIB}, MIB, Terminal(has_color=False))

    assert line.endswith("  ░░░░░░░░░░░░")


def test_groups_that_were_not_there_before_are_counted():
    assert count_new_groups(BEFORE, AFTER) == 1
    assert count_new_groups(AFTER, AFTER) == 0
