"""What to write so that the metadata table knows of a clean: one deltacommit of the same instant.

Only values come out: paths and bytes, in the order in which a transaction must bring them to
storage, before the data table's instant completes. Until that moment no reader sees any of it, so
stopping between any two is safe. Source: HoodieTableMetadataUtil.convertMetadataToRecords and
HoodieAppendHandle (0.15 to 1.2).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from reconciler.errors import StaleError, UnsupportedError
from reconciler.hudi import hfile_write
from reconciler.hudi.instant import Action
from reconciler.hudi.logfile import (
    BlockType,
    HeaderKey,
    delete_content,
    encode_block,
    read_blocks,
)
from reconciler.hudi.metadata_commit import Deltacommit, LogContent, Write
from reconciler.hudi.metadata_index import stale_entries
from reconciler.hudi.metadata_read import (
    ALL_PARTITIONS,
    UNPARTITIONED,
    MetadataListing,
    Names,
    block_entries,
)
from reconciler.hudi.metadata_table import FILES, FileSlice, MetadataTable
from reconciler.hudi.metadata_timeline import EIGHT, ROOT
from reconciler.hudi.schemaless import encode, parsed_schema

#: record types of the ``files`` partition (MetadataPartitionType)
_ALL_PARTITIONS_TYPE: Final = 1
_FILES_TYPE: Final = 2
_CLEANS: Final = frozenset({Action.CLEAN})
_LISTING: Final = f"{ROOT}/{FILES}/"


@dataclass(frozen=True, slots=True, kw_only=True)
class MetadataSync:
    """One sync: delete ``cleanup``, left by an earlier attempt, then create ``writes``, in order.

    Both are empty when an earlier attempt did exactly this already.
    """

    cleanup: tuple[str, ...]
    writes: tuple[Write, ...]


def clean_sync(
    table: MetadataTable,
    listing: MetadataListing,
    *,
    instant: str,
    completed: str,
    removed: Mapping[str, Collection[str]],
    removed_partitions: Collection[str] = (),
) -> MetadataSync:
    """Tell the ``files`` partition which files a clean has removed.

    ``instant``: the clean's requested time; ``completed``: the deltacommit's completion time, used
    from version 8 on. ``removed``: partition path -> names that are gone from storage now;
    ``removed_partitions``: partition paths whose folder is gone. Only what the listing still has is
    sent: a second deletion of a name would undo the first in some places. What the table's live
    indexes say of the files goes too where its keys can be known.

    Raises FormatError, UnsupportedError; StaleError when the table's data timeline doesn't show the
    clean as pending, because then the listing may contain an earlier attempt already.
    """
    if instant not in {pending.requested for pending in table.timelines.data.pending(_CLEANS)}:
        raise StaleError(
            f"{instant}.clean is not pending on the timeline, so the metadata table cannot be told "
            "of it; read the timeline again"
        )
    changes = _changes(listing, removed, removed_partitions)
    earlier = _earlier(table, instant)
    if earlier.is_completed and earlier.changes == changes:
        return MetadataSync(cleanup=(), writes=())
    if not changes:
        return MetadataSync(cleanup=earlier.paths, writes=())
    again = {key: dict.fromkeys(listing.also_below(key, names)) for key, names in changes.items()}
    log = _block(instant, listing.schema, changes)
    if any(again.values()):
        log += _block(instant, listing.schema, {k: names for k, names in again.items() if names})
    (newest,) = table.slices(FILES)
    stale = stale_entries(table, {_path(key): [*names] for key, names in _files(changes)})
    deltacommit = Deltacommit(
        table=table,
        instant=instant,
        completed=completed,
        schema=listing.schema,
        cleaned=earlier.paths,
    )
    logs = [LogContent(over=newest, data=log, writes=len(changes))]
    logs += [_deletion(instant, listing.schema, over, keys) for over, keys in stale]
    return MetadataSync(cleanup=earlier.paths, writes=deltacommit.files(logs))


def _files(changes: Mapping[str, Names]) -> Iterable[tuple[str, Names]]:
    return ((key, names) for key, names in changes.items() if key != ALL_PARTITIONS)


def _path(key: str) -> str:
    return "" if key == UNPARTITIONED else key


def _deletion(instant: str, schema: str, over: FileSlice, keys: Sequence[str]) -> LogContent:
    """A log file with one delete block."""
    header = [(HeaderKey.INSTANT_TIME, instant), (HeaderKey.SCHEMA, schema)]
    data = encode_block(BlockType.DELETE, header, delete_content(keys, over.partition))
    return LogContent(over=over, data=data, deletes=len(keys))


def _changes(
    listing: MetadataListing,
    removed: Mapping[str, Collection[str]],
    removed_partitions: Collection[str],
) -> dict[str, Names]:
    """The deletions by record key: of what is listed, all of a removed partition's files."""
    gone = set(removed_partitions)
    changes: dict[str, Names] = {}
    for path, names, _sizes in listing.folders(gone | removed.keys()):
        wanted = set(removed.get(path, ()))
        dead = [name for name in names if path in gone or name in wanted]
        if dead:
            changes[path or UNPARTITIONED] = dict.fromkeys(dead)
    folders = gone.intersection(listing.partitions)
    if folders:
        changes[ALL_PARTITIONS] = {path or UNPARTITIONED: None for path in folders}
    return changes


