"""A rewrite in miniature: sampled rows of a group mapped and cut into files as it will; pure.

The bounds of a file's sampled rows are narrower than those of all its rows. How fast they widen is
seen in the sample: of its halves and quarters queries read fewer files than of all of it, and that
growth goes on, slower from doubling to doubling, until all rows are counted.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, cast

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from reconciler.curves.drawn import mixed, spread
from reconciler.curves.layout import Curve, Layout, files, fit, keys, order, sample_rows
from reconciler.curves.layout import Mapping as Way
from reconciler.errors import UnsupportedError
from reconciler.hudi.arrow import integers
from reconciler.planners.cells import QUARTERS, Cells
from reconciler.planners.drawn import Drawn, Group
from reconciler.planners.reads import reads, with_values
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
_TRIES: Final = 3
#: between these the growth of one doubling is of that before
_SLOWER: Final = (0.0, 0.95)
#: sizes of files come from an estimate: so much of all bytes they may be off, and so much of those
#: of columns that order the rows, which take less where like values lie together
_SIZES: Final = 0.1
_ORDERED: Final = 0.25
#: half-width of an error bar in standard deviations
_WIDE: Final = 2.0

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
class Counted:
    """What queries read of a group's files, by layout tried, of quarters, halves and all rows.

    ``files``, ``bytes``: float64, (layouts, 3, queries). ``share``: of the rows that were sampled.
    """

    files: Floats
    bytes: Floats
    share: float


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
        layouts = list(_layouts(ask, group, drawn))
        cells = Cells.of(drawn.rows, ask.queries)
        found = [_read(ask, group, drawn, cells, layout) for layout in layouts]
    except (UnsupportedError, pa.ArrowException, OverflowError):
        return None
    return Counted(
        files=np.stack([one for one, _ in found]),
        bytes=np.stack([one for _, one in found]),
        share=min(1.0, len(drawn.rows) / max(group.rows, 1)) if not drawn.is_all else 1.0,
    )


def expected(groups: Sequence[Counted], outputs: Sequence[tuple[int, float]]) -> list[Expected]:
    """What is to be expected of each group; ``outputs``: its files and their bytes."""
    found = []
    slower = [_slower([g.files for g in groups]), _slower([g.bytes for g in groups])]
    for group, most in zip(groups, outputs, strict=True):
        doublings = max(-math.log2(max(group.share, 1e-9)), 0.0)
        both = [
            _grown(counts, doublings, rate, limit)
            for counts, rate, limit in zip((group.files, group.bytes), slower, most, strict=True)
        ]
        (files_, of_files), (bytes_, of_bytes) = both
        found.append(Expected(files=files_, bytes=bytes_, of_files=of_files, of_bytes=of_bytes))
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


# --- layouts -------------------------------------------------------------------------------------


def _layouts(ask: Ask, group: Group, drawn: Drawn) -> Iterator[Layout | None]:
    """The rewrite's own layout where its sample is known, else some that it may come to."""
    if not ask.layout.columns:
        yield None
        return
    if drawn.is_known and bool((group.sizes <= _PIECE).all()):
        yield _fitted(ask, group, drawn, *_as_rewritten(group, drawn))
        return
    wanted, count = sample_rows(group.outputs), len(drawn.rows)
    for nth in range(_TRIES):
        rows = np.flatnonzero(mixed(count, nth) % np.uint64(_TRIES) != nth)
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


def _cut(
    ask: Ask, group: Group, drawn: Drawn, layout: Layout | None
) -> tuple[NDArray[np.int64], Floats]:
    """The new file of each row, and the bytes of each file."""
    if layout is None:
        file = np.minimum(drawn.place * group.outputs, group.outputs - 1).astype(np.int64)
        lanes = integers(np.zeros(0, np.int64))
    else:
        ties = mixed(len(drawn.rows), _TRIES) if layout.needs_ties else None
        lanes = keys(layout, drawn.rows.select(list(layout.columns)), ties=ties)
        file = files(layout, lanes, ties=ties).astype(np.int64)
    total = drawn.weight.sum()
    data = np.bincount(file, drawn.weight, group.outputs) / total * group.data
    fixed, count = ask.sizes.fixed, group.outputs
    most = _MOST * ask.target
    if max(fixed, _END) > _MOST_FOOTER * ask.target:
        most = np.inf
    for big in np.flatnonzero(fixed + data > most).tolist():
        room = max(ask.target - fixed, 1)
        parts = max(2, round(data[big] / room + 0.45))
        rows = np.flatnonzero(file == big)
        if layout is not None:
            rows = rows[order(lanes[:, rows])]
        parts = min(parts, max(len(rows), 1))
        part = np.arange(len(rows)) * parts // max(len(rows), 1)
        file[rows[part > 0]] = count + part[part > 0] - 1
        count += parts - 1
    data = np.bincount(file, drawn.weight, count) / total * group.data
    return file, np.where(data > 0, fixed + data, 0.0)


# --- what is read of the files -------------------------------------------------------------------


def _read(
    ask: Ask, group: Group, drawn: Drawn, cells: Cells, layout: Layout | None
) -> tuple[Floats, Floats]:
    """Files and bytes that queries read of quarters, halves and all of the rows: (3, queries)."""
    file, size = _cut(ask, group, drawn, layout)
    count = len(size)
    index, has_rows = cells.index(file, count)
    at = integers(np.full(len(index), group.partition))
    said = {name: column.take(at) for name, column in ask.foresight.values.items()}
    found = reads(
        ask.queries,
        with_values(index, said),
        np.zeros(len(index), np.int64),
        schema=ask.foresight.schema,
        zone=ask.foresight.zone,
    )
    kept = (found.kept & has_rows).reshape(len(ask.queries), 2 * QUARTERS - 1, count)
    files_, bytes_ = kept.sum(axis=2).astype(np.float64), kept @ size
    return _means(files_), _means(bytes_)


def _means(cells: Floats) -> Floats:
    """Of quarters, halves and all, by query."""
    half = QUARTERS + 2
    return np.stack(
        [cells[:, :QUARTERS].mean(axis=1), cells[:, QUARTERS:half].mean(axis=1), cells[:, half]]
    )
