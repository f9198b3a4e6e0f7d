"""Draw which values of the clustering columns each base file covers, before and after; pure.

A bar is a file: it reaches from its least to its greatest value. Files that share a value lie below
each other, so the depth of the drawing is the overlap. What a clustering will write is estimated:
rows are assumed to be even between the bounds of the files that they are in now.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from reconciler.arrays import Floats, Integers, to_arrow
from reconciler.hudi.files.table_files import find_rows
from reconciler.lazy_dataclass import dataclass
from reconciler.planners.column_ranges import ColumnRanges
from reconciler.planners.newest_slices import find_candidates
from reconciler.plans.model import ClusterStep, TablePlan
from reconciler.render import words
from reconciler.render.html.layout_bounds import Bounds, find_bounds
from reconciler.render.html.model import Column, Drawing, Label, Paint, Rect, Rows
from reconciler.spec.model import Clustering
from reconciler.state.model import TableState

_MAX_PARTITIONS: Final = 2
_MAX_FILES: Final = 240
#: height of all bars below each other, and of one of them, pixels
_DEPTH: Final = 132.0
_MAX_BAR: Final = 9.0
_MIN_BAR: Final = 1.2
#: height from which bars have an edge
_LEAST_EDGED: Final = 3.0
#: points at which the rows of a group are counted
_POINTS: Final = 512
#: least width of a bar, per cent
_LEAST: Final = 0.25


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Spans:
    """Files on one column: float64 ``lower`` and ``upper``, and whether the file is a new one."""

    lower: Floats
    upper: Floats
    is_new: Any

    def __len__(self) -> int:
        return len(self.lower)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Group:
    """A group that is rewritten: rows of its base files in the table's, and files it becomes."""

    members: Integers
    outputs: int


def draw_layouts(
    state: TableState, plan: TablePlan, clustering: Clustering | None
) -> tuple[Drawing, ...]:
    """Return a drawing for each clustering column of the partitions that matter most.

    Partitions that are rewritten come first, then those of most files. Empty without statistics.
    """
    if clustering is None or not len(state.files):
        return ()
    bounds = find_bounds(state, clustering.columns)
    if not bounds:
        return ()
    facts = state.clustering_facts
    rows = state.files.size if facts is None else facts.rows
    ranges = ColumnRanges.build(tuple(bounds.values()), rows)
    candidates = find_candidates(state)
    bases = candidates.base_row[candidates.has_base]
    bases = bases[ranges.is_known[bases]]
    groups = _find_groups(state, plan)
    drawings: list[Drawing | None] = []
    for partition in _choose_partitions(state, bases, groups):
        mine = bases[state.files.partition[bases] == partition]
        inside = [one for one in groups if state.files.partition[one.members[0]] == partition]
        for nth, (column, pair) in enumerate(bounds.items()):
            is_first = column == clustering.columns[0]
            picture = _ColumnPicture(ranges, pair, nth, clustering, is_first=is_first)
            folder = state.files.partitions[partition]
            title = f"{column} in {folder}" if folder else column
            drawings.append(picture.draw(f"layout-{len(drawings)}", title, mine, inside))
    return tuple(one for one in drawings if one is not None)


def _find_groups(state: TableState, plan: TablePlan) -> list[_Group]:
    """Return the groups of the plan's clustering with the rows of their base files."""
    found = []
    for step in (one for one in plan.steps if isinstance(one, ClusterStep)):
        groups = step.groups
        sizes = np.diff(groups.starts)
        codes = np.repeat(np.arange(len(groups)), sizes)
        folders = groups.partition.cast(pa.string()).take(to_arrow(codes))
        keys = pc.binary_join_element_wise(folders, groups.base, "/")
        rows = find_rows(state.files, keys)
        for nth, outputs in enumerate(groups.outputs.tolist()):
            members = rows[groups.starts[nth] : groups.starts[nth + 1]]
            if len(members := members[members >= 0]):
                found.append(_Group(members=members, outputs=outputs))
    return found


