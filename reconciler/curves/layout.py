"""How rows are laid out in files: fitted to a sample, then a key a row and a file a key.

    layout = fit(sample, columns, curve="kd-tree", files=12, queries=wheres, ties=ties(keys, "id"))
    key = keys(layout, batch, ties=ties(batch["id"], "id"))
    file = files(layout, key, ties=...)     # which of the 12
    rows = order(key)                       # the rows inside a file, for row groups to skip

A layout is a value: pickled, it is some hundred kilobytes, and gives the same keys elsewhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, assert_never

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from reconciler.curves import direct
from reconciler.curves.bits import hilbert, interleaved
from reconciler.curves.cuts import Cuts, cuts, file_of, leaf_cuts
from reconciler.curves.grow import grow
from reconciler.curves.halves import DEPTH, Halves, halved, part_of
from reconciler.curves.lanes import Lane, fixed, is_null, is_text, plain
from reconciler.curves.ruler import Ranks, Ruler, quantile_ruler, ranks
from reconciler.curves.sampled import Sampled, lanes_of, marks_of, ordered_rows, sampled
from reconciler.curves.tree import Tree, leaf_of
from reconciler.curves.workload import Boxes, boxes_among
from reconciler.errors import UnsupportedError

Curve = Literal["linear", "z-order", "hilbert", "kd-tree"]
Mapping = Literal["rank", "direct"]

#: where nothing is declared; docs/layouts.md has the measurements that say so
DEFAULT: Final[Curve] = "kd-tree"
#: a leaf has 16 bits of a key
MOST_FILES: Final = 1 << 16

_LEAF: Final = 48  # bits below a leaf's number
_PART: Final = _LEAF - DEPTH  # bits below a part's number
_INSIDE: Final = 12  # columns that order rows inside a leaf
_LONGEST: Final = 16  # lanes of text
_TOP: Final = np.uint64(0xFFFF_FFFF_FFFF_FFFF)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class InOrder:
    """By the columns one after another, nulls last; ``kinds`` and ``lanes`` of each.

    Text is in order as far as its lanes go: those that tell the sample's values apart, zeros at
    the end left out. The two greatest values of 64 bits count as one.
    """

    kinds: tuple[pa.DataType, ...]
    lanes: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class OnCurve:
    """Along a curve through the columns' ranks, which have so many bits."""

    curve: Literal["z-order", "hilbert"]
    rulers: tuple[Ruler, ...]
    bits: int


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class AsHudi:
    """Along the curve that Hudi makes of the values' bytes, the columns in its own order."""

    curve: Literal["z-order", "hilbert"]
    dimensions: tuple[int, ...]
    zone: str


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class InLeaves:
    """Leaf by leaf of a tree, inside a leaf part by part, inside a part by z-order."""

    tree: Tree
    halves: Halves
    inside: OnCurve


Path = InOrder | OnCurve | AsHudi | InLeaves


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Layout:
    """``columns`` in the order declared, the way through them, and where files begin on it."""

    columns: tuple[str, ...]
    path: Path
    cuts: Cuts

    @property
    def files(self) -> int:
        """How many files; fewer than asked for where rows cannot be told apart."""
        return self.cuts.count + 1

    @property
    def needs_ties(self) -> bool:
        """Whether rows of the same values go to different files, by their ties."""
        in_tree = isinstance(self.path, InLeaves) and self.path.tree.needs_ties
        return in_tree or self.cuts.needs_ties


def sample_rows(files: int) -> int:
    """How many rows a sample needs: with a thousand a file, files differ by a few percent."""
    return max(100_000, 2000 * files)


