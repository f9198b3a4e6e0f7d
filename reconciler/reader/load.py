"""The only module of this room that touches storage: what a read needs to know before it begins."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa

from reconciler.errors import NotFoundError, StorageError, UnsupportedError
from reconciler.hudi.arrow import strings
from reconciler.hudi.load import load_archived, load_properties, newest_archived_time
from reconciler.hudi.view import LOGS_BY_COMPLETION
from reconciler.merge.blocks import Committed
from reconciler.merge.rules import MergeRules
from reconciler.reader.incremental import check_range, commit_times, is_touched, until_of
from reconciler.reader.model import PATH, ReadRequest, Scan
from reconciler.reader.partitions import partition_columns
from reconciler.reader.schema import Shape, evolved_instants, shape_of, wanted_schema
from reconciler.reader.slices import Picked, Until, check_readable, newest_write, pick
from reconciler.state.columns import (
    completed_schema,
    declared_columns,
    file_columns,
    has_meta_columns,
    load_versions,
    table_schema,
)
from reconciler.state.model import TableState
from reconciler.state.observe import ListingSource, observe
from reconciler.state.renames import VERSIONED, renamed_columns
from reconciler.storage.api import Storage

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from reconciler.hudi.properties import TableProperties

_ATTEMPTS: Final = 4
_SKELETONS: Final = "00000000000001"


def open_scan(
    storage: Storage, request: ReadRequest, *, listing: ListingSource = "storage"
) -> Scan:
    """What a read of the table touches, as it is now.

    Nothing is read of the files but the footers of a few. ``listing``: where their names come from.
    Raises BlockedError for a pending restore and for times whose files are gone, naming what can be
    read; UnsupportedError for tables that must not be read, UsageError for a column there is none
    of, FormatError and StorageError.
    """
    for attempt in range(1, _ATTEMPTS + 1):
        try:
            return _Opening.begin(storage, request, listing).scan()
        except NotFoundError as moved:
            if attempt == _ATTEMPTS:
                raise StorageError(
                    moved.path,
                    "went away again and again while the table was opened; its writers are busy: "
                    "run again",
                ) from None
    raise AssertionError


@dataclass(frozen=True, slots=True)
class _Opening:
    """One attempt to open a table."""

    storage: Storage
    request: ReadRequest
    properties: TableProperties
    state: TableState
    until: Until

    @classmethod
    def begin(cls, storage: Storage, request: ReadRequest, listing: ListingSource) -> _Opening:
        properties = load_properties(storage)
        is_past = request.as_of is not None or request.kind == "incremental"
        state = observe(storage, None, observed_ms=0, listing=listing, history=is_past)
        if request.kind == "incremental":
            return cls(storage, request, properties, state, until_of(state, request.end))
        return cls(storage, request, properties, state, Until(requested=request.as_of))

    def scan(self) -> Scan:
        if self.until != Until():
            check_readable(self.state, self.until)
        times = self._commit_times()
        picked = pick(self.state, self.until, only_base=self.request.kind == "readOptimized")
        if times is not None:
            picked = picked.of(is_touched(picked, self.state, times))
        schema = self._schema(picked)
        partition, paths = _partitions_of(picked)
        restored, values = partition_columns(paths, schema, self.properties)
        return Scan(
            location=self.state.location,
            as_of=newest_write(self.state, self.until),
            schema=wanted_schema(schema, self.request.columns, self.properties.table_name),
            table_schema=schema,
            partition_schema=restored,
            partitions=pa.table(
                [strings(paths), *values],
                schema=pa.schema([pa.field(PATH, pa.string(), nullable=False), *restored]),
            ),
            slices=picked.table(partition, self._evolves(picked, schema)),
            rules=MergeRules.of(self.properties),
            committed=Committed.of(
                self.state.timeline,
                table_version=self.state.table_version,
                as_of=self._last_block(),
            ),
            commit_times=times,
        )

    @property
    def _until_of_columns(self) -> Until:
        """Time travel shows the columns of then; an incremental read those of now, as in Hudi."""
        return Until() if self.request.kind == "incremental" else self.until

    def _last_block(self) -> str | None:
        """The instant after which log blocks do not count: version 6 has several in a file."""
        by_name = self.state.table_version < LOGS_BY_COMPLETION
        return self.until.requested if by_name else None

    def _commit_times(self) -> tuple[str, ...] | None:
        begin = self.request.begin
        if self.request.kind != "incremental" or begin is None:
            return None
        if not has_meta_columns(self.properties):
            raise UnsupportedError(
                f"table {self.properties.table_name} has no meta columns, so its rows do not say "
                "when they were written; it cannot be read incrementally"
            )
        newest = newest_archived_time(self.storage, self.properties)
        if newest is not None and (
            self.state.table_version >= LOGS_BY_COMPLETION or newest > begin
        ):
            check_range(self.state, begin, load_archived(self.storage, self.properties))
        return commit_times(self.state, begin, self.request.end)

    def _schema(self, picked: Picked) -> pa.Schema:
        """The columns that the newest write says, else the table's first ones, else a file's."""
        found = declared_columns(
            self.storage, self.properties, self.state, sees=self._until_of_columns.sees
        )
        if found is not None:
            if found.extra.get(VERSIONED):
                self._refuse_renamed(picked)
            return table_schema(found.text, found.path, self.properties)
        rows = picked.base[picked.base >= 0]
        if not len(rows):
            return completed_schema(pa.schema([]), self.properties)
        newest = rows[np.argmax(picked.files.instant[rows])]
        return completed_schema(file_columns(self.storage, *_file(picked, newest)), self.properties)

    def _refuse_renamed(self, picked: Picked) -> None:
        """Raises UnsupportedError where files hold a column of the table under another name."""
        rows = np.concatenate([picked.base[picked.base >= 0], picked.logs])
        versions = load_versions(self.storage)
        if not len(rows) or not versions:
            return
        oldest = picked.files.instants[int(picked.files.instant[rows].min())]
        newest = newest_write(self.state, self._until_of_columns) or oldest
        for column, before in renamed_columns(versions, oldest=oldest, as_of=newest).items():
            was = "another column" if column == before else f"called {before}"
            raise UnsupportedError(
                f"table {self.properties.table_name}: what is column {column} now was {was} when "
                f"its oldest files were written (at {oldest}), and files are read by name; rewrite "
                "them with Hudi, for example by clustering, to read the table here"
            )

    def _evolves(self, picked: Picked, schema: pa.Schema) -> NDArray[np.bool_]:
        """Per slice whether its base file holds other types than the table; footers say."""
        instants = picked.files.instants
        codes = picked.base_instants()
        one_of = np.full(len(instants), -1, np.int64)
        one_of[codes[codes >= 0]] = picked.base[codes >= 0]
        place = {instant: code for code, instant in enumerate(instants)}

        def shape(instant: str) -> Shape:
            path, size = _file(picked, one_of[place[instant]])
            return shape_of(file_columns(self.storage, path, size))

        written = [
            instants[code]
            for code in np.flatnonzero(one_of >= 0).tolist()
            if instants[code] != _SKELETONS
        ]
        evolved = evolved_instants(written, shape, schema) | {_SKELETONS}
        is_evolved = np.array([instant in evolved for instant in instants], np.bool_)
        found = np.zeros(len(picked), np.bool_)
        found[codes >= 0] = is_evolved[codes[codes >= 0]]
        return found


def _partitions_of(picked: Picked) -> tuple[NDArray[np.int32], list[str]]:
    """Per slice the number of its partition among those that have one, and the paths of these."""
    codes = picked.files.group_partition[picked.group]
    used = np.zeros(len(picked.files.partitions), np.bool_)
    used[codes] = True
    number = np.cumsum(used) - 1
    paths = [picked.files.partitions[code] for code in np.flatnonzero(used).tolist()]
    return number[codes].astype(np.int32), paths


def _file(picked: Picked, row: int) -> tuple[str, int]:
    """Path and size of a file by its row."""
    files = picked.files
    folder = files.partitions[files.partition[row]]
    name = files.name[int(row)].as_py()
    return (f"{folder}/{name}" if folder else name), int(files.size[row])
