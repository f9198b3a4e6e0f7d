"""Drop and list live partitions of the metadata table, in the data table's properties."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final

from reconciler.errors import FormatError, NotFoundError, StorageError, UnsupportedError
from reconciler.hudi.load import PROPERTIES, load_properties, load_timeline
from reconciler.hudi.metadata.own_timeline import ROOT
from reconciler.hudi.metadata.partition_logs import REWRITES
from reconciler.hudi.metadata.sync_decisions import DROPPABLE
from reconciler.hudi.table.properties import (
    REBUILT,
    TableProperties,
    format_java_properties,
    parse_java_properties,
    parse_rebuilt_partitions,
    remove_key,
    replace_value,
)
from reconciler.hudi.timeline.instant import WRITES, Action
from reconciler.storage.api import Storage

_LIVE: Final = "hoodie.table.metadata.partitions"
_DEFINED: Final = "hoodie.table.index.defs.path"
_BACKUP: Final = f"{PROPERTIES}.backup"


def drop_metadata_partitions(
    storage: Storage, properties: TableProperties, names: Collection[str] = ()
) -> None:
    """Drop metadata partitions, and what a stop in the middle of an earlier drop has left."""
    left = find_leftover_partitions(storage, properties)
    if names or left:
        drop_partitions(storage, properties, {*names, *left})


def drop_partitions(
    storage: Storage,
    properties: TableProperties,
    names: Collection[str],
    *,
    rebuilt: Collection[str] | None = None,
) -> TableProperties:
    """Take metadata partitions out of the table's properties, then delete their folders.

    ``rebuilt``: all partitions whose rebuild is unfinished then, which the properties say until
    they are listed; None changes nothing about them.
    Returns the properties as they are then. As in HoodieTableConfig.update, the backup exists while
    the file is replaced. Safe to stop anywhere and to do again: a folder that the properties
    do not list is never read. The caller holds the table's lock. Raises UnsupportedError for a
    partition that no writer builds anew by itself, FormatError, StorageError.
    """
    unknown = sorted(set(names) - set(DROPPABLE))
    if unknown:
        raise UnsupportedError(f"the metadata partitions {', '.join(unknown)} must not be dropped")
    dropped = set(names)
    unfinished = parse_rebuilt_partitions(properties.raw) if rebuilt is None else rebuilt
    if dropped.intersection(properties.metadata_partitions) or _is_other(properties, unfinished):
        _unlist_partitions(storage, dropped, unfinished)
        properties = load_properties(storage)
    for name in sorted(dropped):
        _delete_folder(storage, f"{ROOT}/{name}")
    return properties


def drop_metadata_table(
    storage: Storage, properties: TableProperties, *, rebuilt: Collection[str] = ()
) -> None:
    """Take every metadata partition out of the table's properties, then delete the metadata table.

    ``rebuilt``: partitions that are built anew next, which the properties say until they are
    listed. Safe to stop anywhere and to do again: a metadata table that the properties do not list
    is never read. The caller holds the table's lock. Raises FormatError, StorageError.
    """
    if properties.metadata_partitions or _is_other(properties, rebuilt):
        _unlist_partitions(storage, properties.metadata_partitions, rebuilt)
    _delete_tree(storage, ROOT)


def list_unfinished(properties: TableProperties) -> set[str]:
    """Return the partitions whose rebuild was stopped, without those that are live again."""
    return {*parse_rebuilt_partitions(properties.raw)} - {*properties.metadata_partitions}


def _is_other(properties: TableProperties, rebuilt: Collection[str]) -> bool:
    return set(rebuilt) != set(parse_rebuilt_partitions(properties.raw))


def add_partitions(storage: Storage, names: Collection[str], *, defined: str | None) -> None:
    """List metadata partitions that exist already in the table's properties, in one write.

    ``defined``: the path of the index definitions, which properties without it get too. Safe to
    stop anywhere. The caller holds the table's lock. Raises FormatError, StorageError.
    """
    before = _read_properties(storage)
    raw = parse_java_properties(before, PROPERTIES)
    after = before
    if defined is not None and not raw.get(_DEFINED):
        if _DEFINED in raw:
            after = replace_value(after, _DEFINED, defined, PROPERTIES)
        else:
            after = after.rstrip(b"\r\n") + b"\n" + format_java_properties({_DEFINED: defined})
    live = ",".join(sorted({*_parse_live_partitions(raw), *names}))
    after = _set_rebuilt(after, {*parse_rebuilt_partitions(raw)} - set(names))
    _replace_properties(storage, before, replace_value(after, _LIVE, live, PROPERTIES))


def find_leftover_partitions(storage: Storage, properties: TableProperties) -> tuple[str, ...]:
    """Return dropped metadata partitions whose folders are still there.

    There are none while any write but the caller's own is pending: a Hudi writer makes the folder
    of an index long before it lists it, and itself removes what it finds there
    (HoodieBackedTableMetadataWriter.initializeFileGroups).
    """
    if not properties.metadata_partitions:
        return ()
    known = {*properties.metadata_partitions, *properties.metadata_partitions_inflight}
    folders = {entry.name for entry in storage.list(ROOT) if entry.is_folder}
    leftover = tuple(name for name in DROPPABLE if name in folders - known)
    if not leftover:
        return ()
    pending = load_timeline(storage, properties).pending(WRITES | {Action.INDEXING})
    is_own = len(pending) < 2 and all(instant.action in REWRITES for instant in pending)  # noqa: PLR2004
    return leftover if is_own else ()


def _unlist_partitions(
    storage: Storage, dropped: Collection[str], rebuilt: Collection[str]
) -> None:
    """Take partitions out of the list of live ones, in a file that is whole at every moment."""
    before = _read_properties(storage)
    raw = parse_java_properties(before, PROPERTIES)
    kept = sorted(_parse_live_partitions(raw) - set(dropped))
    after = _set_rebuilt(before, rebuilt)
    if _LIVE in raw:
        after = replace_value(after, _LIVE, ",".join(kept), PROPERTIES)
    _replace_properties(storage, before, after)


def _set_rebuilt(data: bytes, names: Collection[str]) -> bytes:
    """Return properties that say which partitions are being built anew; no entry for none."""
    data = remove_key(data, REBUILT, PROPERTIES)
    if not names:
        return data
    entry = format_java_properties({REBUILT: ",".join(sorted(names))})
    return data.rstrip(b"\r\n") + b"\n" + entry


def _parse_live_partitions(raw: Mapping[str, str]) -> set[str]:
    return {name.strip() for name in raw.get(_LIVE, "").split(",") if name.strip()}


def _replace_properties(storage: Storage, before: bytes, after: bytes) -> None:
    storage.replace(_BACKUP, before)
    storage.replace(PROPERTIES, after)
    if storage.read(PROPERTIES) != after:
        raise StorageError(PROPERTIES, f"is not what was written; {_BACKUP} is as it was before")
    storage.delete(_BACKUP)


def _read_properties(storage: Storage) -> bytes:
    """Return the file's bytes, or its backup's if a writer died while it replaced the file."""
    problem: FormatError | NotFoundError | None = None
    for path in (PROPERTIES, _BACKUP):
        try:
            data = storage.read(path)
            TableProperties.parse(data, path)
        except (FormatError, NotFoundError) as damage:
            problem = problem or damage
        else:
            return data
    assert problem is not None
    raise problem


def _delete_tree(storage: Storage, folder: str) -> None:
    """Delete a folder of the metadata table: its folders first, then its files, then itself."""
    try:
        entries = storage.list(folder)
    except NotFoundError:
        return
    for entry in entries:
        if entry.is_folder:
            _delete_tree(storage, f"{folder}/{entry.name}")
    _delete_folder(storage, folder)


def _delete_folder(storage: Storage, folder: str) -> None:
    """Delete a metadata partition's files, then its folder; it has no folders in it."""
    try:
        entries = storage.list(folder)
    except NotFoundError:
        return
    paths = [f"{folder}/{entry.name}" for entry in entries if not entry.is_folder]
    for deletion in storage.delete_many(paths) if paths else ():
        if deletion.error:
            raise StorageError(deletion.path, f"could not be deleted: {deletion.error}")
    storage.remove_folder(folder)
