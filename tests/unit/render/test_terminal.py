"""Wrapped lines, titles and bars in terminals of any width."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.render.terminal import Terminal, visible_width

SENTENCE = (
    "rewrites 1 240 file slices of 29.8 MiB below s3://lake/sales/orders/dt=2026-11-01 since "
    "20261121041500123, 34 % of the table, in 3 000 000 rows and 5 bytes"
)
WHOLE = (
    "1 240",
    "29.8 MiB",
    "s3://lake/sales/orders/dt=2026-11-01",
    "20261121041500123,",
    "34 %",
    "3 000 000",
    "5 bytes",
)


@pytest.mark.parametrize("width", [60, 80, 120, 200])
def test_no_path_instant_or_figure_is_divided(width):
    lines = list(Terminal(has_color=False, width=width).item("label", SENTENCE))

    assert all(len(line) <= width for line in lines)
    assert [whole for whole in WHOLE if not any(whole in line for line in lines)] == []
    assert f"label  {SENTENCE}".split() == " ".join(lines).split()


def test_the_whole_width_is_used():
    lengths = {
        width: max(map(len, Terminal(has_color=False, width=width).detail("word " * 100)))
        for width in (60, 80, 120, 200)
    }

    assert all(width - 5 < length <= width for width, length in lengths.items())


def test_without_a_terminal_sentences_have_80_columns_and_titles_one_line():
    pipe = Terminal(has_color=False)
    title = ["name", "COW v9", "/a/path/" * 20]

    assert 80 >= max(map(len, pipe.detail("word " * 100)))
    assert ["  ".join(title)] == list(pipe.title(*title))


def test_a_title_that_does_not_fit_has_its_last_part_below():
    narrow = Terminal(has_color=False, width=40)

    assert ["orders  COW v9", "  s3://lake/sales/orders/and/more"] == list(
        narrow.title("orders", "COW v9", "s3://lake/sales/orders/and/more")
    )
    assert ["orders  COW v9  /lake"] == list(narrow.title("orders", "COW v9", "/lake"))


@given(st.text(alphabet="ab c9.", max_size=200), st.integers(0, 150))
def test_colour_takes_no_columns(sentence, width):
    plain = Terminal(has_color=False, width=width)
    painted = Terminal(has_color=True, width=width)
    lines = list(painted.item(painted.bad("! error"), sentence))

    assert list(plain.item("! error", sentence)) == [
        re.sub(r"\x1b\[[0-9;]*m", "", line) for line in lines
    ]
    assert [len(line) for line in plain.item("! error", sentence)] == [
        visible_width(line) for line in lines
    ]


def test_a_narrow_terminal_has_shorter_bars():
    assert 12 == Terminal(has_color=False).bar_width
    assert 6 == Terminal(has_color=False, width=60).bar_width
