"""Plan a table with other retentions, to compare what each would keep; pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import field, replace
from datetime import datetime

import numpy as np

from reconciler.arrays import Mask
from reconciler.hudi.timeline.instant import parse_instant
from reconciler.lazy_dataclass import dataclass
from reconciler.planners.compose import plan_table
from reconciler.planners.readable_instants import find_readable_writes
from reconciler.planners.removed_files import find_removed_files
from reconciler.plans.guardrails import evaluate_policies
from reconciler.plans.model import Note, TablePlan
from reconciler.prices import Prices, round_amount
from reconciler.spec.model import Policy, Retention, TableSpec
from reconciler.state.model import TableState


@dataclass(frozen=True, slots=True, kw_only=True)
class RetentionChoice:
    """A retention to try: its policy and the commits, hours or file versions that it keeps."""

    policy: Policy
    keep: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RetentionPoint:
    """What a table keeps after a clean by a retention; figures are None after a ``problem``.

    ``is_declared``: the spec has this retention. ``reach_seconds``: time from ``earliest_readable``
    to the newest write; the table can be read as of each write between. ``commits``: their number.
    ``older_commits``: writes before a gap that can be read as of, such as those of savepoints.
    ``kept_per_month``: price of the bytes that stay. ``refusals``: why an apply of it would be
    refused. ``problem``: why it cannot be planned.
    """

    policy: Policy
    keep: int
    is_declared: bool = False
    files_removed: int | None = None
    bytes_removed: int | None = None
    bytes_kept: int | None = None
    earliest_readable: str | None = None
    reach_seconds: int | None = None
    commits: int | None = None
    older_commits: int | None = None
    kept_per_month: float | None = field(default=None, metadata={"optional": True})
    refusals: tuple[Note, ...] = ()
    problem: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RetentionCurve:
    """The bytes of a table against how far back it can be read.

    ``files`` and the fields after it, except ``points``: as it is now, named as in the points.
    ``newest_bytes``: those of the newest file slices, which every retention keeps. ``currency``:
    None without a price of storage. ``points``: in the order of the options, with the declared
    retention where its policy was asked for.
    """

    files: int
    bytes: int
    newest_bytes: int
    last_completed: str | None
    earliest_readable: str | None
    reach_seconds: int | None
    commits: int
    older_commits: int
    currency: str | None = field(default=None, metadata={"optional": True})
    points: tuple[RetentionPoint, ...] = ()


def simulate_retentions(
    spec: TableSpec, state: TableState, now: datetime, choices: Sequence[RetentionChoice]
) -> RetentionCurve:
    """Return what each retention would keep of the files that are there.

    Only cleans are planned, each for the same state; savepoints, readers and pending work keep what
    they keep in a plan. A clean that waits for commits, is spread over several runs, or scans some
    partitions only counts as a whole.
    """
    view, prices = state.view, spec.prices
    is_newest = (view.is_newest & view.is_live)[view.row_slice]
    window = _find_window(state, np.zeros(len(state.files), np.bool_))
    has_price = prices is not None and prices.storage_per_gb_month is not None
    return RetentionCurve(
        files=len(state.files),
        bytes=int(state.files.size.sum()),
        newest_bytes=int(state.files.size[is_newest].sum()),
        last_completed=window.newest,
        earliest_readable=window.start,
        reach_seconds=window.seconds,
        commits=window.commits,
        older_commits=window.older,
        currency=prices.currency if prices is not None and has_price else None,
        points=tuple(
            _simulate(spec, state, now, choice) for choice in _add_declared(spec, choices)
        ),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Window:
    """The writes up to the newest one as of each of which the table can be read.

    ``start``: None if there is none. ``older``: readable writes before it, and before a gap.
    """

    start: str | None = None
    newest: str | None = None
    commits: int = 0
    older: int = 0

    @property
    def seconds(self) -> int | None:
        """The time from its start to the newest write; None if one of them is not a time."""
        ends = (self.start, self.newest)
        start, end = (None if one is None else parse_instant(one) for one in ends)
        return None if start is None or end is None else int((end - start).total_seconds())


def _find_window(state: TableState, is_removed: Mask) -> _Window:
    """Return the window of the files that are not removed."""
    writes, is_readable = find_readable_writes(state, is_removed)
    if not writes or not is_readable[-1]:
        return _Window(newest=writes[-1] if writes else None, older=int(is_readable.sum()))
    gaps = np.flatnonzero(~is_readable)
    first = int(gaps[-1]) + 1 if len(gaps) else 0
    return _Window(
        start=writes[first],
        newest=writes[-1],
        commits=len(writes) - first,
        older=int(is_readable[:first].sum()),
    )


def _add_declared(spec: TableSpec, choices: Iterable[RetentionChoice]) -> list[RetentionChoice]:
    """Return distinct choices by policy and number, and the declared one beside others of it."""
    wanted = dict.fromkeys(choices)
    if spec.retention is not None:
        declared = _declared_choice(spec.retention)
        if any(choice.policy == declared.policy for choice in wanted):
            wanted.setdefault(declared)
    policies = list(dict.fromkeys(choice.policy for choice in wanted))
    return sorted(wanted, key=lambda choice: (policies.index(choice.policy), choice.keep))


def _declared_choice(retention: Retention) -> RetentionChoice:
    return RetentionChoice(policy=retention.policy, keep=retention.keep)


def _simulate(
    spec: TableSpec, state: TableState, now: datetime, choice: RetentionChoice
) -> RetentionPoint:
    declared = spec.retention and _declared_choice(spec.retention)
    point = RetentionPoint(policy=choice.policy, keep=choice.keep, is_declared=declared == choice)
    tried = limit_to_clean(spec, choice)
    plan = plan_table(tried, state, now)
    if plan.is_blocked:
        return replace(point, problem="; ".join(note.because for note in plan.refusals))
    guarded = replace(tried, guarded_by=spec.guarded_by)
    policies = evaluate_policies(plan, guarded, now)
    return _fill(point, plan, state, spec.prices, (*plan.refusals, *policies.refusals))


def limit_to_clean(spec: TableSpec, choice: RetentionChoice) -> TableSpec:
    """Return a spec that declares this retention and nothing else that plans steps for files.

    What other parts of the spec protect stays protected.
    """
    known = spec.retention or Retention(policy=choice.policy, keep=choice.keep)
    retention = Retention(policy=choice.policy, keep=choice.keep, failed_writes=known.failed_writes)
    return replace(
        spec,
        suspend=False,
        retention=retention,
        partition_retention=None,
        files=None,
        clustering=None,
        compaction=None,
        index=None,
        orphans=None,
        metadata=None,
        queries=(),
        timeline=None,
        guarded_by=(),
    )


def _fill(
    point: RetentionPoint,
    plan: TablePlan,
    state: TableState,
    prices: Prices | None,
    refusals: tuple[Note, ...],
) -> RetentionPoint:
    """Return a point with the figures of its plan."""
    impact, window = plan.impact, _find_window(state, find_removed_files(state, plan))
    kept = int(state.files.size.sum()) - impact.bytes_removed
    amount = None if prices is None else prices.price_storage(kept)
    return replace(
        point,
        files_removed=impact.files_removed,
        bytes_removed=impact.bytes_removed,
        bytes_kept=kept,
        earliest_readable=window.start,
        reach_seconds=window.seconds,
        commits=window.commits,
        older_commits=window.older,
        kept_per_month=None if amount is None else round_amount(amount),
        refusals=refusals,
    )
