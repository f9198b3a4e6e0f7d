"""Run a reviewed index step: plan afresh, read unknown footers, publish, remove old versions.

No lock is taken, and nothing is written to the timeline: a version only records facts about files
that never change, whatever is written meanwhile. Of two applies at once one publishes first. The
other finds that its name is taken, or that its file does not count, and builds on the first.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from reconciler.arrays import Integers
from reconciler.errors import AlreadyExistsError, NotFoundError, PlanError, ReconcilerError
from reconciler.executor.fresh_plan import FreshPlan
from reconciler.executor.freshness import make_keys
from reconciler.executor.index.column_stats import build_column_stats
from reconciler.executor.outcomes import IndexOutcome, LeftColumn
from reconciler.executor.result import StepOutcome
from reconciler.executor.session import ApplySession
from reconciler.hudi.files.table_files import FileKind, is_named
from reconciler.index.build import BuiltIndex, IndexBuilder, IndexRequest, ThreadedIndexBuilder
from reconciler.index.codec import Provenance, encode_index
from reconciler.index.file_keys import find_rows
from reconciler.index.merge import find_missing, merge_versions
from reconciler.index.model import FileKeys
from reconciler.index.version_store import list_versions, publish_version, remove_superseded
from reconciler.index.versions import IndexVersion, IndexVersions, VersionName
from reconciler.lazy_dataclass import dataclass
from reconciler.plans.model import INDEX_TARGETS, CleanStep, IndexStep, Note
from reconciler.state.index_state_reader import build_file_keys
from reconciler.transaction.retry import ATTEMPTS, retry_while_changing

if TYPE_CHECKING:
    from reconciler.index.model import FileIndex
    from reconciler.state.index_state import IndexState
    from reconciler.state.model import TableState

ZINDEX, HUDI_TARGET = INDEX_TARGETS
_RULE: Final = "index"
#: a version of a table whose timeline has no completed instant with a name of the usual form
_NO_INSTANT: Final = "0" * 17


def run_index(
    session: ApplySession, step: IndexStep, fresh: FreshPlan | None
) -> Iterator[StepOutcome]:
    """Build each target of an index step, and yield its outcome.

    ``fresh`` is a plan that was made just now, if there is one. An index that cannot be written is
    a failed outcome and no error: the steps behind it go on, because no read depends on it. Raises
    as ``ApplySession.make_fresh_plan``, and PlanError if the spec has no index block.
    """
    if session.spec.index is None:
        name = session.plan.name
        raise PlanError(f"{name}: its spec has no index block, and the plan an index step")
    if ZINDEX in step.targets:
        yield _build_zindex(session, step, fresh)
    if HUDI_TARGET in step.targets:
        yield _build_column_stats(session, step, fresh)


def _build_column_stats(
    session: ApplySession, step: IndexStep, fresh: FreshPlan | None
) -> StepOutcome:
    """Build Hudi's own index, a part of the metadata table, under the lock."""
    try:
        built = build_column_stats(session, step.columns, fresh)
    except ReconcilerError as error:
        failed = IndexOutcome(target=HUDI_TARGET, error=str(error))
        return StepOutcome(kind="index", how="failed", indexed=failed)
    return StepOutcome(
        kind="index",
        how="completed" if built.partitions else "nothing",
        warnings=_describe_unread(built.unread, built.problems),
        indexed=IndexOutcome(
            target=HUDI_TARGET,
            columns=built.columns,
            files=built.files,
            footers=built.footers,
            unread=built.unread,
            partitions=built.partitions,
        ),
    )


def _build_zindex(session: ApplySession, step: IndexStep, fresh: FreshPlan | None) -> StepOutcome:
    """Build our own index. It takes no lock, and has no instant."""
    work: _IndexWork | None = None

    def attempt() -> StepOutcome | None:
        nonlocal fresh, work
        work = _prepare(session, step, (fresh or session.observe()).state)
        fresh = None
        try:
            return _execute(session, work)
        except ReconcilerError as error:
            return _make_outcome(work, "failed", IndexOutcome(error=str(error)))

    def give_up() -> StepOutcome:
        assert work is not None, "something was attempted"
        message = f"others published an index {ATTEMPTS} times while this one was being built"
        return _make_outcome(work, "failed", IndexOutcome(error=f"{message}; run apply again"))

    return retry_while_changing(attempt, give_up)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _IndexWork:
    """The work of an index step on the table as it is now.

    ``wanted``: type by column. ``newest``: base files of newest slices; ``live``: all base files
    that can be read and stay. ``read``: those whose footers have to be read.
    """

    state: TableState
    known: IndexState
    wanted: Mapping[str, Any]
    left: tuple[LeftColumn, ...]
    newest: FileKeys
    live: FileKeys
    read: FileKeys

    @property
    def last(self) -> FileIndex | None:
        return self.known.index

    @property
    def is_up_to_date(self) -> bool:
        """Return True if the newest version can be read and has just these columns."""
        provenance = self.known.provenance
        if provenance is None or self.known.damaged:
            return False
        return dict(provenance.columns) == {
            column: str(kind) for column, kind in self.wanted.items()
        }


def _prepare(session: ApplySession, step: IndexStep, state: TableState) -> _IndexWork:
    known = state.index_state
    assert known is not None, "a spec with an index block has one"
    wanted = {column: known.wanted[column] for column in step.columns if column in known.wanted}
    newest = build_file_keys(state, known.files)
    return _IndexWork(
        state=state,
        known=known,
        wanted=wanted,
        left=tuple(_find_left_columns(step.columns, known)),
        newest=newest,
        live=build_file_keys(state, _find_live_files(session, state, known)),
        read=newest.take(find_missing(known.index, newest, wanted)),
    )


