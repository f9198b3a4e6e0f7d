"""What to write so that the metadata table knows of new files into which rows were moved.

One deltacommit of the data instant, as of a clean: nobody sees any of it before the data table's
instant completes. Files that the new ones replace stay listed until a clean removes them.
Source: HoodieTableMetadataUtil.convertMetadataToRecords (0.15 to 1.2).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from reconciler.errors import BusyError, StaleError, UnsupportedError
from reconciler.hudi import hfile_write
from reconciler.hudi.bloom import code_of
from reconciler.hudi.instant import Action, Instant, State
from reconciler.hudi.logfile import BlockType, HeaderKey, encode_block
from reconciler.hudi.metadata_attempt import earlier_attempt
from reconciler.hudi.metadata_columns import wrappings
from reconciler.hudi.metadata_commit import Deltacommit, LogContent
from reconciler.hudi.metadata_keys import by_file_group
from reconciler.hudi.metadata_partitions import (
    BLOOM_FILTERS,
    COLUMN_STATS,
    RECORD_INDEX,
    Decision,
    RewriteFacts,
    Verdict,
    sync_or_drop,
)
from reconciler.hudi.metadata_places import place_blocks
from reconciler.hudi.metadata_read import ALL_PARTITIONS, UNPARTITIONED, MetadataListing, Names
from reconciler.hudi.metadata_records import Cell, ColumnRange, MetadataRecords
from reconciler.hudi.metadata_table import FILES, MetadataTable
from reconciler.hudi.metadata_timeline import ROOT
from reconciler.hudi.metadata_write import MetadataSync, listing_block

REWRITES: Final = frozenset({Action.REPLACECOMMIT, Action.CLUSTERING})
#: plans that may wait for ever; who carries one out reads the table's properties first
_WAITING: Final = frozenset(
    {Action.COMPACTION, Action.LOGCOMPACTION, Action.CLUSTERING, Action.CLEAN, Action.ROLLBACK}
)


class NewFile(Protocol):
    """A base file that was written; ``basefile.writer.WrittenFile`` is one."""

    @property
    def name(self) -> str: ...
    @property
    def rows(self) -> int: ...
    @property
    def size(self) -> int: ...
    @property
    def bloom(self) -> str | None: ...
    @property
    def ranges(self) -> tuple[ColumnRange, ...]: ...


#: path and size of a new file -> its record keys, string arrays in any order
Keys = Callable[[str, int], Iterable[Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class RewriteSync:
    """``drops``: the metadata partitions to take away first, sorted; ``reasons``: why, of each.

    ``sync`` is None where the table has no live metadata table.
    """

    drops: tuple[str, ...] = ()
    sync: MetadataSync | None = None
    reasons: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Rewriting:
    """One rewrite as the metadata table is told of it.

    ``instant``: requested time, ``instant_ms`` the same in milliseconds since 1970, read in the
    timeline's zone; ``completed``: the deltacommit's completion time, used from version 8 on.
    ``added``: partition path ("" where the table has none) -> its new files. ``columns``: those
    whose range every file has to tell. ``keys`` reads the record keys of a new file.
    """

    instant: str
    completed: str
    instant_ms: int
    added: Mapping[str, Sequence[NewFile]]
    columns: Sequence[str]
    keys: Keys

    @property
    def files(self) -> Iterator[tuple[str, NewFile]]:
        return ((path, file) for path, files in sorted(self.added.items()) for file in files)


def rewrite_sync(
    table: MetadataTable,
    listing: MetadataListing,
    rewriting: Rewriting,
    *,
    inflight: Sequence[str] = (),
) -> RewriteSync:
    """Tell every live partition of the metadata table of new files, or say that it must go.

    ``inflight``: partitions that are being built. What an earlier attempt at the same instant wrote
    is taken back and written again. Raises FormatError, UnsupportedError; StaleError when the
    table's data timeline doesn't show the instant as pending; BusyError when a partition must go
    while another write is pending, which may be counting on it.
    """
    pending = {one.requested: one.action for one in table.timelines.data.pending(REWRITES)}
    if rewriting.instant not in pending:
        raise StaleError(
            f"{rewriting.instant} is no pending clustering on the timeline, so the metadata table "
            "cannot be told of it; read the timeline again"
        )
    rows = sum(file.rows for _path, file in rewriting.files)
    told = _Told(table, listing.schema, rewriting)

    def judged(obstacles: Mapping[str, str]) -> dict[str, Verdict]:
        facts = RewriteFacts(table_version=table.version, rows=rows, obstacles=obstacles)
        return sync_or_drop(pending[rewriting.instant], table.live, inflight, facts)

    wanted = [name for name, verdict in judged({}).items() if verdict.decision is Decision.SYNC]
    contents, obstacles = told.of(wanted)
    verdicts = judged(obstacles)
    dropped = {
        name: verdict.because
        for name, verdict in verdicts.items()
        if verdict.decision is Decision.DROP
    }
    if dropped:
        _check_idle(table, rewriting.instant, dropped)
    earlier = earlier_attempt(table, rewriting.instant, indexes=True)
    logs = [log for name in sorted(verdicts) for log in contents[name]]  # of dropped ones none
    deltacommit = Deltacommit(
        table=table,
        instant=rewriting.instant,
        completed=rewriting.completed,
        schema=listing.schema,
        cleaned=earlier.paths,
    )
    sync = MetadataSync(cleanup=earlier.paths, writes=deltacommit.files(logs) if logs else ())
    return RewriteSync(drops=tuple(sorted(dropped)), sync=sync, reasons=dropped)


def _check_idle(table: MetadataTable, instant: str, dropped: Mapping[str, str]) -> None:
    """Raises BusyError while another write is pending."""
    foreign = [
        other
        for other in table.timelines.data.instants
        if not other.is_completed and other.requested != instant and _counts_on_indexes(other)
    ]
    if foreign:
        raise BusyError(
            f"the metadata partitions {', '.join(sorted(dropped))} must be dropped, but "
            f"{foreign[0].file_name} is pending and may be counting on them; run again when it has "
            "completed or was rolled back"
        )


def _counts_on_indexes(instant: Instant) -> bool:
    return not (instant.state is State.REQUESTED and instant.action in _WAITING)


@dataclass(frozen=True, slots=True)
class _Told:
    """Makes the log files of each partition. ``schema``: the JSON of its newest records' schema."""

    table: MetadataTable
    schema: str
    rewriting: Rewriting

    def of(self, wanted: Iterable[str]) -> tuple[dict[str, list[LogContent]], dict[str, str]]:
        """The log files of each partition, and why there are none where that is so."""
        makers = {
            COLUMN_STATS: self._column_stats,
            BLOOM_FILTERS: self._bloom_filters,
            RECORD_INDEX: self._record_index,
        }
        contents: dict[str, list[LogContent]] = {name: [] for name in self.table.live}
        obstacles = {}
        for name in wanted:
            if name == FILES:
                contents[name] = self._listing()
                continue
            try:
                contents[name] = makers[name]()
            except UnsupportedError as problem:
                obstacles[name] = str(problem).partition("; drop the index")[0]
        return contents, obstacles

    def _listing(self) -> list[LogContent]:
        """Every partition that gets files, once more, and the new files, as Hudi says them."""
        added = {path: files for path, files in self.rewriting.added.items() if files}
        if not added:
            return []
        changes: dict[str, Names] = {ALL_PARTITIONS: dict.fromkeys(map(_partition, added), 0)}
        for path, files in added.items():
            changes[_partition(path)] = {file.name: file.size for file in files}
        (newest,) = self.table.slices(FILES)
        data = listing_block(self.rewriting.instant, self.schema, changes)
        return [LogContent(over=newest, data=data, writes=len(changes))]

    def _column_stats(self) -> list[LogContent]:
        columns = self.rewriting.columns
        if not columns:
            raise UnsupportedError("the columns of the index are not written down")
        records = self._records()
        learned = wrappings(self.table, columns)
        cells: list[Cell] = []
        for path, file in self.rewriting.files:
            ranges = {found.column: found for found in file.ranges}
            unknown = [column for column in columns if column not in ranges]
            if unknown:
                raise UnsupportedError(f"{file.name}: the range of {unknown[0]} is not known")
            wanted = [ranges[column] for column in columns]
            cells += records.column_stats(_partition(path), file.name, wanted, learned)
        return self._logs(COLUMN_STATS, cells)

    def _bloom_filters(self) -> list[LogContent]:
        records, instant = self._records(), self.rewriting.instant
        cells = []
        for path, file in self.rewriting.files:
            if file.bloom is None:
                raise UnsupportedError(f"{file.name}: has no bloom filter")
            code = code_of(file.bloom, file.name)
            cells.append(
                records.bloom_filter(_partition(path), file.name, instant, code, file.bloom)
            )
        return self._logs(BLOOM_FILTERS, cells)

    def _record_index(self) -> list[LogContent]:
        records = self._records()
        places = [
            (
                f"{path}/{file.name}" if path else file.name,
                file.size,
                records.record_location(path, file.name, self.rewriting.instant_ms),
            )
            for path, file in self.rewriting.files
        ]
        return [
            LogContent(over=over, data=self._block(content), writes=rows)
            for over, rows, content in place_blocks(
                self.table, places, self.rewriting.keys, self.schema
            )
        ]

    def _records(self) -> MetadataRecords:
        return MetadataRecords(schema=self.schema, path=ROOT)

    def _logs(self, partition: str, cells: Sequence[Cell]) -> list[LogContent]:
        """A log file for each file group that gets some of the cells."""
        values = {key.decode(): (key, value) for key, value in cells}
        slices = self.table.slices(partition)
        logs = []
        for over, keys in zip(slices, by_file_group([*values], len(slices)), strict=True):
            if keys:
                some = sorted(values[key] for key in keys)
                content = hfile_write.encode(some, self.schema)
                logs.append(LogContent(over=over, data=self._block(content), writes=len(some)))
        return logs

    def _block(self, content: bytes) -> bytes:
        header = [
            (HeaderKey.INSTANT_TIME, self.rewriting.instant),
            (HeaderKey.SCHEMA, self.schema),
        ]
        return encode_block(BlockType.HFILE_DATA, header, content)


def _partition(path: str) -> str:
    return path or UNPARTITIONED
