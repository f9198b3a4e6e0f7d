"""Running a reviewed clean: prepare, publish the intent, look again, execute."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Final

from reconciler.apply import delegate
from reconciler.apply.checks import Look, stop_for_pending_cleans
from reconciler.apply.execute import Work, begin, finish, with_heartbeat
from reconciler.apply.freshness import (
    Selection,
    earliest_base,
    published_earliest,
    replaced_left,
    select,
    still_replacing,
)
from reconciler.apply.payloads import extra_metadata, names_by_partition, requested_payload
from reconciler.apply.result import StepOutcome
from reconciler.apply.table import Table
from reconciler.errors import AlreadyExistsError, BusyError
from reconciler.hudi.instant import Action, Instant, State
from reconciler.hudi.timeline import Timeline, TimelineFile
from reconciler.plan.model import CleanStep
from reconciler.planners.slices import view_of
from reconciler.state.model import TableState
from reconciler.transaction import metadata
from reconciler.transaction.publish import completion_of

#: how often a timeline may change under our eyes before we let its writers be
_ATTEMPTS: Final = 8
#: what may appear on the timeline without changing what a clean may remove: a write only supersedes
_HARMLESS: Final = frozenset({Action.COMMIT, Action.DELTACOMMIT})


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Decision:
    """What runs now, and the state it follows from."""

    look: Look
    selection: Selection
    policy: str
    earliest: str | None


def run_clean(table: Table, step: CleanStep, look: Look | None) -> StepOutcome:
    """Remove reviewed ∩ fresh and report the rest; ``look`` is one just taken, if there is one.

    Raises RefusedError, BusyError before anything is deleted; PartialError as ``finish``.
    """
    started_ms = table.tools.clock.now_ms()
    for _attempt in range(_ATTEMPTS):
        if look is None:
            with table.phase("observe"):
                look = table.look()
        decision = _decide(table, step, look)
        look = None
        if decision.selection.is_empty:
            return _with_left_out(StepOutcome(kind="clean", how="nothing"), decision.selection)
        with table.phase("request"):
            work = _request(table, decision, started_ms)
        if work is not None:
            outcome = with_heartbeat(table, work.instant, partial(_execute, table, work))
            return _with_left_out(outcome, decision.selection)
    raise BusyError(
        f"{table.plan.name}: its timeline changed {_ATTEMPTS} times while a clean was being "
        "prepared; run apply again when its writers are quieter"
    )


def _decide(table: Table, step: CleanStep, look: Look) -> _Decision:
    stop_for_pending_cleans(look)
    fresh = next((s for s in look.plan.steps if isinstance(s, CleanStep)), None)
    state = look.state
    folders = state.metafile_partitions.union(state.partitions)
    selection = select(step, fresh, look.plan.kept, state.files, folders, _earlier(step, fresh))
    if not selection.is_empty:
        _check_metadata(table, state, selection)
    return _Decision(
        look=look,
        selection=selection,
        policy=(fresh or step).policy,
        earliest=_claim(look, selection),
    )


def _check_metadata(table: Table, state: TableState, selection: Selection) -> None:
    """Raises FormatError, UnsupportedError when the metadata table could not be told afterwards."""
    time = table.publisher.new_time(state.timeline)
    ours = Instant(time, Action.CLEAN, State.REQUESTED)
    timeline = Timeline.of((*state.timeline.files, TimelineFile(ours, ours.file_name, 0, 0)))
    metadata.plan_sync(
        table.storage,
        table.properties,
        timeline,
        instant=time,
        completed=time,
        removal=metadata.Removal(
            files=names_by_partition(selection.files), partitions=selection.delete_partitions
        ),
    )


def _earlier(step: CleanStep, fresh: CleanStep | None) -> str | None:
    """The smaller of the two boundaries; None under file versions, which know no boundary."""
    found = (step, fresh) if fresh else (step,)
    times = [one.earliest_instant_to_retain for one in found]
    return min((time for time in times if time is not None), default=None)


def _claim(look: Look, selection: Selection) -> str | None:
    """The earliest instant to retain that the clean publishes."""
    state = look.state
    return published_earliest(
        selection.earliest,
        earliest_base(view_of(state), selection.staying),
        (
            *replaced_left(state.files, state.replaced, selection.files),
            *still_replacing(state.timeline),
        ),
    )


def _request(table: Table, decision: _Decision, started_ms: int) -> Work | None:
    """Publish the intent and check the savepoints once more; None when the world has moved.

    A savepoint made meanwhile withdraws the request: what it protects is found by deciding anew.
    """
    before = decision.look.state.timeline
    with table.locked():
        timeline = table.reread()
        if has_moved(before, timeline):
            return None
        work = _publish(table, decision, timeline, started_ms)
    if work is None or not savepoints_moved(before, table.reread()):
        return work
    with table.locked():
        _withdraw(table, work.instant)
    return None


def _publish(table: Table, decision: _Decision, timeline: Timeline, started_ms: int) -> Work | None:
    """Write the requested file; None when its name was taken meanwhile (``lock: none``)."""
    selection, state = decision.selection, decision.look.state
    extra = extra_metadata(
        state,
        plan_digest=table.digest,
        spec_digest=table.plan.spec_digest,
        owner=table.owner,
        origin=table.tools.origin,
        delete_partitions=selection.delete_partitions,
    )
    plan = requested_payload(
        state,
        selection.files,
        policy=decision.policy,
        earliest=decision.earliest,
        delete_partitions=selection.delete_partitions,
        extra=extra,
    )
    data = plan.encode(table.storage.location)
    table.lock.confirm()
    try:
        instant = table.publisher.request(Action.CLEAN, timeline, data)
    except AlreadyExistsError:
        return None
    return Work(
        instant=instant,
        plan=plan,
        request=data,
        files=selection.files,
        delete_partitions=selection.delete_partitions,
        earliest=decision.earliest,
        started_ms=started_ms,
    )


def _withdraw(table: Table, instant: str) -> None:
    """Take our requested clean back, unless somebody has begun to execute it."""
    timeline = table.reread()
    begun = timeline.file(instant, Action.CLEAN, State.INFLIGHT) is not None
    if begun or completion_of(timeline, instant, Action.CLEAN) is not None:
        raise BusyError(
            f"another writer executes our clean {instant} although a savepoint made meanwhile may "
            "protect files of it; look at the savepoint and plan again"
        )
    table.publisher.withdraw(instant, Action.CLEAN)


def _execute(table: Table, work: Work) -> StepOutcome:
    """Inflight to completed, by us or by Hudi."""
    if (hudi := table.tools.hudi) is not None:
        return delegate.clean(table, hudi, work)
    begin(table, work)
    return finish(table, work, "clean")


def has_moved(before: Timeline, now: Timeline) -> bool:
    """Whether anything happened that a clean decided before may not ignore.

    Writes that begin or complete only supersede more files. Whatever disappears (a rollback, the
    archiver) and every other action (savepoint, clean, restore, compaction, clustering, replace)
    may change what is newest, protected or pending.
    """
    old, new = set(before.files), set(now.files)
    return bool(old - new) or any(file.instant.action not in _HARMLESS for file in new - old)


def savepoints_moved(before: Timeline, now: Timeline) -> bool:
    """Whether a savepoint was made, half made or removed."""
    return _savepoints(before) != _savepoints(now)


def _savepoints(timeline: Timeline) -> set[str]:
    return {file.name for file in timeline.files if file.instant.action is Action.SAVEPOINT}


def _with_left_out(outcome: StepOutcome, selection: Selection) -> StepOutcome:
    return replace(
        outcome,
        gone=outcome.gone + selection.gone,
        left_out=selection.left_out if len(selection.left_out) else None,
        partitions_left=(*outcome.partitions_left, *selection.partitions_left),
    )
