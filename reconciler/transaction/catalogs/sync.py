"""Bring the partitions that a catalog lists to those of the table, as Hudi's hive sync does."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Final

from reconciler.errors import CatalogError, NoCatalogTableError
from reconciler.hudi.table.properties import TableProperties
from reconciler.lazy_dataclass import dataclass
from reconciler.state.catalogs.api import CatalogClient, CatalogEntry, CatalogPartition
from reconciler.storage.locations import escape_hadoop_path, identify_place, identify_text
from reconciler.transaction.catalogs.partition_values import choose_value_rule, group_by_folder

_MERGE_ON_READ: Final = "MERGE_ON_READ"
#: endings of the names by which Hudi's sync registers a merge-on-read table a second time
_VIEWS: Final = ("_ro", "_rt")
#: returns which of these folders the table uses now, so that their partitions must stay
FindUsed = Callable[[Collection[str]], Collection[str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionChanges:
    """Partitions, by their folders below the table, that must be and must not be in a catalog.

    ``is_complete``: ``present`` are all partitions of the table, so that others are dropped too.
    """

    present: Collection[str] = ()
    absent: Collection[str] = ()
    is_complete: bool = False

    def __bool__(self) -> bool:
        return bool(self.present or self.absent or self.is_complete)


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionSync:
    """The outcome of a sync, over all names of the table: numbers of partitions."""

    added: int = 0
    dropped: int = 0


def sync_partitions(
    client: CatalogClient,
    name: str,
    location: str,
    properties: TableProperties,
    changes: PartitionChanges,
    find_used: FindUsed,
) -> PartitionSync:
    """Add and drop partitions of a table, under every name that the catalog has for it.

    ``location``: where the table is. ``find_used`` looks at the table; it is called only if there
    is something to drop. No file is touched. A table without partition columns in the catalog lists
    no partitions, so nothing is done. Raises CatalogError and what ``find_used`` raises; what was
    done before stays, and another sync does the rest.
    """
    entry = client.find_table(name)
    if not is_at(entry, location):
        message = f"{name} is at {entry.location} there, and the table is at {location}"
        raise CatalogError(client.address, message)
    entries = [entry, *_find_views(client, entry, location, properties)]
    done = [_sync_entry(client, each, changes, find_used) for each in entries]
    return PartitionSync(
        added=sum(each.added for each in done), dropped=sum(each.dropped for each in done)
    )


def is_at(entry: CatalogEntry, location: str) -> bool:
    """Return whether the catalog has a table at a location, in whatever spelling."""
    there = identify_place(escape_hadoop_path(entry.location))
    return there.may_be(identify_place(location))


def _find_views(
    client: CatalogClient, entry: CatalogEntry, location: str, properties: TableProperties
) -> list[CatalogEntry]:
    """Return the other names of a merge-on-read table."""
    if properties.table_type != _MERGE_ON_READ:
        return []
    plain = next((entry.name.removesuffix(end) for end in _VIEWS if entry.name.endswith(end)), "")
    base = plain or entry.name
    found = []
    for name in (base, *(f"{base}{end}" for end in _VIEWS)):
        try:
            other = client.find_table(name) if name != entry.name else entry
        except NoCatalogTableError:
            continue
        if other is not entry and is_at(other, location):
            found.append(other)
    return found


def _sync_entry(
    client: CatalogClient, entry: CatalogEntry, changes: PartitionChanges, find_used: FindUsed
) -> PartitionSync:
    if not entry.partition_keys:
        return PartitionSync()
    listed = client.list_partitions(entry.name)
    root = identify_text(escape_hadoop_path(entry.location))
    known = group_by_folder(root, listed)
    present = frozenset(changes.present)
    absent = {
        folder: partition
        for folder, partition in sorted(known.items())
        if folder not in present and (changes.is_complete or folder in changes.absent)
    }
    added = _make_partitions(entry, known, sorted(present - known.keys()))
    _check_unlisted(client, entry, added, listed)
    if added:
        client.add_partitions(entry.name, added)
    dropped = _drop_unused(client, entry, absent, find_used) if absent else 0
    return PartitionSync(added=len(added), dropped=dropped)


def _drop_unused(
    client: CatalogClient,
    entry: CatalogEntry,
    absent: Mapping[str, CatalogPartition],
    find_used: FindUsed,
) -> int:
    """Drop the partitions of folders that the table does not use, and return their number.

    A writer may write to such a folder, and find its partition in the catalog, at any moment. So
    the table is looked at right before the drop and again after it: what is used by then gets its
    partition back. A writer that commits later finds the partition missing and adds it.
    """
    used = frozenset(find_used(absent))
    dropped = {folder: each for folder, each in absent.items() if folder not in used}
    if not dropped:
        return 0
    client.drop_partitions(entry.name, [each.values for each in dropped.values()])
    restored = [dropped[folder] for folder in sorted(find_used(dropped))]
    if restored:
        client.add_partitions(entry.name, restored)
    return len(dropped) - len(restored)


def _make_partitions(
    entry: CatalogEntry,
    known: dict[str, CatalogPartition],
    folders: Collection[str],
) -> list[CatalogPartition]:
    """Return the partitions of folders that the catalog does not list; raises CatalogError."""
    keys = len(entry.partition_keys)
    values_by_folder = {folder: partition.values for folder, partition in known.items()}
    rule = choose_value_rule(values_by_folder, keys)
    made = []
    for folder in folders:
        values = rule(folder, keys)
        if values is None:
            columns = ", ".join(entry.partition_keys)
            message = f"partition {folder} has no value for each of its columns {columns}"
            raise CatalogError(entry.name, message)
        made.append(CatalogPartition(values, f"{entry.location.rstrip('/')}/{folder}"))
    return made


def _check_unlisted(
    client: CatalogClient,
    entry: CatalogEntry,
    added: Collection[CatalogPartition],
    listed: Collection[CatalogPartition],
) -> None:
    """Raise CatalogError if the catalog has values of a new partition at another place."""
    places = {partition.values: partition.location for partition in listed}
    for partition in added:
        if partition.values in places:
            values, place = ", ".join(partition.values), places[partition.values]
            message = f"{entry.name}: partition {values} is at {place} there, not at "
            raise CatalogError(client.address, f"{message}{partition.location}; drop it there")
