"""Build the write statistic of a base file for its commit.

The field names are those of JSON commits (version 6) and of Avro commits (8 and later). Source:
HoodieWriteStat as HoodieCreateHandle fills it, for clusterings and inserts alike, and
HoodieMergeHandle; HoodieCompactor for compactions.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from reconciler.errors import FormatError
from reconciler.file_slices.base_file.writer import WrittenFile
from reconciler.file_slices.merge.merge_counts import MergeCounts
from reconciler.hudi.files.names import BaseName

#: counts of log files and of merged files
ZERO_COUNTS = (
    "numDeletes",
    "numUpdateWrites",
    "totalWriteErrors",
    "totalLogRecords",
    "totalLogFilesCompacted",
    "totalLogSizeCompacted",
    "totalUpdatedRecordsCompacted",
    "totalLogBlocks",
    "totalCorruptLogBlock",
    "totalRollbackBlocks",
)

#: the first table version whose writers count keys of delete blocks among log records
_LISTS_DELETIONS_FROM: Final = 8


def build_created_stat(written: WrittenFile, partition: str) -> dict[str, str | int]:
    """Return the statistic of a new file group's file; partition "" if the table has none.

    Null fields are left out. Raises FormatError when the name is not a base file's.
    """
    name = BaseName.parse(written.name)
    if name is None:
        raise FormatError(written.name, "is not the name of a base file")
    return {
        "fileId": name.file_id,
        "path": f"{partition}/{written.name}" if partition else written.name,
        "prevCommit": "null",
        "numWrites": written.rows,
        "numInserts": written.rows,
        "totalWriteBytes": written.size,
        "fileSizeInBytes": written.size,
        "partitionPath": partition,
        **dict.fromkeys(ZERO_COUNTS, 0),
    }


def build_merged_stat(
    written: WrittenFile,
    partition: str,
    *,
    previous_file: str,
    inserts: int,
    updates: int,
    deletes: int,
) -> dict[str, str | int]:
    """Return the statistic of a new base file that replaces ``previous_file`` in its group.

    ``inserts``: new rows in it; ``updates``: rows that replaced others; ``deletes``: removed rows.
    Raises FormatError when a name is not a base file's.
    """
    old = BaseName.parse(previous_file)
    if old is None:
        raise FormatError(previous_file, "is not the name of a base file")
    return {
        **build_created_stat(written, partition),
        "prevCommit": old.instant,
        "prevBaseFile": previous_file,
        "numInserts": inserts,
        "numUpdateWrites": updates,
        "numDeletes": deletes,
    }


def build_compacted_stat(
    written: WrittenFile,
    partition: str,
    *,
    previous_file: str | None,
    counts: MergeCounts,
    log_sizes: Sequence[int],
    version: int,
) -> dict[str, str | int]:
    """Return the statistic of a base file that a compaction made of a file slice.

    ``previous_file``: the slice's base file, None if it has none. ``log_sizes``: bytes of its log
    files. ``version``: the table's; before 8, keys of delete blocks are no log records. Raises
    FormatError when a name is not a base file's.
    """
    changes = {"inserts": counts.inserts, "updates": counts.updates, "deletes": counts.deletes}
    stat = (
        build_created_stat(written, partition)
        if previous_file is None
        else build_merged_stat(written, partition, previous_file=previous_file, **changes)
    )
    listed = counts.deletions if version >= _LISTS_DELETIONS_FROM else 0
    return {
        **stat,
        "totalLogRecords": counts.records + listed,
        "totalLogFilesCompacted": len(log_sizes),
        "totalLogSizeCompacted": sum(log_sizes),
        "totalUpdatedRecordsCompacted": counts.keys,
        "totalLogBlocks": counts.blocks,
        "totalCorruptLogBlock": counts.corrupt_blocks,
        "totalRollbackBlocks": counts.rollback_blocks,
    }