def _block(instant: str, schema: str, changes: Mapping[str, Names]) -> bytes:
    """An HFile log block with one record a key, every name in it deleted."""
    parsed = parsed_schema(schema, ROOT)
    cells = []
    for key, names in changes.items():
        kind = _ALL_PARTITIONS_TYPE if key == ALL_PARTITIONS else _FILES_TYPE
        dead = {name: {"size": 0, "isDeleted": True} for name in sorted(names)}
        cells.append((key.encode(), encode(_record(parsed, kind, dead), parsed)))
    header = [(HeaderKey.INSTANT_TIME, instant), (HeaderKey.SCHEMA, schema)]
    return encode_block(BlockType.HFILE_DATA, header, hfile_write.encode(sorted(cells), schema))


def _record(schema: Any, kind: int, names: Mapping[str, Any]) -> dict[str, Any]:
    """A record of the table's own schema: null wherever the ``files`` partition says nothing.

    Its key is empty, because the HFile holds it. Raises UnsupportedError for a field that may not
    be null: the schema is from a Hudi we don't know.
    """
    known = {"key": "", "type": kind, "filesystemMetadata": names}
    for field in schema["fields"]:
        if field["name"] not in known and "null" not in field["type"]:
            raise UnsupportedError(
                f"{ROOT}: its records have a field {field['name']!r} that this version of "
                "reconciler cannot fill"
            )
    return dict.fromkeys((field["name"] for field in schema["fields"]), None) | known


@dataclass(frozen=True, slots=True)
class _Earlier:
    """What an earlier attempt at the same instant left: ``paths`` in the order to delete them."""

    paths: tuple[str, ...] = ()
    is_completed: bool = False
    changes: Mapping[str, Names] | None = None


def _earlier(table: MetadataTable, instant: str) -> _Earlier:
    """The files of this instant in the metadata table, whoever wrote them.

    The timeline is written before log files and deleted after them, the completed file first: so
    no file on the timeline means no log file. Hudi too rolls such a deltacommit back and writes a
    new one. Raises UnsupportedError when a log file also holds another instant's blocks.
    """
    files = [file for file in table.timeline.files if file.instant.requested == instant]
    if not files:
        return _Earlier()
    logs = [path for path in _candidates(table) if _is_of(table, path, instant)]
    changes: dict[str, Names] = {}
    for path in logs:
        if path.startswith(_LISTING):
            for block in read_blocks(table.source.read(path), path):
                if block.type in (BlockType.HFILE_DATA, BlockType.AVRO_DATA):
                    for key, names in block_entries(block):
                        changes.setdefault(key, {}).update(names)
    files.sort(key=lambda file: -file.instant.state.rank)
    timeline = [f"{table.timelines.folder}/{file.name}" for file in files]
    done = sum(file.instant.is_completed for file in files)
    return _Earlier((*timeline[:done], *logs, *timeline[done:]), done > 0, changes)


def _candidates(table: MetadataTable) -> list[str]:
    """Log files that may be of the instant.

    Version 6 has to open them, so it is those of the listing: what Hudi's own attempt said of the
    same removed files in an index may become visible, since it is what a clean says there.
    """
    paths = table.log_paths()
    return paths if table.version >= EIGHT else [p for p in paths if p.startswith(_LISTING)]


def _is_of(table: MetadataTable, path: str, instant: str) -> bool:
    """Whether a log file is of the instant: by name, or in version 6 by its blocks."""
    if table.version >= EIGHT:
        return f"_{instant}.log." in path
    found = {
        block.instant
        for block in read_blocks(table.source.read(path), path)
        if block.type not in (BlockType.CORRUPT, BlockType.COMMAND)
    }
    if instant in found and len(found) > 1:
        raise UnsupportedError(
            f"{path}: holds blocks of {instant} and of other instants, so what an earlier attempt "
            "wrote cannot be taken back; let a Hudi writer finish the instant"
        )
    return instant in found