def _choose_partitions(state: TableState, bases: Integers, groups: Sequence[_Group]) -> list[int]:
    count = len(state.files.partitions)
    files = np.bincount(state.files.partition[bases], minlength=count)
    rewritten = np.zeros(count, np.int64)
    for group in groups:
        rewritten[state.files.partition[group.members[0]]] += len(group.members)
    order = np.lexsort((np.arange(count), -files, -rewritten))
    return [place for place in order[:_MAX_PARTITIONS].tolist() if files[place] > 1]


class _ColumnPicture:
    """One clustering column: its scale, and what a clustering makes of a group."""

    def __init__(
        self,
        ranges: ColumnRanges,
        bounds: Bounds,
        nth: int,
        clustering: Clustering,
        *,
        is_first: bool,
    ) -> None:
        lower, upper = ranges.scales[0] if ranges.scales else (ranges.lower, ranges.upper)
        self.lower, self.upper, self.rows = lower[nth], upper[nth], ranges.rows
        self.bounds, self.is_first, self.clustering = bounds, is_first, clustering

    def draw(
        self, name: str, title: str, files: Integers, groups: Sequence[_Group]
    ) -> Drawing | None:
        files = files[~np.isnan(self.lower[files]) & ~np.isnan(self.upper[files])]
        if not len(files):
            return None
        is_old = np.zeros(len(files), np.bool_)
        before = _Spans(lower=self.lower[files], upper=self.upper[files], is_new=is_old)
        after = self._predict(files, groups)
        least, most = float(before.lower.min()), float(before.upper.max())
        rects: list[Rect] = []
        labels: list[Label] = []
        depth = _find_depth(before)
        height = 16.0
        summary = [f"today: {_describe_depth(before, depth)}"]
        labels.append(Label(x=0, y=10, text=f"Today: {_describe_depth(before, depth)}"))
        height += _stack(before, (least, most), height, "before", rects) + 8
        if after is not None:
            deep = _find_depth(after)
            text = f"after, estimated: {_describe_depth(after, deep)}"
            labels.append(Label(x=0, y=height + 10, text=words.capitalize(text)))
            height += 16 + _stack(after, (least, most), height + 16, "after", rects) + 8
            summary.append(text)
        labels += self._label_ends(files, height + 12)
        return Drawing(
            name=name,
            title=title,
            description=f"{'; '.join(summary)}.",
            height=height + 20,
            rects=tuple(rects),
            labels=tuple(labels),
            guides=(height,),
            rows=self._make_rows(title, files),
        )

    def _predict(self, files: Integers, groups: Sequence[_Group]) -> _Spans | None:
        """Return the files after the clustering; None if none of these is rewritten."""
        known = [one for one in groups if np.isin(one.members, files).any()]
        if not known:
            return None
        stays = files[~np.isin(files, np.concatenate([one.members for one in known]))]
        lower, upper = [self.lower[stays]], [self.upper[stays]]
        for group in known:
            ends = self._cut(group.members[np.isin(group.members, files)], self._parts(group))
            place = np.arange(group.outputs) % (len(ends) - 1)
            lower.append(ends[place])
            upper.append(ends[place + 1])
        is_new = np.arange(sum(map(len, lower))) >= len(stays)
        return _Spans(lower=np.concatenate(lower), upper=np.concatenate(upper), is_new=is_new)

    def _parts(self, group: _Group) -> int:
        """Return into how many parts a clustering divides the column's values."""
        columns = len(self.clustering.columns)
        if self.clustering.curve == "linear":
            return group.outputs if self.is_first else 1
        return int(max(round(group.outputs ** (1 / columns)), 1))

    def _cut(self, members: Integers, parts: int) -> Floats:
        """Return the ends of parts with equally many rows."""
        lower, upper = self.lower[members], self.upper[members]
        points = np.linspace(lower.min(), upper.max(), _POINTS)
        width = np.maximum(upper - lower, np.finfo(np.float64).tiny)
        share = np.clip((points[:, None] - lower) / width, 0.0, 1.0)
        counted = share @ np.maximum(self.rows[members], 1).astype(np.float64)
        wanted = np.linspace(0.0, counted[-1], parts + 1)
        ends: Floats = np.interp(wanted, counted, points)
        ends[0], ends[-1] = points[0], points[-1]
        return ends

    def _label_ends(self, files: Integers, y: float) -> Iterator[Label]:
        lowest = int(files[np.argmin(self.lower[files])])
        highest = int(files[np.argmax(self.upper[files])])
        yield Label(x=0, y=y, text=_format_bound(self.bounds[0][lowest]))
        yield Label(x=100, y=y, text=_format_bound(self.bounds[1][highest]), anchor="end")

    def _make_rows(self, title: str, files: Integers) -> Rows:
        ordered = files[np.lexsort((self.upper[files], self.lower[files]))]
        shown = _thin(ordered, _MAX_FILES)
        pairs = (
            (_format_bound(self.bounds[0][row]), _format_bound(self.bounds[1][row]))
            for row in shown.tolist()
        )
        note = ""
        if len(shown) < len(files):
            note = f"{words.format_number(len(shown))} of {words.format_count(len(files), 'file')}."
        columns = (Column(title="From"), Column(title="To"))
        return Rows(caption=f"Ranges of {title}", columns=columns, rows=tuple(pairs), note=note)


