"""Replace partitions of the metadata table by new ones, as Hudi builds them anew.

Partitions leave the table's properties first. Their files are deleted then, and new ones written,
with one deltacommit for each partition. The properties list the new ones last, in one write. So
readers see a partition whole or not at all, wherever this stops.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import field
from typing import Final

from reconciler.hudi.load import load_properties
from reconciler.hudi.metadata.deltacommit import Deltacommit, NewFileGroup
from reconciler.hudi.metadata.first_groups import name_first_instants, sort_partitions
from reconciler.hudi.metadata.index_build import COLUMNS, MARK, find_earlier_builds
from reconciler.hudi.metadata.index_definitions import DEFINITIONS
from reconciler.hudi.metadata.new_metadata_table import PROPERTIES, build_metadata_properties
from reconciler.hudi.metadata.sync_decisions import COLUMN_STATS
from reconciler.hudi.metadata.table import FILES, MetadataTable, open_live_metadata
from reconciler.hudi.table.properties import TableProperties
from reconciler.hudi.timeline.active import Timeline
from reconciler.lazy_dataclass import dataclass
from reconciler.transaction.metadata.live_partitions import (
    add_partitions,
    drop_metadata_table,
    drop_partitions,
    list_unfinished,
)
from reconciler.transaction.session import TableSession

#: of an instant's time
_DIGITS: Final = 17


@dataclass(frozen=True, slots=True, kw_only=True)
class NewPartitions:
    """The content of new metadata partitions; with ``files`` the whole table is made anew.

    ``newest``: the newest completed instant of the data table, None without any. ``schema``: the
    records' schema. ``columns``: those of column_stats, if it is built. ``definitions``: the new
    bytes of the index definitions, None if they stay. ``obstacles``: why others cannot be built.
    """

    groups: Mapping[str, Sequence[NewFileGroup]]
    newest: str | None
    schema: str
    columns: Sequence[str] = ()
    definitions: bytes | None = None
    obstacles: Mapping[str, str] = field(default_factory=dict)


def replace_partitions(
    session: TableSession, timeline: Timeline, new: NewPartitions
) -> tuple[str, ...]:
    """Drop metadata partitions, write them anew, and return them; nobody reads them yet.

    ``list_partitions`` lists them. The table's lock is held, and no write is pending. Raises
    BusyError if another writer's work is pending on the metadata table, UnsupportedError,
    FormatError, StorageError.
    """
    storage = session.storage
    properties = load_properties(storage)
    session.lock.confirm()
    if FILES in new.groups:
        opened = _start_table(session, properties, timeline, new)
    else:
        opened = _clear_partitions(session, properties, timeline, new)
    if new.definitions is not None:
        storage.replace(DEFINITIONS, new.definitions)
    names = sort_partitions(opened.version, new.groups)
    used = {instant.requested for instant in opened.timeline.instants}
    instants = name_first_instants(opened.version, new.newest, used, len(names))
    time = opened.timeline.newest_time
    for name, instant in zip(names, instants, strict=True):
        time = session.publisher.choose_time(timeline, None if time is None else time[:_DIGITS])
        deltacommit = Deltacommit(
            table=opened, instant=instant, completion_time=time, schema=new.schema
        )
        for write in deltacommit.build_first_files(new.groups[name], _make_extra(name, new)):
            storage.create(write.path, write.data)
    return names


def give_up_rebuilds(session: TableSession, names: Collection[str]) -> tuple[str, ...]:
    """End rebuilds that were stopped and cannot be ended; return their partitions.

    Others of ``names`` stay as they are. Nobody reads what is deleted. The table's lock is held.
    """
    properties = load_properties(session.storage)
    unfinished = list_unfinished(properties)
    given_up = tuple(sorted(unfinished.intersection(names)))
    if given_up:
        session.lock.confirm()
        rest = unfinished.difference(given_up)
        drop_partitions(session.storage, properties, given_up, rebuilt=rest)
    return given_up


def list_partitions(session: TableSession, names: Sequence[str], new: NewPartitions) -> None:
    """List new partitions in the table's properties: from now on they are read."""
    session.lock.confirm()
    defined = None if new.definitions is None else DEFINITIONS
    add_partitions(session.storage, names, defined=defined)


def _start_table(
    session: TableSession, properties: TableProperties, timeline: Timeline, new: NewPartitions
) -> MetadataTable:
    """Remove the metadata table, and write the properties of a new one."""
    drop_metadata_table(session.storage, properties, rebuilt=[*new.groups])
    version = properties.table_version
    session.storage.create(PROPERTIES, build_metadata_properties(properties.table_name, version))
    return MetadataTable(session.storage, version, Timeline.from_files([]), timeline)


def _clear_partitions(
    session: TableSession, properties: TableProperties, timeline: Timeline, new: NewPartitions
) -> MetadataTable:
    """Drop partitions, and remove the deltacommits of earlier builds of them."""
    storage = session.storage
    earlier = find_earlier_builds(open_live_metadata(storage, properties, timeline), [*new.groups])
    unfinished = list_unfinished(properties) | {*new.groups}
    properties = drop_partitions(storage, properties, [*new.groups], rebuilt=unfinished)
    for path in earlier:
        storage.delete(path)
    return open_live_metadata(storage, properties, timeline)


def _make_extra(name: str, new: NewPartitions) -> dict[str, str]:
    """Return the extra metadata by which a later build knows this one."""
    if name == FILES:
        return {}
    if name == COLUMN_STATS:
        return {MARK: name, COLUMNS: json.dumps([*new.columns], ensure_ascii=False)}
    return {MARK: name}
