"""The two conditions of a table, in the shape of Kubernetes conditions; pure.

``Synced``: is the table as declared? ``Healthy``: is nothing stuck? They are independent: a table
may be in sync and unhealthy, or healthy and drifted.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Literal

from reconciler import units
from reconciler.lazy_dataclass import dataclass
from reconciler.plans.model import UNMEASURED_RULES, ResumeStep, RollbackStep, TablePlan
from reconciler.spec.model import TableSpec

ConditionType = Literal["Synced", "Healthy"]
ConditionStatus = Literal["True", "False", "Unknown"]

#: reasons of Synced and of Healthy, the worst first; other programs rely on these words
SYNC_REASONS: Final = (
    "Unreadable",
    "Blocked",
    "BlockedInPart",
    "Suspended",
    "Drifted",
    "LayoutUnknown",
    "Unmanaged",
    "InSync",
)
HEALTH_REASONS: Final = ("Unreadable", "PendingRestore", "StaleLock", "StuckInstant", "Healthy")

_MAX_SENTENCES: Final = 5
_PENDING_RESTORE: Final = "pendingRestore"
_SUSPEND: Final = "suspend"
#: units of an age: suffix, seconds, and the smallest number of them
_UNITS: Final = (("d", 86400, 2), ("h", 3600, 2), ("m", 60, 2))


@dataclass(frozen=True, slots=True, kw_only=True)
class TableCondition:
    """``reason``: one CamelCase word for programs. ``message``: sentences for people."""

    type: ConditionType
    status: ConditionStatus
    reason: str
    message: str


def is_unmanaged(spec: TableSpec) -> bool:
    """Return whether the spec declares nothing that makes a step."""
    blocks = (
        spec.retention,
        spec.partition_retention,
        spec.rewriting,
        spec.compaction,
        spec.index,
        spec.metadata,
        spec.orphans,
        spec.savepoints,
        spec.timeline,
    )
    return all(block is None for block in blocks)


def synced_condition(spec: TableSpec, plan: TablePlan) -> TableCondition:
    """Return whether the table is as declared: nothing refused, no drift, no step.

    Suspended tables are compared too. Unmanaged and unreadable tables are ``Unknown``, and so are
    tables without a difference if nothing tells whether a declared clustering would pay.
    """
    if plan.error is not None:
        return _synced("Unknown", "Unreadable", plan.error)
    differences = _describe_differences(plan)
    if plan.refusals:
        return _refused_condition(plan, differences)
    if is_unmanaged(spec) and not leftover_reasons(plan):
        return _synced("Unknown", "Unmanaged", "the spec has no retention block")
    if differences:
        return _synced("False", "Drifted", _join_sentences(differences))
    if unknown := unknown_layout_reasons(plan):
        return _synced("Unknown", "LayoutUnknown", _join_sentences(unknown))
    return _synced("True", "InSync", "the plan is empty")


def _refused_condition(plan: TablePlan, differences: Sequence[str]) -> TableCondition:
    """Return what refusals make of a table: blocked, suspended, or blocked in part."""
    others = [note for note in plan.refusals if note.rule != _SUSPEND]
    suspended = [note.because for note in plan.refusals if note.rule == _SUSPEND]
    sentences = (*(note.because for note in others), *differences)
    if any(note.step is None for note in others):
        return _synced("False", "Blocked", _join_sentences(sentences))
    if not suspended:
        return _synced("False", "BlockedInPart", _join_sentences(sentences))
    unknown = () if sentences else unknown_layout_reasons(plan)
    is_same: ConditionStatus = "False" if sentences else "Unknown" if unknown else "True"
    sentences = (*sentences, *unknown)
    return _synced(is_same, "Suspended", _join_sentences((*suspended, *sentences)))


def healthy_condition(
    plan: TablePlan, *, stuck: Sequence[str], stale_lock: str | None
) -> TableCondition:
    """Return whether nothing is stuck; ``stuck`` and ``stale_lock`` are sentences for people."""
    if plan.error is not None:
        return _unhealthy("Unreadable", [plan.error])
    restores = [note.because for note in plan.refusals if note.rule == _PENDING_RESTORE]
    sentences = {
        "PendingRestore": restores,
        "StaleLock": [] if stale_lock is None else [stale_lock],
        "StuckInstant": list(stuck),
    }
    reasons = [reason for reason in HEALTH_REASONS if sentences.get(reason)]
    if not reasons:
        return TableCondition(
            type="Healthy", status="True", reason="Healthy", message="nothing is stuck"
        )
    return _unhealthy(reasons[0], [line for reason in reasons for line in sentences[reason]])


def leftover_reasons(plan: TablePlan) -> tuple[str, ...]:
    """Return what dead runs have left behind, one sentence each."""
    steps = (step for step in plan.steps if isinstance(step, ResumeStep | RollbackStep))
    return tuple(step.because for step in steps)


def unknown_layout_reasons(plan: TablePlan) -> tuple[str, ...]:
    """Return why it is unknown whether the declared layout would pay, one sentence each."""
    return tuple(note.because for note in plan.warnings if note.rule in UNMEASURED_RULES)


def format_age(seconds: int) -> str:
    """Return an age in a unit that keeps the number small.

    >>> format_age(119), format_age(120), format_age(7260), format_age(200_000)
    ('119s', '2m', '2h', '2d')
    """
    for unit, size, least in _UNITS:
        if seconds >= least * size:
            return f"{seconds // size}{unit}"
    return f"{seconds}s"


def describe_stale(seconds: int) -> str:
    """Return the text for an instant or a lock older than ``staleAfter``."""
    return f"longer than concurrency.staleAfter, {units.format_duration(seconds)}"


def _describe_differences(plan: TablePlan) -> tuple[str, ...]:
    drift = tuple(f"{finding.field}: {finding.because}" for finding in plan.drift)
    return (*leftover_reasons(plan), *drift) or (("the plan is not empty",) if plan.steps else ())


def _join_sentences(sentences: Sequence[str]) -> str:
    more = len(sentences) - _MAX_SENTENCES
    return "; ".join(sentences[:_MAX_SENTENCES]) + (f"; and {more} more" if more > 0 else "")


def _synced(status: ConditionStatus, reason: str, message: str) -> TableCondition:
    return TableCondition(type="Synced", status=status, reason=reason, message=message)


def _unhealthy(reason: str, sentences: Sequence[str]) -> TableCondition:
    return TableCondition(
        type="Healthy", status="False", reason=reason, message=_join_sentences(sentences)
    )
