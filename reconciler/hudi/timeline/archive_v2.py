"""Read the archived timeline of layout 2: Parquet files in ``history/`` that a manifest lists.

The history has one row per instant and holds only completed ones. Hudi deletes the version file and
writes it anew at every archival. It merges files into larger ones, and removes manifests and files
that the newest manifests do not need.

Source: LSMTimeline, ArchivedTimelineV2. One row an instant, completed ones only.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Any, Final

from reconciler.errors import FormatError, NotFoundError, UnsupportedError
from reconciler.hudi.byte_source import ByteSource
from reconciler.hudi.codecs.avro_binary import decoding, require
from reconciler.hudi.timeline.archived_writes import ArchivedWrites
from reconciler.hudi.timeline.history_manifest import (
    VERSION_FILE,
    HistoryFile,
    HistoryManifest,
    find_current_version,
    list_versions,
    make_manifest_name,
)
from reconciler.hudi.timeline.instant import COMMITS, Action, Instant, State

_COLUMNS: Final = ("instantTime", "completionTime", "action")
_CONTENT: Final = "metadata"
#: how often the newest manifest may be removed between listing and reading
_ATTEMPTS: Final = 4
_RESTORE: Final = "restore it from a copy"
#: an archived instant, the bytes of its completed file if they are read, and the path
_Row = tuple[Instant, bytes, str]


class _MissingFileError(NotFoundError):
    """A history file that the manifest lists does not exist."""


def read_history(
    source: ByteSource, folder: str, wanted: Collection[str] | None = None
) -> Iterator[Instant]:
    """Yield archived instants with their completion times.

    ``wanted``: requested times; files whose range of times holds none of them are not read. Raises
    FormatError naming the damaged file.
    """

    def choose(files: list[tuple[str, str]]) -> Iterator[str]:
        for name, path in files:
            high, low = _time_range(name)
            if wanted is None or any(low <= time <= high for time in wanted):
                yield path

    def read(path: str) -> Iterator[_Row]:
        return ((instant, b"", path) for instant in _read_instants(source, path, wanted))

    return (instant for instant, _content, _path in _read_rows(source, folder, choose, read))


def find_archived_writes(
    source: ByteSource, folder: str, wanted: Collection[str]
) -> ArchivedWrites:
    """Return which of the wanted instants are completed writes of the history.

    Files whose range of times holds none of them are not read, but they must exist. Raises
    FormatError naming a file that is missing or damaged.
    """
    known = {
        instant.requested
        for instant in read_history(source, folder, wanted)
        if instant.action.completes_as in COMMITS
    }
    for _attempt in range(_ATTEMPTS):
        files = _list_current_files(source, folder)
        present = {entry.name for entry in source.list(folder)} if files else set()
        lost = [path for name, path in files if name not in present]
        if not lost:
            break  # else they may have been merged since the manifest was read
    else:
        raise FormatError(lost[0], "is listed in the manifest but missing", _RESTORE)
    lows = (_time_range(name)[1] for name, _path in files)
    return ArchivedWrites(known=frozenset(known), oldest=min(lows, default=None))


def read_commit_contents(source: ByteSource, folder: str) -> Iterator[_Row]:
    """Yield archived instants, newest first: instant, bytes of its completed file, and path.

    One file is read at a time, so a caller that stops early reads little. Raises FormatError naming
    the damaged file.
    """

    def choose(files: list[tuple[str, str]]) -> list[str]:
        newest_first = sorted(files, key=lambda file: _time_range(file[0]), reverse=True)
        return [path for _name, path in newest_first]

    def read(path: str) -> list[_Row]:
        contents = _read_contents(source, path)
        rows = [
            (instant, content, path)
            for instant, content in zip(_read_instants(source, path, None), contents, strict=True)
        ]
        return sorted(rows, key=lambda row: row[0].requested, reverse=True)

    return _read_rows(source, folder, choose, read)


def _read_rows(
    source: ByteSource,
    folder: str,
    choose: Callable[[list[tuple[str, str]]], Iterable[str]],
    read: Callable[[str], Iterable[_Row]],
) -> Iterator[_Row]:
    """Yield the rows of the chosen current files, each instant once.

    A file that is gone when it is read was merged into another one, which a second look finds.
    Raises FormatError if it is still listed then.
    """
    done: set[Instant] = set()
    missing: set[str] = set()
    while True:
        try:
            for path in choose(_list_current_files(source, folder)):
                for row in read(path):
                    if row[0] not in done:
                        done.add(row[0])
                        yield row
        except _MissingFileError as gone:
            if gone.path in missing:
                raise FormatError(gone.path, gone.problem, _RESTORE) from None
            missing.add(gone.path)
        else:
            return


def _time_range(name: str) -> tuple[str, str]:
    """Return the greatest and the smallest requested time in a file."""
    file = HistoryFile(name=name, size=0)
    return file.greatest, file.least


def find_newest_time(source: ByteSource, folder: str) -> str | None:
    """Return the greatest requested time in the history, from file names alone."""
    files = read_current_manifest(source, folder).files
    return max((file.greatest for file in files), default=None)


def _list_current_files(source: ByteSource, folder: str) -> list[tuple[str, str]]:
    """Return name and path of each file in the current manifest."""
    files = read_current_manifest(source, folder).files
    return [(file.name, f"{folder}/{file.name}") for file in files]


def read_current_manifest(source: ByteSource, folder: str) -> HistoryManifest:
    """Return the current manifest, which is empty if the history has none.

    Raises NotFoundError if every manifest is removed before it is read, FormatError for a damaged
    one.
    """
    for _attempt in range(_ATTEMPTS):
        path = _find_current_manifest(source, folder)
        if path is None:
            return HistoryManifest()
        try:
            return HistoryManifest.parse(source.read(path), path)
        except NotFoundError as gone:
            removed = gone  # newer manifests have replaced it since the listing
    raise removed


def _find_current_manifest(source: ByteSource, folder: str) -> str | None:
    """Return the path of the manifest that the version file names; None without a manifest."""
    try:
        listed = {entry.name for entry in source.list(folder) if not entry.is_folder}
    except NotFoundError:
        return None
    if not list_versions(listed):
        return None
    written = _read_version(source, folder) if VERSION_FILE in listed else None
    return f"{folder}/{make_manifest_name(find_current_version(listed, written))}"


def _read_version(source: ByteSource, folder: str) -> bytes | None:
    """Return the version file's bytes; None if it is gone while it is replaced."""
    try:
        return source.read(f"{folder}/{VERSION_FILE}")
    except NotFoundError:
        return None


