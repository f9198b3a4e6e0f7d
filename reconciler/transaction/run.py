"""Run a change of one table: what changes of every kind have in common.

A change looks at the table, takes the lock and requests its instant. It beats while it works. Under
the lock it then looks for conflicts, syncs the metadata table and completes its instant, and at
last it tidies up. A change that fails is abandoned. One whose table changes while it is prepared
begins again. A kind of change is a subclass of ``Change`` that supplies what is its own.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar, Final, Generic, Protocol, TypeVar

from reconciler.errors import ReconcilerError, StorageError
from reconciler.hudi.table.properties import TableProperties
from reconciler.hudi.timeline.active import Timeline
from reconciler.hudi.timeline.instant import Action
from reconciler.lazy_dataclass import dataclass
from reconciler.plans.model import Note
from reconciler.transaction.metadata.sync import PrepareSync, sync_metadata
from reconciler.transaction.publish import find_completion
from reconciler.transaction.retry import (
    ATTEMPTS,
    MissingFiles,
    ShouldWait,
    raise_changing,
    retry_until_known,
    retry_while_changing,
)
from reconciler.transaction.session import TableSession


class RequestedInstant(Protocol):
    """A change that is requested: whatever else it knows, it knows its instant."""

    @property
    def instant(self) -> str: ...

    @property
    def action(self) -> Action: ...


_Prepared = TypeVar("_Prepared")
_Pending = TypeVar("_Pending", bound=RequestedInstant)
_Result = TypeVar("_Result")
_Outcome = TypeVar("_Outcome")
#: the rule of the warning that markers of a completed instant could not be removed
MARKERS: Final = "markers"


@dataclass(frozen=True, slots=True)
class Ended(Generic[_Outcome]):
    """The outcome of a change that ends before its last step."""

    outcome: _Outcome


@dataclass(frozen=True, slots=True, kw_only=True)
class Completion(Generic[_Outcome]):
    """The callables that complete a change, once no other write conflicts with it.

    ``timeline``: the one to sync the metadata table with. ``check`` is called last and raises if
    the instant is not ours any more. ``make_payload`` returns the bytes of the completed file,
    ``make_outcome`` the outcome with notes for users.
    """

    timeline: Timeline
    prepare_sync: PrepareSync
    make_payload: Callable[[TableProperties], bytes]
    make_outcome: Callable[[tuple[Note, ...]], _Outcome]
    check: Callable[[], None] = lambda: None


class RequestedChange(ABC, Generic[_Pending, _Result, _Outcome]):
    """The part that a kind of change supplies to complete a requested instant."""

    session: TableSession

    def phase(self, name: Any) -> AbstractContextManager[Any]:  # noqa: ARG002 (for subclasses)
        """Report a phase of the change; by default nothing is reported."""
        return nullcontext()

    def begin(self, pending: _Pending) -> None:
        """Write the inflight file, if that is not part of the work. Failing undoes nothing."""

    @abstractmethod
    def work(self, pending: _Pending) -> _Result | Ended[_Outcome]:
        """Do what takes long: delete or write files, without the lock."""

    @abstractmethod
    def settle(
        self, pending: _Pending, result: _Result, should_wait: ShouldWait
    ) -> Completion[_Outcome] | Ended[_Outcome] | None:
        """Look for conflicts for the last time, and say how the change completes.

        The table's lock is held. None if it has to wait.
        """

    def tidy(self, pending: _Pending, result: _Result | None, outcome: _Outcome) -> _Outcome:  # noqa: ARG002
        """Remove what is of no use after the end; ``result``: None if the work ended it."""
        return outcome

    def is_undone_after(self, error: BaseException) -> bool:  # noqa: ARG002
        """Return True to undo a change that fails so; otherwise another run goes on with it."""
        return True

    @abstractmethod
    def abandon(self, pending: _Pending) -> None:
        """Undo a change that failed; the table's lock is held."""

    def explain_failure(
        self,
        pending: _Pending,  # noqa: ARG002
        error: BaseException,  # noqa: ARG002
        *,
        has_worked: bool,  # noqa: ARG002
    ) -> _Outcome | None:
        """Return an outcome if the failure is one, raise a clearer error, or return None.

        It is called once the change is abandoned. After None the error is raised as it is.
        """
        return None

    def stays_pending(self, outcome: _Outcome) -> bool:  # noqa: ARG002
        """Return True if the instant is pending still, so that another run goes on at once."""
        return False


