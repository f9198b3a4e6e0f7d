"""Check the plan of one table against the policies over it; pure.

Every policy is checked, so the strictest one decides. A violation is a refusal, or a warning if
the policy only warns or a waiver is in force. A rule about one kind of step refuses only that kind.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from typing import Final

from reconciler import units
from reconciler.lazy_dataclass import dataclass
from reconciler.plans.compact_step import CompactStep
from reconciler.plans.model import (
    ClusterStep,
    Note,
    OrphansStep,
    ResumeStep,
    StepKind,
    TablePlan,
    removal_steps,
)
from reconciler.plans.partition_deletion import deleted_partitions
from reconciler.spec.guard_policy import GuardPolicy
from reconciler.spec.model import Policy, Retention, TableSpec
from reconciler.spec.partition_filter import PartitionFilter, find_excluded_partitions

_COUNT_NAMES: Final = {
    Policy.COMMITS: "commits",
    Policy.HOURS: "hours",
    Policy.FILE_VERSIONS: "fileVersions",
}
#: rules that limit one kind of step; a violation of any other refuses all work on the table
_STEP_OF_RULE: Final[Mapping[str, StepKind]] = {
    "minRetention": "clean",
    "maxFilesRemoved": "clean",
    "maxBytesRemoved": "clean",
    "maxRewrite": "cluster",
    "maxPartitionsRemoved": "deletePartition",
    "protectedPartitions": "deletePartition",
}
_REMOVAL_RULES: Final = ("maxFilesRemoved", "maxBytesRemoved")


@dataclass(frozen=True, slots=True)
class PolicyNotes:
    """The violations that forbid a plan and those that only warn."""

    refusals: tuple[Note, ...] = ()
    warnings: tuple[Note, ...] = ()


def evaluate_policies(plan: TablePlan, spec: TableSpec, now: datetime) -> PolicyNotes:
    """Return the violations of every policy over the table by its spec and the plan's impact.

    ``now`` has a zone: a waiver is in force until the end of its last day in UTC.
    """
    today = now.astimezone(UTC).date().isoformat()
    refusals: list[Note] = []
    warnings: list[Note] = []
    for policy in spec.guarded_by:
        for broken in _find_violations(policy, plan, spec):
            verdict, is_waived = _describe_violation(broken, policy, spec.name, today)
            if is_waived or policy.severity == "warn":
                warnings.append(verdict)
            else:
                refusals += (replace(verdict, step=kind) for kind in _find_kinds(broken.rule, plan))
    return PolicyNotes(tuple(refusals), tuple(warnings))


def _find_violations(policy: GuardPolicy, plan: TablePlan, spec: TableSpec) -> Iterator[Note]:
    """Yield the violated rules, each with what to do; waivers are not considered here."""
    glob = next((glob for glob in policy.protected if fnmatchcase(spec.name, glob)), None)
    if glob is not None and plan.steps:
        name = "" if glob == spec.name else f" ({glob})"
        yield Note("protected", f"protects {spec.name}{name}: leave the table as it is")
    lock = spec.concurrency.lock if spec.concurrency else None
    if policy.require_lock and (lock is None or lock.provider == "none"):
        declared = "no concurrency.lock" if lock is None else "concurrency.lock.provider none"
        yield Note(
            "requireLock",
            f"requires a lock, but the spec has {declared}; declare the lock that the writers use, "
            "as in concurrency: {lock: {provider: filesystem}}",
        )
    if spec.retention is not None and policy.min_retention:
        yield from _check_retention(policy, spec.retention)
    yield from _check_impact(policy, plan)
    yield from _check_partitions(policy, plan)


def _check_retention(policy: GuardPolicy, retention: Retention) -> Iterator[Note]:
    count, keep = _COUNT_NAMES[retention.policy], retention.keep
    least = policy.min_retention.get(count)
    if least is None:
        known = sorted(policy.min_retention.items())
        yield Note(
            "minRetention",
            f"has a minimum for {' and '.join(kind for kind, _ in known)} but none for {count}, so "
            f"retention.{count}: {keep} cannot be checked; declare "
            f"{' or '.join(f'{kind}: {much}' for kind, much in known)} or more instead",
        )
    elif keep < least:
        yield Note(
            "minRetention",
            f"requires retention.{count} of {least} or more, but the spec has {keep}; raise it",
        )


def _check_impact(policy: GuardPolicy, plan: TablePlan) -> Iterator[Note]:
    impact = plan.impact
    is_for_sizes = any(isinstance(s, ClusterStep) and s.purpose for s in plan.steps)
    block = "files" if is_for_sizes else "clustering"
    smaller = f"lower {block}.budget.rewrite"
    if _find_rewriting_kinds(plan) == ("compact",):
        is_planned = any(isinstance(step, CompactStep) for step in plan.steps)
        pending = "set concurrency.pending.compaction to report"
        smaller = "lower compaction.budget.rewrite" if is_planned else pending
    fewer = "remove less at a time with retention.maxCommitsPerRun, or keep more"
    if _has_orphans(plan) and not removal_steps(plan.steps):
        fewer = "raise orphans.olderThan, or find out what leaves so many files"
    for rule, most, amount, verb, remedy in (
        ("maxFilesRemoved", policy.max_files_removed, impact.files_removed, "remove", fewer),
        ("maxBytesRemoved", policy.max_bytes_removed, impact.bytes_removed, "remove", fewer),
        (
            "maxRewrite",
            policy.max_rewrite,
            impact.bytes_rewritten,
            "rewrite",
            smaller,
        ),
    ):
        if most is None or amount <= most:
            continue
        limit, actual = f"{most} file{'s' * (most != 1)}", str(amount)
        if rule != "maxFilesRemoved":
            limit, actual = units.format_size(most), _format_rounded_up(amount)
        because = f"lets a plan {verb} {limit}, but this one {verb}s {actual}; {remedy}"
        yield Note(rule, because)


def _check_partitions(policy: GuardPolicy, plan: TablePlan) -> Iterator[Note]:
    """Yield what forbids the deletion of partitions: their number, and those that must stay."""
    paths = sorted(partition.path for partition in deleted_partitions(plan.steps))
    most = policy.max_partitions_removed
    if most is not None and len(paths) > most:
        yield Note(
            "maxPartitionsRemoved",
            f"lets a plan delete {most} partition{'s' * (most != 1)}, but this one deletes "
            f"{len(paths)}; raise retention.partitions.olderThan",
        )
    wanted = PartitionFilter(exclude=policy.protected_partitions)
    protected = find_excluded_partitions(paths, wanted)
    if protected:
        first = min(protected)
        others = f" and {len(protected) - 1} more that this plan deletes" * (len(protected) > 1)
        yield Note(
            "protectedPartitions",
            f"protects partition {first}{others}; raise retention.partitions.olderThan",
        )


def _format_rounded_up(size: int) -> str:
    """Format a size, rounded up so that it never looks equal to a limit that it exceeds.

    >>> _format_rounded_up(1024**3 + 1), _format_rounded_up(1), _format_rounded_up(1536)
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
    """Return the note about a violation and whether a waiver is in force."""
    sentence = f"policy {policy.name} {broken.because}"
    waivers = [w for w in policy.waivers if (w.rule, w.table) == (broken.rule, table)]
    waiver = max(waivers, key=lambda waiver: waiver.until, default=None)
    if waiver is not None and today <= waiver.until:
        return Note(broken.rule, f"waived until {waiver.until} ({waiver.reason}): {sentence}"), True
    if policy.severity == "error":
        sentence += f", or ask {policy.owner or 'its owner'} for a waiver"
    if waiver is not None:
        sentence += f"; the last waiver ended on {waiver.until} ({waiver.reason})"
    return Note(broken.rule, sentence), False


