"""When a change is tried again: its table changed, or a write has not said where it goes."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from reconciler.errors import BusyError
from reconciler.transaction.conflicts import Footprint, GroupClaim
from reconciler.transaction.retry import (
    ATTEMPTS,
    raise_changing,
    retry_until_known,
    retry_while_changing,
)
from reconciler.transaction.session import WaitTime
from tests.unit.transaction.fakes import FakeClock

CLAIMS = [GroupClaim(partition="p", ids=frozenset({"a"}), is_open=False)]
UNKNOWN = Footprint(instant="7", action="commit", is_completed=False, is_known=False)


@pytest.fixture
def session():
    """What a retry needs of a session; ``reported`` collects what it waits for."""
    clock, reported = FakeClock(), []
    context = SimpleNamespace(
        lock_wait_s=10,
        report_wait=lambda name, what: reported.append((name, what)),
        check_stop=lambda: None,
    )
    return SimpleNamespace(
        name="t",
        clock=clock,
        run_context=context,
        waited=WaitTime(),
        run_locked=lambda work: work(),
        reported=reported,
    )


def test_the_first_result_ends_the_retries():
    results = iter([None, None, "done", "never"])

    assert "done" == retry_while_changing(lambda: next(results), lambda: "gave up")


def test_after_the_last_attempt_it_gives_up():
    attempts = []

    assert "gave up" == retry_while_changing(
        lambda: attempts.append(1), lambda: "gave up", attempts=3
    )
    assert 3 == len(attempts)


def test_the_error_names_the_table_the_activity_and_what_to_do():
    with pytest.raises(BusyError) as raised:
        raise_changing("sales.orders", "a clean was being prepared")

    assert str(raised.value) == (
        f"sales.orders: the timeline changed {ATTEMPTS} times while a clean was being prepared; "
        "run it again when the table's writers are less busy"
    )


def test_a_write_that_soon_says_where_it_goes_is_waited_for(session):
    answers = iter([[UNKNOWN], [UNKNOWN], []])

    def attempt(should_wait):
        return None if should_wait(CLAIMS, next(answers)) else "known"

    assert "known" == retry_until_known(session, attempt)
    assert [("t", "commit 7 to say which file groups it writes to")] == session.reported
    assert [0.2, 0.4] == session.clock.slept


def test_all_waits_of_a_session_together_are_bounded(session):
    def attempt(should_wait):
        return None if should_wait(CLAIMS, [UNKNOWN]) else "unknown"

    assert "unknown" == retry_until_known(session, attempt)
    waited = session.waited.seconds
    assert waited >= session.run_context.lock_wait_s

    assert "unknown" == retry_until_known(session, attempt)
    assert waited == session.waited.seconds


def test_a_conflict_that_is_certain_is_not_waited_for(session):
    certain = Footprint(
        instant="8", action="commit", is_completed=True, groups={"p": frozenset({"a"})}
    )

    assert "now" == retry_until_known(
        session, lambda should_wait: None if should_wait(CLAIMS, [certain]) else "now"
    )
    assert [] == session.clock.slept
