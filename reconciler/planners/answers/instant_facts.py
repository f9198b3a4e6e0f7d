"""Why an instant is on the timeline, and what it means for reads and cleans; pure."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from reconciler.hudi.timeline.instant import COMMITS, Action, Instant
from reconciler.planners.answers.model import Answer, Fact, Verdict
from reconciler.planners.answers.planned_table import PlannedTable
from reconciler.planners.clean.planner import describe_retention
from reconciler.planners.reasons import pluralize
from reconciler.plans.archive_step import ArchiveStep
from reconciler.plans.model import ResumeStep, RollbackStep
from reconciler.plans.savepoint_step import SavepointStep
from reconciler.units import format_rounded_size


def explain_instant(table: PlannedTable, instant: Instant) -> Answer:
    """Return what an instant of the active timeline is, and whether it stays there."""
    steps = tuple(_list_steps(table, instant))
    archival = tuple(_describe_archival(table, instant))
    facts = (
        *_describe_instant(instant),
        *_describe_files(table, instant.requested),
        *_describe_reads(table, instant),
        *_describe_savepoint(table, instant),
        *steps,
        *archival,
        *table.find_mentions(instant.requested),
    )
    verdict, summary = _decide(table, instant, archival)
    name = f"{instant.requested}.{instant.action}"
    return Answer(kind="instant", name=name, verdict=verdict, summary=summary, facts=facts)


def explain_archived_instant(table: PlannedTable, instant: Instant) -> Answer:
    """Return the answer about an instant of the archived timeline."""
    start = table.state.timeline.start
    facts = (
        *_describe_instant(instant),
        *_describe_files(table, instant.requested),
        Fact("timeline", f"the active timeline begins with {start}"),
    )
    return Answer(
        kind="instant",
        name=f"{instant.requested}.{instant.action}",
        verdict="archived",
        summary="was moved from the active to the archived timeline",
        facts=facts,
    )


def _decide(
    table: PlannedTable, instant: Instant, archival: tuple[Fact, ...]
) -> tuple[Verdict, str]:
    if not instant.is_completed:
        state = instant.state.lower()
        return "pending", f"is pending ({state}): it is not completed, and nothing archives it"
    if any(fact.about == "archive" for fact in archival):
        return "goes", "leaves the active timeline: step archive of the plan moves it"
    if table.spec.timeline is None:
        return "active", "stays active: the spec has no timeline block, so no archival is planned"
    reasons = [fact.because for fact in archival]
    return "active", f"stays active: {reasons[-1] if reasons else 'nothing archives it'}"


def _describe_instant(instant: Instant) -> Iterator[Fact]:
    state = instant.state.lower()
    at = "" if instant.completed is None else f" at {instant.completed}"
    yield Fact("instant", f"a {instant.action} that is {state}{at}")


def _describe_files(table: PlannedTable, requested: str) -> Iterator[Fact]:
    """Yield how many files the table has of an instant, and how many of them readers see."""
    files, view = table.state.files, table.view
    if requested not in files.instants:
        yield Fact("files", "no file of the table has it in its name")
        return
    rows = np.flatnonzero(files.instant == files.instants.index(requested))
    size = format_rounded_size(int(files.size[rows].sum()))
    current = int(view.is_current[view.row_slice[rows]].sum())
    yield Fact(
        "files",
        f"{pluralize(len(rows), 'file')} ({size}) named with it, {current} of them in file slices "
        "that readers see now",
    )


def _describe_reads(table: PlannedTable, instant: Instant) -> Iterator[Fact]:
    """Yield whether the table can be read as of the instant, before and after the plan."""
    if not instant.is_completed or instant.action not in COMMITS:
        return
    requested = instant.requested
    before, after = table.readable.get(requested, (False, False))
    if before and after:
        yield Fact("reads", "a read as of it works, also after the plan")
    elif before:
        later = [time for time, (_, is_left) in table.readable.items() if is_left]
        then = f"; from {later[0]} on" if later else ""
        yield Fact("reads", f"a read as of it works until the plan is applied{then}")
    else:
        yield Fact("reads", f"no read as of it works: {_explain_unreadable(table, requested)}")
    clean, retention = table.clean, table.spec.retention
    if clean is not None and retention is not None and clean.expired.earliest is not None:
        earliest = clean.expired.earliest
        side = "before" if requested < earliest else "not before"
        kept = describe_retention(retention)
        text = f"it is {side} the earliest instant to retain {earliest} ({kept})"
        yield Fact("retention", text)


def _explain_unreadable(table: PlannedTable, requested: str) -> str:
    readable = [time for time, (is_readable, _) in table.readable.items() if is_readable]
    if readable and requested < readable[0]:
        return f"the earliest readable instant is {readable[0]}"
    return "cleans removed files that it needs"


def _describe_savepoint(table: PlannedTable, instant: Instant) -> Iterator[Fact]:
    for savepoint in table.state.savepoints:
        if savepoint.instant == instant.requested:
            maker = f" by {savepoint.made_by}" if savepoint.made_by else ""
            comment = f": {savepoint.comment}" if savepoint.comment else ""
            state = "a savepoint" if savepoint.completed else "a half-made savepoint"
            yield Fact("savepoint", f"{state} of it was made{maker}{comment}")


def _list_steps(table: PlannedTable, instant: Instant) -> Iterator[Fact]:
    for step in table.plan.steps:
        match step:
            case ResumeStep() | RollbackStep() | SavepointStep():
                if step.instant == instant.requested:
                    yield Fact(step.kind, step.because)
                    yield from table.describe_refusal(step)
            case _:
                pass


def _describe_archival(table: PlannedTable, instant: Instant) -> Iterator[Fact]:
    """Yield what the declared length of the timeline means for an instant."""
    declared = table.spec.timeline
    if declared is None or not instant.is_completed:
        return
    steps = [step for step in table.plan.steps if isinstance(step, ArchiveStep)]
    for step in steps:
        if any(_is_same(one.instant, one.action, instant) for one in step.instants):
            refusal = tuple(table.describe_refusal(step))
            yield Fact("timeline" if refusal else "archive", step.because)
            yield from refusal
            return
        if step.bound is not None and instant.requested >= step.bound.instant:
            yield Fact("timeline", f"{step.bound.because} [{step.bound.rule}]")
            return
    held = [note.because for note in table.plan.warnings if note.rule == "timeline"]
    commits = len(table.state.timeline.commits)
    active = f"timeline.keep is {declared.keep}, and {pluralize(commits, 'commit')} are active"
    yield from (Fact("timeline", text) for text in held)
    yield Fact("timeline", active)


def _is_same(requested: str, action: str, instant: Instant) -> bool:
    return requested == instant.requested and Action(action).completes_as == (
        instant.action.completes_as
    )
