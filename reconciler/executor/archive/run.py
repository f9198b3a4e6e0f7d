"""Run a reviewed archival: archive what the plan names and a plan made now names too.

An archival has no instant of its own, as in Hudi. It does all of its work under the lock.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import ClassVar, Final

from reconciler.errors import BusyError, NotFoundError, PlanError
from reconciler.executor.fresh_plan import FreshPlan
from reconciler.executor.gate import RefusedError
from reconciler.executor.outcomes import ArchiveOutcome, LeftInstant
from reconciler.executor.result import StepOutcome
from reconciler.executor.session import ApplySession, LockedApplyChange
from reconciler.hudi.load import load_metadata_properties, load_timeline
from reconciler.hudi.timeline.active import Timeline
from reconciler.hudi.timeline.heartbeat import HEARTBEAT_FOLDER
from reconciler.hudi.timeline.instant import COMMITS, Action, Instant
from reconciler.hudi.timeline.markers import MARKER_FOLDER
from reconciler.lazy_dataclass import dataclass
from reconciler.planners.archive.leftovers import find_leftovers
from reconciler.planners.archive.planner import (
    choose_instants,
    choose_metadata_instants,
    remove_instants,
)
from reconciler.plans.archive_step import ArchivedInstant, ArchiveStep
from reconciler.plans.model import Note, StepKind
from reconciler.spec.active_timeline import ActiveTimeline
from reconciler.state.archival_facts import ArchivalFacts
from reconciler.state.model import TableState
from reconciler.transaction.archives.archival import ArchivalCounts, archive_instants
from reconciler.transaction.recovery.marked_files import remove_markers
from reconciler.transaction.retry import ShouldWait
from reconciler.transaction.run import Ended, run_change

_KEPT_NOW: Final = "a plan made now keeps it active: the table has moved since the review"
_BEHIND: Final = "an older commit that came after the review stays, and archiving leaves no hole"


def run_archive(session: ApplySession, step: ArchiveStep, fresh: FreshPlan | None) -> StepOutcome:
    """Archive the reviewed instants that may still go, and remove the reviewed leftovers.

    ``fresh`` is a plan that was made just now, if there is one. Raises RefusedError if others may
    archive meanwhile, BusyError, StorageError, and FormatError for a damaged instant or archive.
    """
    if session.spec.timeline is None:
        name = session.plan.name
        raise PlanError(f"{name}: its spec has no timeline block, and the plan an archive step")
    return run_change(
        _Archival(session=session, fresh=fresh, step=step, declared=session.spec.timeline)
    )


@dataclass(kw_only=True, eq=False)
class _Archival(LockedApplyChange[FreshPlan, StepOutcome]):
    """A reviewed archival. It has no instant of its own and ends under the lock."""

    activity = "an archival was being prepared"
    request_phase = "archive"
    refusable: ClassVar[StepKind | None] = "archive"

    step: ArchiveStep
    declared: ActiveTimeline

    def prepare(self) -> FreshPlan:
        return self.take_fresh_plan()

    def request(
        self,
        prepared: FreshPlan,
        should_wait: ShouldWait,  # noqa: ARG002
    ) -> Ended[StepOutcome] | None:
        timeline = self.session.reload_timeline()
        self._check_others(timeline)
        try:
            return Ended(self._archive(prepared.state, timeline))
        except NotFoundError:  # an archiver that takes no lock has removed a file
            if self.session.reload_timeline() == timeline:
                raise
            return None

    def _check_others(self, timeline: Timeline) -> None:
        """Raise RefusedError if a writer that takes no lock may archive, BusyError for a restore.

        A writer archives right after its commit.
        """
        session = self.session
        for instant in timeline.pending({Action.RESTORE}):
            raise BusyError(f"{session.name}: restore {instant.requested} is pending")
        pending = [one for one in timeline.instants if not one.is_completed]
        if pending and not session.lock.excludes_others:
            write = f"{pending[0].action} {pending[0].requested}"
            because = (
                f"{write} is pending, and without a lock its writer may archive at the same time; "
                "configure concurrency.lock or let it finish"
            )
            raise RefusedError((Note("lock", because, "archive"),))

    def _archive(self, state: TableState, timeline: Timeline) -> StepOutcome:
        session, step = self.session, self.step
        assert state.archival is not None, "a spec with a timeline block has facts"
        facts = self._reload_metadata(state.archival)
        state = state.with_facts(archival=facts)
        choice = choose_instants(self.declared, session.spec.retention, timeline, state)
        chosen = select_reviewed(choice.table.instants, step.instants)
        counts = archive_instants(
            session.storage,
            session.properties,
            timeline,
            chosen,
            zone=session.publisher.zone,
            confirm=session.lock.confirm,
        )
        left = remove_instants(timeline, chosen)
        metadata = self._archive_metadata(facts, left)
        commits = {one.requested for one in chosen if one.action in COMMITS}
        done = ArchiveOutcome(
            instants=counts.archived + counts.known,
            gone=len(step.instants) - len(chosen) - len(list_left(step.instants, left)),
            metadata_table=metadata.archived + metadata.known,
            merges=counts.merges + metadata.merges,
            leftovers=self._remove_leftovers(timeline, facts, commits, state.observed_ms),
            left=list_left(step.instants, left),
        )
        is_done = done.instants or done.metadata_table or done.leftovers
        return StepOutcome(kind="archive", how="completed" if is_done else "nothing", archived=done)

    def _reload_metadata(self, facts: ArchivalFacts) -> ArchivalFacts:
        """Return the facts with the metadata table's timeline as it is now."""
        if facts.metadata is None:
            return facts
        storage = self.session.storage
        timeline = load_timeline(storage, load_metadata_properties(storage))
        return replace(facts, metadata=replace(facts.metadata, timeline=timeline))

    def _archive_metadata(self, facts: ArchivalFacts, data: Timeline) -> ArchivalCounts:
        """Archive instants of the metadata table's timeline; ``data``: what the table's has now."""
        session = self.session
        if facts.metadata is None or not self.step.metadata_table:
            return ArchivalCounts()
        selection = choose_metadata_instants(
            self.declared, session.spec.retention, facts, data, layout=session.properties.layout
        )
        return archive_instants(
            session.storage,
            load_metadata_properties(session.storage),
            facts.metadata.timeline,
            select_reviewed(selection.instants, self.step.metadata_table),
            zone=session.publisher.zone,
            confirm=session.lock.confirm,
        )

    def _remove_leftovers(
        self,
        timeline: Timeline,
        facts: ArchivalFacts,
        archived: Collection[str],
        observed_ms: int,
    ) -> int:
        """Remove the reviewed leftovers that are still of no use, and count them."""
        storage, removed = self.session.storage, 0
        now = {one.path for one in find_leftovers(timeline, facts, archived, observed_ms)}
        self.session.lock.confirm()
        for leftover in self.step.leftovers:
            if leftover.path not in now:
                continue
            folder, _, name = leftover.path.rpartition("/")
            if folder == MARKER_FOLDER:
                remove_markers(storage, name)
            elif folder != HEARTBEAT_FOLDER or self._is_old(leftover.path, observed_ms):
                storage.delete(leftover.path)
            removed += 1
        return removed

    def _is_old(self, path: str, observed_ms: int) -> bool:
        """Return whether a heartbeat has not beaten since it was observed."""
        entry = self.session.storage.stat(path)
        return entry is not None and not entry.size and entry.modified_ms < observed_ms


