"""A retention is declared only where its plan is empty."""

from __future__ import annotations

from datetime import UTC, datetime

from reconciler.adopt.observed_retention import ObservedRetention, RetentionCandidate
from reconciler.adopt.spec_text import ProposedRetention
from reconciler.adopt.table import _choose_retention
from reconciler.spec.model import TableSpec
from tests.unit.planners import cow

BARE = TableSpec(name="t", path="/t")
NOON = datetime(2024, 1, 1, 12, tzinfo=UTC)


def declared(state, policy, *keeps, since=None):
    candidates = tuple(RetentionCandidate(keep=keep) for keep in keeps)
    seen = ObservedRetention(
        policy=policy, field="?", findings=("?",), candidates=candidates, since=since
    )
    return _choose_retention(BARE, state, seen, NOON)


def test_the_first_number_that_removes_nothing_is_declared():
    state = cow.upserts(4)

    assert declared(state, "KEEP_LATEST_COMMITS", 2, 4) == ProposedRetention(
        candidate=RetentionCandidate(keep=4)
    )
    assert declared(state, "KEEP_LATEST_COMMITS", 4, 5) == ProposedRetention(
        candidate=RetentionCandidate(keep=4)
    )


def test_where_each_would_remove_something_the_first_is_in_doubt():
    state = cow.upserts(4)

    assert declared(state, "KEEP_LATEST_COMMITS", 1, 2, since=cow.stamp(0)) == ProposedRetention(
        candidate=RetentionCandidate(keep=1), doubt="the next plan would remove 2 files", wider=4
    )


def test_hours_without_a_zone_would_be_refused():
    found = declared(cow.upserts(4, timezone=None), "KEEP_LATEST_BY_HOURS", 24)

    assert found.doubt is not None
    assert found.doubt.startswith("its plan would be refused: retention.hours needs the timeline")
    assert declared(cow.upserts(4), "KEEP_LATEST_BY_HOURS", 24).doubt is None


def test_nothing_seen_is_nothing_declared():
    assert _choose_retention(BARE, cow.upserts(1), None, NOON) == ProposedRetention()
    assert declared(cow.upserts(1), "KEEP_LATEST_COMMITS") == ProposedRetention()
