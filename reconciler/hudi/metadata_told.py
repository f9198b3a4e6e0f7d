"""What a commit has the metadata table told, one log file for each file group that gets to know.

Whatever new files are for, rows that move or rows that are new, they are listed, ranged, filtered
and placed alike; what is said beyond that, and which partitions are told, is the commit's.
Source: HoodieTableMetadataUtil.convertMetadataToRecords (0.15 to 1.2).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from reconciler.errors import BusyError, StaleError, UnsupportedError
from reconciler.hudi import hfile_write
from reconciler.hudi.bloom import code_of
from reconciler.hudi.instant import Action, Instant, State
from reconciler.hudi.logfile import BlockType, HeaderKey, delete_content, encode_block
from reconciler.hudi.metadata_attempt import earlier_attempt
from reconciler.hudi.metadata_columns import wrappings
from reconciler.hudi.metadata_commit import Deltacommit, LogContent
from reconciler.hudi.metadata_keys import by_file_group
from reconciler.hudi.metadata_partitions import (
    BLOOM_FILTERS,
    COLUMN_STATS,
    RECORD_INDEX,
    Decision,
    Verdict,
)
from reconciler.hudi.metadata_places import place_blocks
from reconciler.hudi.metadata_read import ALL_PARTITIONS, UNPARTITIONED, MetadataListing, Names
from reconciler.hudi.metadata_records import Cell, ColumnRange, MetadataRecords, Wrapping
from reconciler.hudi.metadata_table import FILES, MetadataTable
from reconciler.hudi.metadata_timeline import ROOT
from reconciler.hudi.metadata_write import MetadataSync, listing_block

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


#: path and size of a new file -> record keys, string arrays in any order
Keys = Callable[[str, int], Iterable[Any]]
#: the log files that tell one metadata partition; raises UnsupportedError where that cannot be
Maker = Callable[[], list[LogContent]]


@dataclass(frozen=True, slots=True, kw_only=True)
class RewriteSync:
    """``drops``: the metadata partitions to take away first, sorted; ``reasons``: why, of each.

    ``sync`` is None where the table has no live metadata table.
    """

    drops: tuple[str, ...] = ()
    sync: MetadataSync | None = None
    reasons: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Tidings:
    """The new files of a pending instant, as the metadata table is told of them.

    ``instant``: requested time, ``instant_ms`` the same in milliseconds since 1970, read in the
    timeline's zone; ``completed``: the deltacommit's completion time, used from version 8 on.
    ``added``: partition path ("" where the table has none) -> its new files. ``columns``: those
    whose range every file has to tell. ``keys`` gives the record keys of a new file whose places
    are told.
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


def synced(
    teller: Teller,
    makers: Mapping[str, Maker],
    judged: Callable[[Mapping[str, str]], Mapping[str, Verdict]],
) -> RewriteSync:
    """Every partition that can be told is, the others must go; what one attempt wrote goes first.

    ``judged``: obstacles by metadata partition -> the verdict on each live one. Raises what
    ``judged`` does; BusyError when a partition must go while another write is pending, which may be
    counting on it; FormatError.
    """
    table, instant = teller.table, teller.tidings.instant
    wanted = [name for name, verdict in judged({}).items() if verdict.decision is Decision.SYNC]
    contents, obstacles = _contents(makers, wanted)
    verdicts = judged(obstacles)
    dropped = {
        name: verdict.because
        for name, verdict in verdicts.items()
        if verdict.decision is Decision.DROP
    }
    if dropped:
        _check_idle(table, instant, dropped)
    earlier = earlier_attempt(table, instant, indexes=True)
    told = [name for name in sorted(contents) if name not in dropped]
    logs = [log for name in told for log in contents[name]]
    deltacommit = Deltacommit(
        table=table,
        instant=instant,
        completed=teller.tidings.completed,
        schema=teller.schema,
        cleaned=earlier.paths,
    )
    sync = MetadataSync(cleanup=earlier.paths, writes=deltacommit.files(logs) if logs else ())
    return RewriteSync(drops=tuple(sorted(dropped)), sync=sync, reasons=dropped)


