"""Running a reviewed index step: look anew, read what no version knows, publish, tidy up.

No lock is taken, and nothing is written to the timeline: a version says only what is true of files
that never change, whatever else is written meanwhile. Of two applies at once one publishes first;
the other sees that its name is taken, or that its file does not count, and builds on the first.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from reconciler.apply.checks import Look
from reconciler.apply.column_stats import build_column_stats
from reconciler.apply.freshness import is_in, keys, keys_present
from reconciler.apply.result import Indexed, StepOutcome
from reconciler.apply.table import Table
from reconciler.errors import AlreadyExistsError, NotFoundError, PlanError, ReconcilerError
from reconciler.hudi.arrow import integers
from reconciler.hudi.files import FileKind
from reconciler.index.build import Asked, Built, IndexBuilder, Threads
from reconciler.index.codec import Provenance, encode
from reconciler.index.keys import places
from reconciler.index.merge import Keys, merged, missing
from reconciler.index.store import list_versions, publish, tidy
from reconciler.index.versions import Version, VersionName, Versions
from reconciler.plan.model import INDEX_TARGETS, CleanStep, IndexStep, Note
from reconciler.state.known_index import keys_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from reconciler.index.model import FileIndex
    from reconciler.state.index import KnownIndex
    from reconciler.state.model import TableState

ZINDEX, HUDI_TARGET = INDEX_TARGETS
_RULE: Final = "index"
#: how often somebody else may publish while we build
_ATTEMPTS: Final = 8
#: a version of a table whose timeline has no completed instant with a name of the usual form
_NO_INSTANT: Final = "0" * 17


def run_index(table: Table, step: IndexStep, look: Look | None) -> Iterator[StepOutcome]:
    """An outcome for each target. ``look`` is one just taken, if there is one.

    An index that cannot be written is an outcome that says so and no error: the steps behind it go
    on, because no read depends on it. Raises as ``Table.look``, and PlanError where the spec has no
    index block.
    """
    if table.spec.index is None:
        name = table.plan.name
        raise PlanError(f"{name}: its spec has no index block, and the plan an index step")
    if ZINDEX in step.targets:
        yield _run(table, step, look)
    if HUDI_TARGET in step.targets:
        yield _run_hudi(table, step, look)


def _run_hudi(table: Table, step: IndexStep, look: Look | None) -> StepOutcome:
    """Hudi's own index, which is part of the metadata table: that takes the lock."""
    try:
        built = build_column_stats(table, step.columns, look)
    except ReconcilerError as error:
        failed = Indexed(target=HUDI_TARGET, error=str(error))
        return StepOutcome(kind="index", how="failed", indexed=failed)
    return StepOutcome(
        kind="index",
        how="completed" if built.partitions else "nothing",
        warnings=_unknown(built.unread, built.said),
        indexed=Indexed(
            target=HUDI_TARGET,
            columns=built.columns,
            files=built.files,
            footers=built.footers,
            unread=built.unread,
            partitions=built.partitions,
        ),
    )


def _run(table: Table, step: IndexStep, look: Look | None) -> StepOutcome:
    for _attempt in range(_ATTEMPTS):
        if look is None:
            with table.phase("observe"):
                look = table.look()
        work = _work(table, step, look.state)
        look = None
        try:
            outcome = _carry_out(table, work)
        except ReconcilerError as error:
            return _outcome(work, "failed", Indexed(error=str(error)))
        if outcome is not None:
            return outcome
    said = f"others published an index {_ATTEMPTS} times while this one was being built"
    return _outcome(work, "failed", Indexed(error=f"{said}; run apply again"))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Work:
    """What an index step comes to as the table is now.

    ``wanted``: by column its type; ``newest``: base files of newest slices, ``live``: of all that
    can be read and stay; ``read``: those whose footers must be read.
    """

    state: TableState
    known: KnownIndex
    wanted: Mapping[str, Any]
    left: tuple[Note, ...]
    newest: Keys
    live: Keys
    read: Keys

    @property
    def last(self) -> FileIndex | None:
        return self.known.index

    @property
    def is_the_last(self) -> bool:
        """Whether the newest version that there is can be read and has just these columns."""
        said = self.known.provenance
        if said is None or self.known.damaged:
            return False
        return dict(said.columns) == {column: str(kind) for column, kind in self.wanted.items()}


def _work(table: Table, step: IndexStep, state: TableState) -> _Work:
    known = state.index
    assert known is not None, "a spec with an index block has one"
    wanted = {column: known.wanted[column] for column in step.columns if column in known.wanted}
    newest = keys_of(state, known.files)
    return _Work(
        state=state,
        known=known,
        wanted=wanted,
        left=tuple(_left(step.columns, known)),
        newest=newest,
        live=keys_of(state, _live(table, state, known)),
        read=_some(newest, missing(known.index, newest, wanted)),
    )


def _left(columns: Sequence[str], known: KnownIndex) -> Iterator[Note]:
    for column in columns:
        if column not in known.wanted:
            why = known.problems.get(column, f"the spec does not declare column {column}")
            yield Note(column, why)


