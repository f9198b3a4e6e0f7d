"""A rewrite spread over a Spark cluster: rows go from task to task as Arrow and unopened.

Map tasks are parts of slices, reduce tasks are new files. A task may be tried again or twice at
once: what Spark counts of it is one attempt's, and each attempt writes files of other names.
"""

from __future__ import annotations

import pickle
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from reconciler.cluster.spark import job, reporting, ship
from reconciler.exchange.held import Sent
from reconciler.exchange.spark import Exchange, Through, exchange_of
from reconciler.rewrite.gathering import Gathering
from reconciler.rewrite.local import Bounds, rewritten
from reconciler.rewrite.model import Group, Rewrite, Rewritten
from reconciler.rewrite.output import Output, Writing
from reconciler.rewrite.parts import Part, expected_bytes, parts_of, waves
from reconciler.rewrite.routing import runs_of
from reconciler.rewrite.runs import Run
from reconciler.rewrite.sampling import fitted, sample_of, unpacked
from reconciler.storage.api import Storage, StorageRef
from reconciler.storage.redaction import redacted

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: the pool of Arrow's that does not give memory back after every batch, only to ask for it again:
#: a fifth less CPU
_POOL: Final = ("ARROW_DEFAULT_MEMORY_POOL", "system")
#: of what is rewritten in one turn: its rows lie on the executors' disks as long as it takes,
_BYTES: Final = 1 << 40
#: its layouts are in the driver, some hundred kilobytes each,
_GROUPS: Final = 64
#: and so are its results, each with a bloom filter; or more of them, for all cores to have some
_OUTPUTS: Final = 500
_OUTPUTS_PER_SLOT: Final = 4


class SparkRewriter:
    """Runs on a session's executors; every task opens its own storage."""

    def __init__(
        self,
        session: SparkSession,
        bounds: Bounds | None = None,
        exchange: Exchange | None = None,
    ) -> None:
        self._context = session.sparkContext
        self._bounds = bounds or Bounds()
        self._exchange = exchange or exchange_of(self._context)

    def rewrite(
        self,
        ref: StorageRef,
        work: Rewrite,
        groups: Sequence[Group],
        *,
        progress: Callable[[int], None],
    ) -> list[Rewritten]:
        if not groups:
            return []
        ship(self._context)
        slots = self._context.defaultParallelism
        done = self._context.accumulator(0)
        told = _Told(progress, sum(group.bytes for group in groups))
        described = f"reconciler: cluster {len(groups)} groups of files of {ref.location}"
        found = []
        with (
            self._exchange(self._context) as through,  # ends when no task runs any more
            # the files of a group that is given up go by marker: none may come later
            job(self._context, described, lambda said: redacted(said, ref.secrets), alone=True),
            reporting(done, told),
            _pool(self._context),
        ):
            for wave in waves(groups, _BYTES, _GROUPS, max(_OUTPUTS, _OUTPUTS_PER_SLOT * slots)):
                found += _Wave(
                    self._context, ref, work, wave, self._bounds, done, through=through
                ).rewritten()
        told.rest()
        return found


@contextmanager
def _pool(context: Any) -> Iterator[None]:
    """Python workers that are started for this have it in their environment."""
    name, value = _POOL
    before = context.environment.get(name)
    context.environment[name] = before or value
    try:
        yield
    finally:
        if before is None:
            del context.environment[name]


class _Told:
    """Bytes read, never more than there are: Spark counts a stage that it runs again anew."""

    def __init__(self, progress: Callable[[int], None], total: int) -> None:
        self._progress, self._left = progress, total

    def __call__(self, count: int) -> None:
        count = min(count, self._left)
        self._left -= count
        if count:
            self._progress(count)

    def rest(self) -> None:
        self(self._left)


