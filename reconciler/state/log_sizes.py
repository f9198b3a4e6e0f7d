"""Read the sizes of log files as their writes recorded them; a shorter file is truncated.

Source of the sizes: HoodieAppendHandle.updateWriteStat, the length of the file after the append.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Final

from reconciler.hudi.codecs.avro_binary import decoding
from reconciler.hudi.files.names import LogName
from reconciler.hudi.load import read_instant_file
from reconciler.hudi.timeline.commit import COUNT, TEXT, CommitProjection
from reconciler.hudi.timeline.instant import COMMITS
from reconciler.storage.parallel import run_parallel

if TYPE_CHECKING:
    from reconciler.hudi.table.properties import TableProperties
    from reconciler.hudi.timeline.active import Timeline, TimelineFile
    from reconciler.storage.api import Storage

_WANTED: Final = CommitProjection(stat_fields=(("path", TEXT), ("fileSizeInBytes", COUNT)))

#: partition and name
LogFile = tuple[str, str]


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
    instants = [log.instant for _, name in among if (log := LogName.parse(name)) is not None]
    first = min(instants, default="")

    def sizes(entry: TimelineFile) -> dict[LogFile, int]:
        sizes_by_log: dict[LogFile, int] = {}
        data, path = read_instant_file(storage, properties, entry)
        with decoding(path, "the write statistics"):
            record = _WANTED.read(data, path)
            for folder, stats in (record.get("partitionToWriteStats") or {}).items():
                for stat in stats or ():
                    key = (folder, str(stat.get("path") or "").rpartition("/")[2])
                    if key in among:
                        size = int(stat.get("fileSizeInBytes") or 0)
                        sizes_by_log[key] = max(sizes_by_log.get(key, 0), size)
        return sizes_by_log

    writes = timeline.completed_files(COMMITS, first)
    most: dict[LogFile, int] = {}
    for found in run_parallel(sizes, writes, parallelism=at_once):
        for key, size in found.items():
            most[key] = max(most.get(key, 0), size)
    return most