def _stack(
    spans: _Spans, ends: tuple[float, float], top: float, old: Paint, rects: list[Rect]
) -> float:
    """Add a bar for each file, those that overlap below each other; return the height of all."""
    order = _thin(np.lexsort((spans.upper, spans.lower)), _MAX_FILES)
    lanes = _assign_lanes(spans.lower[order], spans.upper[order])
    count = max(lanes, default=0) + 1
    step = min(max(_DEPTH / count, _MIN_BAR), _MAX_BAR)
    scale = 100 / (ends[1] - ends[0] or 1.0)
    for row, lane in zip(order.tolist(), lanes, strict=True):
        x = (float(spans.lower[row]) - ends[0]) * scale
        width = max((float(spans.upper[row]) - float(spans.lower[row])) * scale, _LEAST)
        rects.append(
            Rect(
                x=min(x, 100 - _LEAST),
                y=top + lane * step,
                width=width,
                height=max(step - (1.0 if step > 3 else 0.2), 0.8),  # noqa: PLR2004 (a gap)
                paint="after" if spans.is_new[row] else old,
                is_thin=step < _LEAST_EDGED,
            )
        )
    return count * step


def _thin(rows: Integers, limit: int) -> Integers:
    """Return at most so many of the rows, evenly."""
    if len(rows) <= limit:
        return rows
    return rows[np.linspace(0, len(rows) - 1, limit).astype(np.int64)]


def _assign_lanes(lower: Floats, upper: Floats) -> list[int]:
    """Return for spans by their lower end the first lane in which none overlaps.

    Spans that only touch share a lane.

    >>> _assign_lanes(np.array([0.0, 1.0, 2.0, 2.0]), np.array([2.0, 3.0, 4.0, 5.0]))
    [0, 1, 0, 2]
    """
    ends: list[tuple[float, int]] = []
    free: list[int] = []
    lanes: list[int] = []
    for start, end in zip(lower.tolist(), upper.tolist(), strict=True):
        while ends and ends[0][0] <= start:
            heapq.heappush(free, heapq.heappop(ends)[1])
        lane = heapq.heappop(free) if free else len(ends)
        lanes.append(lane)
        heapq.heappush(ends, (end, lane))
    return lanes


def _find_depth(spans: _Spans) -> int:
    """Return the greatest number of files that share a value, without those that only touch."""
    order = np.argsort(spans.lower, kind="stable")
    return max(_assign_lanes(spans.lower[order], spans.upper[order]), default=-1) + 1


def _describe_depth(spans: _Spans, depth: int) -> str:
    files = words.format_count(len(spans), "file")
    if len(spans) > _MAX_FILES:
        files = f"{files}, {_MAX_FILES} of them drawn"
    if depth <= 1:
        return files if len(spans) == 1 else f"{files} without overlap"
    shared = "all" if depth == len(spans) else f"up to {words.format_number(depth)}"
    return f"{files}, {shared} share a value"


def _format_bound(value: Any) -> str:
    plain = value.as_py()
    text = f"{plain:.6g}" if isinstance(plain, float) else str(plain)
    return text if len(text) <= 24 else f"{text[:23]}…"  # noqa: PLR2004 (room below the drawing)
