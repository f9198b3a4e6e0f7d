"""Real Hudi and reconciler are killed at random while both work on one table."""

from __future__ import annotations

import pytest

from tests.oracle.live_drill import live_table

pytestmark = [pytest.mark.oracle, pytest.mark.long]


@pytest.mark.parametrize(("version", "minutes"), [("1.2.0", 5), ("1.0.2", 2.5), ("0.15.0", 2.5)])
def test_a_table_is_right_whoever_is_killed(tmp_path, version, minutes):
    with live_table(version, tmp_path, seed=1) as live:
        live.run(minutes * 60)
        live.settle()

        assert live.writes > 5
        assert live.applies > 5
