"""One write from its announcement to its end: requested, inflight, files, completed, or undone."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from reconciler.errors import (
    AlreadyExistsError,
    BusyError,
    ReconcilerError,
    RowsError,
    StorageError,
)
from reconciler.hudi.avro import encode
from reconciler.hudi.instant import WRITES, Action, State
from reconciler.hudi.write_commit import Profile
from reconciler.plan.model import Note
from reconciler.spec.model import TableSpec
from reconciler.state.observe import observe
from reconciler.transaction.footprints import (
    footprints,
    foreign_pending,
    is_being_rolled_back,
    known_writes,
)
from reconciler.transaction.hold import Hold
from reconciler.transaction.lock import NoLock
from reconciler.transaction.marked import remove_marked, remove_markers
from reconciler.transaction.publish import completion_of
from reconciler.transaction.undo import clear, withdraw
from reconciler.writer.alone import check_batches, check_way
from reconciler.writer.asked import Ask, Outcome, Way
from reconciler.writer.facts import Facts, facts_of
from reconciler.writer.made import Written
from reconciler.writer.partitions import check_apart
from reconciler.writer.publishing import publish, tidied
from reconciler.writer.request import Assigned, Totals, WriteDone, Writer

#: how often a timeline may change under our eyes before we let its writers be
_ATTEMPTS: Final = 8
#: what Hudi requests when it is going to replace something without a plan
_NO_PLAN: Final = {"operationType": None, "clusteringPlan": None, "extraMetadata": None}
_NOTHING: Final = Totals(brought=0, dropped=0, idle=0, inserts=0, updates=0, deletes=0)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Begun:
    """A write that is announced, and the table that it follows from."""

    instant: str
    facts: Facts


def run_write(
    hold: Hold,
    spec: TableSpec,
    ask: Ask,
    writer: Writer | None,
    *,
    extra: Mapping[str, str],
    announced: str | None = None,
) -> Outcome:
    """Write rows into the table; ``extra`` is kept with the instant.

    ``writer``: None for a write without rows; one that only deletes partitions has none to write.
    ``announced``: the instant that a table was just made with. What goes wrong is undone before it
    is raised: BusyError where another writer has a hand in the same file groups, what ``facts_of``
    and the ``writer`` raise, StorageError.
    """
    with hold.pulse.running():
        begun = _begin(hold, spec, ask, announced, extra)
        with _beating(hold, begun.instant):
            try:
                done = _carry_out(hold, ask, begun, writer, extra)
                outcome = _completed(hold, done)
            except (Exception, KeyboardInterrupt):
                with contextlib.suppress(ReconcilerError):  # else the next run undoes it
                    abandon(hold, begun.instant, ask.way.action)
                raise
            return tidied(hold, done, outcome)


def _completed(hold: Hold, done: Written) -> Outcome:
    """The end of a write whose files are there.

    Once it is completed it is: who cannot give the lock back says so, and nobody writes it again.
    """
    outcome = None
    try:
        with hold.locked():
            if done.files or len(done.replaced):
                outcome = publish(hold, done)
            else:
                _undo(hold, done.instant, done.way.action)
                outcome = Outcome(how="nothing", totals=done.totals, warnings=_absent(done))
    except StorageError as error:
        if outcome is None:
            raise
        return replace(outcome, warnings=(*outcome.warnings, Note("lock", f"it stays: {error}")))
    return outcome


def _absent(done: Written) -> tuple[Note, ...]:
    """What is said of a deletion of partitions that are not there."""
    if done.way is not Way.DELETE_PARTITION:
        return ()
    paths = ", ".join(done.facts.state.partitions[:5]) or "none"
    return (Note("partitions", f"the table has no such partition with files; it has {paths}"),)


def _begin(
    hold: Hold, spec: TableSpec, ask: Ask, announced: str | None, extra: Mapping[str, str]
) -> _Begun:
    """Look at the table and announce the write, as long as nothing else has moved meanwhile."""
    for _attempt in range(_ATTEMPTS):
        state = observe(hold.storage, None, observed_ms=hold.clock.now_ms())
        try:
            facts = facts_of(hold.storage, hold.properties, spec, state, ask)
            check_batches(hold, extra)  # what is completed from now on is asked of at the end
        except ReconcilerError:
            if announced is not None:
                with contextlib.suppress(ReconcilerError):
                    abandon(hold, announced, Action.COMMIT)
                    hold.heartbeat(announced).remove()
            raise
        instant = None
        try:
            with hold.locked():
                instant = _announce(hold, ask.way, facts, announced)
        except ReconcilerError:
            action = Action.COMMIT if instant is None else ask.way.action
            if (doomed := instant or announced) is not None:  # or the lock could not be given back
                with contextlib.suppress(ReconcilerError):
                    abandon(hold, doomed, action)
                    hold.heartbeat(doomed).remove()
            raise
        if instant is not None:
            return _Begun(instant=instant, facts=facts)
    raise BusyError(
        f"{hold.name}: its timeline changed {_ATTEMPTS} times while a write was being prepared; "
        "run it again when its writers are quieter"
    )


def _announce(hold: Hold, way: Way, facts: Facts, announced: str | None) -> str | None:
    """The requested file; None where a write was completed since the table was looked at."""
    timeline, found = footprints(hold, known_writes(facts.state.timeline), announced)
    if any(one.is_completed for one in found):
        return None
    check_way(way, found, has_groups=bool(facts.standing.groups.is_live.any()))
    pending = foreign_pending(timeline, announced)
    if isinstance(hold.lock, NoLock) and pending:
        raise BusyError(
            f"{pending[0].action} {pending[0].requested} is pending, and there is no lock: it and "
            "this write could lose each other's rows; configure concurrency.lock or wait"
        )
    if announced is not None and way.action is Action.COMMIT:
        return announced
    hold.lock.confirm()
    if announced is not None:  # a new table was announced by a commit, and this is another action
        hold.publisher.withdraw(announced, Action.COMMIT)
        hold.heartbeat(announced).remove()
    plan = b""
    if way.replaces:
        plan = encode("HoodieRequestedReplaceMetadata.avsc", {**_NO_PLAN, "version": 1})
    try:
        return hold.announce(way.action, timeline, plan)
    except AlreadyExistsError:
        return None


@contextlib.contextmanager
def _beating(hold: Hold, instant: str) -> Iterator[None]:
    """Beat while a write runs; say so when it ends before it is completed."""
    heartbeat = hold.heartbeat(instant)
    try:
        with hold.pulse.beating(heartbeat.beat):
            yield
    except BaseException:
        with contextlib.suppress(ReconcilerError):
            if any(one.requested == instant for one in hold.reread().pending(WRITES)):
                heartbeat.end()
            else:
                heartbeat.remove()
        raise
    with contextlib.suppress(ReconcilerError):
        heartbeat.remove()


def _carry_out(
    hold: Hold, ask: Ask, begun: _Begun, writer: Writer | None, extra: Mapping[str, str]
) -> Written:
    facts, instant = begun.facts, begun.instant

    def assigned(found: Assigned) -> None:
        state, to = facts.state, found.assignment
        paths = {to.partitions[code] for code in np.unique(to.partition).tolist()}
        check_apart(paths, state.metafile_partitions.union(state.partitions))
        hold.publisher.start(instant, ask.way.action, _inflight(hold, ask.way, facts, found))

    if writer is None or ask.way is Way.DELETE_PARTITION:
        hold.publisher.start(instant, ask.way.action, b"")
        done = None
    else:
        work = facts.work(ask, instant, hold.owner.token)
        done = writer.write(ask.rows, work, assigned=assigned)
        if ask.way is Way.INSERT_OVERWRITE_TABLE and not done.files:
            raise RowsError(
                f"{hold.name}: there are no rows, and insert-overwrite-table would empty the "
                "table; if that is meant, delete its partitions (delete-partition)"
            )
    return Written(
        way=ask.way,
        instant=instant,
        facts=facts,
        known=known_writes(facts.state.timeline),
        files=() if done is None else done.files,
        totals=_NOTHING if done is None else done.totals,
        replaced=_replaced(ask, facts, done),
        extra=extra,
    )


def _replaced(ask: Ask, facts: Facts, done: WriteDone | None) -> NDArray[np.int64]:
    """The file groups that are gone with the write."""
    groups = facts.standing.groups
    live = np.flatnonzero(groups.is_live)
    match ask.way:
        case Way.INSERT_OVERWRITE_TABLE:
            return live
        case Way.INSERT_OVERWRITE if done is not None:
            paths = {file.partition for file in done.files}
        case Way.DELETE_PARTITION:
            paths = set(ask.partitions or ())
        case _:
            return np.zeros(0, np.int64)
    codes = [code for code, path in enumerate(groups.partitions) if path in paths]
    found: NDArray[np.int64] = live[np.isin(groups.partition[live], codes)]
    return found


def _inflight(hold: Hold, way: Way, facts: Facts, found: Assigned) -> bytes:
    """What the write is going to do; nothing for one that replaces, whose plan says it."""
    if way.replaces:
        return b""
    groups, workload = facts.standing.groups, found.workload
    inserts = dict(zip(workload.partitions, workload.inserts.tolist(), strict=True))
    updates: dict[str, dict[str, tuple[str, int]]] = {}
    for group, rows in zip(workload.group.tolist(), workload.updates.tolist(), strict=True):
        path = groups.partitions[groups.partition[group]]
        begun = groups.instants[groups.begun[group]]
        updates.setdefault(path, {})[groups.file_id[group].as_py()] = (begun, rows)
    profile = Profile(operation=way.named, inserts=inserts, updates=updates)
    return profile.encode(version=hold.properties.table_version)


def abandon(hold: Hold, instant: str, action: Action) -> None:
    """Undo a write that failed; where another has undone it already, what came later goes too.

    Takes the lock.
    """
    with hold.locked():
        _undo(hold, instant, action)


def _undo(hold: Hold, instant: str, action: Action) -> None:
    """As ``abandon``, under the lock. What a rollback that is pending may count on stays to it."""
    timeline = hold.reread()
    if completion_of(timeline, instant, action) is not None:
        return
    hold.lock.confirm()
    if is_being_rolled_back(hold, timeline, instant):
        remove_marked(hold.storage, instant)
        remove_markers(hold.storage, instant)
    elif timeline.file(instant, action, State.REQUESTED) is not None:
        withdraw(hold, instant, action)
    else:  # nobody else looks for what was told to the metadata table since
        clear(hold.storage, instant)