def _read_instants(
    source: ByteSource, path: str, wanted: Collection[str] | None
) -> Iterator[Instant]:
    for requested, completed, action in _read_columns(source, path, wanted):
        with decoding(path, "an archived instant"):
            for time in (requested, completed or "0"):
                require(time.isascii() and time.isdigit(), f"{time!r} is not an instant time")
        try:
            kind = Action(action)
        except ValueError:
            raise UnsupportedError(f"{path}: unknown timeline action {action!r}") from None
        yield Instant(requested, kind, State.COMPLETED, completed or None)


def _read_contents(source: ByteSource, path: str) -> list[bytes]:
    table = _read_table(source, path, {_CONTENT: "binary"}, None)
    return [content or b"" for content in table.column(_CONTENT).to_pylist()]


def _read_columns(
    source: ByteSource, path: str, wanted: Collection[str] | None
) -> Iterator[tuple[str, str | None, str]]:
    table = _read_table(source, path, dict.fromkeys(_COLUMNS, "string"), wanted)
    return zip(*(table.column(name).to_pylist() for name in _COLUMNS), strict=True)


def _read_table(
    source: ByteSource, path: str, kinds: Mapping[str, str], wanted: Collection[str] | None
) -> Any:
    """Read columns of a history file, of all rows or only of the wanted instants."""
    import pyarrow as pa  # noqa: PLC0415 (loaded only to read a history)
    import pyarrow.compute as pc  # noqa: PLC0415
    import pyarrow.parquet as pq  # noqa: PLC0415

    try:
        data = source.read(path)
    except NotFoundError:
        raise _MissingFileError(path, "is listed in the manifest but missing") from None
    try:
        file = pq.ParquetFile(pa.BufferReader(data), page_checksum_verification=True)
        schema = pa.schema([pa.field(name, kind) for name, kind in kinds.items()])
        table = file.read(columns=list(kinds)).select(list(kinds)).cast(schema)
        table.validate(full=True)
        if wanted is not None:
            is_wanted = pc.is_in(table["instantTime"], pa.array(sorted(wanted), pa.string()))
            table = table.filter(is_wanted)
    except (pa.ArrowException, OSError, LookupError, MemoryError, ValueError) as problem:
        raise FormatError(path, f"is not a history file: {problem}", _RESTORE) from None
    return table
