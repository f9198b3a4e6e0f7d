"""What is true of a table, on two axes that know nothing of each other; pure.

``Synced``: is it as declared? ``Healthy``: does something hang that a person should look at? A
table may be in sync and ill, or well and drifted. The shape is that of a Kubernetes condition.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

from reconciler import units
from reconciler.plan.model import ResumeStep, RollbackStep, TablePlan
from reconciler.spec.model import TableSpec

ConditionType = Literal["Synced", "Healthy"]
Truth = Literal["True", "False", "Unknown"]

#: of Synced, and of Healthy, the worst first; other programs rely on these words
SYNC_REASONS: Final = ("Unreadable", "Blocked", "Suspended", "Drifted", "Unmanaged", "InSync")
HEALTH_REASONS: Final = ("Unreadable", "PendingRestore", "StaleLock", "StuckInstant", "Healthy")

_MOST_SENTENCES: Final = 5
_PENDING_RESTORE: Final = "pendingRestore"
_SUSPEND: Final = "suspend"
#: from so many seconds on an age is said in the unit
_UNITS: Final = (("d", 86400, 2), ("h", 3600, 2), ("m", 60, 2))


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """``reason`` is one word in CamelCase for programs, ``message`` sentences for people."""

    type: ConditionType
    status: Truth
    reason: str
    message: str


def is_unmanaged(spec: TableSpec) -> bool:
    """Whether nothing is declared that makes a step."""
    return spec.retention is None and spec.clustering is None and spec.index is None


def synced(spec: TableSpec, plan: TablePlan) -> Condition:
    """Whether the table is as declared: nothing refused, no drift, no step.

    What is suspended is compared all the same; what nothing is declared for, or what could not be
    read, is unknown.
    """
    if plan.error is not None:
        return _sync("Unknown", "Unreadable", plan.error)
    differences = _differences(plan)
    others = tuple(note.because for note in plan.refusals if note.rule != _SUSPEND)
    if others:
        return _sync("False", "Blocked", _joined((*others, *differences)))
    if plan.refusals:
        is_same: Truth = "False" if differences else "True"
        return _sync(is_same, "Suspended", _joined((plan.refusals[0].because, *differences)))
    if is_unmanaged(spec) and not left_behind(plan):
        return _sync("Unknown", "Unmanaged", "the spec has no retention block")
    if differences:
        return _sync("False", "Drifted", _joined(differences))
    return _sync("True", "InSync", "the plan is empty")


def healthy(plan: TablePlan, *, stuck: Sequence[str], stale_lock: str | None) -> Condition:
    """Whether nothing hangs; ``stuck`` and ``stale_lock`` are sentences about what does."""
    if plan.error is not None:
        return _health("Unreadable", [plan.error])
    restores = [note.because for note in plan.refusals if note.rule == _PENDING_RESTORE]
    found = {
        "PendingRestore": restores,
        "StaleLock": [] if stale_lock is None else [stale_lock],
        "StuckInstant": list(stuck),
    }
    reasons = [reason for reason in HEALTH_REASONS if found.get(reason)]
    if not reasons:
        return Condition(type="Healthy", status="True", reason="Healthy", message="nothing hangs")
    return _health(reasons[0], [line for reason in reasons for line in found[reason]])


def left_behind(plan: TablePlan) -> tuple[str, ...]:
    """What runs that died have left, a sentence each."""
    steps = (step for step in plan.steps if isinstance(step, ResumeStep | RollbackStep))
    return tuple(step.because for step in steps)


def about(seconds: int) -> str:
    """An age, in units large enough to be read.

    >>> about(119), about(120), about(7260), about(200_000)
    ('119s', '2m', '2h', '2d')
    """
    for unit, size, least in _UNITS:
        if seconds >= least * size:
            return f"{seconds // size}{unit}"
    return f"{seconds}s"


def longer_than(seconds: int) -> str:
    """What an instant or a lock is that was there for longer than ``staleAfter``."""
    return f"longer than concurrency.staleAfter, {units.format_duration(seconds)}"


def _differences(plan: TablePlan) -> tuple[str, ...]:
    drift = tuple(f"{finding.field}: {finding.because}" for finding in plan.drift)
    found = (*left_behind(plan), *drift)
    return found or (("the plan is not empty",) if plan.steps else ())


def _joined(sentences: Sequence[str]) -> str:
    more = len(sentences) - _MOST_SENTENCES
    return "; ".join(sentences[:_MOST_SENTENCES]) + (f"; and {more} more" if more > 0 else "")


def _sync(status: Truth, reason: str, message: str) -> Condition:
    return Condition(type="Synced", status=status, reason=reason, message=message)


def _health(reason: str, sentences: Sequence[str]) -> Condition:
    return Condition(type="Healthy", status="False", reason=reason, message=_joined(sentences))
