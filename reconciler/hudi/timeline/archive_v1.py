"""Read the archived timeline of layout 1: log files of HoodieArchivedMetaEntry in ``archived/``.

The archive has three records per instant, one per state.

Source: HoodieArchivedTimeline, ArchivedTimelineV1 (1.x).
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Sequence
from functools import cache
from typing import Any, Final

from reconciler.errors import FormatError, NotFoundError
from reconciler.hudi.byte_source import ByteSource
from reconciler.hudi.codecs.avro_binary import decoding, parse_schema, require
from reconciler.hudi.codecs.log_blocks import (
    BlockType,
    get_block_schema,
    read_avro_records,
    read_blocks,
)
from reconciler.hudi.timeline.archive_merge import MERGE_PLAN, ArchiveMerge, list_archive_files
from reconciler.hudi.timeline.archived_writes import ArchivedWrites
from reconciler.hudi.timeline.instant import COMMITS, Action, Instant, State

#: the fields that hold the metadata of a completed write
_CONTENTS: Final = ("hoodieCommitMetadata", "hoodieReplaceCommitMetadata")
#: the same, with the field of completed cleans
CHANGES: Final = (*_CONTENTS, "hoodieCleanMetadata")
#: the fields that tell the instant of a record
_KEYS: Final = ("commitTime", "actionType", "actionState")


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
    source: ByteSource, folder: str, fields: Sequence[str] = _CONTENTS
) -> Iterator[tuple[Instant, dict[str, Any], str]]:
    """Yield completed archived writes, newest first: instant, metadata and path of the file.

    ``fields``: the fields that hold the metadata, to read other actions too.

    One file is read at a time, so a caller that stops early reads little. Raises FormatError naming
    the damaged file.
    """
    for path in reversed(_list_files(source, folder)):
        rows = []
        for record in _read_records(source, path):
            instant = _parse_instant(record, path)
            content = next((record[key] for key in fields if record.get(key)), None)
            if instant.is_completed and content:
                rows.append((instant, content, path))
        yield from sorted(rows, key=lambda row: row[0].requested, reverse=True)


def find_archived_writes(
    source: ByteSource, folder: str, wanted: Collection[str]
) -> ArchivedWrites:
    """Return which of the wanted instants are completed writes of the archive.

    Reads the whole archive. Raises FormatError naming a file that is damaged, empty or cut off,
    which hides what it held.
    """
    asked, known, oldest = frozenset(wanted), set[str](), ""
    for path in _list_files(source, folder):
        for record in _read_keys(source, path):
            instant = _parse_instant(record, path)
            oldest = min(oldest or instant.requested, instant.requested)
            is_write = instant.is_completed and instant.action.completes_as in COMMITS
            if is_write and instant.requested in asked:
                known.add(instant.requested)
    return ArchivedWrites(known=frozenset(known), oldest=oldest or None)


def _read_keys(source: ByteSource, path: str) -> Iterator[dict[str, Any]]:
    """Yield the fields of each record that tell its instant, of a file that must be whole."""
    blocks = list(read_blocks(source.read(path), path))
    if not blocks or any(block.type is BlockType.CORRUPT for block in blocks):
        problem = "is cut off" if blocks else "is empty"
        raise FormatError(path, problem, "restore it from a copy")
    for block in blocks:
        if block.type is BlockType.AVRO_DATA:
            yield from read_avro_records(block, _parse_key_schema(get_block_schema(block), path))


@cache
def _parse_key_schema(written: str, path: str) -> Any:
    """Return the schema of a record's keys alone, with the types that they were written with."""
    with decoding(path, "the schema of the archive"):
        record = json.loads(written)
        fields = [field for field in record["fields"] if field["name"] in _KEYS]
        text = json.dumps({**record, "fields": fields})
    return parse_schema(text, path)


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
