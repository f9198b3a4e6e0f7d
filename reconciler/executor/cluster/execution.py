"""Bring a requested clustering to its end: what a new one and a resumed one have in common."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import field, replace
from typing import Final

from reconciler.errors import (
    AlreadyExistsError,
    BusyError,
    FormatError,
    ReconcilerError,
    StaleError,
    UnsupportedError,
)
from reconciler.executor.cluster.group_selection import drop_groups
from reconciler.executor.cluster.leftovers import remove_strays
from reconciler.executor.cluster.publish import (
    abandon_clustering,
    group_new_files,
    settle_clustering,
)
from reconciler.executor.cluster.query_measurement import list_new_files, measure_queries
from reconciler.executor.cluster.rewrite_job import make_groups, make_rewrite
from reconciler.executor.cluster.work import ClusterWork, check_results
from reconciler.executor.fresh_plan import FreshPlan
from reconciler.executor.gate import RefusedError
from reconciler.executor.result import StepOutcome
from reconciler.executor.session import ApplyChange, ApplySession
from reconciler.hudi.files.names import BaseName, LogName
from reconciler.hudi.load import load_properties
from reconciler.hudi.metadata.sync_decisions import BLOOM_FILTERS
from reconciler.lazy_dataclass import dataclass
from reconciler.planners.reasons import pluralize
from reconciler.planners.recovery.finish_clustering import find_plan_split
from reconciler.plans.groups import iterate_groups
from reconciler.plans.model import Note
from reconciler.rewrite.group_columns import REMOVED
from reconciler.rewrite.model import Rewriter, RewrittenGroup
from reconciler.transaction.conflicts import GroupClaim, find_conflicts
from reconciler.transaction.footprints import find_unexcluded_write, read_footprints
from reconciler.transaction.metadata.rewrite_sync import find_listing_differences
from reconciler.transaction.paths import resolve_path
from reconciler.transaction.retry import ShouldWait
from reconciler.transaction.run import Completion, Ended, RequestedChange

#: how Spark quotes an error of a worker: its class, then its text, the path first
_QUOTED: Final = f"{FormatError.__name__}: "


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RewrittenGroups:
    """The result of the workers: ``groups`` are in the order of those of ``work``.

    ``work`` has the measurement of the declared queries.
    """

    work: ClusterWork
    groups: Sequence[RewrittenGroup]


@dataclass(kw_only=True, eq=False)
class ClusterExecution(ApplyChange, RequestedChange[ClusterWork, RewrittenGroups, StepOutcome]):
    """Brings a requested clustering to its end; one that fails is undone, as far as it can be.

    A damaged input file is a failed step and no error once everything is undone: it does not
    concern other steps, which go on. ``dropped``: groups whose files are removed, with the reason;
    it is added to.
    """

    session: ApplySession
    fresh: FreshPlan | None = None
    dropped: dict[int, str] = field(default_factory=dict)

    def begin(self, pending: ClusterWork) -> None:
        """Write the inflight file; raises BusyError when another writer has."""
        try:
            self.session.publisher.begin(pending.instant, pending.action, b"")
        except AlreadyExistsError:
            raise BusyError(
                f"another writer has begun to execute our clustering {pending.instant}; plan again "
                "when it is done"
            ) from None

    def work(self, pending: ClusterWork) -> RewrittenGroups | Ended[StepOutcome]:
        try:
            groups = _rewrite(self.session, pending)
        except ReconcilerError as error:
            _check_not_superseded(self.session, pending, error)
            raise
        if pending.foreign is not None:  # its completed file records nothing of ours
            return RewrittenGroups(work=pending, groups=groups)
        measurement = measure_queries(self.session, pending, list_new_files(pending, groups))
        return RewrittenGroups(work=replace(pending, measurement=measurement), groups=groups)

    def settle(
        self,
        pending: ClusterWork,  # noqa: ARG002
        result: RewrittenGroups,
        should_wait: ShouldWait,
    ) -> Completion[StepOutcome] | Ended[StepOutcome] | None:
        return settle_clustering(
            self.session, result.work, result.groups, should_wait, self.dropped
        )

    def tidy(
        self,
        pending: ClusterWork,  # noqa: ARG002
        result: RewrittenGroups | None,
        outcome: StepOutcome,
    ) -> StepOutcome:
        if result is None or outcome.how == "undone":
            return outcome
        with self.session.phase("check"):
            checked = check_listing(self.session, result.work, result.groups, outcome)
            return remove_strays(self.session, result.work, checked)

    def abandon(self, pending: ClusterWork) -> None:
        abandon_clustering(self.session, pending)

    def explain_failure(
        self, pending: ClusterWork, error: BaseException, *, has_worked: bool
    ) -> StepOutcome | None:
        """Return the outcome of a clustering whose input is damaged, once nothing is left of it."""
        damage = None if has_worked else find_damaged_input(pending, error)
        if not damage or not _is_withdrawn(self.session, pending):
            return None
        return _make_failed_outcome(pending, damage)


def _rewrite(session: ApplySession, work: ClusterWork) -> list[RewrittenGroup]:
    """Have the workers rewrite the groups, and verify what they report."""
    groups = make_groups(work.facts, work.groups, work.state)
    rewrite = make_rewrite(
        work.facts, session.spec, work.layout, instant=work.instant, attempt=work.attempt
    )
    rewrite = replace(rewrite, keeps_bloom=BLOOM_FILTERS in work.state.metadata_partitions)
    if work.foreign is not None:
        rewrite = replace(rewrite, split=find_plan_split(work.foreign, work.groups))
    rewriter = require_rewriter(session)
    with session.phase("rewrite", sum(group.bytes for group in groups)) as advance:
        results = rewriter.rewrite(session.storage.ref, rewrite, groups, progress=advance)
    return check_results(work, results)


def _check_not_superseded(session: ApplySession, work: ClusterWork, error: ReconcilerError) -> None:
    """Raise StaleError if a clean removed an input file, because a write has superseded it since.

    A file that is missing although nothing has superseded it is lost, and is an error.
    """
    gone = next((path for path in _list_inputs(work) if f"{path}: {REMOVED}" in str(error)), None)
    if gone is None:
        return
    partition, _, name = gone.rpartition("/")
    parsed = BaseName.parse(name) or LogName.parse(name)
    claim = GroupClaim(
        partition=partition, ids=frozenset({parsed.file_id} if parsed else ()), is_open=False
    )
    _timeline, writes = read_footprints(session, work.known, work.instant)
    completed = [write for write in writes if write.is_completed]
    for reason in find_conflicts([claim], completed).values():
        raise StaleError(f"{gone}: {REMOVED}: {reason}; plan again") from None


def _is_withdrawn(session: ApplySession, work: ClusterWork) -> bool:
    """Return True if nothing of a clustering is on the timeline."""
    return all(file.instant.requested != work.instant for file in session.reload_timeline().files)


def _make_failed_outcome(work: ClusterWork, damage: str) -> StepOutcome:
    """Return the outcome of a clustering with damaged input: all of its groups stay."""
    chosen = drop_groups(work.selection, dict.fromkeys(range(len(work.groups)), damage))
    return StepOutcome(kind="cluster", how="failed", rewritten=chosen.unchanged)


def check_listing(
    session: ApplySession,
    work: ClusterWork,
    results: Sequence[RewrittenGroup],
    outcome: StepOutcome,
) -> StepOutcome:
    """Compare the metadata table's listing with the new files, as far as it can be read."""
    if outcome.how != "completed":
        return outcome
    try:
        timeline = session.reload_timeline()
        added = group_new_files(session, work, results)
        differences = find_listing_differences(
            session.storage, load_properties(session.storage), timeline, added
        )
    except ReconcilerError as error:  # it is completed in any case
        text = f"the clustering is completed; its metadata table could not be compared: {error}"
        return replace(outcome, warnings=(*outcome.warnings, Note("metadataListing", text)))
    texts = (
        f"the metadata table and the disk differ in {pluralize(len(names), 'file')} of partition "
        f"{path!r}, for example {', '.join(names[:5])}"
        for path, names in sorted(differences.items())
    )
    notes = tuple(Note("metadataListing", text) for text in texts)
    return replace(outcome, differences=notes)


