"""A retention is declared only where its plan is empty."""

from __future__ import annotations

from datetime import UTC, datetime

from reconciler.adopt.retention import Candidate, SeenRetention
from reconciler.adopt.table import _declared
from reconciler.adopt.text import Declared
from reconciler.spec.model import TableSpec
from tests.unit.planners import cow

BARE = TableSpec(name="t", path="/t")
NOON = datetime(2024, 1, 1, 12, tzinfo=UTC)


def declared(state, policy, *keeps, since=None):
    candidates = tuple(Candidate(keep=keep) for keep in keeps)
    seen = SeenRetention(policy=policy, field="?", said=("?",), candidates=candidates, since=since)
    return _declared(BARE, state, seen, NOON)


def test_the_first_number_that_removes_nothing_is_declared():
    state = cow.upserts(4)

    assert declared(state, "KEEP_LATEST_COMMITS", 2, 4) == Declared(candidate=Candidate(keep=4))
    assert declared(state, "KEEP_LATEST_COMMITS", 4, 5) == Declared(candidate=Candidate(keep=4))


def test_where_each_would_remove_something_the_first_is_in_doubt():
    state = cow.upserts(4)

    assert declared(state, "KEEP_LATEST_COMMITS", 1, 2, since=cow.stamp(0)) == Declared(
        candidate=Candidate(keep=1), doubt="the next plan would remove 2 files", wider=4
    )


def test_hours_without_a_zone_would_be_refused():
    found = declared(cow.upserts(4, timezone=None), "KEEP_LATEST_BY_HOURS", 24)

    assert found.doubt is not None
    assert found.doubt.startswith("its plan would be refused: retention.hours needs to know when")
    assert declared(cow.upserts(4), "KEEP_LATEST_BY_HOURS", 24).doubt is None


def test_nothing_seen_is_nothing_declared():
    assert _declared(BARE, cow.upserts(1), None, NOON) == Declared()
    assert declared(cow.upserts(1), "KEEP_LATEST_COMMITS") == Declared()
