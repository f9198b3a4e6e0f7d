"""What policies say about the plan of one table at one moment; pure.

Every policy over the table is asked, so that the strictest decides. What one forbids is a refusal,
or a warning where the policy only warns or a waiver is in force.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from typing import Final

from reconciler import units
from reconciler.plans.model import Note, TablePlan
from reconciler.spec.model import GuardPolicy, Policy, Retention, TableSpec

_COUNT_NAMES: Final = {
    Policy.COMMITS: "commits",
    Policy.HOURS: "hours",
    Policy.FILE_VERSIONS: "fileVersions",
}


@dataclass(frozen=True, slots=True)
class PolicyNotes:
    """What forbids a plan, and what only deserves a word."""

    refusals: tuple[Note, ...] = ()
    warnings: tuple[Note, ...] = ()


def apply_policies(plan: TablePlan, spec: TableSpec, now: datetime) -> TablePlan:
    """The plan with what the policies over its table say about it; its steps stay as they are."""
    found = evaluate_policies(plan, spec, now)
    return replace(
        plan,
        refusals=(*plan.refusals, *found.refusals),
        warnings=(*found.warnings, *plan.warnings),
    )


def evaluate_policies(plan: TablePlan, spec: TableSpec, now: datetime) -> PolicyNotes:
    """The verdicts of every policy over the table, on its spec and on what the plan comes to.

    ``now`` has a zone: a waiver is in force up to and including its day of UTC.
    """
    today = now.astimezone(UTC).date().isoformat()
    refusals: list[Note] = []
    warnings: list[Note] = []
    for policy in spec.guarded_by:
        for broken in _find_violations(policy, plan, spec):
            verdict, is_waived = _describe_violation(broken, policy, spec.name, today)
            notes = warnings if is_waived or policy.severity == "warn" else refusals
            notes.append(verdict)
    return PolicyNotes(tuple(refusals), tuple(warnings))


def _find_violations(policy: GuardPolicy, plan: TablePlan, spec: TableSpec) -> Iterator[Note]:
    """The rules that do not hold, each with what to do; nothing is waived here."""
    glob = next((glob for glob in policy.protected if fnmatchcase(spec.name, glob)), None)
    if glob is not None and plan.steps:
        name = "" if glob == spec.name else f" ({glob})"
        yield Note("protected", f"protects {spec.name}{name}: leave the table as it is")
    lock = spec.concurrency.lock if spec.concurrency else None
    if policy.require_lock and (lock is None or lock.provider == "none"):
        declared = "no concurrency.lock" if lock is None else "concurrency.lock.provider none"
        yield Note(
            "requireLock",
            f"asks for a lock, and the spec has {declared}; declare the one that the writers use, "
            "as in concurrency: {lock: {provider: filesystem}}",
        )
    if spec.retention is not None and policy.min_retention:
        yield from _check_retention(policy, spec.retention)
    yield from _check_impact(policy, plan)


def _check_retention(policy: GuardPolicy, retention: Retention) -> Iterator[Note]:
    count, keep = _COUNT_NAMES[retention.policy], retention.keep
    least = policy.min_retention.get(count)
    if least is None:
        known = sorted(policy.min_retention.items())
        yield Note(
            "minRetention",
            f"has a minimum for {' and '.join(kind for kind, _ in known)} and none for {count}, so "
            f"it cannot tell whether retention.{count}: {keep} is enough; declare "
            f"{' or '.join(f'{kind}: {much}' for kind, much in known)} or more instead",
        )
    elif keep < least:
        yield Note(
            "minRetention",
            f"asks for retention.{count}: {least} or more, and the spec says {keep}; declare that",
        )


def _check_impact(policy: GuardPolicy, plan: TablePlan) -> Iterator[Note]:
    impact = plan.impact
    fewer = "remove less at a time with retention.maxCommitsPerRun, or keep more"
    most = policy.max_files_removed
    if most is not None and impact.files_removed > most:
        yield Note(
            "maxFilesRemoved",
            f"lets a plan remove {most} file{'s' * (most != 1)}, and this one removes "
            f"{impact.files_removed}; {fewer}",
        )
    most = policy.max_bytes_removed
    if most is not None and impact.bytes_removed > most:
        yield Note(
            "maxBytesRemoved",
            f"lets a plan remove {units.format_size(most)}, and this one removes "
            f"{_format_rounded_up(impact.bytes_removed)}; {fewer}",
        )
    most = policy.max_rewrite
    if most is not None and impact.bytes_rewritten > most:
        yield Note(
            "maxRewrite",
            f"lets a plan rewrite {units.format_size(most)}, and this one rewrites "
            f"{_format_rounded_up(impact.bytes_rewritten)}; lower clustering.budget.rewrite",
        )


def _format_rounded_up(size: int) -> str:
    """A size for people, rounded up so that it is never shown as the limit it is above.

    >>> _about(1024**3 + 1), _about(1), _about(1536)
    ('1.01GiB', '1B', '1.5KiB')
    """
    unit, factor = "B", 1
    for name in ("KiB", "MiB", "GiB", "TiB"):
        if size >= units.SIZE_UNITS[name]:
            unit, factor = name, units.SIZE_UNITS[name]
    return f"{-(-size * 100 // factor) / 100:.12g}{unit}"


def _describe_violation(
    broken: Note, policy: GuardPolicy, table: str, today: str
) -> tuple[Note, bool]:
    """The verdict as people read it, and whether a waiver is in force."""
    said = f"policy {policy.name} {broken.because}"
    waivers = [w for w in policy.waivers if (w.rule, w.table) == (broken.rule, table)]
    waiver = max(waivers, key=lambda waiver: waiver.until, default=None)
    if waiver is not None and today <= waiver.until:
        return Note(broken.rule, f"waived until {waiver.until} ({waiver.reason}): {said}"), True
    if policy.severity == "error":
        said += f", or ask {policy.owner or 'its owner'} for a waiver"
    if waiver is not None:
        said += f"; the one there was ended on {waiver.until} ({waiver.reason})"
    return Note(broken.rule, said), False
