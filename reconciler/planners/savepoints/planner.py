"""Plan the savepoints of a table: which to make, and which of ours to remove; pure.

A table has at most one savepoint per instant. Declared savepoints of the same instant share one,
which stays until the last of them ends. Savepoints of other tools and people are never removed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from datetime import datetime, tzinfo
from typing import Final

import pyarrow.compute as pc

from reconciler.arrays import Mask, to_arrow, to_numpy
from reconciler.lazy_dataclass import dataclass
from reconciler.planners.picture import TablePicture
from reconciler.planners.savepoints.instants import (
    explain_lost,
    find_newest_completed,
    list_completed_writes,
)
from reconciler.planners.savepoints.pinned_files import find_pinned_rows
from reconciler.plans.model import Finding, Note
from reconciler.plans.refusals import find_timeline_zone, format_instant
from reconciler.plans.savepoint_step import SavepointStep
from reconciler.spec.model import DeclaredSavepoint, TableSpec
from reconciler.spec.moments import parse_moment
from reconciler.state.model import Savepoint, TableState
from reconciler.state.savepoint_comment import format_savepoint_comment

#: the rule of warnings about savepoints
RULE: Final = "savepoint"
_HALF_MADE: Final = "a run that died had begun to make or to remove it"


@dataclass(frozen=True, slots=True, kw_only=True)
class SavepointDecision:
    """The steps, and what they are based on. ``savepoints``: the table's when the steps are done.

    ``kept``: the table's savepoints, and those that the steps make; what a clean must respect as
    long as nothing is removed.
    """

    savepoints: tuple[Savepoint, ...]
    kept: tuple[Savepoint, ...]
    steps: tuple[SavepointStep, ...] = ()
    drift: tuple[Finding, ...] = ()
    warnings: tuple[Note, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Wanted:
    """The instants to pin.

    Each has the declared savepoints that need it, the last to end first.
    """

    instants: Mapping[str, tuple[DeclaredSavepoint, ...]]
    warnings: tuple[Note, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Creations:
    """The steps that make savepoints, and these. ``lost``: why an instant cannot be pinned."""

    steps: list[SavepointStep] = field(default_factory=list)
    savepoints: list[Savepoint] = field(default_factory=list)
    warnings: list[Note] = field(default_factory=list)
    lost: dict[str, str] = field(default_factory=dict)


def plan_savepoints(picture: TablePicture, now: datetime) -> SavepointDecision:
    """Return the savepoints to make and to remove; nothing if the spec has no such block.

    ``picture.spec`` has a known time zone if it lists a savepoint.
    """
    spec, state = picture.spec, picture.state
    if spec.savepoints is None:
        warnings = tuple(_warn_of_unmanaged(state))
        existing = state.savepoints
        return SavepointDecision(savepoints=existing, kept=existing, warnings=warnings)
    zone = find_timeline_zone(spec, state)
    wanted = (
        _find_wanted(picture, zone, now) if zone is not None else _Wanted(instants={}, warnings=())
    )
    creations = _plan_creations(picture, wanted)
    removed = [
        _plan_removal(picture, one, declared, _explain_removal(spec, one, zone, now))
        for one in state.savepoints
        if (declared := one.declared) is not None and one.instant not in wanted.instants
    ]
    removed += [
        _plan_removal(picture, one, declared, creations.lost[one.instant])
        for one in state.savepoints
        if (declared := one.declared) is not None and one.instant in creations.lost
    ]
    return _decide(state, creations, removed, (*wanted.warnings, *creations.warnings))


def _find_wanted(picture: TablePicture, zone: tzinfo, now: datetime) -> _Wanted:
    """Return which instants the declared savepoints pin now."""
    spec, state = picture.spec, picture.state
    existing = {
        (one.declared.name, one.declared.at): one.instant
        for one in state.savepoints
        if one.declared is not None
    }
    writes = list_completed_writes(spec, state)
    instants: dict[str, list[DeclaredSavepoint]] = {}
    notes = []
    for declared in spec.savepoints or ():
        at = parse_moment(declared.at, zone)
        if _has_ended(declared, zone, now):
            continue
        if at > now:
            notes.append(_note_waiting(declared))
            continue
        instant = existing.get((declared.name, declared.at))
        instant = instant or find_newest_completed(writes, format_instant(at, zone))
        if instant is not None:
            instants.setdefault(instant, []).append(declared)
        else:
            notes.append(_note_nothing_active(declared, state))
    return _Wanted(
        instants={time: _sort_by_end(several, zone) for time, several in instants.items()},
        warnings=tuple(notes),
    )


def _plan_creations(picture: TablePicture, wanted: _Wanted) -> _Creations:
    """Return the steps that make savepoints, and warnings of those that cannot be made."""
    state = picture.state
    existing = {one.instant: one for one in state.savepoints}
    done = _Creations()
    for instant, several in sorted(wanted.instants.items()):
        present = existing.get(instant)
        if present is not None and present.declared is None:
            done.warnings.append(_note_foreign(several, present))
            continue
        if present is not None and present.completed:
            continue
        rows = find_pinned_rows(state, instant)
        names = frozenset(state.files.name.filter(to_arrow(rows)).to_pylist())
        if (lost := explain_lost(state, instant, names)) is not None:
            done.warnings.append(_note_lost(several, instant, lost))
            done.lost[instant] = lost
            continue
        done.steps.append(_make_creation(state, rows, instant, several, present))
        comment = format_savepoint_comment(several[0])
        savepoint = Savepoint(instant=instant, completed=True, files=names, comment=comment)
        done.savepoints.append(savepoint)
    return done


def _make_creation(
    state: TableState,
    rows: Mask,
    instant: str,
    several: Sequence[DeclaredSavepoint],
    present: Savepoint | None,
) -> SavepointStep:
    first, *others = several
    because = f"the newest commit completed by {first.at}"
    if others:
        because += f"; it serves {' and '.join(one.name for one in others)} too"
    return SavepointStep(
        change="create",
        name=first.name,
        instant=instant,
        until=first.until,
        files=int(rows.sum()),
        bytes=int(state.files.size[rows].sum()),
        because=because + ("" if present is None else f"; {_HALF_MADE}"),
    )


def _plan_removal(
    picture: TablePicture, savepoint: Savepoint, declared: DeclaredSavepoint, because: str
) -> SavepointStep:
    files = picture.state.files
    rows = to_numpy(pc.is_in(files.name, value_set=to_arrow(sorted(savepoint.files))))
    return SavepointStep(
        change="remove",
        name=declared.name,
        instant=savepoint.instant,
        until=declared.until,
        files=int(rows.sum()),
        bytes=int(files.size[rows].sum()),
        because=because + ("" if savepoint.completed else f"; {_HALF_MADE}"),
    )


def _explain_removal(
    spec: TableSpec, savepoint: Savepoint, zone: tzinfo | None, now: datetime
) -> str:
    """Return why a savepoint of ours goes."""
    declared = savepoint.declared
    assert declared is not None, "it is ours"
    current = next((one for one in spec.savepoints or () if one.name == declared.name), None)
    if current is None:
        name = f"no longer lists {declared.name}" if savepoint.completed else "does not list it"
        return f"savepoints {name}"
    if zone is not None and _has_ended(current, zone, now):
        return f"its until, {current.until}, has passed"
    return f"{declared.name} is declared at {current.at}, no longer at {declared.at}"


def _decide(
    state: TableState,
    creations: _Creations,
    removed: Sequence[SavepointStep],
    warnings: tuple[Note, ...],
) -> SavepointDecision:
    """Return the decision, with the savepoints before and after its steps."""
    new = {one.instant: one for one in creations.savepoints}
    others = [one for one in state.savepoints if one.instant not in new]
    gone = {step.instant for step in removed}
    kept = _sort_by_instant((*others, *new.values()))
    after = tuple(one for one in kept if one.instant not in gone)
    return SavepointDecision(
        savepoints=after,
        kept=kept,
        steps=(*creations.steps, *removed),
        drift=_find_drift(state, after, creations.steps, removed),
        warnings=warnings,
    )


def _find_drift(
    state: TableState,
    after: Iterable[Savepoint],
    created: Sequence[SavepointStep],
    removed: Sequence[SavepointStep],
) -> tuple[Finding, ...]:
    """Return one finding that compares the names of our savepoints; none without a step."""
    if not created and not removed:
        return ()
    complete = (one for one in state.savepoints if one.completed)
    counts = ((len(created), "to make"), (len(removed), "to remove"))
    because = ", ".join(f"{count} {what}" for count, what in counts if count)
    return (Finding("savepoints", _list_names(after), _list_names(complete), because),)


def _list_names(savepoints: Iterable[Savepoint]) -> list[str]:
    return [one.declared.name for one in savepoints if one.declared is not None]


def _sort_by_instant(savepoints: Iterable[Savepoint]) -> tuple[Savepoint, ...]:
    return tuple(sorted(savepoints, key=lambda one: one.instant))


def _has_ended(declared: DeclaredSavepoint, zone: tzinfo, now: datetime) -> bool:
    return declared.until is not None and parse_moment(declared.until, zone) <= now


def _sort_by_end(
    several: Sequence[DeclaredSavepoint], zone: tzinfo
) -> tuple[DeclaredSavepoint, ...]:
    """Return declared savepoints, those that never end first, then the last to end."""
    endless = [one for one in several if one.until is None]
    ending = [(parse_moment(one.until, zone), one) for one in several if one.until is not None]
    ending.sort(key=lambda pair: pair[0], reverse=True)
    return (*endless, *(one for _end, one in ending))


# --- notes ---------------------------------------------------------------------------------------


def _note_waiting(declared: DeclaredSavepoint) -> Note:
    return Note(
        "nothingToDo", f"no savepoint: {declared.name} is made once {declared.at} has passed"
    )


def _note_nothing_active(declared: DeclaredSavepoint, state: TableState) -> Note:
    first = min((instant.requested for instant in state.commits_timeline), default=None)
    begins = "has no completed commit" if first is None else f"begins with commit {first}"
    return Note(
        RULE,
        f"savepoint {declared.name} cannot be made: no commit completed by {declared.at} is on the "
        f"active timeline, which {begins}; correct at, or remove {declared.name} from savepoints",
    )


def _note_lost(several: Sequence[DeclaredSavepoint], instant: str, why: str) -> Note:
    names = " and ".join(one.name for one in several)
    return Note(
        RULE,
        f"savepoint {names} cannot be made: {why}, so the table as of {instant} is lost; correct "
        "at, or remove it from savepoints",
    )


def _note_foreign(several: Sequence[DeclaredSavepoint], present: Savepoint) -> Note:
    names = " and ".join(one.name for one in several)
    if not present.completed:
        return Note(
            RULE,
            f"savepoint {names} cannot be made: another tool has begun a savepoint of "
            f"{present.instant} and has not finished it; remove its inflight file if nothing works "
            "on it",
        )
    by = f" by {present.made_by}" if present.made_by else ""
    return Note(
        RULE,
        f"savepoint {names} is not made: {present.instant} has a savepoint{by} already, which pins "
        "the same files and is not removed by reconciler",
    )


def _warn_of_unmanaged(state: TableState) -> Iterable[Note]:
    """Warn of half-made savepoints of ours, which nobody finishes without the block."""
    for one in state.savepoints:
        if not one.completed and one.declared is not None:
            yield Note(
                RULE,
                f"savepoint {one.declared.name} of {one.instant} is half made and keeps files; add "
                "a savepoints block, which may be empty, to finish or to remove it",
            )
