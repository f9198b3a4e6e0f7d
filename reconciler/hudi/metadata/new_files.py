"""Define the new files that the metadata table is given: values between data and indexes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from typing import Any, Protocol

from reconciler.hudi.metadata.record_encoder import ColumnRange
from reconciler.lazy_dataclass import dataclass


class NewDataFile(Protocol):
    """A base file or a log file that was written."""

    @property
    def name(self) -> str: ...
    @property
    def rows(self) -> int: ...
    @property
    def size(self) -> int: ...
    @property
    def ranges(self) -> tuple[ColumnRange, ...]: ...


class NewBaseFile(NewDataFile, Protocol):
    """A base file that was written; ``base_file.writer.WrittenFile`` is one."""

    @property
    def bloom(self) -> str | None: ...


#: path and size of a new file -> record keys, string arrays in any order
KeyReader = Callable[[str, int], Iterable[Any]]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class NewFiles:
    """The new files of a pending instant.

    ``instant``: requested time. ``instant_ms``: the same in milliseconds since 1970, read in the
    timeline's zone. ``completion_time``: the deltacommit's, used from version 8 on.
    ``files_by_partition``: partition path ("" if the table has none) -> new files. ``columns``: the
    columns whose range every file must have. ``read_keys`` returns the record keys of a new file
    whose locations are recorded. ``logs_by_partition``: partition path -> new log files, which have
    neither filters nor locations.
    """

    instant: str
    completion_time: str
    instant_ms: int
    files_by_partition: Mapping[str, Sequence[NewBaseFile]]
    columns: Sequence[str]
    read_keys: KeyReader
    logs_by_partition: Mapping[str, Sequence[NewDataFile]] = field(default_factory=dict)

    @property
    def listed_by_partition(self) -> dict[str, list[NewDataFile]]:
        """All new files of each partition that has some, sorted by path."""
        listed: dict[str, list[NewDataFile]] = {}
        for files in (self.files_by_partition, self.logs_by_partition):
            for path, found in files.items():
                if found:
                    listed.setdefault(path, []).extend(found)
        return dict(sorted(listed.items()))

    @property
    def files(self) -> Iterator[tuple[str, NewBaseFile]]:
        return (
            (path, file)
            for path, files in sorted(self.files_by_partition.items())
            for file in files
        )
