"""Random layouts whose reads were once far more than those of a fresh clustering."""

from __future__ import annotations

import pytest

from reconciler.planners.cluster import notes
from tests.bench.gain_layouts import Round, try_layout


@pytest.mark.parametrize("seed", [9], ids=["a clustering of several groups that meet"])
def test_a_converged_table_reads_little_more_than_a_fresh_one(seed, monkeypatch):
    monkeypatch.setattr(notes, "LEAST_OUTPUT_BYTES", 0)

    assert "" == try_layout(seed).kind


@pytest.mark.parametrize(
    ("reads", "kind"),
    [((12, 10), ""), ((5, 4), "limit"), ((4, 3), "one file"), ((40, 30), "more"), ((0, 0), "")],
)
def test_what_is_beyond_the_goal_is_named_by_its_reason(reads, kind):
    found = Round(
        seed=0,
        declared="kd-tree on a",
        is_declared=True,
        runs=1,
        files=9,
        queries=4,
        reads=reads,
        bytes=(1, 1),
        before=50,
    )

    assert kind == found.kind
