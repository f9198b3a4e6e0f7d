"""A rewrite in this process, one step after the other: for tests, crash drills and small tables."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from reconciler.curves.layout import Layout
from reconciler.errors import ReconcilerError
from reconciler.exchange.shelves import Kept, Shelf, pieces_of
from reconciler.rewrite.gathering import SORTED, Gathering
from reconciler.rewrite.model import Group, Rewrite, Rewritten, Tally
from reconciler.rewrite.output import Output, Writing
from reconciler.rewrite.parts import PIECE, Part, parts_of
from reconciler.rewrite.routing import GATHERED, runs_of
from reconciler.rewrite.runs import Run
from reconciler.rewrite.sampling import fitted, sample_of
from reconciler.storage.api import Storage, StorageRef


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """Bytes that are handled at a time.

    ``piece``: of a base file that is one part; ``gathered``: of rows in Arrow's memory that are cut
    into runs; ``sorted``: of those that are sorted.
    """

    piece: int = PIECE
    gathered: int = GATHERED
    sorted: int = SORTED


@dataclass(frozen=True, slots=True)
class InProcess:
    """Reads and writes through the storage that ``open_storage`` gives; runs wait on local disk."""

    open_storage: Callable[[StorageRef], Storage]
    bounds: Bounds = Bounds()

    def rewrite(
        self,
        ref: StorageRef,
        work: Rewrite,
        groups: Sequence[Group],
        *,
        progress: Callable[[int], None],
    ) -> list[Rewritten]:
        storage = self.open_storage(ref)
        found = []
        for group in groups:
            with tempfile.TemporaryDirectory(prefix="reconciler-") as folder:
                found.append(self._group(storage, work, group, Path(folder), progress))
        return found

    def _group(
        self,
        storage: Storage,
        work: Rewrite,
        group: Group,
        folder: Path,
        progress: Callable[[int], None],
    ) -> Rewritten:
        parts = parts_of(group, piece=self.bounds.piece)
        layout = _layout(work, group, parts, storage)
        shelves = []
        for part in parts:
            with Shelf(str(folder)) as shelf:
                for run in runs_of(part, work, layout, storage, gathered=self.bounds.gathered):
                    shelf.put(run.file, run)
                shelves.append(shelf.kept())
            progress(part.progress)
        outputs = [
            self._output(storage, work, group, layout, file, (folder, shelves))
            for file in range(group.outputs)
        ]
        return rewritten(group, outputs, len(parts))

    def _output(
        self,
        storage: Storage,
        work: Rewrite,
        group: Group,
        layout: Layout | None,
        file: int,
        kept: tuple[Path, Sequence[Kept]],
    ) -> Output:
        folder, shelves = kept
        with tempfile.TemporaryDirectory(dir=folder) as own:
            gathering = Gathering(layout, Path(own), most=self.bounds.sorted)
            for data in pieces_of(shelves, file):
                gathering.add(Run.unpacked(data))
            writing = Writing(work=work, group=group, file=file, attempt=0, folder=Path(own))
            return writing.write(gathering, storage)


def _layout(work: Rewrite, group: Group, parts: Sequence[Part], storage: Storage) -> Layout | None:
    if not work.ordering.columns:
        return None
    samples = [sample for part in parts if (sample := sample_of(part, work, storage))]
    return fitted(work, group, samples) if samples else None


def rewritten(group: Group, outputs: Sequence[Output], parts: int) -> Rewritten:
    """A group's outputs together, in the order of their rows.

    Raises ReconcilerError unless all of so many ``parts`` have come to them.
    """
    told = sum(one.parts for one in outputs)
    if told != parts:
        raise ReconcilerError(
            f"partition {group.partition!r}: of {parts} parts that were read {told} have arrived "
            "where they are written; run apply again"
        )
    read, written = Tally(), Tally()
    for one in outputs:
        read, written = read.plus(one.read), written.plus(one.written)
    in_order = sorted(outputs, key=lambda one: one.file)
    return Rewritten(
        number=group.number,
        files=tuple(file for one in in_order for file in one.files),
        read=read,
        written=written,
        splits=sum(one.splits for one in outputs),
    )
