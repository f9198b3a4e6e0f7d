"""Layouts of sampled rows as the rewrite will fit its own, and the files that they make; pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final, cast

import numpy as np
from numpy.typing import NDArray

from reconciler.curves.drawn import mixed, spread
from reconciler.curves.lanes import Lane
from reconciler.curves.layout import Curve, Layout, files, fit, keys, order, sample_rows
from reconciler.curves.layout import Mapping as Way
from reconciler.hudi.arrow import integers
from reconciler.planners.drawn import Drawn, Group
from reconciler.planners.regrown import Growth
from reconciler.sizing.estimate import RecordSize
from reconciler.state.foresight import Foresight
from reconciler.state.layout import Layout as Declared

#: what the rewrite does: bytes of a part of it, and the most of a file
_PIECE: Final = 64 * 1024 * 1024
_MOST: Final = 1.15
#: a file's footer that takes more of it than this does not get less by making more files
_MOST_FOOTER: Final = 0.5
_END: Final = 10_000
#: layouts that are tried where the rewrite's own sample is not known
TRIES: Final = 3

#: of so few rows all are in every try
_FEW: Final = 100

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Ask:
    """What all groups have in common. ``queries``: predicates; ``target``: bytes of a file."""

    queries: tuple[str, ...]
    foresight: Foresight
    layout: Declared
    sizes: RecordSize
    target: int


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Made:
    """The new file of each row, int64, and the bytes of each file, 0 of one without rows."""

    file: NDArray[np.int64]
    size: Floats


def layouts(ask: Ask, group: Group, drawn: Drawn) -> Iterator[Layout | None]:
    """The rewrite's own layout where its sample is known, else some that it may come to."""
    if not ask.layout.columns:
        yield None
        return
    if drawn.is_known and bool((group.sizes <= _PIECE).all()):
        yield _fitted(ask, group, drawn, *_as_rewritten(group, drawn))
        return
    wanted, count = sample_rows(group.outputs), len(drawn.rows)
    third = mixed(count, 0) % np.uint64(TRIES)
    for nth in range(TRIES):
        # each of rows that no other has: tries that share some would come out too alike
        rows = np.flatnonzero(third == nth) if count > _FEW else np.arange(count)
        if len(rows) > wanted:
            rows = rows[spread(len(rows), wanted, nth)]
        yield _fitted(ask, group, drawn, rows, drawn.weight[rows], mixed(len(rows), nth))


def _as_rewritten(group: Group, drawn: Drawn) -> tuple[NDArray[np.int64], Floats, Any]:
    """The rows that the rewrite fits its layout to, their bytes and their ties.

    Source: rewrite.sampling, of parts that are whole files.
    """
    found = np.repeat(np.arange(len(drawn.times)), drawn.times)
    sizes = np.maximum(group.sizes, 1) / np.maximum(drawn.fitted, 1)
    given = int((drawn.fitted > 0).sum())
    return found, np.repeat(sizes, drawn.fitted), mixed(len(found), given)


def _fitted(
    ask: Ask, group: Group, drawn: Drawn, rows: NDArray[np.int64], sizes: Floats, ties: Any
) -> Layout:
    columns = [name for name in ask.layout.columns if name in drawn.rows.schema.names]
    names = ask.foresight.schema.names
    picked = drawn.rows.select(columns).take(integers(rows)).combine_chunks()
    return fit(
        picked,
        columns,
        files=group.outputs,
        curve=cast("Curve", ask.layout.curve or "kd-tree"),
        mapping=cast("Way", ask.layout.mapping or "rank"),
        queries=ask.queries,
        ties=ties,
        sizes=sizes,
        places=[names.index(name.partition(".")[0]) for name in columns] or None,
        zone=ask.foresight.zone,
    )


class Cutting:
    """A layout's files before and after those that are too big are split."""

    def __init__(
        self, ask: Ask, group: Group, drawn: Drawn, layout: Layout | None, grown: Growth | None
    ) -> None:
        self._ask, self._drawn, self._outputs = ask, drawn, group.outputs
        self._fixed = ask.sizes.fixed if grown is None else ask.sizes.fixed + grown.of_footer
        self._lanes: Lane | None = None
        if layout is None:
            place = np.minimum(drawn.place * group.outputs, group.outputs - 1)
            self._file = place.astype(np.int64)
        else:
            ties = mixed(len(drawn.rows), TRIES) if layout.needs_ties else None
            self._lanes = keys(layout, drawn.rows.select(list(layout.columns)), ties=ties)
            self._file = files(layout, self._lanes, ties=ties).astype(np.int64)
        each = drawn.weight if grown is None else drawn.weight * grown.of_file[self._file]
        self._each = each / drawn.weight.sum() * group.data
        self._size = self._fixed + np.bincount(self._file, self._each, group.outputs)

    def parts(self, times: float = 1.0) -> NDArray[np.int64]:
        """How many files each becomes, its bytes being so many times what is expected."""
        target, size = self._ask.target, self._size * times
        found = np.ones(self._outputs, np.int64)
        if max(self._fixed, _END) > _MOST_FOOTER * target:
            return found
        room = max(target - self._fixed, 1)
        needed = np.maximum(2, np.round((size - self._fixed) / room + 0.45)).astype(np.int64)
        found = np.where(size > _MOST * target, needed, found)
        rows = np.bincount(self._file, minlength=self._outputs)
        return np.minimum(found, np.maximum(rows, 1))

    def made(self, parts: NDArray[np.int64]) -> Made:
        """The files when each has become so many."""
        file, count = self._file.copy(), self._outputs
        for big in np.flatnonzero(parts > 1).tolist():
            rows = np.flatnonzero(file == big)
            if self._lanes is not None:
                rows = rows[order(self._lanes[:, rows])]
            part = np.arange(len(rows)) * parts[big] // len(rows)
            file[rows[part > 0]] = count + part[part > 0] - 1
            count += int(parts[big]) - 1
        data = np.bincount(file, self._each, count)
        return Made(file=file, size=np.where(data > 0, self._fixed + data, 0.0))
