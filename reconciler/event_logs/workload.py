"""Count which conditions the queries of event logs asked of which tables; pure but for links.

Queries whose conditions differ in values only are one shape. Its representative has real values:
those in the middle of what was asked.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Final

from reconciler.errors import StorageError
from reconciler.event_logs.normal_form import SortKey, make_shape_key, make_sort_key
from reconciler.event_logs.predicate_text import write_predicate, write_shape
from reconciler.lazy_dataclass import dataclass
from reconciler.storage.locations import LocationMap, escape_hadoop_path, normalise_location

if TYPE_CHECKING:
    from reconciler.event_logs.scans import ScanKind
    from reconciler.index.predicates.syntax import Predicate

#: different conditions of one shape that are kept to choose from
_MAX_VALUES: Final = 1000
#: longer conditions are not proposed: a list of thousands of values is no part of a spec
MAX_WHERE: Final = 2000
#: of Hudi, with tables of its own
_META_FOLDER: Final = "/.hoodie/"
_DAY_MS: Final = 86_400_000


@dataclass(frozen=True, slots=True, kw_only=True)
class ScanRun:
    """A scan that ran. ``files``, ``bytes``: what it read; None if the log does not tell.

    ``predicate``: what is known of its conditions; None if nothing is. ``is_unknown``: what it
    asked could not be read from the log.
    """

    location: str | None
    name: str | None
    kind: ScanKind
    columns: tuple[str, ...]
    predicate: Predicate | None
    is_unknown: bool = False
    files: int | None = None
    bytes: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadCounts:
    """How often something was read, and the bytes of the files together."""

    runs: int = 0
    bytes: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservedQuery:
    """The queries of one shape. ``where``: a condition that was asked.

    ``shape``: it with a question mark for each value. ``columns``: those that they read.
    """

    shape: str
    where: str
    runs: int
    bytes: int
    files: int
    columns: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservedTable:
    """What was read of a table. ``queries``: those that read most first.

    ``unconditioned``: queries without a condition that statistics can use. ``unknown``: queries
    whose condition could not be read. ``incremental``: reads of changes. ``columns``: how many
    queries read each, the most frequent first.
    """

    location: str
    name: str | None
    queries: tuple[ObservedQuery, ...]
    unconditioned: ReadCounts
    unknown: ReadCounts
    incremental: ReadCounts
    columns: Mapping[str, int]

    @property
    def runs(self) -> int:
        """Return the number of all queries, without incremental ones."""
        others = self.unconditioned.runs + self.unknown.runs
        return sum(query.runs for query in self.queries) + others

    @property
    def bytes(self) -> int:
        """Return the bytes that they read."""
        others = self.unconditioned.bytes + self.unknown.bytes
        return sum(query.bytes for query in self.queries) + others


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """What event logs say. ``problems``: what could not be read of them, a sentence each.

    ``files``, ``bytes``: of the logs, decompressed. ``queries``: executions of SQL that read a
    table. ``first_ms``, ``last_ms``: when the first and the last one began; None if there are none.
    """

    logs: int
    bytes: int
    queries: int
    first_ms: int | None
    last_ms: int | None
    tables: tuple[ObservedTable, ...]
    problems: tuple[str, ...] = ()

    @property
    def days(self) -> float:
        """Return the days that the logs span, at least one: an hour tells little of a day."""
        if self.first_ms is None or self.last_ms is None:
            return 1.0
        return max(1.0, (self.last_ms - self.first_ms) / _DAY_MS)


@dataclass(slots=True)
class _Counts:
    runs: int = 0
    bytes: int = 0

    def add(self, run: ScanRun) -> None:
        self.runs += 1
        self.bytes += run.bytes or 0

    def freeze(self) -> ReadCounts:
        return ReadCounts(runs=self.runs, bytes=self.bytes)


@dataclass(slots=True)
class _Shape:
    """The queries of one shape; ``asked``: how often each condition was, by its text."""

    text: str
    counts: _Counts = field(default_factory=_Counts)
    files: int = 0
    columns: Counter[str] = field(default_factory=Counter)
    asked: Counter[str] = field(default_factory=Counter)
    keys: dict[str, SortKey] = field(default_factory=dict)

    def add(self, run: ScanRun, predicate: Predicate, where: str) -> None:
        self.counts.add(run)
        self.files += run.files or 0
        self.columns.update(run.columns)
        if where in self.keys or len(self.keys) < _MAX_VALUES:
            self.keys.setdefault(where, make_sort_key(predicate))
            self.asked[where] += 1

    def freeze(self) -> ObservedQuery:
        return ObservedQuery(
            shape=self.text,
            where=self._choose_middle(),
            runs=self.counts.runs,
            bytes=self.counts.bytes,
            files=self.files,
            columns=tuple(name for name, _ in _sort_counts(self.columns)),
        )

    def _choose_middle(self) -> str:
        """Return the condition in the middle of the asked ones, ordered by their values."""
        left = (self.asked.total() + 1) // 2
        for where in sorted(self.asked, key=lambda where: (self.keys[where], where)):
            left -= self.asked[where]
            if left <= 0:
                return where
        raise AssertionError("a shape was asked at least once")


@dataclass(slots=True)
class _Table:
    location: str
    name: str | None = None
    is_known: bool = False
    shapes: dict[str, _Shape] = field(default_factory=dict)
    unconditioned: _Counts = field(default_factory=_Counts)
    unknown: _Counts = field(default_factory=_Counts)
    incremental: _Counts = field(default_factory=_Counts)
    columns: Counter[str] = field(default_factory=Counter)

    def add(self, run: ScanRun) -> None:
        self.name = self.name or run.name
        if run.kind == "incremental":
            self.incremental.add(run)
            return
        self.columns.update(run.columns)
        where = "" if run.predicate is None else write_predicate(run.predicate)
        if run.is_unknown or len(where) > MAX_WHERE:
            self.unknown.add(run)
        elif run.predicate is None:
            self.unconditioned.add(run)
        else:
            shape = self.shapes.setdefault(
                make_shape_key(run.predicate), _Shape(write_shape(run.predicate))
            )
            shape.add(run, run.predicate, where)

    def freeze(self) -> ObservedTable:
        queries = [shape.freeze() for shape in self.shapes.values()]
        queries.sort(key=lambda query: (-query.bytes, -query.runs, query.shape))
        return ObservedTable(
            location=self.location,
            name=self.name,
            queries=tuple(queries),
            unconditioned=self.unconditioned.freeze(),
            unknown=self.unknown.freeze(),
            incremental=self.incremental.freeze(),
            columns=dict(_sort_counts(self.columns)),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownTable:
    """A table to find in logs by its location, or by its name in a catalog."""

    location: str
    catalog_name: str | None = None


class WorkloadBuilder:
    """Counts scans by table and shape. Tables that are not known are counted if they are Hudi's."""

    def __init__(self, known: Iterable[KnownTable]) -> None:
        self._tables: LocationMap[_Table] = LocationMap()
        self._found: dict[tuple[str | None, str | None], _Table | None] = {}
        self._by_name: dict[str, _Table] = {}
        self._all: list[_Table] = []
        for table in known:
            made = _Table(table.location, is_known=True)
            if self._tables.add(table.location, made) is None:
                self._all.append(made)
                if table.catalog_name is not None:
                    self._by_name[table.catalog_name.lower()] = made

    def add(self, run: ScanRun) -> bool:
        """Count a scan; return whether it is one of a table."""
        table = self._find(run)
        if table is None:
            return False
        table.add(run)
        return True

    def freeze(self) -> tuple[ObservedTable, ...]:
        """Return the tables: known ones in their order, then others, the most read first."""
        return tuple(table.freeze() for table in self._all)

    def _find(self, run: ScanRun) -> _Table | None:
        """Return the table of a scan, made if it is a new one of Hudi."""
        key = (run.location, run.name)
        if key in self._found:
            return self._found[key]
        named = self._by_name.get(run.name.lower()) if run.name is not None else None
        try:
            place = normalise_location(escape_hadoop_path(run.location or ""))
        except StorageError:
            place = ""
        table = self._find_above(place) if run.kind == "files" else self._tables.find(place)
        if table is None or (named is not None and not table.is_known):
            table = named or table
        if table is None and place and run.kind != "files" and _META_FOLDER not in f"{place}/":
            table = _Table(place)
            self._tables.add(place, table)
            self._all.append(table)
        self._found[key] = table
        return table

    def _find_above(self, place: str) -> _Table | None:
        """Return the known table whose folder a file or a partition is in."""
        while place.strip("/") and not place.endswith(":/"):
            table = self._tables.find(place)
            if table is not None:
                return table
            place = place.rpartition("/")[0].rstrip("/")
        return None


def _sort_counts(counts: Counter[str]) -> Sequence[tuple[str, int]]:
    return sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))
