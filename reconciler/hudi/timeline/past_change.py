"""What a completed instant has changed, by its file or by its record in the archive."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any, Final

from reconciler.hudi.codecs.avro_binary import decoding
from reconciler.hudi.codecs.avro_container import read_text_map
from reconciler.hudi.timeline.clean import CleanMetadata
from reconciler.hudi.timeline.commit import COUNT, CommitProjection
from reconciler.hudi.timeline.instant import COMMITS, Action, Instant
from reconciler.lazy_dataclass import dataclass

_WRITTEN: Final = CommitProjection(
    stat_fields=(("numWrites", COUNT), ("totalWriteBytes", COUNT)), with_replaced_groups=True
)


@dataclass(frozen=True, slots=True, kw_only=True)
class PastChange:
    """A completed instant in figures. ``operation``: of a write, as its writer names it.

    ``files_removed``: by a clean. ``files_written``, ``rows_written``, ``bytes_written`` and
    ``groups_replaced``: by a write. Of other actions nothing is known but that they completed.
    ``is_recorded``: False if the file of a clean is empty.
    """

    instant: Instant
    operation: str | None = None
    files_removed: int = 0
    files_written: int = 0
    rows_written: int = 0
    bytes_written: int = 0
    groups_replaced: int = 0
    is_recorded: bool = True
    extra: Mapping[str, str] = field(default_factory=dict)


def parse_past_change(
    instant: Instant, content: bytes | Mapping[str, Any], path: str
) -> PastChange:
    """Return the figures of a completed instant.

    ``content``: the bytes of its file, or the record that an archive of layout 1 has of it. Raises
    FormatError naming ``path``.
    """
    if instant.action in COMMITS:
        record = _WRITTEN.read(content, path) if isinstance(content, bytes) else content
        return _read_write(instant, record, path)
    if instant.action is Action.CLEAN:
        return _read_clean(instant, content, path)
    return PastChange(instant=instant)


def _read_clean(instant: Instant, content: bytes | Mapping[str, Any], path: str) -> PastChange:
    if not content:  # Hudi leaves it empty after a crash
        return PastChange(instant=instant, is_recorded=False)
    if isinstance(content, bytes):
        clean = CleanMetadata.parse(content, path)
        removed = sum(len(part.deleted) for part in clean.partitions.values())
        return PastChange(instant=instant, files_removed=removed, extra=clean.extra)
    with decoding(path, "an archived clean"):
        return PastChange(
            instant=instant,
            files_removed=int(content.get("totalFilesDeleted") or 0),
            extra=read_text_map(content.get("extraMetadata")),
        )


def _read_write(instant: Instant, record: Mapping[str, Any], path: str) -> PastChange:
    with decoding(path, "the write statistics"):
        by_partition = record.get("partitionToWriteStats") or {}
        stats = [stat for stats in by_partition.values() for stat in stats or ()]
        replaced = record.get("partitionToReplaceFileIds") or {}
        return PastChange(
            instant=instant,
            operation=record.get("operationType"),
            files_written=len(stats),
            rows_written=sum(int(stat.get("numWrites") or 0) for stat in stats),
            bytes_written=sum(int(stat.get("totalWriteBytes") or 0) for stat in stats),
            groups_replaced=sum(len(ids or ()) for ids in replaced.values()),
            extra=read_text_map(record.get("extraMetadata")),
        )