def fit(  # noqa: PLR0913 - what a layout depends on
    sample: pa.Table,
    columns: Sequence[str],
    *,
    files: int,
    curve: Curve = DEFAULT,
    mapping: Mapping = "rank",
    queries: Sequence[str] = (),
    ties: Lane | None = None,
    sizes: NDArray[np.float64] | None = None,
    places: Sequence[int] | None = None,
    zone: str = "UTC",
) -> Layout:
    """A layout of so many files of the same bytes, for rows of which ``sample`` are some.

    ``queries`` are SQL predicates (only the kd-tree heeds them). ``ties`` are 64 random bits a row
    and part rows that are alike; ``sizes`` are bytes a row, where rows differ. ``places`` of the
    columns in the file and the session's ``zone`` are for mapping ``direct``, which changes
    z-order and Hilbert alone. Raises UnsupportedError for columns that have no order, and for what
    a mapping cannot do.
    """
    if files > MOST_FILES:
        raise UnsupportedError(f"a layout has at most {MOST_FILES} files, not {files}")
    if curve == "kd-tree" and mapping == "direct":
        raise UnsupportedError("a kd-tree splits ranks: declare mapping rank")
    if curve in ("z-order", "hilbert") and mapping == "direct" and len(columns) > 1:
        dimensions = direct.dimensions(places or range(len(columns)))
        path: Path = AsHudi(curve=curve, dimensions=dimensions, zone=zone)
        return _cut(sample, columns, path, files, ties, sizes)
    seen = [sampled(sample.column(name), name) for name in columns]
    match curve:
        case "linear":
            path = InOrder(
                kinds=tuple(one.column.type for one in seen), lanes=tuple(map(_told_apart, seen))
            )
        case "z-order" | "hilbert":
            path = _on_curve(seen, curve, min(max(64 // len(seen), 8), 12))
        case "kd-tree":
            boxes = boxes_among(queries, seen)
            tree = grow(seen, files, ties=ties, sizes=sizes, boxes=boxes)
            path = _in_leaves(sample, seen, tree, boxes, ties)
            leaf = leaf_cuts(tree.leaves, _LEAF)
            return Layout(columns=tuple(columns), path=path, cuts=leaf)
        case _:
            assert_never(curve)
    return _cut(sample, columns, path, files, ties, sizes)


def _cut(
    sample: pa.Table,
    columns: Sequence[str],
    path: Path,
    files: int,
    ties: Lane | None,
    sizes: NDArray[np.float64] | None,
) -> Layout:
    """The layout whose files have the same bytes on the way."""
    uncut = Layout(columns=tuple(columns), path=path, cuts=leaf_cuts(1, 0))
    found = cuts(keys(uncut, sample), files, ties=ties, sizes=sizes)
    return Layout(columns=tuple(columns), path=path, cuts=found)


def _in_leaves(
    sample: pa.Table,
    seen: Sequence[Sampled],
    tree: Tree,
    boxes: Boxes | None,
    ties: Lane | None,
) -> InLeaves:
    """The way inside the leaves of a tree."""
    columns = [sample.column(one.name) for one in seen]
    inside = _on_curve(seen[:_INSIDE], "z-order", min(_PART // min(len(seen), _INSIDE), 12))
    halves = halved(
        leaf_of(tree, columns, ties),
        _ranks(inside, columns),
        tree.leaves,
        np.ones(len(inside.rulers)) if boxes is None else boxes.bound()[: len(inside.rulers)],
    )
    return InLeaves(tree=tree, halves=halves, inside=inside)


def _told_apart(seen: Sampled) -> int:
    """How many lanes a column has; of text, those that tell its sampled values apart."""
    if not is_text(seen.column.type):
        return len(fixed(seen.column[:0], seen.name))
    return min(len(marks_of(seen, np.arange(len(seen.first)))) - 1, _LONGEST)


def _on_curve(seen: Sequence[Sampled], curve: Literal["z-order", "hilbert"], bits: int) -> OnCurve:
    return OnCurve(curve=curve, rulers=tuple(quantile_ruler(s, bits) for s in seen), bits=bits)


def keys(layout: Layout, batch: pa.Table | pa.RecordBatch, *, ties: Lane | None = None) -> Lane:
    """The key of each row: lanes by rows, the most significant first.

    ``ties`` are asked for where ``layout.needs_ties``.
    """
    columns = [batch.column(name) for name in layout.columns]
    path = layout.path
    match path:
        case InOrder():
            return _in_order_keys(path, layout.columns, columns)
        case OnCurve():
            return _curve_keys(path, columns)
        case AsHudi():
            first = [columns[nth] for nth in path.dimensions]
            names = [layout.columns[nth] for nth in path.dimensions]
            along = direct.z_order if path.curve == "z-order" else direct.hilbert_order
            return along(first, names, path.zone)
        case InLeaves():
            leaf, found = leaf_of(path.tree, columns, ties), _ranks(path.inside, columns)
            key = interleaved(found, path.inside.bits)
            key |= part_of(path.halves, leaf, found) << np.uint64(_PART)
            key |= leaf.astype(np.uint64) << np.uint64(_LEAF)
            return key
        case _:
            assert_never(path)


def _ranks(path: OnCurve, columns: Sequence[Any]) -> list[Ranks]:
    """Of the columns that the path goes through: inside a leaf, of the first ones alone."""
    return [ranks(ruler, column) for ruler, column in zip(path.rulers, columns, strict=False)]


def _curve_keys(path: OnCurve, columns: Sequence[Any]) -> Lane:
    found = _ranks(path, columns)
    return interleaved(found, path.bits) if path.curve == "z-order" else hilbert(found, path.bits)


def _in_order_keys(path: InOrder, names: Sequence[str], columns: Sequence[Any]) -> Lane:
    found: list[Lane] = []
    for kind, count, name, column in zip(path.kinds, path.lanes, names, columns, strict=True):
        own = plain(column if column.type == kind else column.cast(kind))
        lane_of = lanes_of(own, name, count + 1)  # one more is the length of text
        lanes = np.stack([lane_of(depth, None) for depth in range(count)])
        lanes[1:, lanes[0] == _TOP] = _TOP
        lanes[0] = np.minimum(lanes[0], _TOP - np.uint64(1))
        lanes[:, is_null(own)] = _TOP
        found.extend(lanes)
    return np.stack(found)


def files(layout: Layout, key: Lane, *, ties: Lane | None = None) -> NDArray[np.int32]:
    """The file of each row, from 0 on, by its key; ``ties`` as for :func:`keys`."""
    return file_of(layout.cuts, key, ties)


def order(key: Lane) -> NDArray[np.int64]:
    """The rows in the order of their keys; rows of one key stay in the order they are in."""
    return ordered_rows(list(key))


def row_groups(layout: Layout, key: Lane, count: int) -> NDArray[np.int64]:
    """Where row groups of a file begin, of the rows in order, and where the last one ends.

    They have the same number of rows, or up to a quarter more or less where that lets one begin
    with a part of a leaf: its statistics then are those of few parts.
    """
    rows = key.shape[1]
    starts: NDArray[np.int64] = np.arange(count + 1) * rows // max(count, 1)
    if not isinstance(layout.path, InLeaves) or not rows:
        return starts
    part = key[0] >> np.uint64(_PART)
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