def _find_left_columns(columns: Sequence[str], known: IndexState) -> Iterator[LeftColumn]:
    for column in columns:
        if column not in known.wanted:
            why = known.problems.get(column, f"the spec does not declare column {column}")
            yield LeftColumn(column, why)


def _find_live_files(session: ApplySession, state: TableState, known: IndexState) -> Integers:
    """Return base files that can be read and that no clean of this apply removes."""
    files = state.files
    stays = files.kind == FileKind.BASE
    cleans = [step for step in session.plan.steps if isinstance(step, CleanStep)]
    for step in cleans:
        stays &= ~is_named(files, make_keys(step.files))
    stays[known.files] = True
    return np.flatnonzero(stays)


def _execute(session: ApplySession, work: _IndexWork) -> StepOutcome | None:
    """Read footers and publish a version; None if another process has published meanwhile."""
    if work.known.newer:  # a later version of reconciler keeps the index
        notes = tuple(Note("newerIndex", problem) for problem in work.known.newer)
        return replace(_make_outcome(work, "nothing", IndexOutcome()), warnings=notes)
    if not work.wanted or (work.is_up_to_date and not len(work.read)):
        return _remove_old_versions(session, work)
    with session.phase("index", len(work.read)) as advance:
        request = IndexRequest(
            columns=tuple(work.wanted), schema=work.known.schema, supplied=work.known.supplied
        )

        def report(files: int) -> None:
            advance(files)
            session.context.stop.check()  # only the main thread is interrupted

        built = _get_builder(session).build(
            session.storage.ref, request, work.read, progress=report
        )
    if work.is_up_to_date and _has_nothing_new(work, built):
        return _add_unread(_remove_old_versions(session, work), built, len(work.read))
    with session.phase("complete"):
        return _publish_version(session, work, built)


def _get_builder(session: ApplySession) -> IndexBuilder:
    return session.context.builder or ThreadedIndexBuilder(session.context.open_storage)


def _has_nothing_new(work: _IndexWork, built: BuiltIndex) -> bool:
    """Return True if only footers were read that cannot be read, as the last version knows."""
    assert work.last is not None
    rows = find_rows(work.last, work.read)
    return built.unread_count == len(work.read) and bool((rows >= 0).all())


def _publish_version(
    session: ApplySession, work: _IndexWork, built: BuiltIndex
) -> StepOutcome | None:
    index = merge_versions(work.last, built.index, work.live, work.wanted)
    covered = find_covered_instant(work.state)
    last = work.known.version if work.last is not None else None
    previous = str(last.name) if last else None
    provenance = Provenance(
        table=work.state.table_name,
        instant=covered,
        tool=session.context.process.tool,
        previous=previous,
    )
    data = encode_index(index, provenance).to_pybytes()
    try:
        version = publish_version(session.storage, work.known.versions, covered, data)
    except (AlreadyExistsError, NotFoundError):  # the folder may be another's residue to remove
        return None
    listed = list_versions(session.storage)
    if version not in listed.valid:  # of two files in one folder the other counts
        return None
    kept = _count_kept(work, index)
    done = IndexOutcome(
        version=version.path,
        previous=previous,
        columns=tuple(work.wanted),
        files=len(index),
        bytes=version.size,
        kept=kept,
        dropped=(len(work.last) if work.last is not None else 0) - kept,
    )
    outcome = _remove_old_versions(session, work, (listed, version), done)
    return _add_unread(outcome, built, len(work.read))


def _count_kept(work: _IndexWork, index: FileIndex) -> int:
    """Return how many files of the last version are in the new one."""
    if work.last is None:
        return 0
    return int((find_rows(work.last, index) >= 0).sum())


def find_covered_instant(state: TableState) -> str:
    """Return the newest completed instant, after which a version is named."""
    times = (instant.requested for instant in state.timeline.instants if instant.is_completed)
    return max((time for time in times if VersionName.parse(f"{time}_0")), default=_NO_INSTANT)


def _remove_old_versions(
    session: ApplySession,
    work: _IndexWork,
    published: tuple[IndexVersions, IndexVersion] | None = None,
    done: IndexOutcome = IndexOutcome(),  # noqa: B008 (frozen)
) -> StepOutcome:
    """Remove what a version supersedes; what cannot be removed is left to the next run."""
    versions, keep = published or (work.known.versions, work.known.version)
    removal = remove_superseded(session.storage, versions, keep)
    texts = (f"an older index could not be removed: {text}" for text in removal.problems)
    how = "completed" if done.version else "nothing"
    outcome = _make_outcome(work, how, replace(done, tidied=removal.removed_folders))
    return replace(outcome, warnings=tuple(Note(_RULE, text) for text in texts))


def _add_unread(outcome: StepOutcome, built: BuiltIndex, footers: int) -> StepOutcome:
    """Return the outcome with the number of footers that were read and could not be."""
    assert outcome.indexed is not None
    notes = (*outcome.warnings, *_describe_unread(built.unread_count, built.problems))
    indexed = replace(outcome.indexed, footers=footers, unread=built.unread_count)
    return replace(outcome, indexed=indexed, warnings=notes)


def _describe_unread(files: int, problems: Sequence[str]) -> tuple[Note, ...]:
    """Return a note about files whose footers could not be read."""
    if not files:
        return ()
    what = "1 file, so every read opens it"
    if files > 1:
        what = f"{files} files, so every read opens them"
    return (Note(_RULE, f"nothing is known of {what}: {'; '.join(problems)}"),)


def _make_outcome(work: _IndexWork, how: Any, done: IndexOutcome) -> StepOutcome:
    return StepOutcome(kind="index", how=how, indexed=replace(done, left=work.left))
