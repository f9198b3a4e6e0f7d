"""Plan the step that updates a table's indexes of column statistics; pure.

Reads are correct with any version of the index and without one, because files that are not in it
are read. The index only makes reads faster, so a problem with it is a warning, never a refusal.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import pyarrow.compute as pc

from reconciler.arrays import Mask, to_arrow, to_numpy
from reconciler.index.merge import can_widen
from reconciler.lazy_dataclass import dataclass
from reconciler.planners.index.column_stats import ColumnStatsNeed, assess_column_stats
from reconciler.planners.index.notes import explain_column_stats, warn_of_index
from reconciler.planners.picture import TablePicture
from reconciler.planners.reasons import pluralize
from reconciler.plans.model import INDEX_TARGETS, Finding, IndexStep, Note
from reconciler.plans.rewrites import Rewrites

if TYPE_CHECKING:
    from reconciler.spec.model import TableSpec
    from reconciler.state.index_state import IndexState
    from reconciler.state.model import TableState

ZINDEX, COLUMN_STATS = INDEX_TARGETS


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexDecision:
    """The index step, and where the index differs from the spec."""

    step: IndexStep | None = None
    drift: tuple[Finding, ...] = ()
    warnings: tuple[Note, ...] = ()


def plan_index(
    picture: TablePicture, rewrites: Sequence[Rewrites], is_removed: Mask
) -> IndexDecision:
    """Return the index step of a table.

    ``rewrites``: groups of file slices that earlier steps rewrite; ``is_removed``: per row of the
    state's files, whether a step deletes it. There is a step if the last version lacks a declared
    column or a current base file, has a column that is no longer declared, or is damaged, and if
    files are rewritten. Entries of deleted files are no reason for a step: the next version drops
    them.
    """
    spec, state, known = picture.spec, picture.state, picture.state.index_state
    if spec.index is None or known is None:
        return IndexDecision()
    need = _IndexNeed.assess(known, _count_files(state, known, rewrites, is_removed))
    hudi = _assess_hudi(spec, state, known)
    warnings = (*warn_of_index(state, known), *hudi.warnings)
    if not need and not hudi.need:
        return IndexDecision(warnings=warnings)
    is_due = {ZINDEX: bool(need), COLUMN_STATS: bool(hudi.need)}
    step = IndexStep(
        targets=tuple(target for target in INDEX_TARGETS if is_due[target]),
        columns=tuple(known.wanted),
        add=need.add,
        drop=need.drop,
        files=max(need.count.footers_to_read, hudi.files) + need.count.written,
        because="; ".join((*(need.explain() if need else ()), *hudi.explain(known))),
    )
    drift = (*(need.find_drift() if need else ()), *hudi.find_drift(known))
    return IndexDecision(step=step, drift=drift, warnings=warnings)


@dataclass(frozen=True, slots=True, kw_only=True)
class _FileCounts:
    """Numbers of base files.

    ``newest``: files of newest slices; ``unindexed``: those of them that the index lacks;
    ``footers_to_read``; ``unreadable``: files whose footers could not be read before; ``written``:
    files that earlier steps write.
    """

    newest: int
    unindexed: int
    footers_to_read: int
    unreadable: int
    written: int


def _count_files(
    state: TableState,
    known: IndexState,
    rewrites: Sequence[Rewrites],
    is_removed: Mask,
) -> _FileCounts:
    """Count files without those that are rewritten or removed: their footers are not read."""
    is_gone = is_removed.copy()
    for groups in rewrites:
        names = groups.base.drop_null()
        is_gone[known.files] |= to_numpy(
            pc.is_in(state.files.name.take(to_arrow(known.files)), value_set=names)
        )
    return _FileCounts(
        newest=len(known.files),
        unindexed=int((~is_gone[known.unindexed]).sum()),
        footers_to_read=int((~is_gone[known.missing]).sum()),
        unreadable=int((~is_gone[known.unreadable]).sum()),
        written=sum(int(groups.outputs.sum()) for groups in rewrites),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _IndexNeed:
    """The reasons for a step. ``retyped``: columns whose statistics do not fit their new type."""

    known: IndexState
    count: _FileCounts
    add: tuple[str, ...]
    drop: tuple[str, ...]
    retyped: tuple[str, ...]

    @classmethod
    def assess(cls, known: IndexState, count: _FileCounts) -> _IndexNeed:
        has = () if known.provenance is None else tuple(known.provenance.columns)
        stats = {} if known.index is None else known.index.columns
        return cls(
            known=known,
            count=count,
            add=tuple(column for column in known.wanted if column not in has),
            drop=tuple(column for column in has if column not in known.wanted),
            retyped=tuple(
                column
                for column, kind in known.wanted.items()
                if column in stats and not can_widen(stats[column].type, kind)
            ),
        )

    def __bool__(self) -> bool:
        """Return whether a step is needed.

        None is needed without columns, for a new index without files, or for an index that a later
        version of reconciler wrote.
        """
        if not self.known.wanted or self.known.newer:
            return False
        if self.known.version is None and not self.known.damaged:
            return self.count.footers_to_read + self.count.written > 0
        is_behind = self.count.footers_to_read > self.count.unreadable or self.count.written > 0
        return bool(self.add or self.drop or self.known.damaged or is_behind)

    def explain(self) -> Iterator[str]:
        """Yield the reasons as clauses of a sentence."""
        if self.known.damaged:
            yield f"its last version is damaged: {self.known.damaged[0]}"
        if self.known.version is None:
            if not self.known.damaged:
                yield "the table has no index yet"
            if self.count.footers_to_read:
                is_or_are = "is" if self.count.footers_to_read == 1 else "are"
                yield f"{pluralize(self.count.footers_to_read, 'base file')} {is_or_are} indexed"
        else:
            yield from self._explain_changes()
        if self.count.written:
            yield f"this plan writes {pluralize(self.count.written, 'new base file')}"

    def _explain_changes(self) -> Iterator[str]:
        """Yield what the last version lacks and what it should no longer have."""
        if self.add:
            yield f"{pluralize(len(self.add), 'column')} added"
        if self.drop:
            yield f"{pluralize(len(self.drop), 'column')} no longer declared"
        if self.retyped:
            yield f"type changed: {', '.join(self.retyped)}"
        if self.count.unindexed:
            is_or_are = "is" if self.count.unindexed == 1 else "are"
            files = pluralize(self.count.unindexed, "base file")
            yield f"{files} {is_or_are} not in the index yet"

    def find_drift(self) -> Iterator[Finding]:
        """Yield where the index differs from the spec, without the effects of this plan."""
        has = self.known.provenance
        if self.add or self.drop or has is None:
            yield Finding(
                "index.columns",
                list(self.known.wanted),
                None if has is None else list(has.columns),
                self._describe_version(),
            )
        if has is not None and self.count.unindexed:
            indexed = self.count.newest - self.count.unindexed
            yield Finding(
                "index.files",
                self.count.newest,
                indexed,
                f"index version {self._version_name} covers {indexed} of "
                f"{pluralize(self.count.newest, 'current base file')}",
            )

    @property
    def _version_name(self) -> str:
        return "" if self.known.version is None else str(self.known.version.name)

    def _describe_version(self) -> str:
        if self.known.version is not None:
            return f"index version {self._version_name} has these columns"
        if self.known.damaged:
            return "no version of the index can be read"
        return "the table has no index"


@dataclass(frozen=True, slots=True, kw_only=True)
class _HudiNeed:
    """The gaps of Hudi's own index; ``need`` is None if there are none."""

    need: ColumnStatsNeed | None = None
    warnings: tuple[Note, ...] = ()

    @property
    def files(self) -> int:
        return self.need.files if self.need else 0

    def explain(self, known: IndexState) -> Iterator[str]:
        if self.need and self.need.buildable and known.hudi_columns is None:
            yield "Hudi's column_stats does not exist"
        elif self.need and self.need.buildable:
            yield f"Hudi's column_stats lacks {', '.join(self.need.buildable)}"
        if self.need and self.need.files_without_entries:
            files = pluralize(self.need.files_without_entries, "base file")
            yield f"Hudi's column_stats lacks entries of {files}, whose rows its readers may lose"

    def find_drift(self, known: IndexState) -> Iterator[Finding]:
        if self.need and self.need.buildable:
            has = known.hudi_columns
            because = "column_stats of the metadata table has these columns"
            if has is None:
                because = "the metadata table has no column_stats"
            actual = None if has is None else list(has)
            yield Finding("index.hudi", list(known.wanted), actual, because)
        if self.need and self.need.files_without_entries:
            listed = len(known.files)
            files = pluralize(self.need.files_without_entries, "current base file")
            because = f"column_stats of the metadata table lacks entries of {files}"
            yield Finding(
                "index.hudi.files", listed, listed - self.need.files_without_entries, because
            )


def _assess_hudi(spec: TableSpec, state: TableState, known: IndexState) -> _HudiNeed:
    assert spec.index is not None, "the spec has an index block"
    if spec.index.hudi != "build" or not known.wanted or not len(known.files):
        return _HudiNeed()
    need = assess_column_stats(state, tuple(known.wanted))
    warnings = tuple(Note("hudiIndex", sentence) for sentence in explain_column_stats(need, state))
    return _HudiNeed(need=need if need.is_due else None, warnings=warnings)
