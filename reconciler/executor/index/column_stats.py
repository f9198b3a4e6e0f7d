"""Build Hudi's own index column_stats, and partition_stats with it, without Hudi.

Footers are read without the lock. Under it, what there is of both indexes is removed, first from
the table's properties and then from storage. Definitions, file groups and their deltacommit are
written next, and the properties list both indexes at last. In between readers have no index and
open every file, so a stop anywhere leaves the table right, and the next apply builds the index.
Nothing is written to the data timeline.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from reconciler.arrays import Integers
from reconciler.errors import BusyError, NotFoundError, UnsupportedError
from reconciler.executor.fresh_plan import FreshPlan
from reconciler.executor.index.column_ranges import make_file_ranges, make_unknown_ranges
from reconciler.executor.progress import Phase
from reconciler.executor.session import ApplySession, LockedApplyChange
from reconciler.hudi.load import load_properties
from reconciler.hudi.metadata.bound_encoding import BoundEncoding, find_bound_encoding
from reconciler.hudi.metadata.deltacommit import Deltacommit
from reconciler.hudi.metadata.index_build import (
    DataFileRanges,
    build_first_writes,
    find_earlier_builds,
    list_built_partitions,
    name_build_instant,
)
from reconciler.hudi.metadata.index_definitions import DEFINITIONS, add_column_stats_definition
from reconciler.hudi.metadata.listing import read_metadata_listing
from reconciler.hudi.metadata.own_timeline import ROOT, VERSION_8
from reconciler.hudi.metadata.sync_decisions import COLUMN_STATS, PARTITION_STATS
from reconciler.hudi.metadata.table import open_live_metadata
from reconciler.hudi.table.properties import TableProperties
from reconciler.index.build import BuiltIndex, IndexRequest, ThreadedIndexBuilder
from reconciler.index.file_keys import find_rows, join_indexes, take_files
from reconciler.index.model import FileKeys
from reconciler.lazy_dataclass import dataclass
from reconciler.planners.busy_instant import find_busy_instant
from reconciler.planners.index.column_stats import (
    assess_column_stats,
    list_indexed_columns,
)
from reconciler.state.current_files import find_newest_logs
from reconciler.state.index_state_reader import build_file_keys
from reconciler.state.model import TableState
from reconciler.storage.api import Advance, Storage
from reconciler.transaction.metadata.live_partitions import add_partitions, drop_partitions
from reconciler.transaction.retry import ShouldWait
from reconciler.transaction.run import Ended, run_change

if TYPE_CHECKING:
    from reconciler.hudi.timeline.active import Timeline
    from reconciler.index.model import FileIndex

_BOTH: Final = (COLUMN_STATS, PARTITION_STATS)
#: of an instant time
_DIGITS: Final = 17


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnStatsResult:
    """The result of a build: ``partitions`` of the metadata table, none if there was nothing to do.

    ``columns``: all that the index holds. ``files``: those with entries; ``footers`` of them were
    read, ``unread`` could not be. ``problems``: why not, for the first few.
    """

    partitions: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    files: int = 0
    footers: int = 0
    unread: int = 0
    problems: tuple[str, ...] = ()


def list_built_columns(state: TableState) -> dict[str, Any]:
    """Return the columns that the index is built of, with their Arrow types."""
    known = state.index_state
    assert known is not None, "a spec with an index block has one"
    return list_indexed_columns(known.schema, state.table_version, known.hudi_defined)


class FooterStatistics:
    """Statistics of base files of newest slices; each footer is read once.

    ``columns``: type by column.
    """

    def __init__(self, session: ApplySession) -> None:
        self.columns: dict[str, Any] = {}
        self.count = self.unread = 0
        self.problems: list[str] = []
        self._session = session
        self._index: FileIndex | None = None

    def read_statistics(self, state: TableState) -> FileIndex:
        """Return the statistics of every base file that a reader sees now."""
        known = state.index_state
        assert known is not None, "a spec with an index block has one"
        columns = list_built_columns(state)
        if columns != self.columns:
            self.columns, self._index = columns, None
        files = build_file_keys(state, known.files)
        rows = self._find_places(files)
        lacking = np.flatnonzero(rows < 0)
        if len(lacking) or self._index is None:
            built = self._read(state, build_file_keys(state, known.files[lacking]))
            self._index = join_indexes(
                [built.index] if self._index is None else [self._index, built.index]
            )
            rows = self._find_places(files)
        return take_files(self._index, np.sort(rows))

    def _find_places(self, files: FileKeys) -> Integers:
        if self._index is None:
            return np.full(len(files), -1, np.int64)
        return find_rows(self._index, files)

    def _read(self, state: TableState, files: FileKeys) -> BuiltIndex:
        known = state.index_state
        assert known is not None, "a spec with an index block has one"
        names = state.partition_fields
        request = IndexRequest(
            columns=tuple(self.columns),
            schema=known.schema,
            supplied=frozenset(c for c in self.columns if c.split(".")[0] in names),
        )
        context = self._session.context
        builder = context.builder or ThreadedIndexBuilder(context.open_storage)
        with self._session.phase("index", len(files)) as advance:
            built = builder.build(self._session.storage.ref, request, files, progress=advance)
        self.count += len(files)
        self.unread += built.unread_count
        self.problems += built.problems
        return built


def build_column_stats(
    session: ApplySession, columns: Sequence[str], fresh: FreshPlan | None = None
) -> ColumnStatsResult:
    """Make Hudi's index cover ``columns``, if it does not yet; the lock is taken here.

    ``fresh`` is a plan that was made just now, if there is one. Raises UnsupportedError if the
    index cannot be built here, BusyError while others are at work, and as
    ``ApplySession.make_fresh_plan``. The table is right then too.
    """
    return run_change(_ColumnStatsChange(session=session, fresh=fresh, columns=columns))


@dataclass(kw_only=True, eq=False)
class _ColumnStatsChange(LockedApplyChange[FooterStatistics, ColumnStatsResult]):
    """Reads footers without the lock, and builds the index under it.

    Each attempt after the first reads the footers of files that came meanwhile.
    """

    activity = "column_stats was being built"
    attempts = 3

    columns: Sequence[str]
    footers: FooterStatistics | None = None

    def phase(self, name: Phase) -> AbstractContextManager[Advance]:  # noqa: ARG002
        """Reading footers reports its own phase; the rest is short."""
        return nullcontext(lambda _count: None)

    def prepare(self) -> FooterStatistics | Ended[ColumnStatsResult]:
        if self.footers is None:
            state = (self.fresh or self.session.make_fresh_plan()).state
            if not _is_due(state, self.columns):
                return Ended(ColumnStatsResult())
            self.footers = FooterStatistics(self.session)
            self.footers.read_statistics(state)
        return self.footers

    def request(
        self,
        prepared: FooterStatistics,
        should_wait: ShouldWait,  # noqa: ARG002
    ) -> Ended[ColumnStatsResult] | None:
        """Build the index; None if a writer that takes no lock completed a commit meanwhile."""
        # again: a writer may have written while footers were read
        state = self.session.make_fresh_plan().state
        if not _is_due(state, self.columns):
            return Ended(ColumnStatsResult())
        index = prepared.read_statistics(state)
        partitions = _ColumnStatsBuild(session=self.session, state=state, index=index).run()
        if not partitions:
            return None
        result = ColumnStatsResult(
            partitions=partitions,
            columns=tuple(prepared.columns),
            files=len(index),
            footers=prepared.count,
            unread=prepared.unread,
            problems=tuple(prepared.problems),
        )
        return Ended(result)


def _is_due(state: TableState, columns: Sequence[str]) -> bool:
    need = assess_column_stats(state, columns)
    if need.because is not None:
        busy = find_busy_instant(state.timeline)
        raise (BusyError if busy else UnsupportedError)(need.because)
    return need.is_due


def _has_new_commits(timeline: Timeline, before: Timeline) -> bool:
    """Return True if an instant has completed since; that some were archived does not count."""
    known = {instant.requested for instant in before.instants if instant.is_completed}
    done = {instant.requested for instant in timeline.instants if instant.is_completed}
    return not done <= known


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _ColumnStatsBuild:
    """The part of a build that runs under the lock."""

    session: ApplySession
    state: TableState
    index: FileIndex

    @property
    def storage(self) -> Storage:
        return self.session.storage

    def run(self) -> tuple[str, ...]:
        """Build the index, and return the metadata partitions that are live now.

        Returns none if a commit completed meanwhile: what was written then is listed nowhere.
        """
        properties = load_properties(self.storage)
        timeline = self._load_quiet_timeline()
        if timeline is None:
            return ()
        opened = open_live_metadata(self.storage, properties, timeline)
        schema = read_metadata_listing(opened).schema
        earlier = find_earlier_builds(opened, _BOTH)
        defined = self._make_definitions(properties)
        keepings = self._find_keepings(properties.table_version)
        partitions = list_built_partitions(
            properties.table_version, is_partitioned=self.state.is_partitioned
        )
        # version 6 hangs three digits more on the times of some of them
        newest = (opened.timeline.newest_time or "")[:_DIGITS] or None
        time = self.session.publisher.choose_time(timeline, newest)
        deltacommit = Deltacommit(
            table=opened,
            instant=name_build_instant(time, properties.table_version),
            completion_time=self.session.publisher.choose_time(timeline, time),
            schema=schema,
        )
        wrappings = {column: kept.wrapper for column, kept in keepings.items()}
        writes = build_first_writes(
            deltacommit, self._make_file_ranges(keepings), wrappings, partitions
        )
        self.session.lock.confirm()
        properties = self._drop_partitions(properties)
        for path in earlier:
            self.storage.delete(path)
        if defined is not None:
            self.storage.replace(DEFINITIONS, defined)
        for write in writes:
            self.storage.create(write.path, write.data)
        self.session.lock.confirm()
        if self._load_quiet_timeline() is None:
            return ()
        add_partitions(self.storage, partitions, defined=None if defined is None else DEFINITIONS)
        return partitions

    def _load_quiet_timeline(self) -> Timeline | None:
        """Return the timeline; None if a commit has completed since the table was read.

        Raises BusyError while a write is pending: it makes no entries in an index that was not
        there when it began.
        """
        timeline = self.session.reload_timeline()
        busy = find_busy_instant(timeline)
        if busy is not None:
            raise BusyError(
                f"{busy.file_name} is pending and may be counting on the indexes as they are; run "
                "again when it has completed or was rolled back"
            )
        return None if _has_new_commits(timeline, self.state.timeline) else timeline

    def _find_keepings(self, version: int) -> Mapping[str, BoundEncoding]:
        encodings = {}
        for column, kind in list_built_columns(self.state).items():
            kept = find_bound_encoding(kind, version)
            assert kept is not None, "columns_of gives none that cannot be kept"
            encodings[column] = kept
        return encodings

    def _make_file_ranges(self, keepings: Mapping[str, BoundEncoding]) -> Iterator[DataFileRanges]:
        """Yield ranges of base files, and of log files if a partition's bounds need them."""
        yield from make_file_ranges(self.index, keepings)
        if self.state.table_version < VERSION_8:
            return
        files = self.state.files
        rows = find_newest_logs(self.state.view)
        names = files.name.to_pylist() if len(rows) else []
        for row in rows.tolist():
            path = files.partitions[files.partition[row]]
            yield make_unknown_ranges(path, names[row], keepings)

    def _make_definitions(self, properties: TableProperties) -> bytes | None:
        """Return the new index definitions; None if the table's version has none."""
        if properties.table_version < VERSION_8:
            return None
        path = properties.raw.get("hoodie.table.index.defs.path")
        if path and path != DEFINITIONS:
            raise UnsupportedError(f"the table keeps the definitions of its indexes in {path}")
        columns = tuple(list_built_columns(self.state))
        try:
            data = self.storage.read(DEFINITIONS)
        except NotFoundError:
            data = None
        return add_column_stats_definition(data, columns, properties.table_version)

    def _drop_partitions(self, properties: TableProperties) -> TableProperties:
        """Drop what there is of both indexes, listed or left by a stop."""
        folders = {entry.name for entry in self.storage.list(ROOT) if entry.is_folder}
        live = folders | set(properties.metadata_partitions)
        to_drop = [name for name in _BOTH if name in live]
        return drop_partitions(self.storage, properties, to_drop) if to_drop else properties
