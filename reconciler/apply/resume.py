"""Pending cleans that somebody left behind: finished, undone or cleared up.

Ours are known by the plan's digest in their extra metadata and finished as soon as their owner is
dead. Another writer's is finished only when a review has named it, it is older than ``staleAfter``
and there is a lock; an empty or damaged one is cleared up then. Whatever a savepoint protects by
now stays.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from reconciler.apply.checks import Look
from reconciler.apply.claim import claim
from reconciler.apply.execute import Work, begin, finish, with_heartbeat
from reconciler.apply.freshness import (
    earliest_base,
    is_in,
    keys,
    keys_present,
    published_earliest,
    replaced_left,
    select,
    still_replacing,
    take,
)
from reconciler.apply.payloads import PLACEHOLDER, planned_partitions
from reconciler.apply.result import Rows, StepOutcome
from reconciler.apply.table import Table
from reconciler.errors import BusyError, StaleError
from reconciler.hudi.arrow import booleans, strings
from reconciler.hudi.clean import CleanerPlan, with_earliest
from reconciler.hudi.instant import Action, State
from reconciler.hudi.load import read_instant_file
from reconciler.hudi.names import BaseName, LogName
from reconciler.plan.model import RemovedFiles, ResumeStep
from reconciler.planners.resume import is_ours, revalidate
from reconciler.planners.slices import view_of
from reconciler.planners.window import window_of
from reconciler.state.model import PendingClean
from reconciler.transaction.lock import NoLock
from reconciler.transaction.paths import names_in
from reconciler.transaction.publish import completion_of


def resume_pending(table: Table, look: Look) -> Iterator[StepOutcome]:
    """Finish, undo or clear up every pending clean, oldest first.

    Raises BusyError for one that may not be touched (yet), StaleError for one that no review named.
    """
    for clean in look.state.pending_cleans:
        with table.phase("resume"):
            _claim(table, look, clean)
            yield with_heartbeat(table, clean.instant, partial(_work_on, table, clean))


def resume_reviewed(look: Look, step: ResumeStep) -> StepOutcome:
    """A reviewed resume whose clean is not pending any more: what is still there was left."""
    selection = select(step, None, look.plan.kept, look.state.files, look.state.partitions, None)
    return StepOutcome(
        kind="resume",
        how="nothing",
        gone=selection.gone,
        left_out=selection.left_out if len(selection.left_out) else None,
    )


def _claim(table: Table, look: Look, clean: PendingClean) -> None:
    """Make sure under the lock that nobody works on it, and say that we do now."""
    if not is_ours(clean):
        _check_foreign(table, clean)
    claim(table, look, clean, "clean")


def _check_foreign(table: Table, clean: PendingClean) -> None:
    """Raises for another writer's clean that may not be touched."""
    concurrency = table.spec.concurrency
    stale_after = concurrency.stale_after if concurrency else 0
    age_s = (table.tools.clock.now_ms() - clean.started_ms) / 1000
    named = f"clean {clean.instant} of another writer is {clean.state.lower()}"
    if age_s <= stale_after:
        raise BusyError(
            f"{named} since {age_s:.0f} s and may be at work; it counts as left behind after "
            f"concurrency.staleAfter, {stale_after} s"
        )
    if isinstance(table.lock, NoLock):
        raise BusyError(
            f"{named}; without a lock it cannot be known to be left behind: let its writer finish "
            "it, or configure spec.concurrency.lock"
        )
    if clean.problem is None and _reviewed(table, clean) is None:
        raise StaleError(f"{named} and the plan does not name it; plan again to have it resumed")


def _reviewed(table: Table, clean: PendingClean) -> ResumeStep | None:
    for step in table.plan.steps:
        if isinstance(step, ResumeStep) and step.instant == clean.instant:
            return step
    return None


def _work_on(table: Table, clean: PendingClean) -> StepOutcome:
    started_ms = table.tools.clock.now_ms()
    if clean.problem is not None:
        return _undo(table, clean, StepOutcome(kind="resume", how="undone"))
    look = table.look()
    rest = _rest(table, look, clean)
    if rest.is_empty:
        return _undo(table, clean, StepOutcome(kind="resume", how="undone", left_out=rest.left_out))
    earliest = _claim_of(look, clean, rest)
    request = _claiming(table, clean, earliest)
    work = Work(
        instant=clean.instant,
        plan=CleanerPlan.parse(request, clean.instant),
        request=request,
        files=rest.files,
        gone=rest.gone,
        delete_partitions=rest.delete_partitions,
        earliest=earliest,
        started_ms=started_ms,
    )
    if clean.state == State.REQUESTED:
        begin(table, work)
    return replace(finish(table, work, "resume"), left_out=rest.left_out)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Rest:
    """What is left to do of a pending clean.

    ``files`` may go, ``gone`` (partition -> names) went before, ``staying`` are the keys of planned
    files that stay, ``left_out`` those of them that people were told would go.
    """

    files: RemovedFiles
    gone: Mapping[str, Sequence[str]]
    delete_partitions: tuple[str, ...]
    staying: Any
    left_out: Rows | None

    @property
    def is_empty(self) -> bool:
        return not (len(self.files) or self.gone or self.delete_partitions)