def select_reviewed(
    fresh: Sequence[Instant], reviewed: Sequence[ArchivedInstant]
) -> tuple[Instant, ...]:
    """Return the instants that are reviewed and in a plan made now.

    From the first commit on that was not reviewed, no commit goes: a commit that is older than an
    archived one must not stay, because readers take what is before the timeline for committed and
    what is missing after its start for unfinished.

    >>> from reconciler.hudi.timeline.instant import State
    >>> fresh = [Instant(str(n), Action.COMMIT, State.COMPLETED) for n in (1, 2, 3)]
    >>> reviewed = [ArchivedInstant("1", "commit"), ArchivedInstant("3", "commit")]
    >>> [instant.requested for instant in select_reviewed(fresh, reviewed)]
    ['1']
    """
    named = {(one.instant, one.action) for one in reviewed}
    unnamed = (
        one.requested
        for one in fresh
        if one.action in COMMITS and (one.requested, one.action.value) not in named
    )
    end = next(unnamed, None)
    return tuple(
        one
        for one in fresh
        if (one.requested, one.action.value) in named and (end is None or one.requested < end)
    )


def list_left(reviewed: Sequence[ArchivedInstant], timeline: Timeline) -> tuple[LeftInstant, ...]:
    """Return the reviewed instants that are still active after the archival, each with why."""
    active = {(one.requested, one.action.value) for one in timeline.instants}
    named = {one.instant for one in reviewed}
    stays = [one for one in reviewed if (one.instant, one.action) in active]
    older = [
        one.requested
        for one in timeline.instants
        if one.action in COMMITS and one.is_completed and one.requested not in named
    ]
    first = min(older, default=None)
    return tuple(
        LeftInstant(
            one.instant, _BEHIND if first is not None and first < one.instant else _KEPT_NOW
        )
        for one in stays
    )
