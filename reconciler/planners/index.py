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

from reconciler.hudi.arrow import flags, integers
from reconciler.index.merge import can_widen
from reconciler.plan.model import INDEX_TARGETS, Finding, IndexStep, Note, Rewrites
from reconciler.planners.column_stats import Verdict, verdict
from reconciler.planners.index_notes import of_column_stats, of_index
from reconciler.planners.phrases import plural

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from reconciler.spec.model import TableSpec
    from reconciler.state.index import KnownIndex
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
    known = state.index
    if spec.index is None or known is None:
        return IndexDecision()
    need = _Need.of(known, _counted(state, known, rewrites, is_removed))
    hudi = _of_hudi(spec, state, known)
    warnings = (*of_index(state, known), *hudi.warnings)
    if not need and not hudi.due:
        return IndexDecision(warnings=warnings)
    is_due = {ZINDEX: bool(need), COLUMN_STATS: bool(hudi.due)}
    step = IndexStep(
        targets=tuple(target for target in INDEX_TARGETS if is_due[target]),
        columns=tuple(known.wanted),
        add=need.add,
        drop=need.drop,
        files=max(need.count.footers, hudi.files) + need.count.written,
        because="; ".join((*(need.reasons() if need else ()), *hudi.reasons(known))),
    )
    drift = (*(need.drift() if need else ()), *hudi.drift(known))
    return IndexDecision(step=step, drift=drift, warnings=warnings)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Count:
    """Files: ``listed`` in newest slices and what of them has no row; ``footers`` to be read.

    ``written``: what steps before the index write.
    """

    listed: int
    unlisted: int
    footers: int
    unread: int
    written: int


def _counted(
    state: TableState,
    known: KnownIndex,
    rewrites: Sequence[Rewrites],
    is_removed: NDArray[np.bool_],
) -> _Count:
    """What is rewritten is no newest slice any more, and its footers are not read."""
    goes = is_removed.copy()
    for groups in rewrites:
        names = groups.base.drop_null()
        goes[known.files] |= flags(
            pc.is_in(state.files.name.take(integers(known.files)), value_set=names)
        )
    return _Count(
        listed=len(known.files),
        unlisted=int((~goes[known.unlisted]).sum()),
        footers=int((~goes[known.missing]).sum()),
        unread=int((~goes[known.unreadable]).sum()),
        written=sum(int(groups.outputs.sum()) for groups in rewrites),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Need:
    """Why there is a step. ``retyped``: columns whose statistics say nothing of their new type."""

    known: KnownIndex
    count: _Count
    add: tuple[str, ...]
    drop: tuple[str, ...]
    retyped: tuple[str, ...]

    @classmethod
    def of(cls, known: KnownIndex, count: _Count) -> _Need:
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
        if self.known.last is None and not self.known.damaged:
            return self.count.footers + self.count.written > 0
        is_behind = self.count.footers > self.count.unread or self.count.written > 0
        return bool(self.add or self.drop or self.known.damaged or is_behind)

    def reasons(self) -> Iterator[str]:
        """Clauses of a sentence."""
        if self.known.damaged:
            yield f"its last version is damaged: {self.known.damaged[0]}"
        if self.known.last is None:
            if not self.known.damaged:
                yield "the table has no index yet"
            if self.count.footers:
                is_or_are = "is" if self.count.footers == 1 else "are"
                yield f"{plural(self.count.footers, 'base file')} {is_or_are} indexed"
        else:
            yield from self._since()
        if self.count.written:
            yield f"this plan writes {plural(self.count.written, 'new base file')}"

    def _since(self) -> Iterator[str]:
        """What the last version lacks, and has too much."""
        if self.add:
            yield f"{plural(len(self.add), 'column')} added"
        if self.drop:
            yield f"{plural(len(self.drop), 'column')} not declared any more"
        if self.retyped:
            yield f"of another type now: {', '.join(self.retyped)}"
        if self.count.unlisted:
            is_or_are = "is" if self.count.unlisted == 1 else "are"
            files = plural(self.count.unlisted, "base file")
            yield f"{files} {is_or_are} not in the index yet"

    def drift(self) -> Iterator[Finding]:
        """Where the index differs from the spec; what this plan itself brings about is no drift."""
        has = self.known.provenance
        if self.add or self.drop or has is None:
            yield Finding(
                "index.columns",
                list(self.known.wanted),
                None if has is None else list(has.columns),
                self._who(),
            )
        if has is not None and self.count.unlisted:
            newest = f"{plural(self.count.listed, 'base file')} of newest slices"
            yield Finding(
                "index.files",
                self.count.listed,
                self.count.listed - self.count.unlisted,
                f"version {self._name} has not all of {newest}",
            )

    @property
    def _name(self) -> str:
        return "" if self.known.last is None else str(self.known.last.name)

    def _who(self) -> str:
        if self.known.last is not None:
            return f"version {self._name} of the index has these"
        if self.known.damaged:
            return "no version of the index can be read"
        return "the table has no index"


@dataclass(frozen=True, slots=True, kw_only=True)
class _OfHudi:
    """What is due for Hudi's own index: nothing where ``due`` is None."""

    due: Verdict | None = None
    warnings: tuple[Note, ...] = ()

    @property
    def files(self) -> int:
        return self.due.files if self.due else 0

    def reasons(self, known: KnownIndex) -> Iterator[str]:
        if self.due and self.due.lacks and known.hudi_columns is None:
            yield "Hudi's column_stats is not there"
        elif self.due and self.due.lacks:
            yield f"Hudi's column_stats lacks {', '.join(self.due.lacks)}"
        if self.due and self.due.gaps:
            files = plural(self.due.gaps, "base file")
            yield f"Hudi's column_stats lacks entries of {files}, whose rows its readers may lose"

    def drift(self, known: KnownIndex) -> Iterator[Finding]:
        if self.due and self.due.lacks:
            has = known.hudi_columns
            because = "column_stats of the metadata table has these"
            if has is None:
                because = "the metadata table has no column_stats"
            actual = None if has is None else list(has)
            yield Finding("index.hudi", list(known.wanted), actual, because)
        if self.due and self.due.gaps:
            listed = len(known.files)
            newest = f"{plural(listed, 'base file')} of newest slices"
            because = f"column_stats of the metadata table has not all entries of {newest}"
            yield Finding("index.hudi.files", listed, listed - self.due.gaps, because)


def _of_hudi(spec: TableSpec, state: TableState, known: KnownIndex) -> _OfHudi:
    assert spec.index is not None, "the spec has an index block"
    if spec.index.hudi != "build" or not known.wanted or not len(known.files):
        return _OfHudi()
    found = verdict(state, tuple(known.wanted))
    warnings = tuple(Note("hudiIndex", said) for said in of_column_stats(found, state))
    return _OfHudi(due=found if found.is_due else None, warnings=warnings)
