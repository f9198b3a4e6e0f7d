"""Where a table differs from its spec: facts, no remedies."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from reconciler.spec.model import Policy, Retention, TableSpec
from reconciler.state.model import TableState

FIELDS = {
    Policy.COMMITS: "retention.commits",
    Policy.HOURS: "retention.hours",
    Policy.FILE_VERSIONS: "retention.fileVersions",
}
_SECONDS = 14  # digits of an instant down to seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class Drift:
    """One difference: what the spec says, what the table has, and how we know."""

    field: str
    desired: Any
    actual: Any
    because: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Excess:
    """File slices beyond a retention that nothing else holds.

    ``oldest`` is the instant of the oldest; ``versions`` the most versions a live group has, and
    ``cutoff`` the instant at which a window of hours starts.
    """

    slices: int
    files: int
    oldest: str
    versions: int
    cutoff: str | None = None


def drift(spec: TableSpec, state: TableState, excess: Excess | None) -> tuple[Drift, ...]:
    """Every difference; ``excess`` is None when no slice exceeds the retention."""
    if spec.retention is None:
        return ()
    found = []
    if excess is not None:
        found.append(_of_excess(spec.retention, state, excess))
    by_writers = _of_writers(spec.retention, state)
    return (*found, by_writers) if by_writers else tuple(found)


def _of_excess(retention: Retention, state: TableState, excess: Excess) -> Drift:
    slices = f"{excess.slices} file slice" + ("" if excess.slices == 1 else "s")
    files = f"{excess.files} file" + ("" if excess.files == 1 else "s")
    exceed = "exceeds" if excess.slices == 1 else "exceed"
    return Drift(
        field=FIELDS[retention.policy],
        desired=retention.keep,
        actual=_kept_in_fact(retention, state, excess),
        because=f"{slices} in {files} {exceed} it, the oldest of {excess.oldest}",
    )


def _kept_in_fact(retention: Retention, state: TableState, excess: Excess) -> int:
    match retention.policy:
        case Policy.COMMITS:
            return sum(i.requested >= excess.oldest for i in state.timeline.commits)
        case Policy.HOURS:
            return retention.keep + _hours_between(excess.oldest, excess.cutoff or excess.oldest)
        case Policy.FILE_VERSIONS:
            return excess.versions


def _hours_between(earlier: str, later: str) -> int:
    """Whole hours between two instants, rounded up; 0 where one is no time (bootstrap)."""
    try:
        start, end = (
            datetime.strptime(i[:_SECONDS], "%Y%m%d%H%M%S")  # noqa: DTZ007 (difference only)
            for i in (earlier, later)
        )
    except ValueError:
        return 0
    return max(0, -int(-(end - start).total_seconds() // 3600))


def _of_writers(retention: Retention, state: TableState) -> Drift | None:
    """The policy by which another writer cleans the table, where it contradicts the spec."""
    for clean in reversed(state.cleans):
        if clean.is_blank or clean.policy is None or "reconciler.plan.digest" in clean.extra:
            continue
        if clean.policy == retention.policy.value:
            return None
        return Drift(
            field="retention.policy",
            desired=retention.policy.value,
            actual=clean.policy,
            because=f"another writer's clean {clean.instant} used it; the table has two retentions "
            "while its writers clean by themselves (hoodie.clean.automatic)",
        )
    return None
