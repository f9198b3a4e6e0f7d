"""Find Spark's event logs among the files of a folder; pure.

Sources: Spark's EventLogFileWriter (names, codecs, folders of rolling logs) and
EventLogFileReader (which parts of a compacted log count).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final

from reconciler.lazy_dataclass import dataclass
from reconciler.storage.api import FolderListing

#: endings of compressed logs: short names of Spark's codecs
CODECS: Final = ("lz4", "lzf", "snappy", "zstd")
_ROLLING: Final = "eventlog_v2_"
_PART: Final = re.compile(r"events_([0-9]+)_")
_IN_PROGRESS: Final = ".inprogress"
_COMPACT: Final = ".compact"


@dataclass(frozen=True, slots=True, kw_only=True)
class LogFile:
    """A file of an event log. ``codec``: one of CODECS; None if it is not compressed.

    ``is_open``: its application may still be running, so its last line may be cut.
    """

    path: str
    size: int
    codec: str | None = None
    is_open: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class EventLog:
    """The event log of one run of an application: its files in the order of their events."""

    name: str
    files: tuple[LogFile, ...]


def find_event_logs(folders: Iterable[FolderListing]) -> tuple[EventLog, ...]:
    """Return the event logs below a folder, sorted by name.

    A file is taken by its place alone; its first line tells later whether it is a log.

    >>> folder = FolderListing("", ["local-1.lz4", "app-2.inprogress", ".app-2.crc"], [10, 20, 12])
    >>> for log in find_event_logs([folder]):
    ...     print(log.name, log.files[0].codec, log.files[0].is_open)
    app-2.inprogress None True
    local-1.lz4 lz4 False
    """
    found = [log for folder in folders for log in _find_logs(folder)]
    return tuple(sorted(found, key=lambda log: log.name))


def is_log_folder(path: str) -> bool:
    """Return whether a folder may contain event logs: hidden ones do not.

    >>> is_log_folder("2026/eventlog_v2_app-1"), is_log_folder("t/.hoodie")
    (True, False)
    """
    return not path.rpartition("/")[2].startswith((".", "_"))


def _find_logs(folder: FolderListing) -> Iterator[EventLog]:
    files = [
        (name, _describe_file(f"{folder.path}/{name}".lstrip("/"), name, size))
        for name, size in zip(folder.names, folder.sizes, strict=True)
        if is_log_folder(name) and size
    ]
    if not folder.path.rpartition("/")[2].startswith(_ROLLING):
        yield from (EventLog(name=file.path, files=(file,)) for _, file in files)
        return
    parts = _choose_parts(files)
    is_open = any(
        name.startswith("appstatus_") and name.endswith(_IN_PROGRESS) for name in folder.names
    )
    if parts:
        last = parts[-1]
        newest = LogFile(path=last.path, size=last.size, codec=last.codec, is_open=is_open)
        yield EventLog(name=folder.path, files=(*parts[:-1], newest))


def _choose_parts(files: Iterable[tuple[str, LogFile]]) -> list[LogFile]:
    """Return the parts of a rolling log in order, from the last one that Spark compacted.

    A compacted part has what Spark kept of all parts up to its number.
    """
    numbered = [(int(match[1]), name, file) for name, file in files if (match := _PART.match(name))]
    compacted = [number for number, name, _ in numbered if name.endswith(_COMPACT)]
    last = max(compacted, default=0)
    chosen = [
        (number, file)
        for number, name, file in numbered
        if number > last or (number == last and (name.endswith(_COMPACT) or not compacted))
    ]
    return [file for _, file in sorted(chosen, key=lambda pair: pair[0])]


def _describe_file(path: str, name: str, size: int) -> LogFile:
    plain = name.removesuffix(_COMPACT).removesuffix(_IN_PROGRESS)
    ending = plain.rpartition(".")[2]
    codec = ending if ending in CODECS and ending != plain else None
    return LogFile(path=path, size=size, codec=codec, is_open=name.endswith(_IN_PROGRESS))
