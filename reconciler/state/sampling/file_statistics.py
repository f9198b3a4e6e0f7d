"""Read statistics of current base files on the columns that queries name.

They come from reconciler's index first, then from the metadata table's column_stats if it is live,
and then from footers, as long as there are few of these.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from reconciler.arrays import Integers, Mask, to_arrow
from reconciler.errors import FormatError, UnsupportedError
from reconciler.hudi.metadata.sync_decisions import COLUMN_STATS
from reconciler.index.build import BuiltIndex, IndexRequest, files_to_batch, read_share
from reconciler.index.file_keys import find_rows
from reconciler.index.footers import find_index_types
from reconciler.index.model import UNKNOWN, ColumnStats, FileIndex
from reconciler.lazy_dataclass import dataclass
from reconciler.state.clustering_facts import ReadWarning
from reconciler.state.clustering_facts_reader import MAX_FOOTERS
from reconciler.state.hudi_column_stats import read_file_bounds
from reconciler.state.index_state_reader import build_file_keys

if TYPE_CHECKING:
    from reconciler.hudi.table.properties import TableProperties
    from reconciler.state.model import TableState
    from reconciler.storage.api import Storage

#: the rule of the warning in a plan
WARNING_RULE: Final = "predictions"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FileStatistics:
    """``index``: statistics of the files in their order; None if too many are unknown.

    ``damaged``: why footers cannot be read, by the file's row in the state's files.
    """

    index: FileIndex | None
    source: str
    warnings: tuple[ReadWarning, ...] = ()
    damaged: Mapping[int, str] = field(default_factory=dict)


@dataclass(slots=True, kw_only=True)
class FileStatisticsReader:
    """Reads statistics. ``files``: rows of the state's files. ``supplied``: as in IndexState."""

    storage: Storage
    properties: TableProperties
    state: TableState
    files: Integers
    columns: tuple[str, ...]
    schema: Any
    supplied: frozenset[str]
    max_footers: int = MAX_FOOTERS
    _warnings: list[ReadWarning] = field(default_factory=list)
    _sources: list[str] = field(default_factory=list)
    _damaged: dict[int, str] = field(default_factory=dict)

    def read(self) -> FileStatistics:
        """Return the statistics; raises StorageError, and NotFoundError if the table changed."""
        kinds = find_index_types(self.columns, self.schema)
        known = {name: ColumnStats.unknown(kind, len(self.files)) for name, kind in kinds.items()}
        rows = np.full(len(self.files), UNKNOWN, np.int64)
        lacks: Mask = np.full(len(self.files), bool(kinds))
        if kinds:
            lacks = lacks & ~self._read_own_index(known, rows)
        if lacks.any() and COLUMN_STATS in self.properties.metadata_partitions:
            lacks = lacks & ~self._read_column_stats(known, rows, np.flatnonzero(lacks))
        missing = np.flatnonzero(lacks)
        if len(missing) > self.max_footers:
            self._warn_of_many(len(missing))
            return FileStatistics(index=None, source="", warnings=tuple(self._warnings))
        if len(missing):
            self._read_footers(known, rows, missing)
        keys = build_file_keys(self.state, self.files)
        index = FileIndex(
            partition=keys.partition, name=keys.name, size=keys.size, rows=rows, columns=known
        )
        source = ", ".join(self._sources) or "the listing"
        warnings = tuple(self._warnings)
        return FileStatistics(index=index, source=source, warnings=warnings, damaged=self._damaged)

    def _read_own_index(self, known: dict[str, ColumnStats], rows: Integers) -> Mask:
        """Fill in statistics of reconciler's index; return which files have all columns in it."""
        own = self.state.index_state.index if self.state.index_state is not None else None
        if own is None or not len(own) or not all(name in own.columns for name in known):
            return np.zeros(len(self.files), np.bool_)
        if any(own.columns[name].type != stats.type for name, stats in known.items()):
            return np.zeros(len(self.files), np.bool_)
        keys = build_file_keys(self.state, self.files)
        at = find_rows(own, keys)
        is_in = at >= 0
        if is_in.any():
            hits = np.flatnonzero(is_in)
            _fill_stats(known, {name: own.columns[name].take(at[hits]) for name in known}, hits)
            rows[hits] = own.rows[at[hits]]
            self._sources.append("the table's index")
        return is_in

    def _read_footers(
        self, known: dict[str, ColumnStats], rows: Integers, missing: Integers
    ) -> None:
        keys = build_file_keys(self.state, self.files[missing])
        asked = IndexRequest(columns=self.columns, schema=self.schema, supplied=self.supplied)
        built = read_share(self.storage, asked, files_to_batch(keys), progress=lambda _done: None)
        at = find_rows(built.index, keys)
        _fill_stats(known, {name: built.index.columns[name].take(at) for name in known}, missing)
        rows[missing] = built.index.rows[at]
        self._sources.append("footers")
        if built.unread_count:
            self._warn_of_unread(built, missing[built.index.rows[at] < 0])

    def _warn_of_unread(self, built: BuiltIndex, unread: Integers) -> None:
        """Warn of files without readable footers, which every query reads."""
        for row in self.files[unread].tolist():
            path, _ = self.state.files.locate_file(row)
            why = next((text for text in built.problems if text.startswith(f"{path}: ")), None)
            self._damaged[row] = why or f"{path}: its footer cannot be read"
        some = "; ".join(built.problems)
        more = f" (and {built.unread_count - len(built.problems)} more)" * (
            built.unread_count > len(built.problems)
        )
        what = "footer" if built.unread_count == 1 else "footers"
        because = (
            f"{built.unread_count} {what} cannot be read, so every query reads them: {some}{more}"
        )
        self._warnings.append(ReadWarning(rule=WARNING_RULE, because=because))

    def _warn_of_many(self, missing: int) -> None:
        because = (
            f"there are no predictions for the declared queries: {missing} base files have no "
            f"statistics on {', '.join(self.columns)}, and at most {self.max_footers} footers are "
            f"read; {self._suggest_remedy()}"
        )
        self._warnings.append(ReadWarning(rule=WARNING_RULE, because=because))

    def _suggest_remedy(self) -> str:
        """Return how the index gets the missing columns."""
        indexed = self.state.index_state.wanted if self.state.index_state is not None else {}
        more = [name for name in self.columns if name not in indexed]
        if not more:
            return "apply the index step of a plan, which reads them"
        if len(more) < len(self.columns):
            return f"declare {', '.join(more)} under index.columns too"
        return "declare these columns under index.columns"

    # --- Hudi's index ----------------------------------------------------------------------------

    def _read_column_stats(
        self, known: dict[str, ColumnStats], rows: Integers, missing: Integers
    ) -> Mask:
        is_read = np.zeros((len(known), len(self.files)), np.bool_)
        try:
            for number, at, stats in self._read_entries(known, missing):
                name = list(known)[number]
                _fill_stats(known, {name: stats}, at)
                rows[at] = np.maximum(rows[at], stats.values)
                is_read[number, at] = True
        except (FormatError, UnsupportedError) as problem:
            because = f"the index column_stats is ignored for the queries: {problem}"
            self._warnings.append(ReadWarning(rule="columnStats", because=because))
            return np.zeros(len(self.files), np.bool_)
        is_told: Mask = np.asarray(is_read.all(axis=0))
        if is_told.any():
            self._sources.append("column_stats")
        return is_told

    def _read_entries(
        self, known: Mapping[str, ColumnStats], missing: Integers
    ) -> Iterator[tuple[int, Integers, ColumnStats]]:
        partition = self.state.files.partition[self.files[missing]]
        order = missing[np.argsort(partition, kind="stable")]
        for found, places in read_file_bounds(
            self.storage, self.properties, self.state, tuple(known), self.files[order]
        ):
            kind = known[tuple(known)[found.column]].type
            stats = _build_stats(found.least, found.greatest, found.values, kind)
            yield found.column, order[places], stats


