"""Prepare the metadata table's part of a write of rows."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING, Any, Final

from reconciler.file_slices.merge.avro_schema import add_meta_columns, to_arrow_schema
from reconciler.hudi.files.names import BaseName, make_file_path
from reconciler.hudi.metadata.listing import read_metadata_listing
from reconciler.hudi.metadata.partition_logs import SyncPlan
from reconciler.hudi.metadata.record_index import FileGroupLocation, RecordIndex, select_keys_in
from reconciler.hudi.metadata.sync_decisions import COLUMN_STATS
from reconciler.hudi.metadata.write_sync import NewFilesOfWrite, plan_write_sync
from reconciler.lazy_dataclass import dataclass
from reconciler.storage.api import Storage
from reconciler.transaction.metadata.rewrite_sync import (
    find_indexed_columns,
    read_newest_schema,
    read_record_keys,
)
from reconciler.transaction.metadata.sync import SyncRequest, open_record_index

if TYPE_CHECKING:
    from reconciler.file_slices.base_file.writer import WrittenFile
    from reconciler.file_slices.log_file.log_file import WrittenLogFile

#: path and size of a base file
SizedPath = tuple[str, int]
#: keys that are looked up at a time
_KEYS_AT_ONCE: Final = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteChanges:
    """The files that a write adds and replaces.

    ``added``: partition path ("" of a table without partitions) -> its new base files, which are on
    storage; ``logged``: its new log files. ``sources``: path of a new file -> the base files whose
    rows it has, which may be of other file groups. ``without_lost_keys``: paths of new files that
    have all keys of their sources; ``without_gained_keys``: of those that have no others. The other
    files are compared with their sources. ``replaced``: base files of file groups that the write
    replaces.
    ``types``: Arrow types of all columns of the new files. ``rewritten_partitions``: those of which
    the new files hold all rows.
    ``replaced_groups``: replaced file groups without a base file among them; ``read_log_keys``
    returns the keys of replaced groups that have log files. ``unknown_keys``: why new keys of log
    files are not known, None if these have none. ``read_logged_deletions`` returns the
    keys that the new log files remove from their slices.
    """

    added: Mapping[str, Sequence[WrittenFile]]
    logged: Mapping[str, Sequence[WrittenLogFile]] = field(default_factory=dict)
    sources: Mapping[str, Sequence[SizedPath]] = field(default_factory=dict)
    without_lost_keys: Collection[str] = frozenset()
    without_gained_keys: Collection[str] = frozenset()
    replaced: Sequence[SizedPath] = ()
    types: Mapping[str, Any] = field(default_factory=dict)
    rewritten_partitions: frozenset[str] = frozenset()
    replaced_groups: Sequence[FileGroupLocation] = ()
    read_log_keys: Callable[[], Iterable[Any]] = tuple
    unknown_keys: str | None = None
    read_logged_deletions: Callable[[], Iterable[Any]] = tuple

    @property
    def needs_old_locations(self) -> bool:
        """True if keys leave file groups with their rows, or with the group."""
        moves = any(_list_foreign(path, sources) for path, sources in self.sources.items())
        return moves or bool(self.replaced or self.replaced_groups)


def prepare_write_sync(request: SyncRequest, changes: WriteChanges) -> SyncPlan:
    """Return what the metadata table has to be given of a write, and which partitions must go.

    Raises as ``prepare_rewrite_sync``.
    """
    storage, properties, timeline = request.storage, request.properties, request.timeline
    if not properties.metadata_partitions:
        return SyncPlan()
    completed = request.choose_time()
    table = request.open_table()
    index = None
    if changes.needs_old_locations:
        index = open_record_index(storage, properties, timeline)
    moved = _MovedKeys(storage, changes, index)
    # the columns as they are under the lock: an index may have got more since the write began
    columns = find_indexed_columns(storage, properties, timeline)
    writing = NewFilesOfWrite(
        instant=request.instant,
        completion_time=completed,
        instant_ms=request.instant_ms,
        files_by_partition=changes.added,
        logs_by_partition=changes.logged,
        columns=columns,
        read_keys=moved.read_new_keys,
        read_deleted_keys=moved.read_removed_keys,
        arrow_types=changes.types,
        complete_partitions=changes.rewritten_partitions,
        unknown_keys=changes.unknown_keys,
        new_columns=_find_new_columns(request, columns, changes.types),
    )
    inflight = properties.metadata_partitions_inflight
    return plan_write_sync(table, read_metadata_listing(table), writing, inflight=inflight)


def _find_new_columns(
    request: SyncRequest, columns: Iterable[str], types: Mapping[str, Any]
) -> list[str]:
    """Return columns that the table lacked before, or that are indexed and had another type."""
    if COLUMN_STATS not in request.properties.metadata_partitions:
        return []
    newest = read_newest_schema(request.storage, request.properties, request.timeline)
    if newest is None:
        return []
    before = add_meta_columns(to_arrow_schema(*newest))
    indexed = {column.partition(".")[0] for column in columns}
    return [
        name
        for name, kind in types.items()
        if name not in before.names or (name in indexed and before.field(name).type != kind)
    ]


@dataclass(frozen=True)
class _MovedKeys:
    """Finds the keys that are new in a file group, and those that left it, by comparing files."""

    storage: Storage
    changes: WriteChanges
    index: RecordIndex | None

    def read_new_keys(self, path: str, size: int) -> Iterator[Any]:
        """Yield the keys of a new file that its file group did not have before."""
        sources = self.changes.sources.get(path, ())
        yield from self._read_gained_keys(path, size)
        for source in _list_foreign(path, sources):
            yield from self._read_moved_keys(source, (path, size))

    def _read_gained_keys(self, path: str, size: int) -> Iterator[Any]:
        """Yield the keys of a new file that none of its sources has."""
        sources = self.changes.sources.get(path, ())
        if path in self.changes.without_gained_keys:
            return
        keys = read_record_keys(self.storage, path, size)
        yield from _exclude_keys(keys, self._read_source_keys(sources)) if sources else keys

    def _read_source_keys(self, sources: Iterable[SizedPath]) -> Iterator[Any]:
        return chain.from_iterable(read_record_keys(self.storage, *source) for source in sources)

    def _read_moved_keys(self, source: SizedPath, into: SizedPath) -> Iterator[Any]:
        """Yield the keys that come from the file of another group, if the index has them there.

        An insert may have brought a key again, earlier or in this write; then the index has it
        where that row is.
        """
        moved = _select_common_keys(
            read_record_keys(self.storage, *source), read_record_keys(self.storage, *into)
        )
        for keys in _exclude_keys(moved, self._brought_again):
            if self.index is None:
                yield keys
            else:
                locations = {_parse_location(source[0])}
                yield from select_keys_in(self.index, self.storage, keys, locations)

    @cached_property
    def _brought_again(self) -> list[Any]:
        """The keys of moving rows that are also new in a file of this write. Memory: moving keys.

        A new file of a group whose rows move away has a share of the write's rows, for example.
        """
        moving = [
            keys
            for path, sources in self.changes.sources.items()
            for source in _list_foreign(path, sources)
            for keys in read_record_keys(self.storage, *source)
        ]
        found: list[Any] = []
        for path in self.changes.sources:
            gained = self._read_gained_keys(path, self._sizes[path])
            found.extend(_select_common_keys(gained, moving))
        return found

    @cached_property
    def _sizes(self) -> dict[str, int]:
        """Bytes of each new base file."""
        return {
            make_file_path(partition, file.name): file.size
            for partition, files in self.changes.added.items()
            for file in files
        }

    def read_removed_keys(self) -> Iterator[Any]:
        """Yield keys of older files that the next one lacks, and of replaced file groups."""
        for path, sources in self.changes.sources.items():
            if sources and path not in self.changes.without_lost_keys:
                after = read_record_keys(self.storage, path, self._sizes[path])
                yield from _exclude_keys(self._read_source_keys(sources), after)
        yield from self.changes.read_logged_deletions()
        for keys in self._read_replaced_keys():
            if self.index is None:
                yield keys
            else:
                locations = {_parse_location(path) for path, _size in self.changes.replaced}
                locations.update(self.changes.replaced_groups)
                yield from select_keys_in(self.index, self.storage, keys, locations)

    def _read_replaced_keys(self) -> Iterator[Any]:
        """Yield the keys of replaced file groups, many at a time.

        The index keeps those that it has elsewhere, unlike Hudi's: an insert may have brought a key
        again, and the row that it brought stays. A later upsert would not find it, and insert it.
        """
        import pyarrow as pa  # noqa: PLC0415

        batch: list[Any] = []
        of_bases = (read_record_keys(self.storage, *file) for file in self.changes.replaced)
        for keys in chain(chain.from_iterable(of_bases), self.changes.read_log_keys()):
            batch.append(keys)
            if sum(map(len, batch)) >= _KEYS_AT_ONCE:
                yield pa.concat_arrays(batch)
                batch = []
        if batch:
            yield pa.concat_arrays(batch)


def _parse_location(path: str) -> FileGroupLocation:
    """Return the partition and the file group of a base file."""
    partition, _, name = path.rpartition("/")
    base = BaseName.parse(name)
    assert base is not None, "a base file of the table"
    return partition, base.file_id


def _list_foreign(path: str, sources: Iterable[SizedPath]) -> list[SizedPath]:
    """Return the sources of a file that are of other file groups."""
    own = _parse_location(path)
    return [source for source in sources if _parse_location(source[0]) != own]


def _exclude_keys(batches: Iterable[Any], others: Iterable[Any]) -> Iterator[Any]:
    """Yield the keys that are not among the others. Memory: the others."""
    import pyarrow as pa  # noqa: PLC0415
    import pyarrow.compute as pc  # noqa: PLC0415

    known = pa.chunked_array(list(others), pa.string())
    for keys in batches:
        yield keys.filter(pc.invert(pc.is_in(keys, value_set=known)))


def _select_common_keys(batches: Iterable[Any], others: Iterable[Any]) -> Iterator[Any]:
    """Yield the keys that are among the others. Memory: the others."""
    import pyarrow as pa  # noqa: PLC0415
    import pyarrow.compute as pc  # noqa: PLC0415

    known = pa.chunked_array(list(others), pa.string())
    for keys in batches:
        yield keys.filter(pc.is_in(keys, value_set=known))
