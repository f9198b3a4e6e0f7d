"""Open a scan: decide which files a read touches, before it runs. Storage is read here only."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, tzinfo
from functools import cache
from time import sleep
from typing import Final

import numpy as np
import pyarrow as pa

from reconciler.arrays import Codes, Mask, to_arrow
from reconciler.errors import NotFoundError, UnsupportedError, UsageError, VanishingFilesError
from reconciler.file_slices.merge.committed_blocks import CommittedInstants
from reconciler.file_slices.merge.rules import MergeRules
from reconciler.hudi.files.view import LOGS_BY_COMPLETION
from reconciler.hudi.load import find_newest_archived_time, load_archived_instants, load_properties
from reconciler.hudi.table.properties import TableProperties
from reconciler.lazy_dataclass import dataclass
from reconciler.reader.incremental import (
    check_range,
    find_commit_times,
    find_touched_slices,
    make_read_limit,
)
from reconciler.reader.lost_files import LostFileError, check_newest_write
from reconciler.reader.model import PATH, ReadRequest, Scan
from reconciler.reader.request import ReadArguments
from reconciler.reader.slice_selection import (
    ReadLimit,
    SliceSelection,
    check_readable,
    find_newest_write,
    pick_slices,
)
from reconciler.state.model import TableState
from reconciler.state.observe import ListingSource, observe
from reconciler.state.partition_values import read_partition_columns
from reconciler.state.schema import (
    add_table_columns,
    build_table_schema,
    has_meta_columns,
    load_schema_versions,
    read_declared_schema,
    read_file_schema,
)
from reconciler.state.schema_versions import LATEST_SCHEMA_KEY, find_renamed_columns
from reconciler.storage.api import Storage
from reconciler.storage.read_only import ReadOnlyStorage

_ATTEMPTS: Final = 4
#: pause for writers to finish what they do; it grows with every attempt
_PAUSE_S: Final = 0.1
_SKELETONS: Final = "00000000000001"
#: column -> its type, spelled so that equal types of different writers are equal
TypesByColumn = Mapping[str, str]


def open_requested_scan(
    storage: Storage, arguments: ReadArguments, *, zone: tzinfo | None = None
) -> Scan:
    """Return what a read touches; ``zone`` is the timeline's, if the table does not record it."""
    guarded = ReadOnlyStorage(storage)
    if arguments.needs_zone and load_properties(guarded).timezone == "UTC":
        zone = UTC
    return open_scan(guarded, arguments.to_request(zone), is_checked=True)


def open_scan(
    storage: Storage,
    request: ReadRequest,
    *,
    listing: ListingSource = "storage",
    is_checked: bool = False,
) -> Scan:
    """Return what a read of the table touches now.

    Of data files only the footers of a few are read. ``listing``: where file names come from.
    ``is_checked``: files of the newest write must be there; rewrites and writes check their own.
    Raises BlockedError for a pending restore and for times whose files were cleaned, naming what
    can be read; UnsupportedError for tables that must not be read, UsageError for an unknown
    column, FormatError (LostFileError if a file of the newest write is gone), StorageError, and
    VanishingFilesError if files vanish at every attempt.
    """
    for attempt in range(1, _ATTEMPTS + 1):
        try:
            opening = _ScanOpening.begin(storage, request, listing)
            return replace(opening, is_checked=is_checked).make_scan()
        except LostFileError:
            if attempt > 1:
                raise  # a rollback may have removed the file since the timeline was listed
        except NotFoundError as error:
            if attempt == _ATTEMPTS:
                raise VanishingFilesError(
                    error.path,
                    "disappeared repeatedly while the table was opened; its writers are busy: run "
                    "again",
                ) from None
        sleep(_PAUSE_S * attempt)
    raise AssertionError