class _Wave:
    """Groups that are rewritten together."""

    def __init__(  # noqa: PLR0913 (what a rewrite has at hand)
        self,
        context: Any,
        ref: StorageRef,
        work: Rewrite,
        groups: Sequence[Group],
        bounds: Bounds,
        done: Any,
        *,
        through: Through,
    ) -> None:
        self._context, self._ref, self._bounds, self._done = context, ref, bounds, done
        self._through = through
        # biggest first, so that no core waits for one at the end
        self._groups = sorted(groups, key=expected_bytes, reverse=True)
        self._work = work
        parts = [part for group in self._groups for part in parts_of(group, piece=bounds.piece)]
        self._parts = sorted(parts, key=lambda part: part.progress, reverse=True)

    def rewritten(self) -> list[Rewritten]:
        work = self._context.broadcast(self._work)
        table = _Table(ref=self._ref, work=work, places=_Places.of(self._groups))
        layouts = self._context.broadcast(self._layouts(table))
        try:
            route = _Route(
                table=table, layouts=layouts, done=self._done, gathered=self._bounds.gathered
            )
            bare = [replace(group, slices=()) for group in self._groups]
            reduce = _Reduce(table=table, groups=bare, layouts=layouts, sorted=self._bounds.sorted)
            count = table.places.outputs
            outputs: list[Output] = self._through(self._source(), route, count, reduce)
        finally:
            layouts.unpersist()
            work.unpersist()
        counts = Counter(part.group.number for part in self._parts)
        return [
            rewritten(
                group,
                [one for one in outputs if one.group == group.number],
                counts[group.number],
            )
            for group in self._groups
        ]

    def _layouts(self, table: _Table) -> dict[int, bytes]:
        """The layout of each group that has rows, by its number, pickled."""
        if not self._work.ordering.columns:
            return {}
        bare = [replace(group, slices=()) for group in self._groups]
        count = len(self._groups)
        return dict(self._through(self._source(), _Sampling(table), count, _Fit(table, bare)))

    def _source(self) -> Any:
        return self._context.parallelize(self._parts, len(self._parts))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Places:
    """Which partition a group, and one of its outputs, has in an exchange."""

    group: dict[int, int]
    first: list[int]
    outputs: int

    @classmethod
    def of(cls, groups: Sequence[Group]) -> _Places:
        first, at = [], 0
        for group in groups:
            first.append(at)
            at += group.outputs
        return cls(
            group={group.number: place for place, group in enumerate(groups)},
            first=first,
            outputs=at,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Table:
    """What every task is told. Disks may hold ``work``, a broadcast; secrets are in ``ref``."""

    ref: StorageRef
    work: Any
    places: _Places

    def open(self) -> Storage:
        import pyarrow as pa  # noqa: PLC0415 (on the worker)

        from reconciler.storage.open import open_storage  # noqa: PLC0415

        pa.set_cpu_count(1)  # a task has one core
        return open_storage(self.ref)


@dataclass(frozen=True, slots=True)
class _Sampling:
    """The rows of parts that layouts are fitted to, sent to their groups."""

    table: _Table

    def __call__(self, parts: Iterable[Part]) -> Iterator[Sent]:
        storage, work = self.table.open(), self.table.work.value
        for part in parts:
            sample = sample_of(part, work, storage)
            if sample is not None:
                yield self.table.places.group[part.group.number], sample


@dataclass(frozen=True, slots=True)
class _Fit:
    """The layout of a group, by its number."""

    table: _Table
    groups: Sequence[Group]

    def __call__(self, index: int, samples: Iterable[Any]) -> Iterator[tuple[int, bytes]]:
        found = [unpacked(sample) for sample in samples]
        if found:
            group = self.groups[index]
            layout = fitted(self.table.work.value, group, found)
            yield group.number, pickle.dumps(layout)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Route:
    """The rows of parts, sent to their new files."""

    table: _Table
    layouts: Any
    done: Any
    gathered: int

    def __call__(self, parts: Iterable[Part]) -> Iterator[Sent]:
        storage, work, places = self.table.open(), self.table.work.value, self.table.places
        for part in parts:
            number = part.group.number
            first = places.first[places.group[number]]
            layout = _layout(self.layouts, number)
            for run in runs_of(part, work, layout, storage, gathered=self.gathered):
                yield first + run.file, run
            self.done.add(part.progress)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Reduce:
    """The runs of one output, written."""

    table: _Table
    groups: Sequence[Group]
    layouts: Any
    sorted: int

    def __call__(self, index: int, runs: Iterable[Any]) -> Iterator[Output]:
        from pyspark import TaskContext  # noqa: PLC0415 (on the worker)

        storage, places = self.table.open(), self.table.places
        context = TaskContext.get()
        assert context is not None, "this runs in a task"
        place = max(n for n, first in enumerate(places.first) if first <= index)
        group = self.groups[place]
        with _local_folder() as folder:
            gathering = Gathering(_layout(self.layouts, group.number), folder, most=self.sorted)
            for run in runs:
                gathering.add(Run.unpacked(run))
            yield Writing(
                work=self.table.work.value,
                group=group,
                file=index - places.first[place],
                attempt=context.taskAttemptId(),
                folder=folder,
            ).write(gathering, storage)


def _layout(layouts: Any, number: int) -> Any:
    data = layouts.value.get(number)
    return None if data is None else pickle.loads(data)  # noqa: S301 (this module's own)


@contextmanager
def _local_folder() -> Iterator[Path]:
    """On the disks that Spark was given for what does not fit into memory."""
    from pyspark.shuffle import _get_local_dirs  # noqa: PLC0415 (on the worker)

    above = Path(_get_local_dirs("reconciler")[0])
    above.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=above) as folder:
        yield Path(folder)