def check_no_foreign_writes(
    session: ApplySession, fresh: FreshPlan, own: str | None = None
) -> None:
    """Raise RefusedError for another pending write that no lock keeps out; ``own``: our instant."""
    other = find_unexcluded_write(session, fresh.state.timeline, own)
    if other is not None:
        text = (
            f"{other.action} {other.requested} is pending, and without a lock it could write to "
            "what is being rewritten; configure concurrency.lock or wait"
        )
        raise RefusedError((Note("lock", text, step="cluster"),))


def require_rewriter(session: ApplySession) -> Rewriter:
    """Return what rewrites files; raises UnsupportedError if there is nothing."""
    rewriter = session.context.rewriter
    if rewriter is None:
        raise UnsupportedError(
            f"{session.name}: rewriting files needs Spark; run `reconciler apply` with PySpark "
            "installed"
        )
    return rewriter


def find_damaged_input(work: ClusterWork, error: BaseException) -> str | None:
    """Return what is damaged of the files that a clustering reads; None for any other error.

    Only what our own reading of such a file says counts as damage. A store that fails, a file that
    is gone, or one that was damaged elsewhere may concern other steps too.
    """
    if isinstance(error, FormatError):
        return str(error) if error.path in set(_list_inputs(work)) else None
    if not isinstance(error, ReconcilerError):
        return None
    quoted = str(error).partition(_QUOTED)[2]
    return quoted if any(quoted.startswith(f"{path}: ") for path in _list_inputs(work)) else None


def _list_inputs(work: ClusterWork) -> Iterator[str]:
    """Yield the paths of base and log files below the table."""
    groups = work.groups
    bases, logs = groups.base.to_pylist(), groups.logs.to_pylist()
    for partition, part in iterate_groups(groups):
        for base, names in zip(bases[part], logs[part], strict=True):
            for name in (*([] if base is None else [base]), *names):
                yield resolve_path(partition, name)