class Change(
    RequestedChange[_Pending, _Result, _Outcome], Generic[_Prepared, _Pending, _Result, _Outcome]
):
    """The part that a kind of change supplies: how it is prepared, requested and completed."""

    #: for the error of a change whose table changes all the time
    activity: ClassVar[str]
    attempts: ClassVar[int] = ATTEMPTS
    request_phase: ClassVar[str] = "request"

    @abstractmethod
    def prepare(self) -> _Prepared | Ended[_Outcome]:
        """Look at the table afresh and decide what to do; nothing is written.

        It is called again after a NotFoundError: others may have removed the file meanwhile.
        """

    @abstractmethod
    def request(
        self, prepared: _Prepared, should_wait: ShouldWait
    ) -> _Pending | Ended[_Outcome] | None:
        """Write the requested file and the first heartbeat; the table's lock is held.

        None when the table has changed since ``prepare``, or if it has to wait.
        """

    def confirm_request(self, prepared: _Prepared, pending: _Pending) -> bool:  # noqa: ARG002
        """Return True if the request may stand, asked without the lock; if not, it is withdrawn."""
        return True

    def drop_request(self, pending: _Pending | None) -> None:
        """Undo the existing part of a failed request; ``pending``: the instant, if it exists.

        It is called once, also when ``prepare`` fails for good.
        """


def run_change(change: Change[_Prepared, _Pending, _Result, _Outcome]) -> _Outcome:
    """Bring a change from a fresh look at its table to its end.

    Raises BusyError when the table changes at every attempt, and what the kind of change raises.
    """
    session = change.session
    missing = MissingFiles(session)

    def give_up() -> _Pending | Ended[_Outcome]:
        change.drop_request(None)
        missing.raise_missed_again()
        raise_changing(session.name, change.activity, change.attempts)

    requested = retry_while_changing(
        partial(_prepare_and_request, change, missing), give_up, attempts=change.attempts
    )
    if isinstance(requested, Ended):
        return requested.outcome
    return run_with_heartbeat(
        session,
        requested.instant,
        partial(finish_change, change, requested),
        stays_pending=change.stays_pending,
    )


def _prepare_and_request(
    change: Change[_Prepared, _Pending, _Result, _Outcome], missing: MissingFiles
) -> _Pending | Ended[_Outcome] | None:
    try:
        prepared = missing.look(change.prepare)
    except ReconcilerError:
        change.drop_request(None)
        raise
    if prepared is None or isinstance(prepared, Ended):
        return prepared
    with change.phase(change.request_phase):
        requested = _request(change, prepared)
        if requested is None or isinstance(requested, Ended):
            return requested
        return requested if change.confirm_request(prepared, requested) else None


def _request(
    change: Change[_Prepared, _Pending, _Result, _Outcome], prepared: _Prepared
) -> _Pending | Ended[_Outcome] | None:
    requested: _Pending | Ended[_Outcome] | None = None

    def attempt(should_wait: ShouldWait) -> None:
        nonlocal requested
        requested = change.request(prepared, should_wait)

    try:
        retry_until_known(change.session, attempt)
    except ReconcilerError:
        change.drop_request(None if isinstance(requested, Ended) else requested)
        raise
    return requested


def run_with_heartbeat(
    session: TableSession,
    instant: str,
    work: Callable[[], _Outcome],
    *,
    stays_pending: Callable[[_Outcome], bool] = lambda _: False,
) -> _Outcome:
    """Beat while a pending instant is worked on, whose first heartbeat of this run is written.

    Where the instant stays pending the last heartbeat says that the run has ended, so that another
    run may go on at once. The heartbeat of another run, which has taken it over, stays.
    """
    heartbeat = session.make_heartbeat(instant)
    try:
        with session.heartbeats.repeat(heartbeat.beat):
            outcome = work()
    except BaseException:  # an interrupted process may live on, and may come back to it
        with suppress(ReconcilerError):
            if _is_pending(session, instant):
                heartbeat.end()
            else:
                heartbeat.remove()
        raise
    with suppress(ReconcilerError):  # the next run removes it
        if stays_pending(outcome) or _leaves_markers(outcome):
            heartbeat.end()
        else:
            heartbeat.remove()
    return outcome


