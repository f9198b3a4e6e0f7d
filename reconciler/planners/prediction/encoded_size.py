"""Measure the size of rows in a new order by encoding a sample of them; pure.

In a new order keys and times compress worse, similar texts compress better, and every file has its
own dictionaries. So sampled whole rows are encoded as the rewrite does it: in the new order and
with as many rows together as a new file has.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

import numpy as np

from reconciler.arrays import Floats, Integers, to_arrow
from reconciler.file_slices.base_file.parquet import EncodedSize, measure_encoded_size
from reconciler.layout.curves.pseudo_random import pseudo_random_bits
from reconciler.layout.curves.row_layout import RowLayout, assign_files, compute_keys, sort_by_key
from reconciler.lazy_dataclass import dataclass
from reconciler.planners.prediction.sampled_group import SimulatedGroup

if TYPE_CHECKING:
    from reconciler.state.sampling.model import WholeRows

#: least number of rows for an estimate of a group
MIN_ROWS: Final = 1000
_TIES: Final = 7
#: every n-th row is encoded again, to measure rows that are further apart
_THINNING: Final = 4
#: least and greatest size of all rows, relative to sampled rows
_DENSITY_RANGE: Final = (0.85, 1.0)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SizeGrowth:
    """The size of rows in new files relative to their size today.

    ``by_file``: float64 per new file; ``overall`` if no row of it was encoded. ``footer_bytes``: by
    how much footers of new files are longer than those of today. ``share``: share of the group's
    rows that were encoded.
    """

    overall: float
    by_file: Floats
    footer_bytes: int = 0
    share: float = 1.0


class GrowthEstimator:
    """Estimates the growth of a group's rows. Rows are encoded once, in the first layout."""

    def __init__(self, group: SimulatedGroup, whole_rows: WholeRows | None) -> None:
        self._group, self._whole = group, whole_rows
        self._here = np.zeros(0, np.int64)
        if whole_rows is not None:
            self._here = np.flatnonzero(np.isin(whole_rows.file, group.members))
        #: bytes of each row in a new file, and of the file's footer
        self._then: tuple[Floats, float] | None = None

    def estimate_growth(self, layout: RowLayout | None) -> SizeGrowth | None:
        """Return how much the rows grow in a layout; None if too few whole rows are known.

        Raises the errors of the layout and of pyarrow.
        """
        whole_rows, here, group = self._whole, self._here, self._group
        if whole_rows is None or len(here) < MIN_ROWS:
            return None
        file, by = self._lay_out_rows(whole_rows, layout)
        if self._then is None:
            self._then = self._encode_rows(whole_rows, file, by)
        then, footer = self._then
        took = whole_rows.stored_bytes[here]
        of_all = float(then.sum() / max(took.sum(), 1.0))
        before = np.bincount(file, took, group.outputs)
        after = np.bincount(file, then, group.outputs)
        is_there = before > 0
        return SizeGrowth(
            overall=of_all,
            by_file=np.where(is_there, after / np.where(is_there, before, 1.0), of_all),
            footer_bytes=round(footer - whole_rows.footer),
            share=min(1.0, len(here) / max(group.rows, 1)),
        )

    def _lay_out_rows(
        self, whole_rows: WholeRows, layout: RowLayout | None
    ) -> tuple[Integers, Integers]:
        """Return the new file of each row, and the rows in the order of the files."""
        sampled = self._here
        if layout is None:
            return np.zeros(len(sampled), np.int64), np.arange(len(sampled))
        query_columns = (
            whole_rows.query_columns.take(to_arrow(sampled))
            .select(list(layout.columns))
            .combine_chunks()
        )
        ties = pseudo_random_bits(len(sampled), _TIES) if layout.needs_ties else None
        lanes = compute_keys(layout, query_columns, ties=ties)
        file = assign_files(layout, lanes, ties=ties).astype(np.int64)
        by = sort_by_key(lanes).astype(np.int64)
        return file, by[np.argsort(file[by], kind="stable")]

    def _encode_rows(
        self, whole_rows: WholeRows, file: Integers, by: Integers
    ) -> tuple[Floats, float]:
        counts, sizes = self._encode_pieces(whole_rows, file, by)
        each = np.array([size.row_bytes for size in sizes]) / counts
        then = np.zeros(len(by))
        then[by] = np.repeat(each, counts) * self._density_factor(
            whole_rows, file, by, _weighted_mean(each, counts)
        )
        return then, float(np.mean([size.footer_bytes for size in sizes]))

    def _density_factor(
        self, whole_rows: WholeRows, file: Integers, by: Integers, mean: float
    ) -> float:
        """Return the factor from the size of sampled rows to that of all rows.

        Sampled rows are further apart than all rows, so neighbours have less in common. Encoding a
        quarter of them shows the change per doubling of the number of rows.
        """
        doublings = math.log2(max(self._group.rows / len(by), 1.0))
        thin = by[::_THINNING]
        if not doublings or len(thin) < MIN_ROWS or mean <= 0:
            return 1.0
        counts, sizes = self._encode_pieces(whole_rows, file, thin)
        sparse = _weighted_mean(np.array([size.row_bytes for size in sizes]) / counts, counts)
        slope = (sparse - mean) / math.log2(_THINNING)
        return float(np.clip(1 - slope * doublings / mean, *_DENSITY_RANGE))

    def _encode_pieces(
        self, whole_rows: WholeRows, file: Integers, by: Integers
    ) -> tuple[Integers, list[EncodedSize]]:
        """Return the number of rows of each piece, and their encoded sizes."""
        piece = _split_pieces(file[by], max(self._group.rows // self._group.outputs, 1))
        starts = np.flatnonzero(np.diff(piece, prepend=-1))
        counts = np.diff(np.append(starts, len(piece)))
        sizes = [
            measure_encoded_size(
                whole_rows.rows.take(to_arrow(self._here[by[at : at + count]])),
                whole_rows.form,
            )
            for at, count in zip(starts.tolist(), counts.tolist(), strict=True)
        ]
        return counts, sizes


def _weighted_mean(each: Floats, counts: Integers) -> float:
    return float((each * counts).sum() / max(counts.sum(), 1))


def _split_pieces(file: Integers, each: int) -> Integers:
    """Return the piece of each row, ascending: about ``each`` rows of one or more files.

    >>> _split_pieces(np.array([0, 0, 0, 1, 1, 1, 2, 2]), 3).tolist()
    [0, 0, 0, 1, 1, 1, 2, 2]
    >>> _split_pieces(np.array([0, 0, 1, 1, 2, 3]), 4).tolist()
    [0, 0, 0, 0, 1, 1]
    """
    if not file[-1]:
        return np.arange(len(file)) // each
    counts = np.bincount(file)
    middle = np.cumsum(counts) - counts / 2
    return (middle // each).astype(np.int64)[file]
