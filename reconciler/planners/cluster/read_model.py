"""Predict how many files are read of partitions today and after groups are rewritten; pure.

Today, a file is read if its value ranges meet a box. After a rewrite, the rows of a group are in
files of equal size along the curve. A side of a box that holds the share p of the group's rows
meets 1 + (m - 1) p of m parts along its column, and a box with the share v of the rows meets at
least 1 + (n - 1) v of n files, which counts where columns are correlated. Pieces of a curve are no
boxes, so their bounds meet more boxes. Few pieces are looked at (``curve_pieces``). Many meet more
by their overlap times the root of the parts, which fits the measurements in docs/layouts.md. A
kd-tree cuts columns as the declared queries need it, a linear order cuts the first column with
different values.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from typing import Final, Self

import numpy as np

from reconciler.arrays import Floats, Integers, sort_unique
from reconciler.lazy_dataclass import dataclass
from reconciler.planners.cluster.asked_boxes import AskedBoxes, BoxesOnScale
from reconciler.planners.cluster.curve_pieces import (
    CURVES,
    MAX_COLUMNS,
    MAX_PIECES,
    count_met_pieces,
)
from reconciler.planners.cluster.file_boxes import FileRanges
from reconciler.planners.cluster.overlap import estimate_curve_overlap
from reconciler.spec.model import Clustering

#: files that are processed together, and the limit of boxes times files
_AT_ONCE: Final = 2**13
_MAX_CELLS: Final = 2**19
#: steps in which the cuts of a kd-tree are divided among columns
_STEPS: Final = 4
_MAX_TREE_COLUMNS: Final = 4
#: the figures of ``BlockReads``
READ_FIGURES: Final = ("files_now", "files_then", "bytes_now", "bytes_then")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FileBlocks:
    """Base files, partition by partition, block by block: a group to rewrite, or files that stay.

    ``rows``: rows of the files in the table; ``bytes``: their sizes; ``partition``: per file, 0 for
    the first partition. ``starts``: the first file of each block. ``outputs``: per block, the files
    that it becomes; 0 if it stays. ``new_bytes``: per block, bytes of these files.
    """

    rows: Integers
    bytes: Integers
    partition: Integers
    starts: Integers
    outputs: Integers
    new_bytes: Integers


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class BlockReads:
    """Files and bytes that are read of each block, as the mean of all queries; float64."""

    files_now: Floats
    files_then: Floats
    bytes_now: Floats
    bytes_then: Floats

    @classmethod
    def build(cls, figures: Mapping[str, Floats]) -> Self:
        """Build from the figures by their names."""
        return cls(**figures)

    def sum_partitions(self, starts: Integers) -> BlockReads:
        """Return the sums by partition; ``starts``: the first block of each."""
        return BlockReads.build(
            {name: np.add.reduceat(getattr(self, name), starts) for name in READ_FIGURES}
        )


def predict_reads(
    asked: AskedBoxes, clustering: Clustering, blocks: FileBlocks, *, at_best: bool = False
) -> BlockReads:
    """Predict what is read of every block. ``at_best``: a box meets one new file of a group.

    The distribution of rows inside a file is unknown, so several scales are tried, as for overlap;
    in each partition the one with the greatest gain counts.
    """
    parts: list[BlockReads] = []
    is_last = np.append(np.diff(blocks.partition) != 0, True)[: len(blocks.rows)]
    ends = np.flatnonzero(is_last) + 1
    first = partition = 0
    while partition < len(ends):
        fitting = int(np.searchsorted(ends, first + _AT_ONCE, side="right"))
        partition = max(fitting, partition + 1)
        last = int(ends[partition - 1])
        parts.append(
            _predict_chunk(asked, clustering, _take_files(blocks, first, last), at_best=at_best)
        )
        first = last
    return BlockReads.build(
        {
            name: np.concatenate([np.zeros(0), *(getattr(part, name) for part in parts)])
            for name in READ_FIGURES
        }
    )


def _take_files(blocks: FileBlocks, first: int, last: int) -> FileBlocks:
    """Return the blocks of whole partitions from one file to another."""
    start, end = np.searchsorted(blocks.starts, [first, last]).tolist()
    return FileBlocks(
        rows=blocks.rows[first:last],
        bytes=blocks.bytes[first:last],
        partition=blocks.partition[first:last] - blocks.partition[first],
        starts=blocks.starts[start:end] - first,
        outputs=blocks.outputs[start:end],
        new_bytes=blocks.new_bytes[start:end],
    )


def _predict_chunk(
    asked: AskedBoxes, clustering: Clustering, blocks: FileBlocks, *, at_best: bool
) -> BlockReads:
    rows = asked.ranges.rows[blocks.rows].astype(np.float64)
    of_block = blocks.partition[blocks.starts]
    starts = np.flatnonzero(np.diff(of_block, prepend=-1))
    best: BlockReads | None = None
    most = np.zeros(0)
    for scale, (lower, upper) in asked.scales.items():
        files = FileRanges.build(
            lower[:, blocks.rows], upper[:, blocks.rows], rows, blocks.partition
        )
        reads = _BlockReader(
            clustering, blocks, files, is_declared=asked.is_declared, at_best=at_best
        ).read(asked.on_scale(scale, files))
        total = reads.sum_partitions(starts)
        is_read = total.files_now > 0
        gain = np.where(is_read, 1 - total.files_then / np.where(is_read, total.files_now, 1.0), -1)
        if best is None:
            best, most = reads, gain
            continue
        is_more = (gain > most)[of_block]
        better = {
            name: np.where(is_more, getattr(reads, name), getattr(best, name))
            for name in READ_FIGURES
        }
        best = BlockReads.build(better)
        most = np.maximum(most, gain)
    assert best is not None, "there is a scale"
    return best


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Shares:
    """What boxes hold of blocks: (boxes or queries, blocks); ``sides`` also by column, first.

    ``files``, ``bytes``: files that are met, and their bytes. ``volume``, ``sides``: share of the
    rows in the box, and in its range of a column.
    """

    files: Floats
    bytes: Floats
    volume: Floats
    sides: Floats


@dataclass(frozen=True, slots=True)
class _BlockReader:
    clustering: Clustering
    blocks: FileBlocks
    files: FileRanges
    is_declared: bool
    at_best: bool

    def read(self, boxes: BoxesOnScale) -> BlockReads:
        """Return the mean reads of all queries, some queries at a time."""
        count, queries = boxes.lower.shape[1], len(boxes.starts)
        each = max(_MAX_CELLS // max(len(self.blocks.rows), 1), 1)
        ends = np.append(boxes.starts[1:], count)
        shares = []
        first = 0
        while first < queries:
            last = int(np.searchsorted(ends, boxes.starts[first] + each, side="right"))
            last = max(last, first + 1)
            start, end = int(boxes.starts[first]), int(ends[last - 1])
            some = BoxesOnScale(
                boxes.lower[:, start:end], boxes.upper[:, start:end], boxes.starts[first:last]
            )
            shares.append(self._measure(some, some.starts - start))
            first = last
        files_now = sum(share.files.sum(axis=0) for share in shares) / queries
        bytes_now = sum(share.bytes.sum(axis=0) for share in shares) / queries
        outputs = np.maximum(self.blocks.outputs, 1)
        if self.at_best:
            new = sum((share.files > 0).sum(axis=0) for share in shares) / queries
        else:
            new = self._predict(shares, outputs.astype(np.float64)) / queries
        stays = self.blocks.outputs == 0
        return BlockReads(
            files_now=np.asarray(files_now),
            files_then=np.where(stays, files_now, new),
            bytes_now=np.asarray(bytes_now),
            bytes_then=np.where(stays, bytes_now, new * self.blocks.new_bytes / outputs),
        )

    def _measure(self, boxes: BoxesOnScale, starts: Integers) -> _Shares:
        """Return what the boxes hold of every block; alternatives of a query are one."""
        files, block_starts = self.files, self.blocks.starts
        at = files.partition
        total = np.add.reduceat(files.rows, block_starts)
        weight = files.rows / np.repeat(total, np.diff(block_starts, append=len(at)))
        is_met = np.ones((boxes.lower.shape[1], len(at)), np.bool_)
        volume, sides = weight, []
        for column in range(len(files.lower)):
            lower, upper = files.lower[column], files.upper[column]
            width = upper - lower
            is_point = width <= 0
            share = np.minimum(boxes.upper[column][:, at], upper)
            share -= np.maximum(boxes.lower[column][:, at], lower)
            is_in = share >= 0
            is_met &= is_in
            np.maximum(share, 0.0, out=share)
            share /= np.where(is_point, 1.0, width)
            share[:, is_point] = 1.0
            share *= is_in
            sides.append(np.add.reduceat(share * weight, block_starts, axis=1))
            volume = volume * share
        if len(starts) < len(is_met):
            either = np.logical_or.reduceat(is_met, starts, axis=0)
        else:
            either = is_met
        met = either.astype(np.float64)
        return _Shares(
            files=np.add.reduceat(met, block_starts, axis=1),
            bytes=np.add.reduceat(met * self.blocks.bytes, block_starts, axis=1),
            volume=_add_alternatives(np.add.reduceat(volume, block_starts, axis=1), starts),
            sides=np.stack([_add_alternatives(side, starts) for side in sides]),
        )

    def _predict(self, shares: list[_Shares], outputs: Floats) -> Floats:
        """Return the new files that all queries together read of each block."""
        best = np.full(len(outputs), np.inf)
        extra = self._measure_uneven_bounds(outputs)
        for cuts in self._list_cuts(outputs):
            total = np.zeros(len(outputs))
            for share in shares:
                parts = np.prod(1 + (cuts[:, None, :] - 1) * share.sides, axis=0)
                parts += extra * (1 - share.sides).mean(axis=0) * np.sqrt(parts)
                self._look_at_pieces(parts, share.sides, outputs)
                files = np.maximum(parts, 1 + (outputs - 1) * share.volume)
                total += (np.minimum(files, outputs) * (share.files > 0)).sum(axis=0)
            best = np.minimum(best, total)
        return best

    def _look_at_pieces(self, parts: Floats, sides: Floats, outputs: Floats) -> None:
        """Correct the parts of a curve that boxes meet, (boxes, blocks), where they are few."""
        curve = self.clustering.curve or ""
        if curve not in CURVES:
            return
        spread = self.files.has_spread[:, self.files.partition[self.blocks.starts]]
        columns = spread.sum(axis=0)
        is_few = (outputs > 1) & (outputs <= MAX_PIECES) & (columns > 1) & (columns <= MAX_COLUMNS)
        few = np.flatnonzero(is_few)
        # blocks with as many files and the same columns are alike
        kinds = np.concatenate([outputs[None, few], spread[:, few]]).astype(np.int64)
        for kind in {tuple(kind) for kind in kinds.T.tolist()}:
            alike = few[(kinds == np.array(kind)[:, None]).all(axis=0)]
            used = np.flatnonzero(kind[1:])
            parts[:, alike] = count_met_pieces(curve, kind[0], sides[used][:, :, alike])

    def _measure_uneven_bounds(self, outputs: Floats) -> Floats:
        """Return how many more files cover a row because pieces of a curve are no boxes."""
        curve, columns = self.clustering.curve, len(self.clustering.columns)
        counts = sort_unique(outputs)
        covering = [estimate_curve_overlap(curve, columns, int(files)) for files in counts.tolist()]
        extra: Floats = np.array(covering)[np.searchsorted(counts, outputs)] - 1
        return extra

    def _list_cuts(self, outputs: Floats) -> list[Floats]:
        """Return ways to divide blocks along the columns: parts by column, (columns, blocks)."""
        partition = self.files.partition[self.blocks.starts]
        has_spread = self.files.has_spread[:, partition].astype(np.float64)
        if self.clustering.curve == "linear":
            is_first = (np.cumsum(has_spread, axis=0) == 1) & (has_spread > 0)
            return [outputs ** is_first.astype(np.float64)]
        columns = len(has_spread)
        is_free = self.is_declared and self.clustering.curve in (None, "kd-tree")
        weights = (
            [w for w in product(range(_STEPS + 1), repeat=columns) if sum(w) == _STEPS]
            if is_free and columns <= _MAX_TREE_COLUMNS
            else [(1,) * columns]
        )
        ways = []
        for weight in weights:
            some = has_spread * np.array(weight, np.float64)[:, None]
            total = some.sum(axis=0)
            ways.append(outputs ** (some / np.where(total > 0, total, 1.0)))
        return ways


def _add_alternatives(shares: Floats, starts: Integers) -> Floats:
    """Return the share of the alternatives of each query together."""
    if len(starts) == len(shares):
        return shares
    return np.minimum(np.add.reduceat(shares, starts, axis=0), 1.0)
