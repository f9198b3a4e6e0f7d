"""Find files that no write knows, and plan to remove those that no reader sees; pure.

A file is removed only where every reader of Hudi ignores it: its write is neither on the active nor
on the archived timeline, and it is newer than the start of the active timeline. Readers take older
files for committed, so those are only reported. Source: HoodieTimeline.containsOrBeforeTimeline-
Starts, CompletionTimeQueryView.isCompleted, RepairUtils.findInstantFilesToRemove.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from datetime import datetime
from typing import Any

import numpy as np
import pyarrow.compute as pc

from reconciler import units
from reconciler.arrays import Integers, Mask, to_arrow, to_numpy
from reconciler.hudi.files.table_files import FileKind
from reconciler.hudi.files.view import LOGS_BY_COMPLETION
from reconciler.hudi.timeline.active import Timeline
from reconciler.hudi.timeline.instant import WRITES, Instant
from reconciler.lazy_dataclass import dataclass
from reconciler.planners.picture import TablePicture
from reconciler.planners.reasons import RowReasons, format_bytes, pluralize
from reconciler.plans.columns import build_dictionary, dictionary_codes
from reconciler.plans.model import (
    Finding,
    Note,
    OrphanFiles,
    OrphansStep,
    ResumeStep,
    RollbackStep,
    Step,
)
from reconciler.state.model import TableState
from reconciler.state.orphan_facts import UNTOLD, OrphanFacts, find_visible_start

#: the rule of warnings about files that no write knows and that stay
ORPHANS = "orphans"
#: a younger file may belong to a write that nobody has noticed to have ended
LEAST_AGE_S = 24 * 3600
_HOUR_MS = 3_600_000
_DAY_HOURS = 24


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class OrphanReport:
    """The orphan files of a table that are old enough, ordered by partition and name.

    Arrays have one element per file. ``rows``: int64, rows of the table's files. ``modified_ms``:
    when they were written, or UNTOLD; ``now_ms``: from when their age counts; ``newest_ms``: later
    files are too young. ``is_removable``: no reader sees it, and nothing may own it. ``because``:
    pyarrow dictionary<int32, string>, why it goes or stays. ``undecided``: rows of files that the
    archive tells nothing of; ``why_undecided``: a clause about that.
    """

    now_ms: int
    newest_ms: int
    rows: Integers
    modified_ms: Integers
    is_removable: Mask
    because: Any
    undecided: Integers
    why_undecided: str = ""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class OrphanPlan:
    """What a spec makes of the orphan files: the step that removes some, and why others stay."""

    step: OrphansStep | None = None
    drift: tuple[Finding, ...] = ()
    warnings: tuple[Note, ...] = ()


def plan_orphans(picture: TablePicture, earlier: Iterable[Step], is_removed: Mask) -> OrphanPlan:
    """Plan the removal of orphan files after the ``earlier`` steps; nothing if none is declared.

    ``is_removed``: per file of the table, whether an earlier step removes it.
    """
    spec, state, now = picture.spec, picture.state, picture.now
    if spec.orphans is None or state.orphan_facts is None or now is None:
        return OrphanPlan()
    age, kinds = spec.orphans.older_than, ResumeStep | RollbackStep
    finished = frozenset(step.instant for step in earlier if isinstance(step, kinds))
    report = find_orphans(state, age, now, finished=finished, is_removed=is_removed)
    return OrphanPlan(
        step=_build_step(state, report),
        drift=_find_drift(report, age),
        warnings=tuple(_explain_kept(state, report)),
    )


def find_orphans(
    state: TableState,
    older_than: int,
    now: datetime,
    *,
    finished: Collection[str] = (),
    is_removed: Mask | None = None,
) -> OrphanReport:
    """Return the orphan files of a table that were written more than ``older_than`` seconds ago.

    The state has orphan facts. ``finished``: pending instants that an earlier step of the plan
    finishes or undoes. ``is_removed``: per file of the table, whether another step removes it.
    """
    facts = state.orphan_facts
    assert facts is not None, "they were asked for"
    verdicts = _OrphanVerdicts(state, facts, older_than, frozenset(finished))
    reasons, is_removable = verdicts.explain()
    now_ms = min(int(now.timestamp() * 1000), state.observed_ms)
    newest_ms = now_ms - older_than * 1000
    is_old = (facts.modified_ms >= UNTOLD) & (facts.modified_ms <= newest_ms)
    undecided = facts.undecided
    if is_removed is not None:
        is_old &= ~is_removed[facts.rows]
        undecided = undecided[~is_removed[undecided]]
    places = np.flatnonzero(is_old)
    return OrphanReport(
        now_ms=now_ms,
        newest_ms=newest_ms,
        rows=facts.rows[places],
        modified_ms=facts.modified_ms[places],
        is_removable=is_removable[places],
        because=reasons.build_column(places),
        undecided=undecided,
        why_undecided=_explain_undecided(facts) if len(undecided) else "",
    )


def explain_pending_owner(timeline: Timeline, finished: Collection[str]) -> list[tuple[int, str]]:
    """Return when each pending write began, and why it may own files written since, oldest first.

    Epoch milliseconds, by the same clock as the files' times. ``finished`` are left out.
    """
    pending = [i for i in timeline.pending(WRITES) if i.requested not in finished]
    begun = ((_find_start_ms(timeline, write), write) for write in pending)
    return sorted(
        (
            start_ms,
            f"{write.action} {write.requested} was pending when it was written: it may own it",
        )
        for start_ms, write in begun
    )


def _build_step(state: TableState, report: OrphanReport) -> OrphansStep | None:
    if not report.is_removable.any():
        return None
    return OrphansStep(files=list_orphan_files(state, report, report.is_removable))


def list_orphan_files(state: TableState, report: OrphanReport, chosen: Mask) -> OrphanFiles:
    """Return the chosen files of a report, with their reasons."""
    files, rows = state.files, report.rows[chosen]
    return OrphanFiles(
        partition=build_dictionary(files.partition[rows], files.partitions),
        name=files.name.take(to_arrow(rows)),
        bytes=files.size[rows],
        kind=files.kind[rows],
        because=report.because.filter(to_arrow(chosen)),
    )


def _explain_kept(state: TableState, report: OrphanReport) -> Iterator[Note]:
    """Yield a note for every reason for which orphan files stay, and one for undecided files."""
    stays = list_orphan_files(state, report, ~report.is_removable)
    codes = dictionary_codes(stays.because)
    for code, text in enumerate(stays.because.dictionary.to_pylist()):
        places = np.flatnonzero(codes == code)
        if len(places):
            yield Note(ORPHANS, f"{_describe_files(stays, places)}: {text}")
    if len(report.undecided):
        size = format_bytes(int(state.files.size[report.undecided].sum()))
        files = pluralize(len(report.undecided), "file")
        yield Note(ORPHANS, f"{files} ({size}) cannot be told from orphans: {report.why_undecided}")


def _find_drift(report: OrphanReport, older_than: int) -> tuple[Finding, ...]:
    removable = np.flatnonzero(report.is_removable)
    if not len(removable):
        return ()
    files = pluralize(len(removable), "file")
    age = (report.now_ms - int(report.modified_ms[removable].min())) // _HOUR_MS
    return (
        Finding(
            field="orphans.olderThan",
            desired=units.format_duration(older_than),
            actual=f"{age // _DAY_HOURS}d" if age >= 2 * _DAY_HOURS else f"{age}h",
            because=f"{files} that no write knows and no reader sees",
        ),
    )


def _describe_files(files: OrphanFiles, places: Integers) -> str:
    """Return how many files stay, and an example.

    The sentence that follows says why.
    """
    first = int(places[0])
    folder, name = files.partition[first].as_py(), files.name[first].as_py()
    path = f"{folder}/{name}" if folder else name
    size = format_bytes(int(files.bytes[places].sum()))
    if len(places) == 1:
        return f"{path} ({size}) stays"
    count = pluralize(len(places), "file")
    return f"{count} ({size}) stay, such as {path}"


def _explain_undecided(facts: OrphanFacts) -> str:
    if facts.archive_problem:
        return facts.archive_problem
    return f"the archived timeline begins only at {facts.archive_oldest}"


def _find_start_ms(timeline: Timeline, write: Instant) -> int:
    key = (write.requested, write.action)
    files = (f for f in timeline.files if (f.instant.requested, f.instant.action) == key)
    return min(file.modified_ms for file in files)


@dataclass(frozen=True, slots=True)
class _OrphanVerdicts:
    """Decides about the files of orphan facts, one element of an array each."""

    state: TableState
    facts: OrphanFacts
    older_than: int
    finished: frozenset[str]

    def explain(self) -> tuple[RowReasons, Mask]:
        """Return the reason of every file, and which can be removed."""
        reasons = RowReasons(len(self.facts.rows))
        if not len(self.facts.rows):
            return reasons, np.zeros(0, np.bool_)
        everything = np.ones(len(self.facts.rows), np.bool_)
        self._explain_visible(reasons)
        self._explain_owned(reasons)
        is_removable = reasons.codes < 0
        undone = self.facts.rolled_back
        reasons.assign(
            self._has_time(undone.__contains__),
            lambda code: (
                f"rollback {undone[self._times[code]]} undid its write "
                f"{self._times[code]} and left it; no reader sees it"
            ),
            self._codes,
        )
        reasons.assign(
            everything,
            lambda code: (
                f"no instant of the timeline knows its write {self._times[code]}; no reader sees it"
            ),
            self._codes,
        )
        return reasons, is_removable

    @property
    def _times(self) -> tuple[str, ...]:
        return self.state.files.instants

    @property
    def _codes(self) -> Integers:
        codes: Integers = self.state.files.instant[self.facts.rows].astype(np.int64)
        return codes

    def _has_time(self, test: Callable[[str], bool]) -> Mask:
        """Return per file whether the instant of its name passes a test."""
        passes = np.array([test(time) for time in self._times], np.bool_)
        mask: Mask = passes[self._codes]
        return mask

    def _explain_visible(self, reasons: RowReasons) -> None:
        """Explain why files stay that a reader may see, or of which that is unknown."""
        facts, state = self.facts, self.state
        everything = np.ones(len(facts.rows), np.bool_)
        is_stray = np.isin(facts.rows, np.fromiter(facts.strays, np.int64, len(facts.strays)))
        reasons.assign(is_stray, facts.strays.__getitem__, facts.rows)
        text = "the metadata table lists it, although no instant of the timeline knows its write"
        reasons.assign(facts.is_listed, f"{text}: find out which of the two is wrong")
        if state.table_version < LOGS_BY_COMPLETION:
            text = "a log file of table version 6 may hold blocks of several writes"
            reasons.assign(state.files.kind[facts.rows] == FileKind.LOG, text)
        start = find_visible_start(state.timeline)
        if start is None:
            text = "the active timeline has no completed write but savepoints: readers may see it"
            reasons.assign(everything, text)
            return
        is_before = self._has_time(lambda time: time < start)
        is_read = self._find_read() if is_before.any() else everything
        for mask, reads in ((is_read, "read it now"), (everything, "may still read it")):
            text = "no instant of the timeline knows its write, but readers take files from before"
            text += f" the active timeline for committed and {reads}: delete it by hand if its rows"
            reasons.assign(is_before & mask, f"{text} do not belong to the table")
        if facts.archive_problem:
            reasons.assign(everything, facts.archive_problem)
        pinned = to_arrow(sorted(set().union(*(one.files for one in state.savepoints))))
        names = state.files.name.take(to_arrow(facts.rows))
        is_pinned = to_numpy(pc.is_in(names, value_set=pinned))
        reasons.assign(is_pinned, "a savepoint names it")

    def _find_read(self) -> Mask:
        """Return per file whether a snapshot read takes it, if it counts as committed."""
        view, rows = self.state.view, self.facts.rows
        is_read: Mask = view.is_current[view.row_slice[rows]]
        is_read &= self.state.files.kind[rows] != FileKind.CDC
        return is_read

    def _explain_owned(self, reasons: RowReasons) -> None:
        """Explain why files stay that a write may own which has not ended."""
        facts = self.facts
        everything = np.ones(len(facts.rows), np.bool_)
        reasons.assign(facts.modified_ms == UNTOLD, "the store does not tell when it was written")
        if facts.rollback_problem:
            text = f"a pending rollback may be about to remove it: {facts.rollback_problem}"
            reasons.assign(everything, text)
        is_undone = self._has_time(facts.being_rolled_back.__contains__)
        reasons.assign(is_undone, "a rollback of its write is pending and removes it")
        for start_ms, text in explain_pending_owner(self.state.timeline, self.finished):
            reasons.assign(facts.modified_ms >= start_ms, text)
        alive_ms = self.state.observed_ms - self.older_than * 1000
        is_alive = self._has_time(lambda time: facts.beats_ms.get(time, 0) > alive_ms)
        reasons.assign(is_alive, "its write had a heartbeat within orphans.olderThan")
