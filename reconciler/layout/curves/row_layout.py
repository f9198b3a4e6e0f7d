"""Lay out rows in files: fit a layout to a sample, then compute each row's key and file.

    ties = make_tie_breakers(table["id"], "id")
    sample = FitSample(rows=table, ties=ties)
    layout = fit_layout(sample, columns, curve="kd-tree", files=12, queries=wheres)
    ties = make_tie_breakers(batch["id"], "id")
    key = compute_keys(layout, batch, ties=ties)
    file = assign_files(layout, key, ties=ties)   # one of the 12
    rows = sort_by_key(key)                       # order inside a file, so row groups are skipped

A layout is a value: pickled, it has some hundred kilobytes and gives the same keys elsewhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, Literal, assert_never

import numpy as np
import pyarrow as pa

from reconciler.arrays import Codes, Floats, Integers
from reconciler.errors import UnsupportedError
from reconciler.layout.curves.curve_keys import hilbert_keys, interleave_bits
from reconciler.layout.curves.direct_mapping import column_order, direct_keys
from reconciler.layout.curves.file_boundaries import (
    FileBoundaries,
    find_boundaries,
    find_files,
    make_leaf_boundaries,
)
from reconciler.layout.curves.kd_tree import (
    DEPTH,
    KdTree,
    LeafParts,
    find_leaves,
    find_parts,
    split_leaves,
)
from reconciler.layout.curves.kd_tree_growth import grow_tree
from reconciler.layout.curves.lanes import Lane, fixed_lanes, is_null, is_text, to_plain_array
from reconciler.layout.curves.query_workload import QueryBoxes, build_query_boxes
from reconciler.layout.curves.rank_scale import Ranks, RankScale, make_quantile_scale, rank_values
from reconciler.layout.curves.sorted_sample import (
    SampledColumn,
    make_lane_reader,
    read_marks,
    sort_rows,
    sort_sample,
)
from reconciler.lazy_dataclass import dataclass

Curve = Literal["linear", "z-order", "hilbert", "kd-tree"]

#: the default curve; docs/layouts.md has the measurements
DEFAULT_CURVE: Final[Curve] = "kd-tree"
#: a key has 16 bits for the leaf
MAX_FILES: Final = 1 << 16

_LEAF_SHIFT: Final = 48  # bits of a key below the leaf's number
_PART_SHIFT: Final = _LEAF_SHIFT - DEPTH  # bits of a key below the part's number
_MAX_INNER_COLUMNS: Final = 12  # columns that order the rows inside a leaf
_MAX_TEXT_LANES: Final = 16  # lanes of text in a key
_TOP: Final = np.uint64(0xFFFF_FFFF_FFFF_FFFF)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LinearPath:
    """Sorts by the columns one after another, nulls last.

    ``kinds``, ``lanes``: type and number of lanes of each column. Text is compared up to its lanes,
    which are enough to tell the sample's values apart; trailing zeros are ignored. The two greatest
    values of 64 bits count as equal.
    """

    kinds: tuple[pa.DataType, ...]
    lanes: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CurvePath:
    """Sorts along a curve through the columns' ranks; ``bits``: width of a rank."""

    curve: Literal["z-order", "hilbert"]
    scales: tuple[RankScale, ...]
    bits: int


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DirectPath:
    """Sorts along Hudi's curve through the bytes of the values, in Hudi's order of columns."""

    curve: Literal["z-order", "hilbert"]
    column_order: tuple[int, ...]
    zone: str


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TreePath:
    """Sorts by leaves of a tree, inside a leaf by its parts, inside a part by Z-order."""

    tree: KdTree
    parts: LeafParts
    inside: CurvePath


LayoutPath = LinearPath | CurvePath | DirectPath | TreePath


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RowLayout:
    """A fitted layout: the columns as declared, the order of rows, and where each file begins.

    It has fewer files than requested if rows cannot be separated.
    """

    columns: tuple[str, ...]
    path: LayoutPath
    boundaries: FileBoundaries

    @property
    def needs_ties(self) -> bool:
        """True if rows with equal values go to different files, by their tie breakers."""
        in_tree = isinstance(self.path, TreePath) and self.path.tree.needs_ties
        return in_tree or self.boundaries.needs_ties


