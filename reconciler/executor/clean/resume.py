"""Resume pending cleans: finish them, or take back those with nothing left to do.

Our own cleans are known by the plan's digest in their extra metadata, and are finished as soon as
their owner is dead. Another writer's clean is finished only when a review has named it, it is older
than ``staleAfter`` and there is a lock; an empty or damaged one is removed then. Files that a
savepoint protects by now stay.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from reconciler.arrays import to_arrow
from reconciler.errors import BusyError, StaleError
from reconciler.executor.clean.execution import CleanExecution, CleanWork
from reconciler.executor.clean.payloads import PLACEHOLDER, list_planned_partitions
from reconciler.executor.fresh_plan import FreshPlan
from reconciler.executor.freshness import (
    choose_earliest,
    is_in,
    make_keys,
    select_fresh,
    take_files,
)
from reconciler.executor.result import FileReasons, StepOutcome
from reconciler.executor.session import ApplySession
from reconciler.hudi.files.names import BaseName, LogName
from reconciler.hudi.files.table_files import has_files
from reconciler.hudi.timeline.active import Timeline
from reconciler.hudi.timeline.clean import CleanerPlan, replace_earliest_instant
from reconciler.hudi.timeline.instant import Action, State
from reconciler.lazy_dataclass import dataclass
from reconciler.planners.reader_window import find_reader_window
from reconciler.planners.recovery.resume_clean import is_own_clean, revalidate_clean
from reconciler.plans.model import RemovedFiles, ResumeStep
from reconciler.state.model import PendingClean
from reconciler.transaction.paths import list_names
from reconciler.transaction.publish import find_completion
from reconciler.transaction.recovery.takeover import take_over
from reconciler.transaction.run import finish_change, run_with_heartbeat


def resume_cleans(session: ApplySession, fresh: FreshPlan) -> Iterator[StepOutcome]:
    """Finish or withdraw every pending clean, oldest first.

    Raises BusyError for one that may not be touched yet, StaleError for one that no review named.
    """
    for clean in fresh.state.pending_cleans:
        with session.phase("resume"):
            _take_over(session, fresh, clean)
            yield run_with_heartbeat(
                session,
                clean.instant,
                partial(_resume_clean, session, clean),
                stays_pending=lambda outcome: outcome.how == "inflight",
            )


def report_finished_clean(fresh: FreshPlan, step: ResumeStep) -> StepOutcome:
    """Return the outcome of a reviewed resume whose clean is not pending any more."""
    selection = select_fresh(
        step, None, fresh.plan.kept, fresh.state.files, fresh.state.partitions, None
    )
    return StepOutcome(
        kind="resume",
        how="nothing",
        gone=selection.gone,
        left_out=selection.left_out if len(selection.left_out) else None,
    )


def _take_over(session: ApplySession, fresh: FreshPlan, clean: PendingClean) -> None:
    """Check that no run works on a pending clean, and take it over."""
    if not is_own_clean(clean):
        _check_foreign_clean(session, clean)
    take_over(session, clean, known=fresh.state.timeline, kind="clean")


def _check_foreign_clean(session: ApplySession, clean: PendingClean) -> None:
    """Raise BusyError or StaleError for another writer's clean that may not be touched."""
    concurrency = session.spec.concurrency
    stale_after = concurrency.stale_after if concurrency else 0
    age_s = (session.context.clock.now_ms() - clean.started_ms) / 1000
    named = f"clean {clean.instant} of another writer is {clean.state.lower()}"
    if age_s <= stale_after:
        raise BusyError(
            f"{named} since {age_s:.0f} s and may be at work; it counts as left behind after "
            f"concurrency.staleAfter, {stale_after} s"
        )
    if not session.lock.excludes_others:
        raise BusyError(
            f"{named}; without a lock it cannot be known to be left behind: let its writer finish "
            "it, or configure spec.concurrency.lock"
        )
    if clean.problem is None and _find_reviewed_step(session, clean) is None:
        raise StaleError(f"{named} and the plan does not name it; plan again to have it resumed")


def _find_reviewed_step(session: ApplySession, clean: PendingClean) -> ResumeStep | None:
    for step in session.plan.steps:
        if isinstance(step, ResumeStep) and step.instant == clean.instant:
            return step
    return None


def _resume_clean(session: ApplySession, clean: PendingClean) -> StepOutcome:
    started_ms = session.context.clock.now_ms()
    if clean.problem is not None:
        return _withdraw(session, clean, StepOutcome(kind="resume", how="undone"))
    fresh = session.make_fresh_plan()
    rest = _find_remaining_work(session, fresh, clean)
    if rest.is_empty:
        return _withdraw(
            session, clean, StepOutcome(kind="resume", how="undone", left_out=rest.left_out)
        )
    planned = clean.earliest_instant_to_retain
    earliest = choose_earliest(fresh.state, planned, rest.staying, rest.files)
    request = _amend_request(session, clean, earliest)
    work = CleanWork(
        instant=clean.instant,
        plan=CleanerPlan.parse(request, clean.instant),
        request=request,
        files=rest.files,
        listed=fresh.state.files,
        gone=rest.gone,
        delete_partitions=rest.delete_partitions,
        earliest=earliest,
        started_ms=started_ms,
    )
    change = _ResumedClean(session=session, kind="resume", is_begun=clean.state != State.REQUESTED)
    return replace(finish_change(change, work), left_out=rest.left_out)


