"""Execute a pending compaction to its end, whoever has planned it.

Until it is completed it has no inflight file (``transaction.recovery.abandoned_services``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from reconciler.errors import FormatError, ReconcilerError, UnsupportedError
from reconciler.executor.cluster.execution import require_rewriter
from reconciler.executor.compact.publish import abandon_compaction, settle_compaction
from reconciler.executor.compact.work import (
    CompactionWork,
    check_results,
    group_written_files,
    make_job,
    make_slices,
)
from reconciler.executor.fresh_plan import FreshPlan
from reconciler.executor.result import StepOutcome
from reconciler.executor.session import ApplyChange, ApplySession
from reconciler.hudi.load import load_properties
from reconciler.lazy_dataclass import dataclass
from reconciler.plans.model import Note
from reconciler.rewrite.compaction import MISSING
from reconciler.rewrite.model import CompactedSlice
from reconciler.transaction.metadata.rewrite_sync import find_listing_differences
from reconciler.transaction.publish import find_completion
from reconciler.transaction.recovery.marked_files import remove_markers, remove_uncommitted_files
from reconciler.transaction.retry import ShouldWait
from reconciler.transaction.run import MARKERS, Completion, Ended, RequestedChange

#: errors by which an input file cannot be compacted, as Spark quotes them: the class, then the text
_OF_INPUT: Final = (FormatError, UnsupportedError)

CompactedSlices = Sequence[CompactedSlice]


@dataclass(kw_only=True, eq=False)
class CompactionExecution(
    ApplyChange, RequestedChange[CompactionWork, CompactedSlices, StepOutcome]
):
    """Executes a compaction plan; of one that fails only the plan stays."""

    session: ApplySession
    fresh: FreshPlan | None = None

    def work(self, pending: CompactionWork) -> CompactedSlices:
        session, slices = self.session, make_slices(pending)
        job = make_job(pending, session.spec)
        rewriter = require_rewriter(session)
        with session.phase("rewrite", sum(given.bytes for given in slices)) as advance:
            results = rewriter.compact(session.storage.ref, job, slices, progress=advance)
        return check_results(pending, results)

    def settle(
        self,
        pending: CompactionWork,
        result: CompactedSlices,
        should_wait: ShouldWait,  # noqa: ARG002
    ) -> Completion[StepOutcome] | Ended[StepOutcome]:
        return settle_compaction(self.session, pending, result)

    def tidy(
        self, pending: CompactionWork, result: CompactedSlices | None, outcome: StepOutcome
    ) -> StepOutcome:
        """Compare the metadata table's listing, and remove late files and the markers."""
        if result is None or outcome.how not in ("completed", "adopted"):
            return outcome
        with self.session.phase("check"):
            if outcome.how == "completed":
                outcome = _check_listing(self.session, pending, result, outcome)
            return _remove_strays(self.session, pending, outcome)

    def abandon(self, pending: CompactionWork) -> None:
        abandon_compaction(self.session, pending)

    def explain_failure(
        self,
        pending: CompactionWork,
        error: BaseException,
        *,
        has_worked: bool,
    ) -> StepOutcome | None:
        """Return the outcome of a compaction whose input cannot be merged: it stays pending."""
        problem = None if has_worked else find_input_problem(pending, error)
        return None if problem is None else make_failed_outcome(pending.instant, problem)


def find_input_problem(work: CompactionWork, error: BaseException) -> str | None:
    """Return why an input file cannot be compacted; None for any other error.

    A failing store, for example, concerns other steps too.
    """
    if not isinstance(error, ReconcilerError):
        return None
    text, is_of_input = str(error), isinstance(error, _OF_INPUT)
    for kind in _OF_INPUT:
        _, mark, quoted = text.partition(f"{kind.__name__}: ")
        if mark:
            text, is_of_input = quoted, True
    for path in work.sizes:
        missing = text.find(f"{path}: {MISSING}")
        if missing >= 0:
            return text[missing:]
        if is_of_input and text.startswith(f"{path}: "):
            return text
    return None


def make_failed_outcome(instant: str, problem: str) -> StepOutcome:
    """Return the outcome of a compaction that cannot be executed, and why."""
    note = Note("compaction", f"compaction {instant} stays pending: {problem}")
    return StepOutcome(kind="resume", how="failed", warnings=(note,))


def _check_listing(
    session: ApplySession, work: CompactionWork, result: CompactedSlices, outcome: StepOutcome
) -> StepOutcome:
    """Compare the metadata table's listing with the new files, as far as it can be read."""
    try:
        differences = find_listing_differences(
            session.storage,
            load_properties(session.storage),
            session.reload_timeline(),
            group_written_files(work, result),
        )
    except ReconcilerError as error:  # it is completed in any case
        text = f"the compaction is completed; its metadata table could not be compared: {error}"
        return _add_warning(outcome, Note("metadataListing", text))
    notes = tuple(
        Note(
            "metadataListing",
            f"the metadata table and the disk differ in {len(names)} files of partition {path!r}, "
            f"for example {', '.join(names[:5])}",
        )
        for path, names in sorted(differences.items())
    )
    return replace(outcome, differences=notes)


def _remove_strays(
    session: ApplySession, work: CompactionWork, outcome: StepOutcome
) -> StepOutcome:
    """Remove what late workers wrote after the commit, then the markers.

    A failure is a warning: the compaction is completed, and the next apply does it.
    """
    try:
        timeline = session.reload_timeline()
        done = find_completion(timeline, work.instant, work.action)
        if done is not None:
            remove_uncommitted_files(session.storage, session.properties, timeline, done)
            remove_markers(session.storage, work.instant)
    except ReconcilerError as error:
        text = f"the compaction is completed; its markers stay for now: {error}"
        return _add_warning(outcome, Note(MARKERS, text))
    return outcome


def _add_warning(outcome: StepOutcome, note: Note) -> StepOutcome:
    return replace(outcome, warnings=(*outcome.warnings, note))
