"""Build the write statistic of a log file for its commit.

Source: HoodieDeltaWriteStat as HoodieAppendHandle fills it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from reconciler.file_slices.base_file.write_stat import ZERO_COUNTS
from reconciler.file_slices.log_file.log_file import WrittenLogFile
from reconciler.hudi.files.names import make_file_path
from reconciler.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class AppendedSlice:
    """The slice that a log file is appended to, as its statistic describes it.

    ``start``: the instant that began it; from version 8 on, the write's own. ``base_name``: "" if
    it has no base file; ``logs``: names of its other log files. Both are empty from version 8 on.
    """

    start: str
    base_name: str = ""
    logs: Sequence[str] = ()


def build_appended_stat(
    written: WrittenLogFile,
    partition: str,
    *,
    file_id: str,
    version: int,
    appended: AppendedSlice,
    inserts: int = 0,
) -> dict[str, Any]:
    """Return the statistic of a log file; ``version``: the number in its name.

    ``inserts``: how many of its rows are new.
    """
    return {
        "fileId": file_id,
        "path": make_file_path(partition, written.name),
        "prevCommit": appended.start,
        **dict.fromkeys(ZERO_COUNTS, 0),
        "numWrites": written.rows,
        "numInserts": inserts,
        "numUpdateWrites": written.rows - inserts,
        "numDeletes": written.deletes,
        "totalWriteBytes": written.size,
        "fileSizeInBytes": written.size,
        "partitionPath": partition,
        "logVersion": version,
        "logOffset": 0,
        "baseFile": appended.base_name,
        "logFiles": [*appended.logs, written.name],
    }
