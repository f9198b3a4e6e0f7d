"""Real Hudi and reconciler take turns at dying, rolling back, cleaning and archiving."""

from __future__ import annotations

import pytest

from tests.oracle.prepared_tables import PLAIN
from tests.oracle.shared_histories import play_history
from tests.selection import rounds

pytestmark = pytest.mark.oracle


@pytest.mark.parametrize("seed", range(rounds("ROUNDS", few=len(PLAIN), many=100)))
def test_rows_and_listing_are_right_after_any_turns(real_hudi, tmp_path, seed):
    kind = PLAIN[seed % len(PLAIN)]

    play_history(real_hudi(kind.version), kind, tmp_path, seed, steps=6 if seed < 10 else 14)
