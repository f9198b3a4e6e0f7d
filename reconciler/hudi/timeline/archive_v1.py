"""Read the archived timeline of layout 1: log files of HoodieArchivedMetaEntry in ``archived/``.

The archive has three records per instant, one per state.

Source: HoodieArchivedTimeline, ArchivedTimelineV1 (1.x).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from reconciler.errors import NotFoundError
from reconciler.hudi.byte_source import ByteSource
from reconciler.hudi.codecs.avro_binary import decoding, require
from reconciler.hudi.codecs.log_blocks import BlockType, read_avro_records, read_blocks
from reconciler.hudi.timeline.archive_merge import MERGE_PLAN, ArchiveMerge, list_archive_files
from reconciler.hudi.timeline.instant import Action, Instant, State

#: the fields that hold the metadata of a completed write
_CONTENTS: Final = ("hoodieCommitMetadata", "hoodieReplaceCommitMetadata")


def read_archive(source: ByteSource, folder: str) -> Iterator[Instant]:
    """Yield every archived state of every instant in file order; raises FormatError.

    The completion time of a completed one is None if the archive does not hold it.
    """
    for path in _list_files(source, folder):
        for record in _read_records(source, path):
            yield _parse_instant(record, path)


def read_newest_files(source: ByteSource, folder: str) -> Iterator[list[Instant]]:
    """Yield the instants of each file, the newest file first; raises FormatError."""
    for path in reversed(_list_files(source, folder)):
        yield [_parse_instant(record, path) for record in _read_records(source, path)]


def read_commit_contents(
    source: ByteSource, folder: str
) -> Iterator[tuple[Instant, dict[str, Any], str]]:
    """Yield completed archived writes, newest first: instant, metadata and path of the file.

    One file is read at a time, so a caller that stops early reads little. Raises FormatError naming
    the damaged file.
    """
    for path in reversed(_list_files(source, folder)):
        rows = []
        for record in _read_records(source, path):
            instant = _parse_instant(record, path)
            content = next((record[key] for key in _CONTENTS if record.get(key)), None)
            if instant.is_completed and content:
                rows.append((instant, content, path))
        yield from sorted(rows, key=lambda row: row[0].requested, reverse=True)


def _list_files(source: ByteSource, folder: str) -> list[str]:
    """Return the paths of the archive's files, oldest first."""
    try:
        listed = [entry.name for entry in source.list(folder) if not entry.is_folder]
    except NotFoundError:
        return []
    replaced = _find_replaced_files(source, folder, listed)
    return [f"{folder}/{name}" for name in list_archive_files(listed) if name not in replaced]


def _read_records(source: ByteSource, path: str) -> Iterator[dict[str, Any]]:
    for block in read_blocks(source.read(path), path):
        if block.type is BlockType.AVRO_DATA:
            yield from read_avro_records(block)


def _parse_instant(record: dict[str, Any], path: str) -> Instant:
    with decoding(path, "an archived instant"):
        requested = str(record["commitTime"])
        is_time = requested.isascii() and requested.isdigit()
        require(is_time, f"{requested!r} is not an instant time")
        action = Action(str(record["actionType"]))
        state = State(record["actionState"] or "COMPLETED")
        completed = record.get("stateTransitionTime") if state is State.COMPLETED else None
        return Instant(requested, action, state, str(completed) if completed else None)


def _find_replaced_files(source: ByteSource, folder: str, listed: list[str]) -> set[str]:
    """Return files that do not count, because a merge stopped or is still running."""
    if MERGE_PLAN not in listed:
        return set()
    path = f"{folder}/{MERGE_PLAN}"
    data = source.read(path)
    if not data:  # the merge stopped before it wrote its plan
        return set()
    return set(ArchiveMerge.parse(data, path).list_replaced(listed))