@dataclass(frozen=True, slots=True)
class _ScanOpening:
    """One attempt to open a table."""

    storage: Storage
    request: ReadRequest
    properties: TableProperties
    state: TableState
    limit: ReadLimit
    is_checked: bool = False

    @classmethod
    def begin(cls, storage: Storage, request: ReadRequest, listing: ListingSource) -> _ScanOpening:
        properties = load_properties(storage)
        needs_history = request.as_of is not None or request.kind == "incremental"
        state = observe(storage, None, observed_ms=0, listing=listing, with_history=needs_history)
        if request.kind == "incremental":
            return cls(storage, request, properties, state, make_read_limit(state, request.end))
        return cls(storage, request, properties, state, ReadLimit(requested=request.as_of))

    def make_scan(self) -> Scan:
        if self.limit != ReadLimit():
            check_readable(self.state, self.limit)
        elif self.is_checked:
            check_newest_write(self.storage, self.properties, self.state)
        times = self._find_commit_times()
        picked = pick_slices(self.state, self.limit, only_base=self.request.kind == "readOptimized")
        if times is not None:
            picked = picked.filter(find_touched_slices(picked, self.state, times))
        schema = self._read_schema(picked)
        partition, paths = _list_partitions(picked)
        restored, values = read_partition_columns(paths, schema, self.properties)
        return Scan(
            location=self.state.location,
            as_of=find_newest_write(self.state, self.limit),
            schema=select_columns(schema, self.request.columns, self.properties.table_name),
            table_schema=schema,
            partition_schema=restored,
            partitions=pa.table(
                [to_arrow(paths), *values],
                schema=pa.schema([pa.field(PATH, pa.string(), nullable=False), *restored]),
            ),
            slices=picked.to_table(partition, self._find_evolved_slices(picked, schema)),
            rules=MergeRules.from_properties(self.properties),
            committed=CommittedInstants.from_timeline(
                self.state.timeline,
                table_version=self.state.table_version,
                as_of=self._last_block_instant(),
            ),
            commit_times=times,
        )

    @property
    def _column_limit(self) -> ReadLimit:
        """The limit for columns: past ones for time travel, else current ones, as in Hudi."""
        return ReadLimit() if self.request.kind == "incremental" else self.limit

    def _last_block_instant(self) -> str | None:
        """The instant after which log blocks do not count; a version 6 file has several writes."""
        by_name = self.state.table_version < LOGS_BY_COMPLETION
        return self.limit.requested if by_name else None

    def _find_commit_times(self) -> tuple[str, ...] | None:
        begin = self.request.begin
        if self.request.kind != "incremental" or begin is None:
            return None
        if not has_meta_columns(self.properties):
            raise UnsupportedError(
                f"table {self.properties.table_name} has no meta columns, so its rows do not say "
                "when they were written; it cannot be read incrementally"
            )
        newest = find_newest_archived_time(self.storage, self.properties)
        if newest is not None and (
            self.state.table_version >= LOGS_BY_COMPLETION or newest > begin
        ):
            check_range(self.state, begin, load_archived_instants(self.storage, self.properties))
        return find_commit_times(self.state, begin, self.request.end)

    def _read_schema(self, picked: SliceSelection) -> pa.Schema:
        """Return the columns declared by the newest write, else by the table, else by a file."""
        declared = read_declared_schema(
            self.storage,
            self.properties,
            self.state,
            is_visible=self._column_limit.includes,
            as_of=self._column_limit.requested,
        )
        if declared is not None:
            if declared.extra.get(LATEST_SCHEMA_KEY):
                self._check_not_renamed(picked)
            return build_table_schema(declared.text, declared.path, self.properties)
        rows = picked.base[picked.base >= 0]
        if not len(rows):
            return add_table_columns(pa.schema([]), self.properties)
        newest = rows[np.argmax(picked.files.instant[rows])]
        return add_table_columns(
            read_file_schema(self.storage, *picked.files.locate_file(newest)), self.properties
        )

    def _check_not_renamed(self, picked: SliceSelection) -> None:
        """Raise UnsupportedError if files hold a column of the table under another name."""
        rows = np.concatenate([picked.base[picked.base >= 0], picked.logs])
        versions = load_schema_versions(self.storage)
        if not len(rows) or not versions:
            return
        oldest = picked.files.instants[int(picked.files.instant[rows].min())]
        newest = find_newest_write(self.state, self._column_limit) or oldest
        for column, before in find_renamed_columns(versions, oldest=oldest, as_of=newest).items():
            described = "another column" if column == before else f"called {before}"
            raise UnsupportedError(
                f"table {self.properties.table_name}: column {column} was {described} when its "
                f"oldest files were written (at {oldest}), and files are read by column name; "
                "rewrite them with Hudi, for example by clustering, to read the table here"
            )

    def _find_evolved_slices(self, picked: SliceSelection, schema: pa.Schema) -> Mask:
        """Return a mask of slices whose base file has other types than the table, by footers."""
        instants = picked.files.instants
        codes = picked.get_base_instants()
        base_file_rows = np.full(len(instants), -1, np.int64)
        base_file_rows[codes[codes >= 0]] = picked.base[codes >= 0]
        code_of = {instant: code for code, instant in enumerate(instants)}

        def shape(instant: str) -> TypesByColumn:
            path, size = picked.files.locate_file(base_file_rows[code_of[instant]])
            return format_types(read_file_schema(self.storage, path, size))

        written = [
            instants[code]
            for code in np.flatnonzero(base_file_rows >= 0).tolist()
            if instants[code] != _SKELETONS
        ]
        evolved = find_evolved_instants(written, shape, schema) | {_SKELETONS}
        is_evolved = np.array([instant in evolved for instant in instants], np.bool_)
        is_evolved_slice = np.zeros(len(picked), np.bool_)
        is_evolved_slice[codes >= 0] = is_evolved[codes[codes >= 0]]
        return is_evolved_slice