def needed_sample_rows(files: int) -> int:
    """Return the rows that a sample needs; with 1000 per file, sizes differ by a few percent."""
    return max(100_000, 2000 * files)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FitSample:
    """Sampled rows to fit a layout to.

    ``ties``: tie breakers of 64 random bits, which separate equal rows. ``sizes``: bytes of each
    row, None if they are equal.
    """

    rows: pa.Table
    ties: Lane | None = None
    sizes: Floats | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DirectMapping:
    """Hudi's own mapping of values to a curve.

    ``positions``: positions of the columns in the file, by default their order. ``zone``: the
    session's time zone.
    """

    positions: Sequence[int] | None = None
    zone: str = "UTC"


def fit_layout(
    sample: FitSample,
    columns: Sequence[str],
    *,
    files: int,
    curve: Curve = DEFAULT_CURVE,
    direct: DirectMapping | None = None,
    queries: Sequence[str] = (),
) -> RowLayout:
    """Fit a layout with ``files`` files of equal bytes to a sample of the rows.

    ``direct``: None maps values to ranks; it matters only for z-order and hilbert. ``queries``: SQL
    predicates, used only by the kd-tree. Raises UnsupportedError for columns without an order and
    for unsupported combinations.
    """
    if files > MAX_FILES:
        raise UnsupportedError(f"a layout has at most {MAX_FILES} files, not {files}")
    if curve == "kd-tree" and direct is not None:
        raise UnsupportedError("a kd-tree has no direct mapping: use mapping: rank")
    if curve in ("z-order", "hilbert") and direct is not None and len(columns) > 1:
        order = column_order(direct.positions or range(len(columns)))
        path: LayoutPath = DirectPath(curve=curve, column_order=order, zone=direct.zone)
        return _cut_into_files(sample, columns, path, files)
    sorted_columns = [sort_sample(sample.rows.column(name), name) for name in columns]
    match curve:
        case "linear":
            path = LinearPath(
                kinds=tuple(column.column.type for column in sorted_columns),
                lanes=tuple(map(_count_lanes, sorted_columns)),
            )
        case "z-order" | "hilbert":
            bits = min(max(64 // len(sorted_columns), 8), 12)
            path = _fit_curve_path(sorted_columns, curve, bits)
        case "kd-tree":
            boxes = build_query_boxes(queries, sorted_columns)
            tree = grow_tree(
                sorted_columns, files, ties=sample.ties, sizes=sample.sizes, boxes=boxes
            )
            path = _fit_tree_path(sample, sorted_columns, tree, boxes)
            leaf = make_leaf_boundaries(tree.leaves, _LEAF_SHIFT)
            return RowLayout(columns=tuple(columns), path=path, boundaries=leaf)
        case _:
            assert_never(curve)
    return _cut_into_files(sample, columns, path, files)


def _cut_into_files(
    sample: FitSample, columns: Sequence[str], path: LayoutPath, files: int
) -> RowLayout:
    """Return the layout that cuts a path into files with equal bytes."""
    uncut = RowLayout(columns=tuple(columns), path=path, boundaries=make_leaf_boundaries(1, 0))
    keys = compute_keys(uncut, sample.rows)
    boundaries = find_boundaries(keys, files, ties=sample.ties, sizes=sample.sizes)
    return RowLayout(columns=tuple(columns), path=path, boundaries=boundaries)


def _fit_tree_path(
    sample: FitSample,
    sorted_columns: Sequence[SampledColumn],
    tree: KdTree,
    boxes: QueryBoxes | None,
) -> TreePath:
    """Fit the order of rows inside the leaves of a tree."""
    columns = [sample.rows.column(column.name) for column in sorted_columns]
    first = sorted_columns[:_MAX_INNER_COLUMNS]
    inside = _fit_curve_path(first, "z-order", min(_PART_SHIFT // len(first), 12))
    weights = np.ones(len(first)) if boxes is None else boxes.boundary_shares()[: len(first)]
    leaves = find_leaves(tree, columns, sample.ties)
    parts = split_leaves(leaves, _rank_columns(inside, columns), tree.leaves, weights)
    return TreePath(tree=tree, parts=parts, inside=inside)


def _count_lanes(sample: SampledColumn) -> int:
    """Return the lanes of a column; for text, enough to tell its sampled values apart."""
    if not is_text(sample.column.type):
        return len(fixed_lanes(sample.column[:0], sample.name))
    return min(len(read_marks(sample, np.arange(len(sample.first)))) - 1, _MAX_TEXT_LANES)


def _fit_curve_path(
    samples: Sequence[SampledColumn], curve: Literal["z-order", "hilbert"], bits: int
) -> CurvePath:
    scales = tuple(make_quantile_scale(sample, bits) for sample in samples)
    return CurvePath(curve=curve, scales=scales, bits=bits)


def compute_keys(
    layout: RowLayout, batch: pa.Table | pa.RecordBatch, *, ties: Lane | None = None
) -> Lane:
    """Return the key of each row: lanes by rows, the most significant lane first.

    ``ties``: tie breakers, required if ``layout.needs_ties``.
    """
    columns = [batch.column(name) for name in layout.columns]
    path = layout.path
    match path:
        case LinearPath():
            return _linear_keys(path, layout.columns, columns)
        case CurvePath():
            along = interleave_bits if path.curve == "z-order" else hilbert_keys
            return along(_rank_columns(path, columns), path.bits)
        case DirectPath():
            first = [columns[nth] for nth in path.column_order]
            names = [layout.columns[nth] for nth in path.column_order]
            return direct_keys(path.curve, first, names, path.zone)
        case TreePath():
            leaf, ranks = find_leaves(path.tree, columns, ties), _rank_columns(path.inside, columns)
            key = interleave_bits(ranks, path.inside.bits)
            key |= find_parts(path.parts, leaf, ranks) << np.uint64(_PART_SHIFT)
            key |= leaf.astype(np.uint64) << np.uint64(_LEAF_SHIFT)
            return key
        case _:
            assert_never(path)


def _rank_columns(path: CurvePath, columns: Sequence[Any]) -> list[Ranks]:
    """Return the ranks of the path's columns, which inside a leaf are only the first ones."""
    return [rank_values(scale, column) for scale, column in zip(path.scales, columns, strict=False)]


def _linear_keys(path: LinearPath, names: Sequence[str], columns: Sequence[Any]) -> Lane:
    key: list[Lane] = []
    for kind, count, name, column in zip(path.kinds, path.lanes, names, columns, strict=True):
        own = to_plain_array(column if column.type == kind else column.cast(kind))
        lane_of = make_lane_reader(own, name, count + 1)  # the last lane of text is its length
        lanes = np.stack([lane_of(depth, None) for depth in range(count)])
        lanes[1:, lanes[0] == _TOP] = _TOP
        lanes[0] = np.minimum(lanes[0], _TOP - np.uint64(1))
        lanes[:, is_null(own)] = _TOP
        key.extend(lanes)
    return np.stack(key)


def assign_files(layout: RowLayout, key: Lane, *, ties: Lane | None = None) -> Codes:
    """Return the file of each row, counted from 0; ``ties`` as for ``compute_keys``."""
    return find_files(layout.boundaries, key, ties)


def sort_by_key(key: Lane) -> Integers:
    """Return the row numbers sorted by key; rows with equal keys keep their order."""
    return sort_rows(list(key))


def row_group_starts(layout: RowLayout, key: Lane, count: int) -> Integers:
    """Return where each of ``count`` row groups begins in a file's sorted rows, and the end.

    Row groups have the same number of rows. A start moves by up to an eighth of a row group to the
    start of a leaf's part, so that the row group's statistics cover few parts.
    """
    rows = key.shape[1]
    starts: Integers = np.arange(count + 1) * rows // max(count, 1)
    if not isinstance(layout.path, TreePath) or not rows:
        return starts
    part = key[0] >> np.uint64(_PART_SHIFT)
    begins = np.append(np.flatnonzero(np.diff(part, prepend=part[:1])), rows)
    after = np.minimum(np.searchsorted(begins, starts), len(begins) - 1)
    before = np.maximum(after - 1, 0)
    nearest = np.where(
        starts - begins[before] <= begins[after] - starts, begins[before], begins[after]
    )
    is_near = np.abs(nearest - starts) * 8 <= rows // max(count, 1)
    is_near[[0, -1]] = False
    starts[is_near] = nearest[is_near]
    return starts