def _fill_stats(
    known: dict[str, ColumnStats], found: Mapping[str, ColumnStats], at: Integers
) -> None:
    """Overwrite the statistics of some files."""
    for name, stats in found.items():
        both = ColumnStats.concat([known[name], stats])
        place = np.arange(len(known[name]))
        place[at] = len(known[name]) + np.arange(len(at))
        known[name] = both.take(place)


def _build_stats(
    least: Sequence[Any], greatest: Sequence[Any], values: Sequence[int], kind: Any
) -> ColumnStats:
    """Return statistics from Hudi's bounds; wrong bounds and those of nulls are already absent."""
    low, high = _build_column(least, kind), _build_column(greatest, kind)
    is_known = np.array([a.is_valid and b.is_valid for a, b in zip(low, high, strict=True)])
    files = len(values)
    free = is_known if pa.types.is_floating(kind) else np.ones(files, np.bool_)
    keep = to_arrow(is_known.astype(np.bool_))
    return ColumnStats(
        least=pc.if_else(keep, low, None),
        greatest=pc.if_else(keep, high, None),
        nulls=np.full(files, UNKNOWN, np.int64),
        values=np.array(values, np.int64),
        is_exact_least=np.zeros(files, np.bool_),
        is_exact_greatest=np.zeros(files, np.bool_),
        is_nan_free=free.astype(np.bool_),
    )


def _build_column(values: Sequence[Any], kind: Any) -> Any:
    """Return Hudi's bounds in the type of the column; null for a value of another kind."""
    return pa.array([_convert_value(value, kind) for value in values], _storage_type(kind)).cast(
        kind
    )


def _storage_type(kind: Any) -> Any:
    """Return the physical type: integers for dates and times, bytes for text."""
    types = pa.types
    if types.is_date32(kind):
        return pa.int32()
    if types.is_timestamp(kind):
        return pa.int64()
    return pa.binary() if types.is_string(kind) else kind


def _convert_value(value: Any, kind: Any) -> Any:
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