def _list_partitions(picked: SliceSelection) -> tuple[Codes, list[str]]:
    """Number the partitions that have slices; returns each slice's number, and their paths."""
    codes = picked.files.group_partition[picked.group]
    used = np.zeros(len(picked.files.partitions), np.bool_)
    used[codes] = True
    number = np.cumsum(used) - 1
    paths = [picked.files.partitions[code] for code in np.flatnonzero(used).tolist()]
    return number[codes].astype(np.int32), paths


def select_columns(schema: pa.Schema, columns: Sequence[str] | None, table: str) -> pa.Schema:
    """Return the wanted columns in order, None for all; raises UsageError for an unknown one."""
    if columns is None:
        return schema
    for name in columns:
        if name not in schema.names:
            known = ", ".join(schema.names)
            raise UsageError(f"table {table} has no column {name!r}; its columns are {known}")
    return pa.schema([schema.field(name) for name in columns])


def format_types(schema: pa.Schema) -> TypesByColumn:
    """Return the types of a file's columns, for ``find_evolved_instants``."""
    return {field.name: _format_type(field.type) for field in schema}


def find_evolved_instants(
    instants: Sequence[str], shape: Callable[[str], TypesByColumn], table: pa.Schema
) -> frozenset[str]:
    """Return the instants whose base files have another type in a column than the table.

    ``instants`` ascend; ``shape`` reads a file of one. A schema only moves forward, so what two
    instants share holds for those between them. So few files are read.
    """
    types_at = cache(lambda position: shape(instants[position]))
    evolved: set[str] = set()
    expected = format_types(table)
    ranges = [(0, len(instants) - 1)] if instants else []
    while ranges:
        low, high = ranges.pop()
        if types_at(low) == types_at(high):
            if any(expected.get(name, kind) != kind for name, kind in types_at(low).items()):
                evolved.update(instants[low : high + 1])
        elif high - low == 1:
            ranges += [(low, low), (high, high)]
        else:
            middle = (low + high) // 2
            ranges += [(low, middle), (middle, high)]
    return frozenset(evolved)


def _format_type(type_: pa.DataType) -> str:
    """Format a type without item names and other details that do not matter to readers."""
    types = pa.types
    if types.is_struct(type_):
        fields = sorted(f"{field.name}:{_format_type(field.type)}" for field in type_)
        return f"<{','.join(fields)}>"
    if types.is_list(type_):
        return f"[{_format_type(type_.value_type)}]"
    if types.is_map(type_):
        return f"{{{_format_type(type_.key_type)}:{_format_type(type_.item_type)}}}"
    if types.is_timestamp(type_) and type_.unit in ("ms", "us"):
        return "timestamp" if type_.tz is None else "instant"
    return str(type_)
