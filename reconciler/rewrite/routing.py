"""From the rows of a part to runs for the new files of its group: what a map task does."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from reconciler.curves.lanes import Lane
from reconciler.curves.layout import Layout, files, keys
from reconciler.curves.sampled import ordered_rows
from reconciler.errors import FormatError, UnsupportedError
from reconciler.hudi.arrow import integers
from reconciler.merge.calendar import PROLEPTIC, UNSAID, Calendar, in_calendar
from reconciler.merge.slice import Source
from reconciler.rewrite.model import Rewrite, Tally
from reconciler.rewrite.parts import Part
from reconciler.rewrite.reading import Columns, tally_of
from reconciler.rewrite.runs import Counted, Run, joined

#: bytes of Arrow's memory that are gathered before they are cut into runs
GATHERED: Final = 24 * 1024 * 1024


def runs_of(
    part: Part, work: Rewrite, layout: Layout | None, source: Source, *, gathered: int = GATHERED
) -> Iterator[Run]:
    """The rows of a part as runs, the tally of all of them in the last one.

    ``layout``: of its group, None where rows stay as they come. Memory: three times ``gathered``,
    and what ``read_slice`` needs. Raises as it does.
    """
    columns = Columns.of(work, part.group)
    routing = _Routing(part=part, columns=columns, layout=layout)
    batches: Iterable[Any] = columns.read(part, source, routing.hear)
    if layout is None and part.files.base is None:
        batches = list(batches)  # merged log records are in memory as it is
        routing.expected = sum(map(len, batches))
    for rows in batches:
        routing.take(rows)
        if routing.size >= gathered:
            yield from routing.cut()
    yield from routing.cut()
    routing.check()
    yield Run(part=part.number, number=routing.number, file=0, tally=routing.tally)


@dataclass(slots=True, kw_only=True)
class _Routing:
    """What has been read of a part and is not yet cut."""

    part: Part
    columns: Columns
    layout: Layout | None
    size: int = 0
    number: int = 0
    tally: Tally = Tally()  # noqa: RUF009 (frozen)
    _rows: list[Any] = field(default_factory=list)
    _lanes: list[Lane] = field(default_factory=list)
    _files: list[NDArray[np.int32]] = field(default_factory=list)
    _counted: Counted = "none"
    _span: tuple[float, float] | None = None
    #: rows that this part has, as far as known before they are read
    expected: int = 0

    def hear(self, footer: Any) -> None:
        """What the base file's footer says."""
        unsaid = Calendar.of(footer.metadata).kind == "unsaid"
        self._counted = "unsaid" if unsaid else "proleptic"
        groups = self.part.share.groups(footer)
        self._span = self.part.span(footer)
        self.expected = sum(footer.row_group(group).num_rows for group in groups)

    def take(self, rows: Any) -> None:
        if self._counted == "unsaid" and _has_old_dates(rows):
            self._counted = "old"
        hashes = self.columns.hashes(rows)
        if self.layout is None:
            file, lanes = self._as_they_come(len(rows))
        else:
            by = self.columns.by_order(rows, self.part.group)
            ties = hashes if self.layout.needs_ties else None
            lanes = keys(self.layout, by, ties=ties)
            file = files(self.layout, lanes, ties=ties)
        self.tally = self.tally.plus(tally_of(hashes))
        self._rows.append(rows)
        self._lanes.append(lanes)
        self._files.append(file)
        self.size += rows.nbytes

    def check(self) -> None:
        """Raises FormatError when base files without logs gave other rows than their footers say.

        What is written is compared with what was read: a row that was not is seen here alone.
        """
        files, rows = self.part.files, self.tally.rows
        if files.base is not None and not files.logs and rows != self.expected:
            raise FormatError(
                files.base, f"its footer says {self.expected} rows, and {rows} were read"
            )

    def _as_they_come(self, count: int) -> tuple[NDArray[np.int32], Lane]:
        """By where a row lies among the bytes of the group; its key is where it comes from."""
        part, outputs = self.part, self.part.group.outputs
        at = self.tally.rows + np.arange(count)
        share = (at + 0.5) / max(self.expected, 1)
        begin, end = self._span or part.span(None)
        place = begin + np.minimum(share, 1.0) * (end - begin)
        file = np.minimum((place * outputs).astype(np.int32), outputs - 1)
        first = np.uint64(part.number) << np.uint64(40)
        return file, (first + at.astype(np.uint64))[np.newaxis]

    def cut(self) -> Iterator[Run]:
        """What was gathered, a run for each file that it has rows of."""
        if not self._rows:
            return
        table = pa.Table.from_batches(self._rows).combine_chunks()
        self._rows.clear()
        (rows,) = table.to_batches()
        del table
        file = np.concatenate(self._files)
        lanes = np.concatenate(self._lanes, axis=1)
        self._files.clear()
        self._lanes.clear()
        order = ordered_rows([file.astype(np.uint64)])
        ends = np.cumsum(np.bincount(file))
        rows = rows.take(integers(order))
        lanes = lanes[:, order]
        start = 0
        for number, end in enumerate(ends.tolist()):
            if end > start:
                some = rows.slice(start, end - start)
                yield Run(
                    part=self.part.number,
                    number=self.number,
                    file=number,
                    size=max(1, some.nbytes + lanes[:, start:end].nbytes),
                    counted=self._counted,
                    data=joined(some, lanes[:, start:end]),
                )
            start = end
        self.number += 1
        self.size = 0


def _has_old_dates(rows: Any) -> bool:
    """Whether it matters which calendar the dates are counted in."""
    try:
        in_calendar(rows, UNSAID, PROLEPTIC, "")
    except UnsupportedError:
        return True
    return False
