"""Remove reviewed orphan files: those that are orphans still, looked at again under the lock."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field, replace
from typing import Final

import numpy as np

from reconciler.arrays import Integers, Mask, take_rows
from reconciler.errors import PartialError, ReconcilerError
from reconciler.executor.clean.payloads import split_batches
from reconciler.executor.deletion import DELETED_HERE, DeletionOutcome, LocalDeleter
from reconciler.executor.fresh_plan import FreshPlan
from reconciler.executor.freshness import make_keys
from reconciler.executor.gate import RefusedError
from reconciler.executor.result import FileReasons, StepOutcome
from reconciler.executor.session import ApplySession, LockedApplyChange
from reconciler.hudi.files.table_files import find_rows
from reconciler.hudi.timeline.active import Timeline
from reconciler.lazy_dataclass import dataclass
from reconciler.planners.orphans import OrphanReport, find_orphans
from reconciler.plans.model import Note, OrphanFiles, OrphansStep
from reconciler.state.model import TableState
from reconciler.state.orphan_facts import GONE, OrphanFacts
from reconciler.state.orphan_reader import refresh_orphan_facts
from reconciler.transaction.footprints import find_unexcluded_write
from reconciler.transaction.paths import LARGEST_CALL
from reconciler.transaction.process import read_store_clock_ms
from reconciler.transaction.retry import ShouldWait
from reconciler.transaction.run import Ended, run_change

#: most files that are removed while writers wait for the lock
_PER_LOCK: Final = 20_000
_KEPT_NOW: Final = "a plan made now keeps it: the table has moved since the review"
_YOUNG: Final = "it was written within orphans.olderThan"
_CHANGED: Final = "it was written again since it was looked at: plan again"


def run_orphans(session: ApplySession, step: OrphansStep, fresh: FreshPlan | None) -> StepOutcome:
    """Remove the reviewed files that no write knows and no reader sees, and report the rest.

    ``fresh`` is a plan that was made just now, if there is one. The lock is given back after every
    share of many files. Raises RefusedError while a write is pending that no lock keeps out,
    BusyError, StorageError, and PartialError if deleting stops half way.
    """
    change = _OrphanRemoval(session=session, fresh=fresh, step=step)
    outcome = run_change(change)
    while change.position < len(step.files):
        change.fresh = change.prepared
        outcome = run_change(change)
    return outcome


@dataclass(kw_only=True, eq=False)
class _OrphanRemoval(LockedApplyChange[FreshPlan, StepOutcome]):
    """A reviewed removal. It has no instant of its own and ends under the lock.

    A kill leaves files that are orphans still, so the next apply goes on. ``position``: number of
    reviewed files that are done with; ``done``: the outcome of these.
    """

    activity = "orphan files were looked for"
    request_phase = "orphans"
    refusable = "orphans"

    step: OrphansStep
    prepared: FreshPlan | None = None
    position: int = 0
    done: list[_Share] = field(default_factory=list)

    def prepare(self) -> FreshPlan:
        self.prepared = self.take_fresh_plan()
        return self.prepared

    def request(
        self,
        prepared: FreshPlan,
        should_wait: ShouldWait,  # noqa: ARG002
    ) -> Ended[StepOutcome] | None:
        """Remove a share; None if a metadata table was built meanwhile, which may list files."""
        session, end = self.session, self.position + _PER_LOCK
        timeline = session.reload_timeline()
        _check_no_foreign_write(session, timeline)
        if set(session.reload_properties().metadata_partitions) - set(
            prepared.state.metadata_partitions
        ):
            return None
        reviewed = take_rows(
            self.step.files, np.arange(self.position, min(end, len(self.step.files)))
        )
        self.done.append(_remove_share(session, reviewed, prepared.state, timeline))
        self.position = min(end, len(self.step.files))
        return Ended(_summarize(self.done))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Share:
    """The outcome of some reviewed files. ``left``, ``failed``: partition, name and reason."""

    removed: int = 0
    bytes: int = 0
    gone: int = 0
    left: Sequence[tuple[str, str, str]] = ()
    failed: Sequence[tuple[str, str, str]] = ()


def _check_no_foreign_write(session: ApplySession, timeline: Timeline) -> None:
    other = find_unexcluded_write(session, timeline)
    if other is not None:
        text = (
            f"{other.action} {other.requested} is pending, and without a lock it could begin to "
            "use files while they are removed; configure concurrency.lock or wait"
        )
        raise RefusedError((Note("lock", text, step="orphans"),))


def _remove_share(
    session: ApplySession, reviewed: OrphanFiles, state: TableState, timeline: Timeline
) -> _Share:
    """Remove those of the reviewed files that are orphans by what the table is now.

    ``state``: what the fresh plan was made from. The table's lock is held.
    """
    rows = find_rows(state.files, make_keys(reviewed))
    before = state.orphan_facts or OrphanFacts()
    is_there, known_ms = _find_times(before, rows)
    now, report = _look_again(session, state, timeline, rows[is_there])
    assert now.orphan_facts is not None, "they were refreshed"
    is_orphan, now_ms = _find_times(now.orphan_facts, rows)
    is_allowed = np.isin(rows, report.rows[report.is_removable]) & is_there
    is_changed = is_allowed & (now_ms != known_ms)
    is_young = is_orphan & (now_ms > report.newest_ms)
    is_gone = (rows < 0) | (is_there & (now_ms == GONE))
    chosen = take_rows(reviewed, np.flatnonzero(is_allowed & ~is_changed))
    session.lock.confirm()
    outcomes = _delete_files(session, chosen)
    deleted = sum(one.deleted for one in outcomes)
    absent = {(one.partition, name) for one in outcomes for name in one.gone}
    failed = [(one.partition, name, why) for one in outcomes for name, why in one.failed]
    stays = absent | {(partition, name) for partition, name, _why in failed}
    sizes = dict(zip(_list_pairs(chosen), chosen.bytes.tolist(), strict=True))
    return _Share(
        removed=deleted,
        bytes=sum(size for file, size in sizes.items() if file not in stays),
        gone=int(is_gone.sum()) + len(absent),
        left=[
            *_explain(reviewed, is_allowed & is_changed, _CHANGED),
            *_explain(reviewed, is_young & ~is_gone, _YOUNG),
            *_explain_left(reviewed, ~is_allowed & ~is_gone & ~is_young, rows, report),
        ],
        failed=failed,
    )


def _find_times(facts: OrphanFacts, rows: Integers) -> tuple[Mask, Integers]:
    """Return which rows the facts have, and when their files were written; 0 for the others."""
    if not len(facts.rows):
        return np.zeros(len(rows), np.bool_), np.zeros(len(rows), np.int64)
    at = np.minimum(np.searchsorted(facts.rows, rows), len(facts.rows) - 1)
    is_there = facts.rows[at] == rows
    return is_there, np.where(is_there, facts.modified_ms[at], 0)


def _look_again(
    session: ApplySession, state: TableState, timeline: Timeline, rows: Integers
) -> tuple[TableState, OrphanReport]:
    """Return the state with the timeline as it is now, and what it says of some files."""
    assert session.spec.orphans is not None, "a spec without the block has no step"
    store_ms = read_store_clock_ms(session.storage)
    now = replace(state, timeline=timeline, observed_ms=min(state.observed_ms, store_ms))
    facts = refresh_orphan_facts(session.storage, session.properties, now, rows)
    now = now.with_facts(orphan_facts=facts)
    age, time = session.spec.orphans.older_than, session.context.get_policy_time()
    return now, find_orphans(now, age, time)


def _explain(files: OrphanFiles, chosen: Mask, because: str) -> list[tuple[str, str, str]]:
    pairs = _list_pairs(files)
    return [(*pairs[at], because) for at in np.flatnonzero(chosen)]


def _explain_left(
    files: OrphanFiles, chosen: Mask, rows: Integers, report: OrphanReport
) -> list[tuple[str, str, str]]:
    """Return the chosen files, each with the reason for which it stays now."""
    reasons = dict(zip(report.rows.tolist(), report.because.to_pylist(), strict=True))
    pairs = _list_pairs(files)
    places = np.flatnonzero(chosen).tolist()
    return [(*pairs[at], reasons.get(int(rows[at]), _KEPT_NOW)) for at in places]


def _delete_files(session: ApplySession, files: OrphanFiles) -> list[DeletionOutcome]:
    """Delete files, few of them in this process; PartialError when that stops half way."""
    if not len(files):
        return []
    batches = split_batches(files, LARGEST_CALL)
    deleter = session.context.deleter
    # Hudi's session may have no Python on its workers
    if len(files) <= DELETED_HERE or session.context.hudi is not None:
        deleter = LocalDeleter(lambda _ref: session.storage)
    with session.phase("delete", len(files)) as advance:
        try:
            return deleter.delete_files(session.storage.ref, batches, progress=advance)
        except Exception as error:
            reason = str(error).strip().partition("\n")[0]
            if not isinstance(error, ReconcilerError):  # ours are sentences
                reason = f"{type(error).__name__}: {reason}"
            raise PartialError(
                f"deleting orphan files stopped half way ({reason}); run apply again to go on"
            ) from error


def _summarize(shares: Sequence[_Share]) -> StepOutcome:
    removed = sum(share.removed for share in shares)
    return StepOutcome(
        kind="orphans",
        how="completed" if removed else "nothing",
        removed=removed,
        bytes=sum(share.bytes for share in shares),
        gone=sum(share.gone for share in shares),
        left_out=FileReasons.from_rows([row for share in shares for row in share.left]),
        failed=FileReasons.from_rows([row for share in shares for row in share.failed]),
    )


def _list_pairs(files: OrphanFiles) -> list[tuple[str, str]]:
    return list(zip(files.partition.to_pylist(), files.name.to_pylist(), strict=True))
