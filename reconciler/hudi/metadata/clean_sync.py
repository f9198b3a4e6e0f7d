"""Plan the metadata table's update for a clean: one deltacommit of the same instant.

The result is paths and bytes, in the order in which a transaction writes them before the data
table's instant completes. Readers see none of it before that, so the writes may stop anywhere.
Source: HoodieTableMetadataUtil.convertMetadataToRecords and HoodieAppendHandle (0.15 to 1.2).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Final

from reconciler.errors import StaleError
from reconciler.hudi.codecs.log_blocks import BlockType, HeaderKey, encode_block, encode_deletes
from reconciler.hudi.metadata.deltacommit import Deltacommit, MetadataSync, NewLogFile
from reconciler.hudi.metadata.earlier_attempt import EarlierAttempt, find_earlier_attempt
from reconciler.hudi.metadata.index_definitions import read_defined_columns
from reconciler.hudi.metadata.index_keys import build_bloom_keys, build_stats_keys
from reconciler.hudi.metadata.listing import (
    ALL_PARTITIONS,
    FileSizes,
    MetadataListing,
    encode_listing_block,
    partition_key,
)
from reconciler.hudi.metadata.own_timeline import ROOT, VERSION_8
from reconciler.hudi.metadata.sync_decisions import BLOOM_FILTERS, COLUMN_STATS
from reconciler.hudi.metadata.table import FILES, MetadataSlice, MetadataTable, group_by_slice
from reconciler.hudi.timeline.instant import Action

_CLEANS: Final = frozenset({Action.CLEAN})
#: deleting more keys than this costs more than the space it frees
_MAX_KEYS: Final = 1_000_000


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

    ``instant``: the clean's requested time. ``completion_time``: the deltacommit's, used from
    version 8 on. ``removed_files``: partition path -> names that no longer exist in storage.
    ``removed_partitions``: partition paths whose folder is removed. Only names that are still
    listed are deleted, because a second deletion of a name can undo the first. Entries of the files
    in live indexes are deleted too if their keys are known.

    In version 6, log files must be opened to tell whose they are. There, only the listing part of
    an earlier attempt is removed; it wrote nothing wrong into indexes.

    Raises FormatError, UnsupportedError; StaleError when the data timeline does not show the clean
    as pending, because then the listing may already contain an earlier attempt.
    """
    if instant not in {pending.requested for pending in table.data.pending(_CLEANS)}:
        raise StaleError(
            f"{instant}.clean is not pending on the timeline, so the metadata table cannot be "
            "updated for it; read the timeline again"
        )
    changes = _collect_changes(listing, removed_files, removed_partitions)
    earlier = find_earlier_attempt(table, instant, indexes=table.version >= VERSION_8)
    (newest,) = table.list_slices(FILES)
    if earlier.is_completed and earlier.changes == changes and _is_read(newest, earlier):
        return MetadataSync(cleanup=(), writes=())
    if not changes:
        return MetadataSync(cleanup=earlier.paths, writes=())
    log = encode_listing_block(instant, listing.schema, changes)
    in_base = listing.find_in_base(changes)
    if second := {key: dict.fromkeys(names) for key, names in in_base.items()}:
        log += encode_listing_block(instant, listing.schema, second)
    folders = {key: [*names] for key, names in changes.items() if key != ALL_PARTITIONS}
    deltacommit = Deltacommit(
        table=table,
        instant=instant,
        completion_time=completion_time,
        schema=listing.schema,
        removed_paths=earlier.paths,
    )
    logs = [NewLogFile(file_slice=newest, data=log, write_count=len(changes))]
    logs += [
        _build_delete_log(instant, listing.schema, file_slice, keys)
        for partition, stale_keys in _find_stale_entries(table, folders).items()
        if stale_keys
        for file_slice, keys in group_by_slice(table, partition, stale_keys)
    ]
    return MetadataSync(cleanup=earlier.paths, writes=deltacommit.build_files(logs))


def _is_read(newest: MetadataSlice, earlier: EarlierAttempt) -> bool:
    """Return False for an attempt before a compaction: that skips what is pending, for good."""
    read = {newest.file_path(log.name) for log in newest.logs}
    listed = f"{ROOT}/{FILES}/"
    return all(path in read for path in earlier.paths if path.startswith(listed))


def _build_delete_log(
    instant: str, schema: str, file_slice: MetadataSlice, keys: Sequence[str]
) -> NewLogFile:
    """Build a log file with one delete block."""
    header = [(HeaderKey.INSTANT_TIME, instant), (HeaderKey.SCHEMA, schema)]
    data = encode_block(BlockType.DELETE, header, encode_deletes(keys, file_slice.partition))
    return NewLogFile(file_slice=file_slice, data=data, delete_count=len(keys))


def _collect_changes(
    listing: MetadataListing,
    removed: Mapping[str, Collection[str]],
    removed_partitions: Collection[str],
) -> dict[str, FileSizes]:
    """Return deletions of listed names by record key, with all files of removed partitions."""
    removed_folders = set(removed_partitions)
    changes: dict[str, FileSizes] = {}
    for path, names, _sizes in listing.read_folders(removed_folders | removed.keys()):
        wanted = set(removed.get(path, ()))
        removed_names = [name for name in names if path in removed_folders or name in wanted]
        if removed_names:
            changes[partition_key(path)] = dict.fromkeys(removed_names)
    folders = removed_folders.intersection(listing.partitions)
    if folders:
        changes[ALL_PARTITIONS] = {partition_key(path): None for path in folders}
    return changes


def _find_stale_entries(
    table: MetadataTable, removed_files: Mapping[str, Sequence[str]]
) -> dict[str, list[str]]:
    """Return the keys to delete from each live index.

    No reader looks up entries of removed files, because candidates come from the listing; they only
    take space. From version 8 on, Hudi's own cleans delete them by key. Before, the keys
    need the names of all indexed columns, which only the entries show, so the entries stay.

    ``removed_files``: key of the listing -> file names. Raises FormatError.
    """
    if table.version < VERSION_8:
        return {}
    stale: dict[str, list[str]] = {}
    columns = read_defined_columns(table.source) if COLUMN_STATS in table.live_partitions else ()
    if 0 < len(columns) * sum(map(len, removed_files.values())) <= _MAX_KEYS:
        stale[COLUMN_STATS] = [
            key
            for folder, names in removed_files.items()
            for key in build_stats_keys(columns, folder, names)
        ]
    if BLOOM_FILTERS in table.live_partitions:
        stale[BLOOM_FILTERS] = [
            key
            for folder, names in removed_files.items()
            for key in build_bloom_keys(folder, filter(_is_base, names))
        ]
    return stale


def _is_base(name: str) -> bool:
    return not name.startswith(".")
