"""What a commit says of a base file that begins a file group, or goes on with one.

Source: HoodieWriteStat as HoodieCreateHandle fills it, for clusterings and inserts alike, and
HoodieMergeHandle; the names are those of JSON commits (version 6) and of Avro ones (8 and on).
"""

from __future__ import annotations

from reconciler.errors import FormatError
from reconciler.file_slices.base_file.writer import WrittenFile
from reconciler.hudi.files.names import BaseName

#: of log files, or of files that are merged with older ones
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
    """The write statistic of a file in a partition, "" where the table has none.

    Fields that are null in such a statistic are left out. Raises FormatError when the file's name
    is not one of a base file.
    """
    name = BaseName.parse(written.name)
    if name is None:
        raise FormatError(written.name, "is no name of a base file")
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
    """The write statistic of a new base file of a file group that had one, named ``previous_file``.

    Of its rows ``inserts`` are new and ``updates`` replaced others; ``deletes`` are gone. Raises
    FormatError when a name is not one of a base file.
    """
    old = BaseName.parse(previous_file)
    if old is None:
        raise FormatError(previous_file, "is no name of a base file")
    return {
        **build_created_stat(written, partition),
        "prevCommit": old.instant,
        "prevBaseFile": previous_file,
        "numInserts": inserts,
        "numUpdateWrites": updates,
        "numDeletes": deletes,
    }