def _contents(
    makers: Mapping[str, Maker], wanted: Iterable[str]
) -> tuple[dict[str, list[LogContent]], dict[str, str]]:
    """The log files of each partition, and why there are none where that is so."""
    contents: dict[str, list[LogContent]] = {}
    obstacles = {}
    for name in wanted:
        try:
            contents[name] = makers[name]()
        except UnsupportedError as problem:
            if name == FILES:
                raise
            obstacles[name] = str(problem).partition("; drop the index")[0]
    return contents, obstacles


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
class Teller:
    """Makes the log files of each partition. ``schema``: the JSON of its newest records' schema."""

    table: MetadataTable
    schema: str
    tidings: Tidings

    @classmethod
    def of(cls, table: MetadataTable, listing: MetadataListing, tidings: Tidings) -> Teller:
        return cls(table, listing.schema, tidings)

    @property
    def records(self) -> MetadataRecords:
        return MetadataRecords(schema=self.schema, path=ROOT)

    def makers(self) -> dict[str, Maker]:
        """Of what is told of new files whatever they are for."""
        return {
            FILES: self.listing,
            COLUMN_STATS: self.column_stats,
            BLOOM_FILTERS: self.bloom_filters,
            RECORD_INDEX: self.record_index,
        }

    def listing(self) -> list[LogContent]:
        """Every partition that gets files, once more, and the new files, as Hudi says them."""
        added = {path: files for path, files in self.tidings.added.items() if files}
        if not added:
            return []
        changes: dict[str, Names] = {ALL_PARTITIONS: dict.fromkeys(map(listed, added), 0)}
        for path, files in added.items():
            changes[listed(path)] = {file.name: file.size for file in files}
        (newest,) = self.table.slices(FILES)
        data = listing_block(self.tidings.instant, self.schema, changes)
        return [LogContent(over=newest, data=data, writes=len(changes))]

    def column_stats(self, known: Mapping[str, Wrapping] | None = None) -> list[LogContent]:
        """The ranges of every new file; ``known``: how columns are kept, learned where None."""
        columns = self.tidings.columns
        if not columns:
            raise UnsupportedError("the columns of the index are not written down")
        learned = wrappings(self.table, columns) if known is None else known
        cells: list[Cell] = []
        for path, file in self.tidings.files:
            wanted = ranges_of(file, columns)
            cells += self.records.column_stats(listed(path), file.name, wanted, learned)
        return self.logs(COLUMN_STATS, cells)

    def bloom_filters(self) -> list[LogContent]:
        """The filter of every new file."""
        records, instant = self.records, self.tidings.instant
        cells = []
        for path, file in self.tidings.files:
            if file.bloom is None:
                raise UnsupportedError(f"{file.name}: has no bloom filter")
            code = code_of(file.bloom, file.name)
            cells.append(records.bloom_filter(listed(path), file.name, instant, code, file.bloom))
        return self.logs(BLOOM_FILTERS, cells)

    def record_index(self, keys: Keys | None = None, gone: Iterable[Any] = ()) -> list[LogContent]:
        """Where keys of new files are, and of ``gone``, string arrays of keys, that they are not.

        ``keys``: other than the tidings'.
        """
        records = self.records
        places = [
            (
                f"{path}/{file.name}" if path else file.name,
                file.size,
                records.record_location(path, file.name, self.tidings.instant_ms),
            )
            for path, file in self.tidings.files
        ]
        found = []
        keys = keys or self.tidings.keys
        for told in place_blocks(self.table, places, keys, self.schema, gone):
            data = self._block(told.content) if told.content is not None else b""
            if told.gone:
                data += self._deletion(told.gone, RECORD_INDEX)
            found.append(
                LogContent(over=told.over, data=data, writes=told.rows, deletes=len(told.gone))
            )
        return found

    def logs(self, partition: str, cells: Sequence[Cell]) -> list[LogContent]:
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
        return encode_block(BlockType.HFILE_DATA, self._header, content)

    def _deletion(self, keys: Sequence[str], partition: str) -> bytes:
        return encode_block(BlockType.DELETE, self._header, delete_content(keys, partition))

    @property
    def _header(self) -> list[tuple[HeaderKey, str]]:
        return [
            (HeaderKey.INSTANT_TIME, self.tidings.instant),
            (HeaderKey.SCHEMA, self.schema),
        ]


def ranges_of(file: NewFile, columns: Sequence[str]) -> list[ColumnRange]:
    """The file's ranges of these columns, in their order; UnsupportedError where one is missing."""
    ranges = {found.column: found for found in file.ranges}
    unknown = [column for column in columns if column not in ranges]
    if unknown:
        raise UnsupportedError(f"{file.name}: the range of {unknown[0]} is not known")
    return [ranges[column] for column in columns]


def listed(path: str) -> str:
    """A partition path as the metadata table calls it."""
    return path or UNPARTITIONED


def pending_action(
    table: MetadataTable, instant: str, actions: Collection[Action], what: str
) -> Action:
    """The action of a pending instant; StaleError where the data timeline doesn't show ``what``."""
    pending = {one.requested: one.action for one in table.timelines.data.pending(actions)}
    if instant not in pending:
        raise StaleError(
            f"{instant} is no pending {what} on the timeline, so the metadata table cannot be told "
            "of it; read the timeline again"
        )
    return pending[instant]
