"""Printed units parse to the same value."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from reconciler import units


@given(st.integers(0, units.MAX_SIZE))
def test_sizes(size):

    assert size == units.parse_size(units.format_size(size))


@given(st.integers(0, units.MAX_DURATION))
def test_durations(seconds):

    assert seconds == units.parse_duration(units.format_duration(seconds))


@given(st.decimals("0.0001", 100, places=4))
def test_percentages(percent):
    share = units.parse_percent(f"{percent}%")

    assert share == units.parse_percent(units.format_percent(share))
