"""Plan the metadata table's update for a clean: one deltacommit of the same instant.

The result is paths and bytes, in the order in which a transaction writes them before the data
table's instant completes. Readers see none of it before that, so the writes may stop anywhere.
Source: HoodieTableMetadataUtil.convertMetadataToRecords and HoodieAppendHandle (0.15 to 1.2).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from reconciler.errors import StaleError, UnsupportedError
from reconciler.hudi.codecs import hfile_writer
from reconciler.hudi.codecs.avro_binary import encode_record, parse_schema
from reconciler.hudi.codecs.log_blocks import (
    BlockType,
    HeaderKey,
    encode_block,
    encode_delete_content,
)
from reconciler.hudi.metadata.deltacommit import Deltacommit, FileToCreate, NewLogFile
from reconciler.hudi.metadata.earlier_attempt import find_earlier_attempt
from reconciler.hudi.metadata.index_definitions import find_stale_entries
from reconciler.hudi.metadata.listing import (
    ALL_PARTITIONS,
    UNPARTITIONED,
    FileSizes,
    MetadataListing,
)
from reconciler.hudi.metadata.own_timeline import ROOT, VERSION_8
from reconciler.hudi.metadata.table import FILES, MetadataSlice, MetadataTable
from reconciler.hudi.timeline.instant import Action

#: record types of the ``files`` partition (MetadataPartitionType)
_ALL_PARTITIONS_TYPE: Final = 1
_FILES_TYPE: Final = 2
_CLEANS: Final = frozenset({Action.CLEAN})


@dataclass(frozen=True, slots=True, kw_only=True)
class MetadataSync:
    """One update: delete ``cleanup`` of an earlier attempt, then create ``writes`` in order.

    Both are empty when an earlier attempt did exactly this already.
    """

    cleanup: tuple[str, ...]
    writes: tuple[FileToCreate, ...]


def plan_clean_sync(
    table: MetadataTable,
    listing: MetadataListing,
    *,
    instant: str,
    completion_time: str,
    removed_files: Mapping[str, Collection[str]],
    removed_partitions: Collection[str] = (),
) -> MetadataSync:
    """Plan the update of the ``files`` partition for the files that a clean removed.

    ``instant``: the clean's requested time. ``completion_time``: of the deltacommit, used from
    version 8 on. ``removed_files``: partition path -> names that no longer exist in storage.
    ``removed_partitions``: partition paths whose folder is removed. Only names that are still
    listed are deleted, because a second deletion of a name can undo the first. Entries of the files
    in live indexes are deleted too where their keys are known.

    In version 6, log files must be opened to tell whose they are. There, only the listing part of
    an earlier attempt is removed; it wrote nothing wrong into indexes.

    Raises FormatError, UnsupportedError; StaleError when the data timeline does not show the clean
    as pending, because then the listing may already contain an earlier attempt.
    """
    if instant not in {pending.requested for pending in table.timelines.data.pending(_CLEANS)}:
        raise StaleError(
            f"{instant}.clean is not pending on the timeline, so the metadata table cannot be "
            "updated for it; read the timeline again"
        )
    changes = _collect_changes(listing, removed_files, removed_partitions)
    earlier = find_earlier_attempt(table, instant, indexes=table.version >= VERSION_8)
    if earlier.is_completed and earlier.changes == changes:
        return MetadataSync(cleanup=(), writes=())
    if not changes:
        return MetadataSync(cleanup=earlier.paths, writes=())
    again = {key: dict.fromkeys(listing.find_in_base(key, names)) for key, names in changes.items()}
    log = encode_listing_block(instant, listing.schema, changes)
    if any(again.values()):
        twice = {key: names for key, names in again.items() if names}
        log += encode_listing_block(instant, listing.schema, twice)
    (newest,) = table.list_slices(FILES)
    stale = find_stale_entries(
        table, {_partition_path(key): [*names] for key, names in _select_file_changes(changes)}
    )
    deltacommit = Deltacommit(
        table=table,
        instant=instant,
        completion_time=completion_time,
        schema=listing.schema,
        removed_paths=earlier.paths,
    )
    logs = [NewLogFile(file_slice=newest, data=log, write_count=len(changes))]
    logs += [_build_delete_log(instant, listing.schema, over, keys) for over, keys in stale]
    return MetadataSync(cleanup=earlier.paths, writes=deltacommit.build_files(logs))


def _select_file_changes(changes: Mapping[str, FileSizes]) -> Iterable[tuple[str, FileSizes]]:
    return ((key, names) for key, names in changes.items() if key != ALL_PARTITIONS)


def _partition_path(key: str) -> str:
    return "" if key == UNPARTITIONED else key


def _build_delete_log(
    instant: str, schema: str, over: MetadataSlice, keys: Sequence[str]
) -> NewLogFile:
    """Build a log file with one delete block."""
    header = [(HeaderKey.INSTANT_TIME, instant), (HeaderKey.SCHEMA, schema)]
    data = encode_block(BlockType.DELETE, header, encode_delete_content(keys, over.partition))
    return NewLogFile(file_slice=over, data=data, delete_count=len(keys))


def _collect_changes(
    listing: MetadataListing,
    removed: Mapping[str, Collection[str]],
    removed_partitions: Collection[str],
) -> dict[str, FileSizes]:
    """Return deletions of listed names by record key, with all files of removed partitions."""
    gone = set(removed_partitions)
    changes: dict[str, FileSizes] = {}
    for path, names, _sizes in listing.read_folders(gone | removed.keys()):
        wanted = set(removed.get(path, ()))
        dead = [name for name in names if path in gone or name in wanted]
        if dead:
            changes[path or UNPARTITIONED] = dict.fromkeys(dead)
    folders = gone.intersection(listing.partitions)
    if folders:
        changes[ALL_PARTITIONS] = {path or UNPARTITIONED: None for path in folders}
    return changes


def encode_listing_block(instant: str, schema: str, changes: Mapping[str, FileSizes]) -> bytes:
    """Encode an HFile log block with one record per key; names without size are deleted."""
    header = [(HeaderKey.INSTANT_TIME, instant), (HeaderKey.SCHEMA, schema)]
    content = hfile_writer.encode_hfile(encode_listing_cells(schema, changes), schema)
    return encode_block(BlockType.HFILE_DATA, header, content)


def encode_listing_cells(
    schema: str, changes: Mapping[str, FileSizes]
) -> list[tuple[bytes, bytes]]:
    """Encode records of the ``files`` partition in key order; names without size are deleted.

    Raises UnsupportedError for a schema of an unknown Hudi.
    """
    parsed = parse_schema(schema, ROOT)
    cells = []
    for key, names in changes.items():
        kind = _ALL_PARTITIONS_TYPE if key == ALL_PARTITIONS else _FILES_TYPE
        said = {
            name: {"size": size or 0, "isDeleted": size is None}
            for name, size in sorted(names.items())
        }
        cells.append((key.encode(), encode_record(_build_record(parsed, kind, said), parsed)))
    return sorted(cells)


def _build_record(schema: Any, kind: int, names: Mapping[str, Any]) -> dict[str, Any]:
    """Return a record of the table's own schema: null for fields that ``files`` does not use.

    Its key is empty, because the HFile holds the key. Raises UnsupportedError for a field that may
    not be null: the schema is of an unknown Hudi.
    """
    known = {"key": "", "type": kind, "filesystemMetadata": names}
    for field in schema["fields"]:
        if field["name"] not in known and "null" not in field["type"]:
            raise UnsupportedError(
                f"{ROOT}: its records have a field {field['name']!r} that this version of "
                "reconciler cannot fill"
            )
    return dict.fromkeys((field["name"] for field in schema["fields"]), None) | known
