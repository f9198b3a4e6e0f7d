from __future__ import annotations

import pytest

from reconciler.errors import (
    WORST_FIRST,
    Problem,
    Problems,
    SourcePosition,
    SpecError,
    choose_worst_code,
)


def test_problems_come_in_the_order_of_the_lines_and_once():
    problems = Problems()
    problems.error(SourcePosition("b.yaml", 1, 1), "", "last")
    problems.error(SourcePosition("a.yaml", 10, 1), "x", "second")
    problems.error(SourcePosition("a.yaml", 9, 3), "x", "first")
    problems.error(SourcePosition("a.yaml", 9, 3), "x", "first")

    assert ["first", "second", "last"] == [problem.message for problem in problems]


def test_only_errors_are_raised_a_line_each():
    problems = Problems()
    problems.warning(SourcePosition("a.yaml", 1, 1), "x", "odd")
    problems.raise_errors()
    problems.error(SourcePosition("a.yaml", 2, 1), "y", "bad", "mend it")
    problems.error(SourcePosition("folder"), "", "is empty")

    with pytest.raises(SpecError) as caught:
        problems.raise_errors()

    assert "a.yaml:2:1: y: bad; mend it\nfolder: is empty" == str(caught.value)


def test_a_problem_is_one_line_whatever_it_quotes():
    problem = Problem(SourcePosition("a\nb.yaml", 1, 1), "x", "bad\ttext\x1b[31m")

    assert r"a\nb.yaml:1:1: x: bad\ttext\x1b[31m" == str(problem)


@pytest.mark.parametrize(
    ("codes", "expected"),
    [([], 0), ([0, 2], 2), ([4, 5], 5), ([5, 3], 3), ([3, 6], 6), ([6, 1], 1)],
)
def test_the_worst_code_wins(codes, expected):
    assert choose_worst_code(codes) == expected


def test_the_order_of_the_worst_is_the_documented_one():
    assert (1, 6, 3, 5, 4, 2, 0) == WORST_FIRST