@dataclass(kw_only=True, eq=False)
class _ResumedClean(CleanExecution):
    """A pending clean that is resumed; ``is_begun``: its inflight file is there."""

    is_begun: bool

    def begin(self, pending: CleanWork) -> None:
        if not self.is_begun:
            super().begin(pending)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _RemainingWork:
    """The remaining work of a pending clean.

    ``files`` may be removed, ``gone`` (partition -> names) were removed before. ``staying``: the
    keys of planned files that stay; ``left_out``: those of them that the review named.
    """

    files: RemovedFiles
    gone: Mapping[str, Sequence[str]]
    delete_partitions: tuple[str, ...]
    staying: Any
    left_out: FileReasons | None

    @property
    def is_empty(self) -> bool:
        return not (len(self.files) or self.gone or self.delete_partitions)


def _find_remaining_work(
    session: ApplySession, fresh: FreshPlan, clean: PendingClean
) -> _RemainingWork:
    """Decide on every planned file by the table as it is now, and by the review that named it."""
    state = fresh.state
    window = find_reader_window(session.spec, state, session.context.get_policy_time())
    current = revalidate_clean(state, clean, window=window)
    reviewed = _find_reviewed_step(session, clean)
    files, partitions = current.files, current.delete_partitions
    kept = current.withheld
    withheld = FileReasons(partition=kept.partition, name=kept.name, because=kept.because)
    staying = make_keys(withheld)
    if reviewed is not None:
        is_named = is_in(make_keys(files), make_keys(reviewed.files))
        staying = pa.concat_arrays([staying, pc.filter(make_keys(files), to_arrow(~is_named))])
        files = take_files(files, is_named)
        withheld = take_files(withheld, is_in(make_keys(withheld), make_keys(reviewed.files)))
        partitions = tuple(path for path in partitions if path in reviewed.delete_partitions)
    existing = state.metafile_partitions.union(state.partitions)
    return _RemainingWork(
        files=files,
        gone=_find_gone_files(session, fresh, clean),
        delete_partitions=(*partitions, *sorted(list_planned_partitions(clean) - existing)),
        staying=staying,
        left_out=withheld if len(withheld) else None,
    )


def _find_gone_files(
    session: ApplySession, fresh: FreshPlan, clean: PendingClean
) -> dict[str, list[str]]:
    """Return planned files that are absent; those that no listing shows are looked up."""
    names_of = cache(lambda path: list_names(session.storage, path))
    pairs = [(path, name) for path, names in sorted(clean.files.items()) for name in sorted(names)]
    listed = has_files(fresh.state.files, to_arrow([f"{path}/{name}" for path, name in pairs]))
    folders = fresh.state.metafile_partitions.union(fresh.state.partitions)
    missing: dict[str, list[str]] = {}
    for (path, name), is_there in zip(pairs, listed, strict=True):
        if is_there or name == PLACEHOLDER:
            continue
        is_shown = path in folders and _is_data_file(name, session.properties.base_extension)
        if is_shown or name not in names_of(path):
            missing.setdefault(path, []).append(name)
    return missing


def _is_data_file(name: str, base_extension: str) -> bool:
    base = BaseName.parse(name)
    return base.extension == base_extension if base else LogName.parse(name) is not None


def _amend_request(session: ApplySession, clean: PendingClean, earliest: str | None) -> bytes:
    """Return the requested file, rewritten if it claims more than will be done.

    Hudi's archiver takes the boundary from there, not from the completed file.
    """
    request = _read_request(session, clean)
    claimed = clean.earliest_instant_to_retain
    if earliest is None or (claimed is not None and claimed <= earliest):
        return request

    def amend() -> bytes:
        timeline = session.reload_timeline()
        _check_still_ours(session, clean, timeline)
        actions = {i.requested: i.action.value for i in timeline.commits}
        data = replace_earliest_instant(
            request, clean.instant, earliest, actions.get(earliest, "commit")
        )
        session.lock.confirm()
        session.publisher.amend(clean.instant, Action.CLEAN, data)
        return data

    return session.run_locked(amend)


def _check_still_ours(session: ApplySession, clean: PendingClean, timeline: Timeline) -> None:
    """Raise BusyError if another has completed the clean or taken it over; the lock is held."""
    if find_completion(timeline, clean.instant, Action.CLEAN) is not None:
        raise BusyError(f"clean {clean.instant} was completed by another writer meanwhile")
    if session.make_heartbeat(clean.instant).is_taken_over():
        raise BusyError(f"clean {clean.instant} was taken over by another run; apply again")


def _read_request(session: ApplySession, clean: PendingClean) -> bytes:
    file = session.reload_timeline().find_file(clean.instant, Action.CLEAN, State.REQUESTED)
    if file is None:
        raise BusyError(f"clean {clean.instant} was removed by another writer meanwhile")
    return session.read_instant(file)[0]


def _withdraw(session: ApplySession, clean: PendingClean, outcome: StepOutcome) -> StepOutcome:
    """Take a clean off the timeline of which nothing was done and nothing may be done."""

    def take_off() -> StepOutcome:
        timeline = session.reload_timeline()
        _check_still_ours(session, clean, timeline)
        is_begun = timeline.find_file(clean.instant, Action.CLEAN, State.INFLIGHT) is not None
        if is_begun and clean.state == State.REQUESTED:
            raise BusyError(f"clean {clean.instant} was begun by another writer meanwhile")
        session.lock.confirm()
        session.publisher.withdraw(clean.instant, Action.CLEAN)
        return outcome

    return session.run_locked(take_off)