def _live(table: Table, state: TableState, known: KnownIndex) -> NDArray[np.int64]:
    """Base files that can be read and that no clean of this apply is about to remove."""
    files = state.files
    stays = files.kind == FileKind.BASE
    cleans = [step for step in table.plan.steps if isinstance(step, CleanStep)]
    for step in cleans:
        stays &= ~is_in(keys_present(files), keys(step.files))
    stays[known.files] = True
    return np.flatnonzero(stays)


def _some(files: Keys, rows: NDArray[np.int64]) -> Keys:
    at = integers(rows)
    return Keys(partition=files.partition.take(at), name=files.name.take(at), size=files.size[rows])


def _carry_out(table: Table, work: _Work) -> StepOutcome | None:
    """Read, publish, tidy up; None where another process has published meanwhile."""
    if work.known.newer:  # a later version of reconciler keeps the index
        notes = tuple(Note("newerIndex", problem) for problem in work.known.newer)
        return replace(_outcome(work, "nothing", Indexed()), warnings=notes)
    if not work.wanted or (work.is_the_last and not len(work.read)):
        return _tidied(table, work, work.known.versions, work.known.last, Indexed())
    with table.phase("index", len(work.read)) as advance:
        asked = Asked(
            columns=tuple(work.wanted), schema=work.known.schema, supplied=work.known.supplied
        )

        def tell(files: int) -> None:
            advance(files)
            table.tools.stop.check()  # many files are read, and only a main thread is interrupted

        built = _builder(table).build(table.storage.ref, asked, work.read, progress=tell)
    if work.is_the_last and _tells_nothing(work, built):
        done = _tidied(table, work, work.known.versions, work.known.last, Indexed())
        return _with_unread(done, built, len(work.read))
    with table.phase("complete"):
        return _published(table, work, built)


def _builder(table: Table) -> IndexBuilder:
    return table.tools.builder or Threads(table.tools.open_storage)


def _tells_nothing(work: _Work, built: Built) -> bool:
    """Whether footers were read again that cannot be read, as the last version knows."""
    assert work.last is not None
    rows = places(work.last, work.read.partition, work.read.name, work.read.size)
    return built.unread == len(work.read) and bool((rows >= 0).all())


def _published(table: Table, work: _Work, built: Built) -> StepOutcome | None:
    index = merged(work.last, built.index, work.live, work.wanted)
    covered = covered_instant(work.state)
    last = work.known.last if work.last is not None else None
    previous = str(last.name) if last else None
    said = Provenance(
        table=work.state.table_name,
        instant=covered,
        tool=table.tools.process.tool,
        previous=previous,
    )
    data = encode(index, said).to_pybytes()
    try:
        version = publish(table.storage, work.known.versions, covered, data)
    except (AlreadyExistsError, NotFoundError):  # the folder may be another's residue to remove
        return None
    listed = list_versions(table.storage)
    if version not in listed.valid:  # of two files in one folder the other counts
        return None
    kept = _kept(work, index)
    done = Indexed(
        version=version.path,
        previous=previous,
        columns=tuple(work.wanted),
        files=len(index),
        bytes=version.size,
        kept=kept,
        dropped=(len(work.last) if work.last is not None else 0) - kept,
    )
    return _with_unread(_tidied(table, work, listed, version, done), built, len(work.read))


def _kept(work: _Work, index: FileIndex) -> int:
    """How many files of the last version are in the new one."""
    if work.last is None:
        return 0
    return int((places(work.last, index.partition, index.name, index.size) >= 0).sum())


def covered_instant(state: TableState) -> str:
    """The newest completed instant, which a version is named for."""
    times = (one.requested for one in state.timeline.instants if one.is_completed)
    return max((time for time in times if VersionName.parse(f"{time}_0")), default=_NO_INSTANT)


def _tidied(
    table: Table, work: _Work, versions: Versions, keep: Version | None, done: Indexed
) -> StepOutcome:
    """Remove what a version supersedes; what cannot be removed is left to the next run."""
    found = tidy(table.storage, versions, keep)
    notes = tuple(
        Note(_RULE, f"an older index could not be removed: {said}") for said in found.problems
    )
    how = "completed" if done.version else "nothing"
    return replace(_outcome(work, how, replace(done, tidied=found.folders)), warnings=notes)


def _with_unread(outcome: StepOutcome, built: Built, footers: int) -> StepOutcome:
    """The outcome with what became of the footers."""
    assert outcome.indexed is not None
    notes = (*outcome.warnings, *_unknown(built.unread, built.said))
    indexed = replace(outcome.indexed, footers=footers, unread=built.unread)
    return replace(outcome, indexed=indexed, warnings=notes)


def _unknown(files: int, said: Sequence[str]) -> tuple[Note, ...]:
    """A note about files whose footers could not be read."""
    if not files:
        return ()
    so = "1 file, so every read opens it"
    if files > 1:
        so = f"{files} files, so every read opens them"
    return (Note(_RULE, f"nothing is known of {so}: {'; '.join(said)}"),)


def _outcome(work: _Work, how: Any, done: Indexed) -> StepOutcome:
    return StepOutcome(kind="index", how=how, indexed=replace(done, left=work.left))