def _rest(table: Table, look: Look, clean: PendingClean) -> _Rest:
    """Judge every planned file by what the table is now, and by the review where it named it."""
    state = look.state
    window = window_of(table.spec, state, table.tools.moment())
    found = revalidate(state, clean, window=window)
    reviewed = _reviewed(table, clean)
    files, partitions = found.files, found.delete_partitions
    withheld = Rows(
        partition=found.withheld.partition,
        name=found.withheld.name,
        because=found.withheld.because,
    )
    staying = keys(withheld)
    if reviewed is not None:
        told = is_in(keys(files), keys(reviewed.files))
        staying = pa.concat_arrays([staying, pc.filter(keys(files), booleans(~told))])
        files = take(files, told)
        withheld = withheld.where(is_in(keys(withheld), keys(reviewed.files)))
        partitions = tuple(path for path in partitions if path in reviewed.delete_partitions)
    there = state.metafile_partitions.union(state.partitions)
    return _Rest(
        files=files,
        gone=_gone(table, look, clean),
        delete_partitions=(*partitions, *sorted(planned_partitions(clean) - there)),
        staying=staying,
        left_out=withheld if len(withheld) else None,
    )


def _gone(table: Table, look: Look, clean: PendingClean) -> dict[str, list[str]]:
    """Planned files that are not there; what the listing would not show is looked up."""
    names_of = cache(lambda path: names_in(table.storage, path))
    pairs = [(path, name) for path, names in sorted(clean.files.items()) for name in sorted(names)]
    listed = is_in(
        strings([f"{path}/{name}" for path, name in pairs]), keys_present(look.state.files)
    )
    folders = look.state.metafile_partitions.union(look.state.partitions)
    found: dict[str, list[str]] = {}
    for (path, name), is_there in zip(pairs, listed, strict=True):
        if is_there or name == PLACEHOLDER:
            continue
        is_shown = path in folders and _is_data_file(name, table.properties.base_extension)
        if is_shown or name not in names_of(path):
            found.setdefault(path, []).append(name)
    return found


def _is_data_file(name: str, base_extension: str) -> bool:
    base = BaseName.parse(name)
    return base.extension == base_extension if base else LogName.parse(name) is not None


def _claim_of(look: Look, clean: PendingClean, rest: _Rest) -> str | None:
    """The earliest instant to retain that the finished clean publishes."""
    state = look.state
    return published_earliest(
        clean.earliest_instant_to_retain,
        earliest_base(view_of(state), rest.staying),
        (
            *replaced_left(state.files, state.replaced, rest.files),
            *still_replacing(state.timeline),
        ),
    )


def _claiming(table: Table, clean: PendingClean, earliest: str | None) -> bytes:
    """The requested file, rewritten where it claims more than will be done.

    Hudi's archiver takes the boundary from there, not from the completed file.
    """
    request = _request_of(table, clean)
    said = clean.earliest_instant_to_retain
    if earliest is None or (said is not None and said <= earliest):
        return request
    with table.locked():
        timeline = table.reread()
        if completion_of(timeline, clean.instant, Action.CLEAN) is not None:
            raise BusyError(f"clean {clean.instant} was completed by another writer meanwhile")
        actions = {i.requested: i.action.value for i in timeline.commits}
        data = with_earliest(request, clean.instant, earliest, actions.get(earliest, "commit"))
        table.lock.confirm()
        table.publisher.amend(clean.instant, Action.CLEAN, data)
    return data


def _request_of(table: Table, clean: PendingClean) -> bytes:
    file = table.reread().file(clean.instant, Action.CLEAN, State.REQUESTED)
    if file is None:
        raise BusyError(f"clean {clean.instant} was removed by another writer meanwhile")
    return read_instant_file(table.storage, table.properties, file)


def _undo(table: Table, clean: PendingClean, outcome: StepOutcome) -> StepOutcome:
    """Take it off the timeline: nothing of it was done and nothing of it may be."""
    with table.locked():
        timeline = table.reread()
        if completion_of(timeline, clean.instant, Action.CLEAN) is not None:
            raise BusyError(f"clean {clean.instant} was completed by another writer meanwhile")
        begun = timeline.file(clean.instant, Action.CLEAN, State.INFLIGHT) is not None
        if begun and clean.state == State.REQUESTED:
            raise BusyError(f"clean {clean.instant} was begun by another writer meanwhile")
        table.lock.confirm()
        table.publisher.withdraw(clean.instant, Action.CLEAN)
    return outcome
