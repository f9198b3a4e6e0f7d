"""Find what an earlier attempt at an instant left in the metadata table, for the next to remove."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from reconciler.errors import UnsupportedError
from reconciler.hudi.codecs.log_blocks import BlockType, read_blocks
from reconciler.hudi.metadata.listing import FileSizes, read_block_entries
from reconciler.hudi.metadata.own_timeline import ROOT, VERSION_8
from reconciler.hudi.metadata.table import FILES, MetadataTable
from reconciler.hudi.timeline.instant import Action
from reconciler.lazy_dataclass import dataclass

_LISTING: Final = f"{ROOT}/{FILES}/"


@dataclass(frozen=True, slots=True)
class EarlierAttempt:
    """The files of an earlier attempt; ``paths`` are in the order to delete them.

    ``changes``: its changes to the file listing, None without an earlier attempt.
    """

    paths: tuple[str, ...] = ()
    is_completed: bool = False
    changes: Mapping[str, FileSizes] | None = None


def find_earlier_attempt(table: MetadataTable, instant: str, *, indexes: bool) -> EarlierAttempt:
    """Return this instant's files in the metadata table, whoever wrote them.

    The timeline file is written before the log files and deleted after them, and the completed file
    is deleted first. So without a timeline file there is no log file. Hudi also rolls such a
    deltacommit back and writes a new one. ``indexes``: look beyond the file listing. Raises
    FormatError, and UnsupportedError when a log file also holds blocks of another instant.
    """
    # a rollback of the metadata table itself has the time of the data table's
    files = [
        file
        for file in table.timeline.files
        if file.instant.requested == instant and file.instant.action is Action.DELTACOMMIT
    ]
    if not files:
        return EarlierAttempt()
    paths = table.list_log_paths()
    candidates = paths if indexes else [path for path in paths if path.startswith(_LISTING)]
    logs = [path for path in candidates if _belongs_to(table, path, instant)]
    changes: dict[str, FileSizes] = {}
    for path in logs:
        if path.startswith(_LISTING):
            for block in read_blocks(table.source.read(path), path):
                if block.type in (BlockType.HFILE_DATA, BlockType.AVRO_DATA):
                    for key, names in read_block_entries(block):
                        changes.setdefault(key, {}).update(names)
    files.sort(key=lambda file: -file.instant.state.rank)
    timeline = [table.timeline_path(file.name) for file in files]
    done = sum(file.instant.is_completed for file in files)
    return EarlierAttempt((*timeline[:done], *logs, *timeline[done:]), done > 0, changes)


def _belongs_to(table: MetadataTable, path: str, instant: str) -> bool:
    """Return whether a log file is the instant's: by name, or in version 6 by its blocks."""
    if table.version >= VERSION_8:
        return f"_{instant}.log." in path
    instants = {
        block.instant
        for block in read_blocks(table.source.read(path), path)
        if block.type not in (BlockType.CORRUPT, BlockType.COMMAND)
    }
    if instant in instants and len(instants) > 1:
        raise UnsupportedError(
            f"{path}: holds blocks of {instant} and of other instants, so the earlier attempt "
            "cannot be removed; let a Hudi writer finish the instant"
        )
    return instant in instants
