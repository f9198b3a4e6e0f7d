"""A write in this process, one task after the other: for tests, crash drills and small tables."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from reconciler.exchange.held import LocalItems
from reconciler.storage.api import Storage
from reconciler.writer.program import written
from reconciler.writer.request import Assigned, Engine, WriteDone, WriteWork


@dataclass(frozen=True, slots=True)
class InProcess:
    """Reads and writes through one storage; what waits between stages lies on the local disk.

    ``write`` takes batches of Arrow, in parts as the tasks of a cluster have them. ``places``: into
    how many parts they are spread.
    """

    storage: Storage
    places: int = 1

    def write(
        self,
        rows: Sequence[Sequence[Any]],
        work: WriteWork,
        *,
        assigned: Callable[[Assigned], None],
    ) -> WriteDone:
        with tempfile.TemporaryDirectory(prefix="reconciler-") as folder:
            bench = _Bench(self.storage, folder)
            engine = Engine(bench=bench, shared=_Here, places=self.places, searches=self.places)
            return written(LocalItems(rows, folder), work, engine, assigned=assigned)


@dataclass(frozen=True, slots=True)
class _Here:
    """A value of this process."""

    value: Any


@dataclass(frozen=True, slots=True)
class _Bench:
    storage: Storage
    above: str

    def open(self) -> Storage:
        return self.storage

    def attempt(self) -> int:
        return 0

    @contextmanager
    def folder(self) -> Iterator[Path]:
        with tempfile.TemporaryDirectory(dir=self.above) as folder:
            yield Path(folder)