def _leaves_markers(outcome: Any) -> bool:
    """Return whether an outcome warns of markers that stay; only a heartbeat leads to them."""
    return any(note.rule == MARKERS for note in getattr(outcome, "warnings", ()))


def _is_pending(session: TableSession, instant: str) -> bool:
    instants = session.follow_upgrade().reload_timeline().instants
    return any(item.requested == instant and not item.is_completed for item in instants)


def finish_change(
    change: RequestedChange[_Pending, _Result, _Outcome], pending: _Pending
) -> _Outcome:
    """Bring a requested change to its end, or abandon it; its heartbeat beats."""
    change.begin(pending)
    result: _Result | None = None
    try:
        worked = change.work(pending)
        if isinstance(worked, Ended):
            outcome = worked.outcome
        else:
            result = worked
            outcome = _complete(change, pending, worked)
    except (Exception, KeyboardInterrupt) as error:
        failed = _abandon(change, pending, error, has_worked=result is not None)
        if failed is None:
            raise
        return failed
    return change.tidy(pending, result, outcome)


def _abandon(
    change: RequestedChange[_Pending, _Result, _Outcome],
    pending: _Pending,
    error: BaseException,
    *,
    has_worked: bool,
) -> _Outcome | None:
    if not change.is_undone_after(error):
        return change.explain_failure(pending, error, has_worked=has_worked)
    with suppress(ReconcilerError):  # then it stays pending, and the next run undoes it
        change.session.run_locked(partial(change.abandon, pending))
        return change.explain_failure(pending, error, has_worked=has_worked)
    return None


def _complete(
    change: RequestedChange[_Pending, _Result, _Outcome], pending: _Pending, result: _Result
) -> _Outcome:
    """Complete a change whose work is done; a lock that could not be given back is a warning."""
    completed: Ended[_Outcome] | None = None
    notes: list[Note] = []

    def attempt(should_wait: ShouldWait) -> None:
        nonlocal completed
        settled = change.settle(pending, result, should_wait)
        if isinstance(settled, Completion):
            settled = Ended(publish_completion(change.session, pending, settled, notes))
        completed = settled

    with change.phase("complete"):
        retry_until_known(change.session, attempt)
    assert completed is not None, "it waits no longer"
    failure = change.session.lock.take_release_failure()
    if failure is None:
        return completed.outcome
    return _add_warning(completed.outcome, Note("lock", failure))


def publish_completion(
    session: TableSession,
    pending: RequestedInstant,
    completion: Completion[_Outcome],
    notes: list[Note],
) -> _Outcome:
    """Sync the metadata table and write the completed file; the table's lock is held.

    ``notes``: those of earlier attempts, whose lock vanished after the sync; they are added to.
    Raises StaleError if the table was upgraded since the session was opened.
    """
    properties = session.reload_properties()
    notes += sync_metadata(
        session, properties, completion.timeline, pending.instant, completion.prepare_sync
    )
    session.lock.confirm()
    completion.check()
    payload = completion.make_payload(properties)
    try:
        session.publisher.complete(pending.instant, pending.action, payload)
    except StorageError as error:
        timeline = session.reload_timeline()
        if find_completion(timeline, pending.instant, pending.action) is None:
            raise
        text = f"{pending.action} {pending.instant} is completed, although the store says: {error}"
        notes.append(Note("store", text))
    return completion.make_outcome(tuple(notes))


def _add_warning(outcome: _Outcome, note: Note) -> _Outcome:
    changed: Any = outcome
    added: _Outcome = replace(changed, warnings=(*changed.warnings, note))
    return added