def _find_kinds(rule: str, plan: TablePlan) -> tuple[StepKind | None, ...]:
    """Return the kinds of steps that a violated rule refuses; None: all work on the table.

    What a plan removes counts together, so a limit on it refuses orphan files too. The same holds
    for what it rewrites.
    """
    kind = _STEP_OF_RULE.get(rule)
    if rule == "maxRewrite":
        return _find_rewriting_kinds(plan)
    if rule not in _REMOVAL_RULES or not _has_orphans(plan):
        return (kind,)
    others: tuple[StepKind | None, ...] = (kind,) if removal_steps(plan.steps) else ()
    return (*others, "orphans")


def _find_rewriting_kinds(plan: TablePlan) -> tuple[StepKind, ...]:
    """Return the kinds of the steps that rewrite files: what they rewrite counts together."""
    compacts = any(
        isinstance(step, CompactStep)
        or (isinstance(step, ResumeStep) and step.action == "compaction")
        for step in plan.steps
    )
    clusters = any(
        isinstance(step, ClusterStep)
        or (isinstance(step, ResumeStep) and step.action == "clustering")
        for step in plan.steps
    )
    if not compacts:
        return ("cluster",)
    return ("compact", "cluster") if clusters else ("compact",)


def _has_orphans(plan: TablePlan) -> bool:
    return any(isinstance(step, OrphansStep) for step in plan.steps)
