"""Build the write statistic of a base file for its commit.

The field names are those of JSON commits (version 6) and of Avro commits (8 and later). Source:
HoodieWriteStat as HoodieCreateHandle fills it, for clusterings and inserts alike, and
HoodieMergeHandle.
"""

from __future__ import annotations

from reconciler.errors import FormatError
from reconciler.file_slices.base_file.writer import WrittenFile
from reconciler.hudi.files.names import BaseName

#: counts of log files and of merged files
_ZERO_COUNTS = (
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
        **dict.fromkeys(_ZERO_COUNTS, 0),
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
