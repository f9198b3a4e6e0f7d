"""Find what forbids work on a table and what only needs a warning; pure.

A refusal because of the table's state leaves no steps to show; one because of the spec shows them.
What only an apply needs is a warning in a plan and a refusal in an apply.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, tzinfo
from zoneinfo import ZoneInfo

from reconciler.hudi.timeline.instant import Action, parse_instant
from reconciler.plans.model import Note
from reconciler.plans.timeline_zone import (
    find_contradiction,
    format_offsets,
    list_fitting_zones,
    observe_offsets,
    propose_zones,
)
from reconciler.spec.lock_rules import find_lock_problem, propose_provider
from reconciler.spec.model import Policy, TableSpec
from reconciler.spec.partition_dates import LAST_COMMIT
from reconciler.state.model import TableState

_AHEAD = timedelta(minutes=5)


def find_timeline_zone(spec: TableSpec, state: TableState) -> tzinfo | None:
    """Return the zone of the timeline: the table's, else the spec's; None if unknown."""
    return choose_zone(state.timezone, spec.timezone)


def choose_zone(of_table: str | None, declared: str | None) -> tzinfo | None:
    """Return the zone of a timeline: UTC if the table says so, else the declared one, or None."""
    if of_table == "UTC":
        return UTC
    return ZoneInfo(declared) if declared else None


def format_instant(moment: datetime, zone: tzinfo) -> str:
    """Format a moment as an instant in a zone, with milliseconds.

    >>> format_instant(datetime(2024, 1, 1, 12, tzinfo=UTC), ZoneInfo("Asia/Tokyo"))
    '20240101210000000'
    """
    local = moment.astimezone(zone)
    return f"{local:%Y%m%d%H%M%S}{local.microsecond // 1000:03d}"


def refuse_by_state(spec: TableSpec, state: TableState, now: datetime) -> tuple[Note, ...]:
    """Return the refusals because of the table's state: no step would be safe."""
    notes = [
        Note(
            "pendingRestore",
            f"restore {instant.requested} is unfinished, so the table cannot be read correctly; "
            "let a Hudi writer finish it",
        )
        for instant in state.timeline.pending({Action.RESTORE})
    ]
    zone = find_timeline_zone(spec, state)
    if zone is None:
        if counting := _time_dependent_block(spec):
            notes.append(
                Note("zone", f"{counting} needs the timeline's time zone. {explain_zone(state)}")
            )
        return tuple(notes)
    if state.timezone != "UTC" and spec.timezone is not None:
        contradiction = find_contradiction(
            state.timeline, spec.timezone, are_copied=spec.file_times == "copied"
        )
        if contradiction is not None:
            return (*notes, Note("clock", contradiction))
    newest = state.timeline.newest_time
    if newest is not None and newest > format_instant(now + _AHEAD, zone)[: len(newest)]:
        late = f"instant {newest} is later than now, {format_instant(now, zone)} in {zone}"
        remedy = "correct the timezone of the spec, or a clock"
        notes.append(Note("clock", _explain_impossible(state, newest) or f"{late}: {remedy}"))
    return tuple(notes)


def _explain_impossible(state: TableState, newest: str) -> str | None:
    """Return what is wrong with the file of an instant whose digits are no time, such as day 99."""
    if parse_instant(newest) is not None:
        return None
    files = state.timeline.files
    instants = ((file.name, file.instant) for file in files)
    name = next(name for name, one in instants if newest in (one.requested, one.completed))
    return (
        f"the name of the timeline file {name} is no time, and later than every time of today: "
        "find out what wrote it, because no Hudi writer does, and remove it if it is no write"
    )


def _time_dependent_block(spec: TableSpec) -> str | None:
    """Return the field of the spec that makes steps depend on the time, or None."""
    if spec.savepoints:
        return "savepoints"
    if spec.partition_retention is not None:
        return "retention.partitions"
    if spec.retention is None:
        return None
    if spec.retention.policy is Policy.HOURS:
        return "retention.hours"
    return "readers" if spec.readers is not None and spec.readers.slowest_reader else None


def refuse_by_spec(spec: TableSpec) -> tuple[Note, ...]:
    """Return the refusals because of the spec: steps are shown and must not run."""
    if not spec.suspend:
        return ()
    return (Note("suspend", "the spec has suspend: true; remove it to continue"),)


def refuse_apply(spec: TableSpec, state: TableState, now: datetime) -> tuple[Note, ...]:
    """Return the refusals of an apply: those of the plan and those only an apply has."""
    return (
        *refuse_by_state(spec, state, now),
        *refuse_by_spec(spec),
        *refuse_incomplete_spec(spec, state),
    )


def refuse_incomplete_spec(spec: TableSpec, state: TableState) -> tuple[Note, ...]:
    """Return a refusal for a lock that is missing or impossible, and for a missing time zone."""
    notes = []
    if spec.concurrency is None or spec.concurrency.lock is None:
        notes.append(
            Note(
                "lock",
                f"apply needs concurrency.lock: {{provider: {propose_provider(spec.path)}}} as the "
                "writers have it, or "
                "{provider: none} if nothing else ever writes this table",
            )
        )
    elif problem := find_lock_problem(spec.concurrency.lock, spec.path):
        notes.append(Note("lock", f"concurrency.lock: {problem[0]}; {problem[1]}"))
    if find_timeline_zone(spec, state) is None:
        notes.append(Note("zone", f"apply needs the timeline's time zone. {explain_zone(state)}"))
    return tuple(notes)


def warn_of_unlocked_writes(spec: TableSpec, state: TableState) -> tuple[Note, ...]:
    """Return the warning that a pending write may change clustered groups without a lock."""
    lock = spec.concurrency.lock if spec.concurrency else None
    writes = state.foreign_writes
    if lock is None or lock.provider != "none" or not writes:
        return ()
    return (
        Note(
            "lock",
            f"{writes[0].action} {writes[0].requested} is pending and, without a lock, may write "
            "to file groups while they are clustered; configure concurrency.lock or let it finish",
        ),
    )


def warn_of_spec(spec: TableSpec, state: TableState) -> tuple[Note, ...]:
    """Return warnings about fields of the spec or the table that have no effect on the steps."""
    notes = []
    by_date = spec.partition_retention and spec.partition_retention.by != LAST_COMMIT
    if state.timezone == "UTC" and spec.timezone not in (None, "UTC") and not by_date:
        notes.append(
            Note("zone", f"timezone: {spec.timezone} is ignored, the table's timeline is in UTC")
        )
    if state.properties.get("hoodie.bootstrap.base.path"):
        notes.append(
            Note("bootstrap", "the table was bootstrapped; files of its source are never removed")
        )
    return tuple(notes)


def explain_zone(state: TableState) -> str:
    """Return how to declare the zone, with those that fit the times of the timeline's files."""
    sentence = "The timeline's instants are in the writers' local time"
    offsets = observe_offsets(state.timeline)
    if not (zones := list_fitting_zones(offsets)):
        return f"{sentence}; declare timezone with their zone, such as UTC or America/New_York"
    seen = format_offsets(offset.seconds for offset in offsets)
    return f"{sentence}, {seen} by the times of its files; {propose_zones(zones)}"
