# ruff: noqa: ARG002 (a change has more arguments than this one needs)
"""What every kind of change has in common, shown with one that writes nothing but its instant."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC

import pytest

from reconciler.errors import BusyError, NotFoundError, StorageError
from reconciler.hudi.load import PROPERTIES
from reconciler.hudi.table.properties import TableProperties
from reconciler.hudi.timeline.active import Timeline
from reconciler.hudi.timeline.heartbeat import heartbeat_path
from reconciler.hudi.timeline.instant import Action
from reconciler.plans.model import Note
from reconciler.transaction import run
from reconciler.transaction.run import (
    Change,
    Completion,
    Ended,
    run_change,
    run_with_heartbeat,
)
from reconciler.transaction.session import RunContext, open_session
from reconciler.writer.table_creation import make_declared_table
from tests.table_sessions import write_spec
from tests.unit.transaction.fakes import FakeClock, Shelf, process

LOCK = ".hoodie/lock"
STEPS = ("prepare", "request", "begin", "work", "settle", "sync", "check")


@dataclass(frozen=True)
class Pending:
    instant: str
    action: Action = Action.CLEAN


@dataclass(frozen=True)
class Outcome:
    how: str
    warnings: tuple = ()


@dataclass(eq=False)
class Story(Change):
    """A change that tells its steps; ``fails`` names the one at which it fails."""

    activity = "a story was being prepared"

    session: object
    fails: str = ""
    error: BaseException = field(default_factory=lambda: ValueError("oops"))
    changes: int = 0
    is_undone: bool = True
    told: list = field(default_factory=list)

    def tell(self, step):
        self.told.append(step)
        if step == self.fails:
            raise self.error

    def prepare(self):
        self.tell("prepare")
        return "prepared"

    def request(self, prepared, should_wait):
        self.tell("request")
        if self.changes:
            self.changes -= 1
            return None
        timeline = self.session.reload_timeline()
        return Pending(self.session.request_instant(Action.CLEAN, timeline, b"plan"))

    def begin(self, pending):
        self.tell("begin")
        self.session.publisher.begin(pending.instant, Action.CLEAN, b"")

    def work(self, pending):
        self.tell("work")
        assert heartbeat_path(pending.instant) in self.session.storage.files
        return "result"

    def settle(self, pending, result, should_wait):
        self.tell("settle")
        assert LOCK in self.session.storage.files
        return Completion(
            timeline=self.session.reload_timeline(),
            prepare_sync=lambda _request: self.tell("sync"),
            check=lambda: self.tell("check"),
            make_payload=lambda _properties: b"done",
            make_outcome=lambda notes: Outcome("completed", notes),
        )

    def tidy(self, pending, result, outcome):
        self.tell("tidy")
        return outcome

    def is_undone_after(self, error):
        return self.is_undone

    def abandon(self, pending):
        self.tell("abandon")
        assert LOCK in self.session.storage.files
        self.session.publisher.withdraw(pending.instant, Action.CLEAN)

    def explain_failure(self, pending, error, *, has_worked):
        self.tell(f"failed, {has_worked=}")


@pytest.fixture
def shelf():
    return Shelf(FakeClock())


@pytest.fixture
def session(shelf, tmp_path):
    spec = write_spec(tmp_path)
    properties = make_declared_table(spec).properties_bytes
    shelf.create(PROPERTIES, properties)
    shelf.create(".hoodie/timeline/20251231000000000_20251231000001000.commit", b"")
    context = RunContext(
        open_storage=lambda *_: shelf,
        clock=shelf.clock,
        process=process(),
        report_wait=lambda *_: None,
        check_stop=lambda: None,
        lock_wait_s=0,
    )
    return open_session(
        spec,
        shelf,
        TableProperties.parse(properties, PROPERTIES),
        Timeline.from_files([]),
        UTC,
        owner=context.process.make_owner("run"),
        context=context,
    )


def list_instants(shelf):
    return [path.rpartition(".clean")[2] for path in sorted(shelf.files) if ".clean" in path]


def find_side_files(shelf):
    return [path for path in shelf.files if path == LOCK or "heartbeat" in path]


def test_a_change_takes_its_steps_in_order_and_leaves_nothing_behind(session, shelf):
    story = Story(session)

    assert "completed" == run_change(story).how
    assert story.told == [*STEPS, "tidy"]
    assert {"", ".inflight", ".requested"} == set(list_instants(shelf))
    assert [] == find_side_files(shelf)


def test_a_change_begins_again_while_its_table_changes(session):
    story = Story(session, changes=3)

    assert "completed" == run_change(story).how
    assert 4 == story.told.count("prepare")


def test_a_change_gives_up_on_a_table_that_changes_at_every_attempt(session, shelf):
    with pytest.raises(BusyError, match="changed 8 times while a story was being prepared"):
        run_change(Story(session, changes=99))

    assert ([], []) == (list_instants(shelf), find_side_files(shelf))


class Missing(Story):
    """Misses one of some files each time it is prepared; ``is_busy``: others write meanwhile."""

    files = ()
    is_busy = False

    def prepare(self):
        self.tell("prepare")
        count = self.told.count("prepare")
        if self.is_busy:
            name = f"20260101{count:09}.clean.requested"
            self.session.storage.create(f".hoodie/timeline/{name}", b"")
        if count > len(self.files):
            return "prepared"
        raise NotFoundError(self.files[count - 1], "does not exist")

    def drop_request(self, pending):
        self.tell(f"drop {pending}")


def make_missing(session, *files, is_busy=False):
    story = Missing(session)
    story.files, story.is_busy = files, is_busy
    return story


def test_a_change_looks_again_when_a_file_vanishes_while_it_is_prepared(session):
    story = make_missing(session, "a")

    assert "completed" == run_change(story).how
    assert ["prepare", "prepare", "request"] == story.told[:3]


def test_a_file_that_stays_missing_while_nothing_changes_is_lost(session, shelf):
    story = make_missing(session, "a", "b", "c")
    with pytest.raises(NotFoundError, match="b: does not exist"):
        run_change(story)

    assert ["prepare", "prepare", "drop None"] == story.told
    assert [] == find_side_files(shelf)


def test_files_that_vanish_at_every_attempt_mean_a_busy_table(session):
    story = make_missing(session, *"abcdefgh", is_busy=True)
    with pytest.raises(BusyError, match="changed 8 times while a story was being prepared"):
        run_change(story)

    assert [*["prepare"] * 8, "drop None"] == story.told


def test_a_file_that_stays_missing_at_a_busy_table_is_named(session):
    story = make_missing(session, *"aaaaaaaa", is_busy=True)
    with pytest.raises(NotFoundError, match="a: does not exist"):
        run_change(story)

    assert [*["prepare"] * 8, "drop None"] == story.told


@pytest.mark.parametrize("step", ["work", "settle", "sync", "check"])
def test_a_change_that_fails_is_abandoned_under_the_lock(step, session, shelf):
    story = Story(session, fails=step)

    with pytest.raises(ValueError, match="oops"):
        run_change(story)

    assert ["abandon", f"failed, has_worked={step != 'work'}"] == story.told[-2:]
    assert ([], []) == (list_instants(shelf), find_side_files(shelf))


def test_a_change_that_is_not_undone_says_that_its_run_has_ended(session, shelf):
    story = Story(session, fails="settle", is_undone=False)

    with pytest.raises(ValueError, match="oops"):
        run_change(story)

    assert "abandon" not in story.told
    (beat,) = find_side_files(shelf)
    assert b'"ended": true' in shelf.read(beat)


def test_another_writer_that_has_begun_keeps_the_change(session):
    story = Story(session, fails="begin", error=BusyError("theirs"))

    with pytest.raises(BusyError, match="theirs"):
        run_change(story)

    assert "begin" == story.told[-1]


def test_what_is_killed_is_not_abandoned(session, shelf):
    story = Story(session, fails="work", error=SystemExit())

    with pytest.raises(SystemExit):
        run_change(story)

    assert "work" == story.told[-1]
    assert 2 == len(list_instants(shelf))


def test_a_change_that_ends_early_requests_nothing(session, shelf):
    story = Story(session)
    story.prepare = lambda: Ended(Outcome("nothing"))

    assert "nothing" == run_change(story).how
    assert [] == list_instants(shelf)


def test_a_store_that_denies_what_it_did_does_not_undo_it(session, shelf):
    story, complete = Story(session), shelf.create

    def create(path, data):
        complete(path, data)
        if path.endswith(".clean"):
            raise StorageError(path, "is away")

    shelf.create = create
    outcome = run_change(story)

    assert ("completed", ["store"]) == (outcome.how, [note.rule for note in outcome.warnings])
    assert "abandon" not in story.told


def test_a_lock_that_cannot_be_given_back_is_a_warning(session, shelf):
    story, delete = Story(session), shelf.delete

    def refuse(path):
        if path == LOCK and "check" in story.told:
            raise StorageError(path, "is away")
        return delete(path)

    shelf.delete = refuse
    outcome = run_change(story)

    assert ("completed", ["lock"]) == (outcome.how, [note.rule for note in outcome.warnings])


def test_a_lock_that_was_not_given_back_early_is_taken_again(session, shelf):
    story, delete, refused = Story(session), shelf.delete, []

    def refuse_once(path):
        if path == LOCK and not refused:
            refused.append(path)
            raise StorageError(path, "is away")
        return delete(path)

    shelf.delete = refuse_once
    outcome = run_change(story)

    assert ("completed", ()) == (outcome.how, outcome.warnings)
    assert [LOCK] == refused
    assert [] == find_side_files(shelf)


def test_the_error_of_the_work_counts_more_than_that_of_the_release(session, shelf):
    story, delete = Story(session, fails="settle"), shelf.delete

    def refuse(path):
        if path == LOCK and "settle" in story.told:
            raise StorageError(path, "is away")
        return delete(path)

    shelf.delete = refuse
    with pytest.raises(ValueError, match="oops"):
        run_change(story)


@pytest.mark.parametrize("step", ["request", "sync"])
def test_a_lock_that_vanishes_is_taken_again_and_the_table_is_looked_at_anew(step, session, shelf):
    story, tell = Story(session), Story.tell

    def lose(told):
        tell(story, told)
        if told == step and story.told.count(step) == 1:
            shelf.delete(LOCK)  # as Hudi's writers do when they close

    story.tell = lose
    request = story.request

    def confirmed(prepared, should_wait):
        story.tell("request")
        session.lock.confirm()
        return request(prepared, should_wait)

    story.request = confirmed
    outcome = run_change(story)

    again = "request" if step == "request" else "settle"
    assert ("completed", ()) == (outcome.how, outcome.warnings)
    assert 2 <= story.told.count(again)
    assert "abandon" not in story.told
    assert [] == find_side_files(shelf)


def test_what_a_sync_dropped_is_told_although_the_lock_vanished_after_it(
    session, shelf, monkeypatch
):
    story, dropped = Story(session), Note("metadata", "an index was dropped")

    def sync(*_arguments):
        if story.told.count("settle") > 1:
            return ()
        shelf.delete(LOCK)
        return (dropped,)

    monkeypatch.setattr(run, "sync_metadata", sync)
    outcome = run_change(story)

    assert 2 == story.told.count("settle")
    assert ("completed", (dropped,)) == (outcome.how, outcome.warnings)


def test_a_lock_that_another_took_is_not_taken_again(session, shelf):
    story, tell = Story(session, is_undone=False), Story.tell

    def lose(told):
        tell(story, told)
        if told == "settle":
            shelf.replace(LOCK, b"")

    story.tell = lose
    with pytest.raises(BusyError, match="taken from us"):
        run_change(story)

    assert 1 == story.told.count("settle")
    assert b"" == shelf.read(LOCK)
    assert ".inflight" in list_instants(shelf)
    assert "" not in list_instants(shelf)


def test_a_lock_that_vanishes_each_time_is_an_error(session, shelf):
    story, tell = Story(session, is_undone=False), Story.tell

    def lose(told):
        tell(story, told)
        if told == "sync":
            shelf.delete(LOCK)

    story.tell = lose
    with pytest.raises(BusyError, match="deleted again and again"):
        run_change(story)

    assert 8 == story.told.count("sync")
    assert "" not in list_instants(shelf)


def test_work_that_leaves_its_instant_pending_says_so_in_its_last_heartbeat(session, shelf):
    time = session.request_instant(Action.CLEAN, session.reload_timeline(), b"plan")

    run_with_heartbeat(session, time, lambda: "later", stays_pending=lambda _outcome: True)

    assert b'"ended": true' in shelf.read(heartbeat_path(time))
