"""Building Hudi's own index column_stats, and partition_stats with it, without Hudi.

Footers are read without the lock; under it, whatever is there of the two goes first, out of the
table's properties and then from storage; definitions, file groups and their deltacommit follow; at
last the properties list both. In between readers have no index and open every file, so a stop
anywhere leaves the table right, and the next apply builds it. Nothing is on the data timeline.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from reconciler.apply import metadata, metadata_rewrite
from reconciler.apply.checks import Look
from reconciler.apply.column_ranges import ranges_of, unknown_ranges
from reconciler.apply.table import Table
from reconciler.errors import BusyError, NotFoundError, UnsupportedError
from reconciler.hudi.load import load_properties
from reconciler.hudi.metadata_build import (
    FileRanges,
    earlier_builds,
    first_writes,
    instant_of,
    partitions_of,
    with_definition,
)
from reconciler.hudi.metadata_commit import Deltacommit
from reconciler.hudi.metadata_index import DEFINITIONS
from reconciler.hudi.metadata_keeping import Keeping, keeping
from reconciler.hudi.metadata_partitions import COLUMN_STATS, PARTITION_STATS
from reconciler.hudi.metadata_read import read_listing
from reconciler.hudi.metadata_table import open_metadata
from reconciler.hudi.metadata_timeline import EIGHT, ROOT
from reconciler.hudi.properties import TableProperties
from reconciler.index.build import Asked, Built, Threads
from reconciler.index.keys import joined, places, take
from reconciler.index.merge import Keys
from reconciler.planners.column_stats import busy_with, columns_of, verdict
from reconciler.state.known_index import keys_of
from reconciler.state.model import TableState
from reconciler.state.view import newest_logs, view_of
from reconciler.storage.api import Storage

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from reconciler.index.model import FileIndex

_BOTH: Final = (COLUMN_STATS, PARTITION_STATS)


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnStatsBuilt:
    """What was built: ``partitions`` of the metadata table, none where there was nothing to do.

    ``columns``: all that it holds; ``files``: with entries, ``footers`` of them were read, of which
    ``unread`` could not be; ``said``: why not, of the first few.
    """

    partitions: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    files: int = 0
    footers: int = 0
    unread: int = 0
    said: tuple[str, ...] = ()


def build_column_stats(
    table: Table, columns: Sequence[str], look: Look | None = None
) -> ColumnStatsBuilt:
    """Make Hudi's index cover ``columns``, where it does not yet; the lock is taken here.

    ``look`` is one just taken, if there is one. Raises UnsupportedError where it cannot be built
    here, BusyError while others are at work, and as ``Table.look``; the table is right then too.
    """
    look = look or table.look()
    if not _is_due(look.state, columns):
        return ColumnStatsBuilt()
    read = _Footers(table)
    read.of(look.state)
    with table.locked():
        state = table.look().state  # again: somebody may have written while footers were read
        if not _is_due(state, columns):
            return ColumnStatsBuilt()
        index = read.of(state)
        partitions = _Build(table=table, state=state, index=index).run()
    return ColumnStatsBuilt(
        partitions=partitions,
        columns=tuple(read.columns),
        files=len(index),
        footers=read.count,
        unread=read.unread,
        said=tuple(read.said),
    )


def _is_due(state: TableState, columns: Sequence[str]) -> bool:
    found = verdict(state, columns)
    if found.because is not None:
        busy = busy_with(state.timeline)
        raise (BusyError if busy else UnsupportedError)(found.because)
    return found.is_due


class _Footers:
    """Footers of base files of newest slices, each read once however often the table is looked at.

    ``columns``: by column its type.
    """

    def __init__(self, table: Table) -> None:
        self.columns: dict[str, Any] = {}
        self.count = self.unread = 0
        self.said: list[str] = []
        self._table = table
        self._index: FileIndex | None = None

    def of(self, state: TableState) -> FileIndex:
        """The statistics of every base file that a read of now sees."""
        known = state.index
        assert known is not None, "a spec with an index block has one"
        columns = columns_of(known.schema, state.table_version)
        if columns != self.columns:
            self.columns, self._index = columns, None
        files = keys_of(state, known.files)
        rows = self._places(files)
        lacking = np.flatnonzero(rows < 0)
        if len(lacking) or self._index is None:
            built = self._read(state, keys_of(state, known.files[lacking]))
            self._index = joined(
                [built.index] if self._index is None else [self._index, built.index]
            )
            rows = self._places(files)
        return take(self._index, np.sort(rows))

    def _places(self, files: Keys) -> NDArray[np.int64]:
        if self._index is None:
            return np.full(len(files), -1, np.int64)
        return places(self._index, files.partition, files.name, files.size)

    def _read(self, state: TableState, files: Keys) -> Built:
        known = state.index
        assert known is not None, "a spec with an index block has one"
        names = state.partition_fields
        asked = Asked(
            columns=tuple(self.columns),
            schema=known.schema,
            supplied=frozenset(c for c in self.columns if c.split(".")[0] in names),
        )
        tools = self._table.tools
        builder = tools.builder or Threads(tools.open_storage)
        with self._table.phase("index", len(files)) as advance:
            built = builder.build(self._table.storage.ref, asked, files, progress=advance)
        self.count += len(files)
        self.unread += built.unread
        self.said += built.said
        return built


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Build:
    """The part under the lock."""

    table: Table
    state: TableState
    index: FileIndex

    @property
    def storage(self) -> Storage:
        return self.table.storage

    def run(self) -> tuple[str, ...]:
        """The metadata partitions that are live now."""
        properties = load_properties(self.storage)
        timeline = self.table.reread()
        busy = busy_with(timeline)
        if busy is not None:
            raise BusyError(
                f"{busy.file_name} is pending and may be counting on the indexes as they are; run "
                "again when it has completed or was rolled back"
            )
        opened = open_metadata(
            self.storage,
            version=properties.table_version,
            data=timeline,
            live=properties.metadata_partitions,
        )
        schema = read_listing(opened).schema
        earlier = earlier_builds(opened)
        defined = self._definitions(properties)
        keepings = self._keepings(properties.table_version)
        partitions = partitions_of(
            properties.table_version, is_partitioned=self.state.is_partitioned
        )
        newest = metadata.newest_time(self.storage, properties, timeline)
        time = self.table.publisher.new_time(timeline, newest)
        deltacommit = Deltacommit(
            table=opened,
            instant=instant_of(time, properties.table_version),
            completed=self.table.publisher.new_time(timeline, time),
            schema=schema,
            cleaned=(),
        )
        wrappings = {column: kept.wrapping for column, kept in keepings.items()}
        writes = first_writes(deltacommit, self._files(keepings), wrappings, partitions)
        self.table.lock.confirm()
        properties = self._drop(properties)
        for path in earlier:
            self.storage.delete(path)
        if defined is not None:
            self.storage.replace(DEFINITIONS, defined)
        for write in writes:
            self.storage.create(write.path, write.data)
        self.table.lock.confirm()
        metadata_rewrite.add_partitions(
            self.storage, partitions, defined=None if defined is None else DEFINITIONS
        )
        return partitions

    def _keepings(self, version: int) -> Mapping[str, Keeping]:
        assert self.state.index is not None, "a spec with an index block has one"
        found = {}
        for column, kind in columns_of(self.state.index.schema, version).items():
            kept = keeping(kind, version)
            assert kept is not None, "columns_of gives none that cannot be kept"
            found[column] = kept
        return found

    def _files(self, keepings: Mapping[str, Keeping]) -> Iterator[FileRanges]:
        """Base files, and log files where a partition's bounds come from those of its files."""
        yield from ranges_of(self.index, keepings)
        if self.state.table_version < EIGHT:
            return
        files = self.state.files
        rows = newest_logs(view_of(self.state))
        names = files.name.to_pylist() if len(rows) else []
        for row in rows.tolist():
            path = files.partitions[files.partition[row]]
            yield unknown_ranges(path, names[row], keepings)

    def _definitions(self, properties: TableProperties) -> bytes | None:
        """What the definitions become; None where the table's version has none."""
        if properties.table_version < EIGHT:
            return None
        said = properties.raw.get("hoodie.table.index.defs.path")
        if said and said != DEFINITIONS:
            raise UnsupportedError(f"the table keeps the definitions of its indexes in {said}")
        assert self.state.index is not None, "a spec with an index block has one"
        columns = tuple(columns_of(self.state.index.schema, properties.table_version))
        try:
            data = self.storage.read(DEFINITIONS)
        except NotFoundError:
            data = None
        return with_definition(data, columns, properties.table_version)

    def _drop(self, properties: TableProperties) -> TableProperties:
        """Take away what there is of both, listed or left by a stop; nothing looks there then."""
        there = {entry.name for entry in self.storage.list(ROOT) if entry.is_folder}
        live = there | set(properties.metadata_partitions)
        gone = [name for name in _BOTH if name in live]
        return (
            metadata_rewrite.drop_partitions(self.storage, properties, gone) if gone else properties
        )
