"""Write the log file of one bucket: the changes of a file slice, without its base file.

Source: HoodieAppendHandle.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa

from reconciler.file_slices.base_file.local_file import publish_local_file
from reconciler.file_slices.base_file.meta_columns import CommitStamp
from reconciler.file_slices.log_file.log_file import (
    LogChanges,
    LogFileHeader,
    LogFileSettings,
    WrittenLogFile,
    write_log_file,
)
from reconciler.file_slices.log_file.write_stat import build_appended_stat
from reconciler.hudi.files.view import LOGS_BY_COMPLETION
from reconciler.hudi.timeline.markers import APPEND, CREATE
from reconciler.lazy_dataclass import dataclass
from reconciler.storage.api import Storage
from reconciler.writer.log_targets import LogTarget
from reconciler.writer.new_rows import stamp_rows


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class WrittenLog:
    """A log file that a bucket wrote. ``inserts``: how many of its rows are new."""

    file: WrittenLogFile
    partition: str
    target: LogTarget
    inserts: int = 0

    @property
    def is_new_group(self) -> bool:
        """True if it is the first file of its file group."""
        return not self.target.has_slice

    @property
    def stat(self) -> dict[str, Any]:
        """The file's write statistic."""
        return build_appended_stat(
            self.file,
            self.partition,
            file_id=self.target.file_id,
            version=self.target.version,
            appended=self.target.appended,
            inserts=self.inserts,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class LogBucketWriter:
    """Writes the log file of a bucket; ``token``: a text that no other attempt at any write has.

    ``number``: the bucket's index in its write. ``columns``: the columns of the table.
    ``folder``: a local folder for the unfinished file.
    """

    settings: LogFileSettings
    columns: pa.Schema
    instant: str
    number: int
    partition: str
    target: LogTarget
    token: str
    folder: Path

    def write(
        self, changes: LogChanges, inserts: Callable[[], Iterable[Any]], storage: Storage
    ) -> WrittenLog:
        """Write the log file, and move it into the table after its marker.

        ``changes``: rows without this write's meta columns; ``inserts``: batches of new rows.
        Raises as ``write_log_file``, and what the storage raises.
        """
        name = self.target.make_name(self.token)
        stamped = self._stamp(changes, inserts)
        header = LogFileHeader(
            instant=self.instant,
            file_id=self.target.file_id,
            partition=self.partition,
            base_instant=self.target.base_instant,
        )
        path = self.folder / name
        with path.open("wb") as sink:
            written = write_log_file(sink, name, stamped, header, self.settings)
        publish_local_file(path, storage, self.instant, self.partition, self._marker)
        return WrittenLog(
            file=written,
            partition=self.partition,
            target=self.target,
            inserts=written.rows - len(changes.rows),
        )

    @property
    def _marker(self) -> str:
        """The kind of marker: a rollback of Hudi deletes the file, or cancels its blocks."""
        return CREATE if self.settings.table_version >= LOGS_BY_COMPLETION else APPEND

    def _stamp(self, changes: LogChanges, inserts: Callable[[], Iterable[Any]]) -> LogChanges:
        """Return the changes and the new rows with the meta columns of this write."""
        stamp = CommitStamp(instant=self.instant, task=self.number)
        batches = [*changes.rows.combine_chunks().to_batches(), *inserts()]
        stamped, count = [], 0
        for batch in batches:
            if len(batch):
                stamped.append(stamp_rows(batch, stamp, self.columns, count))
                count += len(batch)
        has_new = count > len(changes.rows)
        return LogChanges(
            rows=pa.Table.from_batches(stamped, self.columns),
            deleted_keys=changes.deleted_keys,
            is_final=changes.is_final,
            event_times=changes.event_times,
            row_positions=None if has_new else changes.row_positions,
            deleted_positions=changes.deleted_positions,
        )
