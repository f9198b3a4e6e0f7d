"""Read the sizes and records of log files as their writes recorded them.

A file that is shorter than recorded is truncated. Source: HoodieAppendHandle.updateWriteStat; the
size is the length of the file after the append.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from reconciler.hudi.codecs.avro_binary import decoding
from reconciler.hudi.files.names import LogName
from reconciler.hudi.files.view import LOGS_BY_COMPLETION
from reconciler.hudi.load import read_instant_file
from reconciler.hudi.timeline.commit import COUNT, TEXT, CommitProjection
from reconciler.hudi.timeline.instant import COMMITS
from reconciler.lazy_dataclass import dataclass
from reconciler.storage.parallel import run_parallel

if TYPE_CHECKING:
    from reconciler.hudi.table.properties import TableProperties
    from reconciler.hudi.timeline.active import Timeline, TimelineFile
    from reconciler.storage.api import Storage

_SIZES: Final = CommitProjection(stat_fields=(("path", TEXT), ("fileSizeInBytes", COUNT)))
_PATHS: Final = CommitProjection(stat_fields=(("path", TEXT),))
_RECORDS: Final = CommitProjection(
    stat_fields=(
        ("path", TEXT),
        ("numWrites", COUNT),
        ("numDeletes", COUNT),
        ("numInserts", COUNT),
    )
)

#: Hudi's name of the operation of a log compaction, in upper case
_LOG_COMPACTION: Final = "LOG_COMPACT"

#: partition and name
LogFile = tuple[str, str]


@dataclass(frozen=True, slots=True)
class _Write:
    """A completed write, and its operation in upper case."""

    instant: str
    operation: str


def read_log_sizes(
    storage: Storage,
    properties: TableProperties,
    timeline: Timeline,
    among: Collection[LogFile],
    *,
    at_once: int = 1,
) -> dict[LogFile, int]:
    """Return the greatest size that completed writes of the active timeline recorded per file.

    Files of archived writes are missing in the result. Reads the writes that may have appended to
    one of the files, ``at_once`` at a time. Raises FormatError, StorageError, and NotFoundError if
    the timeline has changed.
    """
    most: dict[LogFile, int] = {}
    for _, key, stat in _read_stats(storage, properties, timeline, among, _SIZES, at_once):
        most[key] = max(most.get(key, 0), int(stat.get("fileSizeInBytes") or 0))
    return most


@dataclass(frozen=True, slots=True, kw_only=True)
class LogRecordCount:
    """What completed writes recorded of a log file.

    ``records``: records and deletions in it; ``inserts``: those of new rows.
    """

    records: int
    inserts: int


def read_log_records(
    storage: Storage,
    properties: TableProperties,
    timeline: Timeline,
    among: Collection[LogFile],
    *,
    at_once: int = 1,
) -> dict[LogFile, LogRecordCount]:
    """Return the records of log files by the completed writes of the active timeline.

    Missing are files that archived writes have made, or may have written to, and those of a log
    compaction, because only the file tells which other ones it replaces. In version 6 a file of
    which no completed write tells has blocks of dead writes alone. Raises as ``read_log_sizes``
    does.
    """
    start = timeline.start or ""
    by_name = properties.table_version < LOGS_BY_COMPLETION
    known = {key for key in among if _get_instant(key) >= start}
    counts = dict.fromkeys(known, (0, 0)) if by_name else {}
    merged = set()
    for write, key, stat in _read_stats(storage, properties, timeline, known, _RECORDS, at_once):
        records, inserts = counts.get(key, (0, 0))
        records += int(stat.get("numWrites") or 0) + int(stat.get("numDeletes") or 0)
        counts[key] = records, inserts + int(stat.get("numInserts") or 0)
        if write.operation == _LOG_COMPACTION:
            merged.add(key)
    return {
        key: LogRecordCount(records=records, inserts=inserts)
        for key, (records, inserts) in counts.items()
        if key not in merged
    }


def count_bytes_of_writes(timeline: Timeline, among: Collection[LogFile]) -> int:
    """Return the bytes of the timeline files that tell of these log files."""
    first = min(map(_get_instant, among), default="")
    return sum(file.size for file in timeline.completed_files(COMMITS, first)) if among else 0


def _get_instant(log: LogFile) -> str:
    """Return the instant in a log file's name; in version 6 that of its slice."""
    name = LogName.parse(log[1])
    return "" if name is None else name.instant


def _read_stats(
    storage: Storage,
    properties: TableProperties,
    timeline: Timeline,
    among: Collection[LogFile],
    wanted: CommitProjection,
    at_once: int,
) -> Iterator[tuple[_Write, LogFile, Mapping[str, Any]]]:
    """Yield the write statistics of some log files, each with its write."""
    if not among:
        return
    first = min(map(_get_instant, among))
    read = partial(_read_write, storage, properties, among=among, wanted=wanted)
    for some in run_parallel(read, timeline.completed_files(COMMITS, first), parallelism=at_once):
        yield from some


def _read_write(
    storage: Storage,
    properties: TableProperties,
    entry: TimelineFile,
    among: Collection[LogFile],
    wanted: CommitProjection,
) -> list[tuple[_Write, LogFile, Mapping[str, Any]]]:
    """Return the write statistics that one write has of some log files."""
    found = []
    data, path = read_instant_file(storage, properties, entry)
    with decoding(path, "the write statistics"):
        record = wanted.read(data, path)
        write = _Write(entry.instant.requested, (record.get("operationType") or "").upper())
        for folder, stats in (record.get("partitionToWriteStats") or {}).items():
            for stat in stats or ():
                key = (folder, str(stat.get("path") or "").rpartition("/")[2])
                if key in among:
                    found.append((write, key, stat))
    return found


def find_first_write(
    storage: Storage,
    properties: TableProperties,
    timeline: Timeline,
    among: Collection[LogFile],
    *,
    most: int,
) -> str | None:
    """Return the first completed write of the active timeline to one of these log files.

    None if no write tells of them, or if it is not one of the ``most`` first that may have written
    to them; these are read one by one. Raises as ``read_log_sizes`` does.
    """
    first = min(map(_get_instant, among), default="")
    for entry in timeline.completed_files(COMMITS, first)[:most]:
        if _read_write(storage, properties, entry, among, _PATHS):
            return entry.instant.requested
    return None
