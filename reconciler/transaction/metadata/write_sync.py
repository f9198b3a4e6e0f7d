"""Prepare the metadata table's part of a write of rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from reconciler.file_slices.merge.avro_schema import add_meta_columns, to_arrow_schema
from reconciler.hudi.files.names import BaseName
from reconciler.hudi.metadata.listing import read_metadata_listing
from reconciler.hudi.metadata.partition_logs import SyncPlan
from reconciler.hudi.metadata.record_index import FileGroupLocation, RecordIndex, select_keys_in
from reconciler.hudi.metadata.sync_decisions import COLUMN_STATS
from reconciler.hudi.metadata.table import open_live_metadata
from reconciler.hudi.metadata.write_sync import NewFilesOfWrite, plan_write_sync
from reconciler.hudi.table.properties import TableProperties
from reconciler.hudi.timeline.active import Timeline
from reconciler.storage.api import Storage
from reconciler.transaction.metadata.rewrite_sync import read_newest_schema, read_record_keys
from reconciler.transaction.metadata.sync import open_record_index

if TYPE_CHECKING:
    from reconciler.file_slices.base_file.writer import WrittenFile

#: path and size of a base file
SizedPath = tuple[str, int]
#: keys that are looked up at a time
_KEYS_AT_ONCE: Final = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteChanges:
    """The files that a write adds and replaces.

    ``added``: partition path ("" of a table without partitions) -> its new files, which are on
    storage. ``previous``: path of a new file -> the one that it follows in its file group.
    ``replaced``: files of file groups that the write replaces. ``columns``: those whose ranges the
    index holds. ``types``: Arrow types of all columns of the new files. ``rewritten_partitions``:
    those of which the new files hold all rows.
    """

    added: Mapping[str, Sequence[WrittenFile]]
    previous: Mapping[str, SizedPath] = field(default_factory=dict)
    replaced: Sequence[SizedPath] = ()
    columns: Sequence[str] = ()
    types: Mapping[str, Any] = field(default_factory=dict)
    rewritten_partitions: frozenset[str] = frozenset()


def prepare_write_sync(  # noqa: PLR0913
    storage: Storage,
    properties: TableProperties,
    timeline: Timeline,
    changes: WriteChanges,
    *,
    instant: str,
    completed: str,
    instant_ms: int,
) -> SyncPlan:
    """Return what the metadata table has to be given of a write, and which partitions must go.

    As ``prepare_rewrite_sync``, whose errors it raises; what to do then is said there.
    """
    if not properties.metadata_partitions:
        return SyncPlan()
    table = open_live_metadata(storage, properties, timeline)
    index = open_record_index(storage, properties, timeline) if changes.replaced else None
    moved = _MovedKeys(storage, changes, index)
    writing = NewFilesOfWrite(
        instant=instant,
        completion_time=completed,
        instant_ms=instant_ms,
        files_by_partition=changes.added,
        columns=changes.columns,
        read_keys=moved.read_new_keys,
        read_deleted_keys=moved.read_removed_keys,
        arrow_types=changes.types,
        complete_partitions=changes.rewritten_partitions,
        new_columns=_find_new_columns(storage, properties, timeline, changes),
    )
    inflight = properties.metadata_partitions_inflight
    return plan_write_sync(table, read_metadata_listing(table), writing, inflight=inflight)


def _find_new_columns(
    storage: Storage, properties: TableProperties, timeline: Timeline, changes: WriteChanges
) -> list[str]:
    """The columns that the table had not before, or not in this type if they are indexed."""
    if COLUMN_STATS not in properties.metadata_partitions:
        return []
    found = read_newest_schema(storage, properties, timeline)
    if found is None:
        return []
    before = add_meta_columns(to_arrow_schema(*found))
    indexed = {column.partition(".")[0] for column in changes.columns}
    return [
        name
        for name, kind in changes.types.items()
        if name not in before.names or (name in indexed and before.field(name).type != kind)
    ]


@dataclass(frozen=True, slots=True)
class _MovedKeys:
    """Which keys are new in a file group, and which are gone: by the files before and after."""

    storage: Storage
    changes: WriteChanges
    index: RecordIndex | None

    def read_new_keys(self, path: str, size: int) -> Iterator[Any]:
        """The keys of a new file that the one before has not."""
        before = self.changes.previous.get(path)
        if before is None:
            yield from read_record_keys(self.storage, path, size)
            return
        yield from _exclude_keys(
            read_record_keys(self.storage, path, size), read_record_keys(self.storage, *before)
        )

    def read_removed_keys(self) -> Iterator[Any]:
        """The keys of files before that the next one has not, and of file groups that are gone."""
        sizes = {
            f"{partition}/{file.name}" if partition else file.name: file.size
            for partition, files in self.changes.added.items()
            for file in files
        }
        for path, before in self.changes.previous.items():
            after = read_record_keys(self.storage, path, sizes[path])
            yield from _exclude_keys(read_record_keys(self.storage, *before), after)
        for keys in self._read_replaced_keys():
            if self.index is None:
                yield keys
            else:
                places = {_parse_place(path) for path, _size in self.changes.replaced}
                yield from select_keys_in(self.index, self.storage, keys, places)

    def _read_replaced_keys(self) -> Iterator[Any]:
        """The keys of file groups that are gone, many at a time.

        The index keeps those that it has elsewhere, unlike Hudi's: an insert may have brought a key
        again, and the row that it brought stays. Whoever looked for it would bring it once more.
        """
        import pyarrow as pa  # noqa: PLC0415

        some: list[Any] = []
        for keys in (
            keys for file in self.changes.replaced for keys in read_record_keys(self.storage, *file)
        ):
            some.append(keys)
            if sum(map(len, some)) >= _KEYS_AT_ONCE:
                yield pa.concat_arrays(some)
                some = []
        if some:
            yield pa.concat_arrays(some)


def _parse_place(path: str) -> FileGroupLocation:
    """The partition and the file group of a base file."""
    partition, _, name = path.rpartition("/")
    found = BaseName.parse(name)
    assert found is not None, "a base file of the table"
    return partition, found.file_id


def _exclude_keys(some: Iterable[Any], others: Iterable[Any]) -> Iterator[Any]:
    """The keys of ``some`` that are not among the ``others``; memory: the others."""
    import pyarrow as pa  # noqa: PLC0415
    import pyarrow.compute as pc  # noqa: PLC0415

    known = pa.chunked_array(list(others), pa.string())
    for keys in some:
        yield keys.filter(pc.invert(pc.is_in(keys, value_set=known)))
