"""A rewrite in miniature: sampled rows of a group mapped and cut into files as it will; pure.

The bounds of a file's sampled rows are narrower than those of all its rows. How fast they widen is
seen in the sample: of its halves and quarters queries read fewer files than of all of it, and that
growth goes on, slower from doubling to doubling, until all rows are counted.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from reconciler.curves.layout import Layout
from reconciler.errors import UnsupportedError
from reconciler.hudi.arrow import integers
from reconciler.planners.cells import QUARTERS, Cells
from reconciler.planners.drawn import Drawn, Group
from reconciler.planners.miniature import Ask, Cutting, Made, layouts
from reconciler.planners.reads import reads, with_values
from reconciler.planners.regrown import Growth, Regrowing

#: between these the growth of one doubling is of that before
_SLOWER: Final = (0.0, 0.95)
#: sizes of files come from an estimate: so much of all bytes they may be off, and so much of those
#: of columns that order the rows, which take less where like values lie together
_SIZES: Final = 0.1
_ORDERED: Final = 0.25
#: so much the size of a file may be off, and more for each doubling from the rows that were encoded
#: to all: one that is nearly too big may be split or not
_NEARLY: Final = (0.02, 0.015)
#: half-width of an error bar in standard deviations
_WIDE: Final = 2.0

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Counted:
    """What queries read of a group's files, by layout tried, of quarters, halves and all rows.

    ``files``, ``bytes``: float64, (layouts, 3, queries). ``share``: of the rows that were sampled.
    ``made``: files that the group becomes, and their bytes, None where that is as planned.
    ``grown``: bytes of rows in new files, of those that they take today; None where no whole rows
    tell. ``unsure``: float64, (2, queries), by how much files and bytes may be off because files
    that are nearly too big are split or not.
    """

    files: Floats
    bytes: Floats
    share: float
    made: tuple[float, float] | None = None
    grown: float | None = None
    unsure: Floats = field(default_factory=lambda: np.zeros((2, 1)))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Expected:
    """What queries will read, and the variances of that; float64 a query."""

    files: Floats
    bytes: Floats
    of_files: Floats
    of_bytes: Floats


def counted(ask: Ask, group: Group) -> Counted | None:
    """The group rewritten in miniature; None where no rows of it were read, or none can be."""
    sample = ask.foresight.sample
    if sample is None or not len(group.members):
        return None
    drawn = Drawn.of(sample, group)
    if not len(drawn.rows):
        return None
    try:
        cells = Cells.of(drawn.rows, ask.queries)
        asking = _Asking(ask, group, drawn, cells, Regrowing(group, sample.whole))
        found = [asking.tried(layout) for layout in layouts(ask, group, drawn)]
    except (UnsupportedError, pa.ArrowException, OverflowError):
        return None
    grown = [one.grown for one in found if one.grown is not None]
    return Counted(
        files=np.stack([one.files for one in found]),
        bytes=np.stack([one.bytes for one in found]),
        share=min(1.0, len(drawn.rows) / max(group.rows, 1)) if not drawn.is_all else 1.0,
        made=(_mean(one.made[0] for one in found), _mean(one.made[1] for one in found)),
        grown=_mean(grown) if grown else None,
        unsure=np.mean([one.unsure for one in found], axis=0),
    )


def _mean(of: Iterable[float]) -> float:
    return float(np.mean(list(of)))


def expected(groups: Sequence[Counted], outputs: Sequence[tuple[float, float]]) -> list[Expected]:
    """What is to be expected of each group; ``outputs``: its files and their bytes."""
    found = []
    slower = [_slower([g.files for g in groups]), _slower([g.bytes for g in groups])]
    grown = [g.grown for g in groups if g.grown is not None]
    for group, most in zip(groups, outputs, strict=True):
        doublings = max(-math.log2(max(group.share, 1e-9)), 0.0)
        both = [
            _grown(counts, doublings, rate, limit)
            for counts, rate, limit in zip((group.files, group.bytes), slower, most, strict=True)
        ]
        (files_, of_files), (bytes_, of_bytes) = both
        unsure = (group.unsure / _WIDE) ** 2
        times = _mean(grown) if group.grown is None and grown else 1.0
        found.append(
            Expected(
                files=files_,
                bytes=times * bytes_,
                of_files=of_files + unsure[0],
                of_bytes=times**2 * of_bytes + unsure[1],
            )
        )
    return found


def unsure_of_sizes(ask: Ask) -> float:
    """The share of their bytes that new files may be off."""
    sample = ask.foresight.sample
    shares = sample.shares if sample is not None else {}
    return _SIZES + _ORDERED * sum(shares.get(name, 0.0) for name in ask.layout.columns)


def error(of: Expected, kept_files: Floats, kept_bytes: Floats, unsure: float = _SIZES) -> Floats:
    """The relative half-width of what is read in all, ``kept`` being what stays as it is.

    ``unsure``: as ``unsure_of_sizes`` has it.
    """
    files_ = _WIDE * np.sqrt(of.of_files) / np.maximum(of.files + kept_files, 1.0)
    spread_ = _WIDE * np.sqrt(of.of_bytes) + unsure * of.bytes
    bytes_ = spread_ / np.maximum(of.bytes + kept_bytes, 1.0)
    found: Floats = np.maximum(files_, bytes_)
    return found


def _slower(counts: Sequence[Floats]) -> float:
    """The growth of one doubling of rows, of that of the doubling before; of all queries."""
    if not counts:
        return 0.0
    first = sum(float((c[:, 1] - c[:, 0]).sum()) for c in counts)
    second = sum(float((c[:, 2] - c[:, 1]).sum()) for c in counts)
    return float(np.clip(second / first, *_SLOWER)) if first > 0 else 0.0


def _grown(counts: Floats, doublings: float, rate: float, most: float) -> tuple[Floats, Floats]:
    """Counts of so many more doublings, and their variance."""
    last = counts[:, 2].mean(axis=0)
    growth = np.maximum(counts[:, 2] - counts[:, 1], 0.0).mean(axis=0)
    times = rate * (1 - rate**doublings) / (1 - rate) if rate else 0.0
    added = np.minimum(growth * times, most - np.minimum(last, most))
    tries = len(counts)
    if tries == 1:
        return last + added, (added / 2) ** 2
    own = counts[:, 2].var(axis=0, ddof=1)
    # a few tries tell little of one query: what all queries show counts as much, as chance has it
    usual = own.sum() / max(last.sum(), 1e-9) * last
    return last + added, (own + usual) / 2 * (1 + 1 / tries) + (added / 2) ** 2


# --- what is read of the files -------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Tried:
    """One layout: as ``Counted`` has it."""

    files: Floats
    bytes: Floats
    made: tuple[float, float]
    grown: float | None
    unsure: Floats


@dataclass(frozen=True, slots=True, eq=False)
class _Asking:
    ask: Ask
    group: Group
    drawn: Drawn
    cells: Cells
    regrowing: Regrowing

    def tried(self, layout: Layout | None) -> _Tried:
        grown = self.regrowing.growth(layout)
        cutting = Cutting(self.ask, self.group, self.drawn, layout, grown)
        parts = cutting.parts()
        made = cutting.made(parts)
        files_, bytes_ = self._read(made)
        unsure = np.zeros((2, len(self.ask.queries)))
        nearly = _nearly(grown)
        for times in (1 - nearly, 1 + nearly):
            other = cutting.parts(times)
            if (other != parts).any():
                both = self._read(cutting.made(other))
                off = [np.abs(both[0][2] - files_[2]), np.abs(both[1][2] - bytes_[2])]
                unsure = np.maximum(unsure, off)
        return _Tried(
            files=files_,
            bytes=bytes_,
            made=(float((made.size > 0).sum()), float(made.size.sum())),
            grown=None if grown is None else grown.of_all,
            unsure=unsure,
        )

    def _read(self, made: Made) -> tuple[Floats, Floats]:
        """Files and bytes that queries read of quarters, halves and all rows: (3, queries)."""
        ask, count = self.ask, len(made.size)
        index, has_rows = self.cells.index(made.file, count)
        at = integers(np.full(len(index), self.group.partition))
        said = {name: column.take(at) for name, column in ask.foresight.values.items()}
        found = reads(
            ask.queries,
            with_values(index, said),
            np.zeros(len(index), np.int64),
            schema=ask.foresight.schema,
            zone=ask.foresight.zone,
        )
        kept = (found.kept & has_rows).reshape(len(ask.queries), 2 * QUARTERS - 1, count)
        files_, bytes_ = kept.sum(axis=2).astype(np.float64), kept @ made.size
        return _means(files_), _means(bytes_)


def _nearly(grown: Growth | None) -> float:
    """The share that the size of one new file may be off."""
    if grown is None:
        return _SIZES
    return min(_NEARLY[0] - _NEARLY[1] * math.log2(max(grown.share, 1e-9)), _SIZES)


def _means(cells: Floats) -> Floats:
    """Of quarters, halves and all, by query."""
    half = QUARTERS + 2
    return np.stack(
        [cells[:, :QUARTERS].mean(axis=1), cells[:, QUARTERS:half].mean(axis=1), cells[:, half]]
    )
