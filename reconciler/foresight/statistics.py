"""Statistics of today's base files on the columns that queries name.

From the table's own index where it has one; of what that does not know from the metadata table's
column_stats where it is live, and else from footers, as long as those are few.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from reconciler.errors import FormatError, UnsupportedError
from reconciler.hudi.arrow import booleans, integers, unique
from reconciler.hudi.metadata_partitions import COLUMN_STATS
from reconciler.hudi.metadata_stats import read_column_stats
from reconciler.hudi.metadata_table import open_metadata
from reconciler.index.build import Asked, Built, path_of, read_share, rows_of
from reconciler.index.footers import wanted_types
from reconciler.index.keys import places
from reconciler.index.model import UNKNOWN, ColumnStats, FileIndex
from reconciler.state.evidence import Doubt
from reconciler.state.gather import MOST_FOOTERS
from reconciler.state.known_index import keys_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from reconciler.hudi.properties import TableProperties
    from reconciler.state.model import TableState
    from reconciler.storage.api import Storage

#: the rule of a plan's warning
RULE: Final = "predictions"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Told:
    """``index``: of the asked files in their order; None where too many are not known.

    ``damaged``: why footers cannot be read, by the file's row of the state's files.
    """

    index: FileIndex | None
    source: str
    doubts: tuple[Doubt, ...] = ()
    damaged: Mapping[int, str] = field(default_factory=dict)


@dataclass(slots=True, kw_only=True)
class Telling:
    """``files``: rows of the state's files. ``supplied`` as ``index_of`` has it."""

    storage: Storage
    properties: TableProperties
    state: TableState
    files: NDArray[np.int64]
    columns: tuple[str, ...]
    schema: Any
    supplied: frozenset[str]
    most: int = MOST_FOOTERS
    _doubts: list[Doubt] = field(default_factory=list)
    _sources: list[str] = field(default_factory=list)
    _damaged: dict[int, str] = field(default_factory=dict)

    def told(self) -> Told:
        """The statistics; raises StorageError, and NotFoundError where the table has moved on."""
        kinds = wanted_types(self.columns, self.schema)
        known = {name: ColumnStats.unknown(kind, len(self.files)) for name, kind in kinds.items()}
        rows = np.full(len(self.files), UNKNOWN, np.int64)
        lacks: NDArray[np.bool_] = np.full(len(self.files), bool(kinds))
        if kinds:
            lacks = lacks & ~self._of_own(known, rows)
        if lacks.any() and COLUMN_STATS in self.properties.metadata_partitions:
            lacks = lacks & ~self._of_hudi(known, rows, np.flatnonzero(lacks))
        missing = np.flatnonzero(lacks)
        if len(missing) > self.most:
            self._doubt_many(len(missing))
            return Told(index=None, source="", doubts=tuple(self._doubts))
        if len(missing):
            self._of_footers(known, rows, missing)
        keys = keys_of(self.state, self.files)
        index = FileIndex(
            partition=keys.partition, name=keys.name, size=keys.size, rows=rows, columns=known
        )
        source = ", ".join(self._sources) or "the listing"
        doubts = tuple(self._doubts)
        return Told(index=index, source=source, doubts=doubts, damaged=self._damaged)

    def _of_own(self, known: dict[str, ColumnStats], rows: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Fill in what the table's own index knows; which files it knows in all columns."""
        own = self.state.index.index if self.state.index is not None else None
        if own is None or not len(own) or not all(name in own.columns for name in known):
            return np.zeros(len(self.files), np.bool_)
        if any(own.columns[name].type != stats.type for name, stats in known.items()):
            return np.zeros(len(self.files), np.bool_)
        keys = keys_of(self.state, self.files)
        at = places(own, keys.partition, keys.name, keys.size)
        is_in = at >= 0
        if is_in.any():
            here = np.flatnonzero(is_in)
            _fill(known, {name: own.columns[name].take(at[here]) for name in known}, here)
            rows[here] = own.rows[at[here]]
            self._sources.append("the table's index")
        return is_in

    def _of_footers(
        self, known: dict[str, ColumnStats], rows: NDArray[np.int64], missing: NDArray[np.int64]
    ) -> None:
        keys = keys_of(self.state, self.files[missing])
        asked = Asked(columns=self.columns, schema=self.schema, supplied=self.supplied)
        built = read_share(self.storage, asked, rows_of(keys), progress=lambda _done: None)
        at = places(built.index, keys.partition, keys.name, keys.size)
        _fill(known, {name: built.index.columns[name].take(at) for name in known}, missing)
        rows[missing] = built.index.rows[at]
        self._sources.append("footers")
        if built.unread:
            self._doubt_unread(built, missing[built.index.rows[at] < 0])

    def _doubt_unread(self, built: Built, unread: NDArray[np.int64]) -> None:
        """Files that count as read by every query, by their names."""
        files = self.state.files
        for row in self.files[unread].tolist():
            path = path_of(files.partitions[files.partition[row]], files.name[row].as_py())
            why = next((said for said in built.said if said.startswith(f"{path}: ")), None)
            self._damaged[row] = why or f"{path}: its footer cannot be read"
        some = "; ".join(built.said)
        more = f" (and {built.unread - len(built.said)} more)" * (built.unread > len(built.said))
        what = "footer" if built.unread == 1 else "footers"
        says = f"{built.unread} {what} cannot be read, and queries read those files: {some}{more}"
        self._doubts.append(Doubt(rule=RULE, because=says))

    def _doubt_many(self, missing: int) -> None:
        says = (
            f"nothing is predicted for the declared queries: {missing} base files have no "
            f"statistics on {', '.join(self.columns)}, and no more than {self.most} footers are "
            f"read; {self._remedy()}"
        )
        self._doubts.append(Doubt(rule=RULE, because=says))

    def _remedy(self) -> str:
        """How the index gets what it lacks of the columns."""
        there = self.state.index.wanted if self.state.index is not None else {}
        more = [name for name in self.columns if name not in there]
        if not more:
            return "the index step of a plan reads them: apply it"
        if len(more) < len(self.columns):
            return f"declare {', '.join(more)} under index.columns too"
        return "declare these columns under index.columns"

    # --- Hudi's index ----------------------------------------------------------------------------

    def _of_hudi(
        self, known: dict[str, ColumnStats], rows: NDArray[np.int64], missing: NDArray[np.int64]
    ) -> NDArray[np.bool_]:
        told = np.zeros((len(known), len(self.files)), np.bool_)
        try:
            for number, at, stats in self._entries(known, missing):
                name = list(known)[number]
                _fill(known, {name: stats}, at)
                rows[at] = np.maximum(rows[at], stats.values)
                told[number, at] = True
        except (FormatError, UnsupportedError) as problem:
            says = f"the index column_stats is left aside for the queries: {problem}"
            self._doubts.append(Doubt(rule="columnStats", because=says))
            return np.zeros(len(self.files), np.bool_)
        is_told: NDArray[np.bool_] = np.asarray(told.all(axis=0))
        if is_told.any():
            self._sources.append("column_stats")
        return is_told

    def _entries(
        self, known: Mapping[str, ColumnStats], missing: NDArray[np.int64]
    ) -> Iterator[tuple[int, NDArray[np.int64], ColumnStats]]:
        table = open_metadata(
            self.storage,
            version=self.properties.table_version,
            data=self.state.timeline,
            live=self.properties.metadata_partitions,
        )
        files = self.state.files
        order = missing[np.argsort(files.partition[self.files[missing]], kind="stable")]
        for found in read_column_stats(table, tuple(known), self._folders(order)):
            kind = known[tuple(known)[found.column]].type
            stats = _of_values(found.least, found.greatest, found.values, kind)
            yield found.column, order[np.array(found.file, np.int64)], stats

    def _folders(self, order: NDArray[np.int64]) -> Iterator[tuple[str, list[str]]]:
        files = self.state.files
        rows = self.files[order]
        partition = files.partition[rows]
        for code in unique(partition).tolist():
            here = rows[partition == code]
            yield files.partitions[code], files.name.take(integers(here)).to_pylist()


def _fill(
    known: dict[str, ColumnStats], found: Mapping[str, ColumnStats], at: NDArray[np.int64]
) -> None:
    """Overwrite the statistics of some files."""
    for name, stats in found.items():
        both = ColumnStats.joined([known[name], stats])
        place = np.arange(len(known[name]))
        place[at] = len(known[name]) + np.arange(len(at))
        known[name] = both.take(place)


def _of_values(
    least: Sequence[Any], greatest: Sequence[Any], values: Sequence[int], kind: Any
) -> ColumnStats:
    """What Hudi tells: bounds that lie are left out already, and so are those of nulls alone."""
    low, high = _column(least, kind), _column(greatest, kind)
    is_known = np.array([a.is_valid and b.is_valid for a, b in zip(low, high, strict=True)])
    files = len(values)
    free = is_known if pa.types.is_floating(kind) else np.ones(files, np.bool_)
    keep = booleans(is_known.astype(np.bool_))
    return ColumnStats(
        least=pc.if_else(keep, low, None),
        greatest=pc.if_else(keep, high, None),
        nulls=np.full(files, UNKNOWN, np.int64),
        values=np.array(values, np.int64),
        is_exact_least=np.zeros(files, np.bool_),
        is_exact_greatest=np.zeros(files, np.bool_),
        is_nan_free=free.astype(np.bool_),
    )


def _column(values: Sequence[Any], kind: Any) -> Any:
    """Bounds of Hudi's in the type of the column; null for one that is of another kind."""
    return pa.array([_value(value, kind) for value in values], _plain(kind)).cast(kind)


def _plain(kind: Any) -> Any:
    """What a type is made of: whole numbers for days and times, bytes for text."""
    types = pa.types
    if types.is_date32(kind):
        return pa.int32()
    if types.is_timestamp(kind):
        return pa.int64()
    return pa.binary() if types.is_string(kind) else kind


def _value(value: Any, kind: Any) -> Any:
    types = pa.types
    if types.is_string(kind) or types.is_binary(kind):
        return value if isinstance(value, bytes) else None
    if types.is_decimal(kind):
        return value if isinstance(value, Decimal) else None
    if types.is_floating(kind):
        return float(value) if isinstance(value, int | float) else None
    if types.is_boolean(kind):
        return bool(value) if isinstance(value, int) else None
    return value if isinstance(value, int) else None
