"""Bounds of files, whose column may have had other types."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pytest

from reconciler.state.bounds_builder import BoundsBuilder


def arrays(*told, files=4, instant=None):
    """The bounds of files, given as (row, least, greatest), a call each."""
    bounds = BoundsBuilder(files=files)
    for row, least, greatest in told:
        bounds.add(np.array([row]), [least], [greatest])
    codes = np.arange(files, dtype=np.int32) if instant is None else np.array(instant, np.int32)
    low, high = bounds.build_arrays(codes)
    return low.to_pylist(), high.to_pylist(), str(low.type)


def test_what_is_not_told_is_not_known():
    assert ([None, 1, None, 3], [None, 2, None, 4], "int64") == arrays((1, 1, 2), (3, 3, 4))


def test_nothing_told_is_nothing_known():
    low, high, _ = arrays((0, None, None))

    assert [None] * 4 == low == high


@pytest.mark.parametrize(
    ("least", "greatest", "kind"),
    [
        (-(2**63), 2**63 - 1, "int64"),
        (-0.5, float("inf"), "double"),
        (b"", b"\xff", "large_binary"),
        (Decimal(-(10**38) + 1), Decimal("1E-38"), "decimal256(76, 38)"),
    ],
)
def test_values_of_every_kind_are_kept_as_they_are(least, greatest, kind):
    assert ([least], [greatest], kind) == arrays((0, least, greatest), files=1)


@pytest.mark.parametrize("beyond", [2**63, Decimal("1E40"), Decimal("1E-40")])
def test_what_is_beyond_every_type_is_not_known(beyond):
    low, _, _ = arrays((0, beyond, beyond), (1, type(beyond)(1), type(beyond)(1)), files=2)

    assert [None, type(beyond)(1)] == low


def test_numbers_of_several_types_compare_as_floats():
    found = arrays((0, 1, 2), (1, 1.5, 2.5), (2, Decimal("1.25"), Decimal(3)), files=3)

    assert ([1.0, 1.5, 1.25], [2.0, 2.5, 3.0], "double") == found


@pytest.mark.parametrize(
    ("instant", "low", "kind"),
    [([0, 1], [None, b"1"], "large_binary"), ([1, 0], [7, None], "int64")],
)
def test_of_numbers_and_text_the_newest_file_s_kind_is_kept(instant, low, kind):
    found = arrays((0, 7, 8), (1, b"1", b"2"), files=2, instant=instant)

    assert (low, kind) == (found[0], found[2])


def test_what_is_told_later_of_a_file_counts():
    assert ([5], [6], "int64") == arrays((0, 1, 2), (0, 5, 6), files=1)


def test_two_ends_of_different_types_are_not_known():
    assert ([None], [None]) == arrays((0, 1, 2.5), files=1)[:2]
