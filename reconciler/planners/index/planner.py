"""What brings a table's index of column statistics to what is declared, and up to date; pure.

A reader is right with any version and with none: files that a version does not name are read. So
this is about speed alone, and whatever stands in its way is a warning, never a refusal.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow.compute as pc

from reconciler.arrays import to_integer_array, to_numpy_bools
from reconciler.index.merge import can_widen
from reconciler.planners.index.column_stats import ColumnStatsNeed, assess_column_stats
from reconciler.planners.index.notes import explain_column_stats, warn_of_index
from reconciler.planners.reasons import pluralize
from reconciler.plans.model import INDEX_TARGETS, Finding, IndexStep, Note, Rewrites

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from reconciler.spec.model import TableSpec
    from reconciler.state.index_state import IndexState
    from reconciler.state.model import TableState

ZINDEX, COLUMN_STATS = INDEX_TARGETS


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexDecision:
    """What is to be done, and where the index differs from the spec."""

    step: IndexStep | None = None
    drift: tuple[Finding, ...] = ()
    warnings: tuple[Note, ...] = ()


def plan_index(
    spec: TableSpec,
    state: TableState,
    rewrites: Sequence[Rewrites],
    is_removed: NDArray[np.bool_],
) -> IndexDecision:
    """The index step of a table.

    ``rewrites``: the groups of file slices that steps before it rewrite; ``is_removed``: per row of
    the state's files what steps of the plan delete. There is a step where a declared column or a
    base file of a newest slice is not in the last version, where a column of it is not declared any
    more, where it is damaged, and where files are rewritten. Rows about files that are gone make
    none: they cost nothing, and the next version is without them.
    """
    known = state.index_state
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
    """Files: ``newest`` in newest slices and what of them has no row; ``footers_to_read`` to be read.

    ``written``: what steps before the index write.
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
    is_removed: NDArray[np.bool_],
) -> _FileCounts:
    """What is rewritten is no newest slice any more, and its footers are not read."""
    goes = is_removed.copy()
    for groups in rewrites:
        names = groups.base.drop_null()
        goes[known.files] |= to_numpy_bools(
            pc.is_in(state.files.name.take(to_integer_array(known.files)), value_set=names)
        )
    return _FileCounts(
        newest=len(known.files),
        unindexed=int((~goes[known.unindexed]).sum()),
        footers_to_read=int((~goes[known.missing]).sum()),
        unreadable=int((~goes[known.unreadable]).sum()),
        written=sum(int(groups.outputs.sum()) for groups in rewrites),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _IndexNeed:
    """Why there is a step. ``retyped``: columns whose statistics say nothing of their new type."""

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
        """An index without columns says nothing, nor does one of no files that nobody has made.

        One that a later version of reconciler keeps is not ours to add to.
        """
        if not self.known.wanted or self.known.newer:
            return False
        if self.known.version is None and not self.known.damaged:
            return self.count.footers_to_read + self.count.written > 0
        is_behind = self.count.footers_to_read > self.count.unreadable or self.count.written > 0
        return bool(self.add or self.drop or self.known.damaged or is_behind)

    def explain(self) -> Iterator[str]:
        """Clauses of a sentence."""
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
        """What the last version lacks, and has too much."""
        if self.add:
            yield f"{pluralize(len(self.add), 'column')} added"
        if self.drop:
            yield f"{pluralize(len(self.drop), 'column')} not declared any more"
        if self.retyped:
            yield f"of another type now: {', '.join(self.retyped)}"
        if self.count.unindexed:
            is_or_are = "is" if self.count.unindexed == 1 else "are"
            files = pluralize(self.count.unindexed, "base file")
            yield f"{files} {is_or_are} not in the index yet"

    def find_drift(self) -> Iterator[Finding]:
        """Where the index differs from the spec; what this plan itself brings about is no drift."""
        has = self.known.provenance
        if self.add or self.drop or has is None:
            yield Finding(
                "index.columns",
                list(self.known.wanted),
                None if has is None else list(has.columns),
                self._describe_version(),
            )
        if has is not None and self.count.unindexed:
            newest = f"{pluralize(self.count.newest, 'base file')} of newest slices"
            yield Finding(
                "index.files",
                self.count.newest,
                self.count.newest - self.count.unindexed,
                f"version {self._version_name} has not all of {newest}",
            )

    @property
    def _version_name(self) -> str:
        return "" if self.known.version is None else str(self.known.version.name)

    def _describe_version(self) -> str:
        if self.known.version is not None:
            return f"version {self._version_name} of the index has these"
        if self.known.damaged:
            return "no version of the index can be read"
        return "the table has no index"


@dataclass(frozen=True, slots=True, kw_only=True)
class _HudiNeed:
    """What is due for Hudi's own index: nothing where ``need`` is None."""

    need: ColumnStatsNeed | None = None
    warnings: tuple[Note, ...] = ()

    @property
    def files(self) -> int:
        return self.need.files if self.need else 0

    def explain(self, known: IndexState) -> Iterator[str]:
        if self.need and self.need.buildable and known.hudi_columns is None:
            yield "Hudi's column_stats is not there"
        elif self.need and self.need.buildable:
            yield f"Hudi's column_stats lacks {', '.join(self.need.buildable)}"
        if self.need and self.need.files_without_entries:
            files = pluralize(self.need.files_without_entries, "base file")
            yield f"Hudi's column_stats lacks entries of {files}, whose rows its readers may lose"

    def find_drift(self, known: IndexState) -> Iterator[Finding]:
        if self.need and self.need.buildable:
            has = known.hudi_columns
            because = "column_stats of the metadata table has these"
            if has is None:
                because = "the metadata table has no column_stats"
            actual = None if has is None else list(has)
            yield Finding("index.hudi", list(known.wanted), actual, because)
        if self.need and self.need.files_without_entries:
            listed = len(known.files)
            newest = f"{pluralize(listed, 'base file')} of newest slices"
            because = f"column_stats of the metadata table has not all entries of {newest}"
            yield Finding(
                "index.hudi.files", listed, listed - self.need.files_without_entries, because
            )


def _assess_hudi(spec: TableSpec, state: TableState, known: IndexState) -> _HudiNeed:
    assert spec.index is not None, "the spec has an index block"
    if spec.index.hudi != "build" or not known.wanted or not len(known.files):
        return _HudiNeed()
    found = assess_column_stats(state, tuple(known.wanted))
    warnings = tuple(Note("hudiIndex", said) for said in explain_column_stats(found, state))
    return _HudiNeed(need=found if found.is_due else None, warnings=warnings)
