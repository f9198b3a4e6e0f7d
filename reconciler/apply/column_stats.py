"""Building Hudi's own index column_stats, and partition_stats with it, without Hudi.

Footers are read without the lock; under it, whatever is there of the two goes first, out of the
table's properties and then from storage; definitions, file groups and their deltacommit follow; at
last the properties list both. In between readers have no index and open every file, so a stop
anywhere leaves the table right, and the next apply builds it. Nothing is on the data timeline.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from reconciler.apply.checks import Look
from reconciler.apply.column_footers import Footers, built_columns
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
from reconciler.planners.column_stats import busy_with, verdict
from reconciler.state.model import TableState
from reconciler.state.view import newest_logs, view_of
from reconciler.storage.api import Storage
from reconciler.transaction import metadata_rewrite

if TYPE_CHECKING:
    from reconciler.hudi.timeline import Timeline
    from reconciler.index.model import FileIndex

_BOTH: Final = (COLUMN_STATS, PARTITION_STATS)
#: how often a writer that takes no lock may complete a commit while we build
_ATTEMPTS: Final = 3
#: of an instant time
_DIGITS: Final = 17


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
    read = Footers(table)
    read.of(look.state)
    for _attempt in range(_ATTEMPTS):
        with table.locked():
            # again: somebody may have written while footers were read, and may yet without the lock
            state = table.look().state
            if not _is_due(state, columns):
                return ColumnStatsBuilt()
            index = read.of(state)
            partitions = _Build(table=table, state=state, index=index).run()
        if partitions:
            return ColumnStatsBuilt(
                partitions=partitions,
                columns=tuple(read.columns),
                files=len(index),
                footers=read.count,
                unread=read.unread,
                said=tuple(read.said),
            )
    raise BusyError(
        f"others have written to the table {_ATTEMPTS} times while column_stats was being built; "
        "run again when it is quieter"
    )


def _is_due(state: TableState, columns: Sequence[str]) -> bool:
    found = verdict(state, columns)
    if found.because is not None:
        busy = busy_with(state.timeline)
        raise (BusyError if busy else UnsupportedError)(found.because)
    return found.is_due


def _has_more(timeline: Timeline, before: Timeline) -> bool:
    """Whether an instant has completed since; that some were archived changes nothing."""
    known = {instant.requested for instant in before.instants if instant.is_completed}
    done = {instant.requested for instant in timeline.instants if instant.is_completed}
    return not done <= known


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
        """The metadata partitions that are live now; none where a commit completed meanwhile.

        What was written then is listed by nothing.
        """
        properties = load_properties(self.storage)
        timeline = self._quiet()
        if timeline is None:
            return ()
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
        # version 6 hangs three digits more on the times of some of them
        newest = (opened.timeline.newest_time or "")[:_DIGITS] or None
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
        if self._quiet() is None:
            return ()
        metadata_rewrite.add_partitions(
            self.storage, partitions, defined=None if defined is None else DEFINITIONS
        )
        return partitions

    def _quiet(self) -> Timeline | None:
        """The timeline as it is now; None where a commit has completed since the table was read.

        Raises BusyError while a write is pending: it makes no entries in an index that was not
        there when it began.
        """
        timeline = self.table.reread()
        busy = busy_with(timeline)
        if busy is not None:
            raise BusyError(
                f"{busy.file_name} is pending and may be counting on the indexes as they are; run "
                "again when it has completed or was rolled back"
            )
        return None if _has_more(timeline, self.state.timeline) else timeline

    def _keepings(self, version: int) -> Mapping[str, Keeping]:
        found = {}
        for column, kind in built_columns(self.state).items():
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
        columns = tuple(built_columns(self.state))
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
