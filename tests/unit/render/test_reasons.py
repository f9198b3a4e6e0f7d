"""Reasons that differ in their numbers alone become one."""

from __future__ import annotations

import pytest

from reconciler.render.reasons import Reason, join_reasons


def joined(*texts: str) -> list[tuple[str, int]]:
    return [(reason.text, reason.count) for reason in join_reasons(Reason(t, 1) for t in texts)]


def test_instants_become_a_range():
    assert [("superseded by 20261011041500123 to 20261012041500123, 2 commits ago", 2)] == joined(
        "superseded by 20261012041500123, 2 commits ago",
        "superseded by 20261011041500123, 2 commits ago",
    )


def test_neighbouring_instants_are_not_the_same():
    assert [("of 20261011041500123 to 20261011041500124", 2)] == joined(
        "of 20261011041500123", "of 20261011041500124"
    )


def test_singular_and_plural_are_alike_and_the_plural_is_shown():
    assert [
        ("1 to 24 of 6 to 24 base files are below 100MiB, and 2.9 to 9.9 cover it", 2)
    ] == joined(
        "1 of 6 base files is below 100MiB, and 2.9 covers it",
        "24 of 24 base files are below 100MiB, and 9.9 cover it",
    )


@pytest.mark.parametrize(
    "texts",
    [
        ("savepoint 1 pins it", "pending commit 1 holds it"),
        ("below 100MiB", "below 90MiB"),
        ("by dt=2026-11-12", "by dt=2026-11-13"),
        ("of v1", "of v2"),
        ("in 1.2 GiB", "in 543 MiB"),
    ],
)
def test_what_is_not_a_number_alone_keeps_reasons_apart(texts):
    assert sorted(texts) == sorted(text for text, _ in joined(*texts))


def test_a_figure_that_is_the_same_stays_as_it_is():
    assert [("4 to 7 of 1 240 files", 2)] == joined("4 of 1 240 files", "7 of 1 240 files")


def test_the_most_frequent_reason_is_first():
    reasons = [Reason("a 1", 1), Reason("b", 3), Reason("a 2", 3)]

    assert [Reason("a 1 to 2", 4), Reason("b", 3)] == join_reasons(reasons)
