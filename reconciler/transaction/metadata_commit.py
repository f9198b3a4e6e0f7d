"""The metadata table during a write of rows: told of it before it completes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from reconciler.hudi.metadata_commit_sync import Writing, commit_sync
from reconciler.hudi.metadata_partitions import COLUMN_STATS
from reconciler.hudi.metadata_read import read_listing
from reconciler.hudi.metadata_table import open_metadata
from reconciler.hudi.metadata_told import RewriteSync
from reconciler.hudi.names import BaseName
from reconciler.hudi.properties import TableProperties
from reconciler.hudi.record_index import Place, RecordIndex, keys_in
from reconciler.hudi.timeline import Timeline
from reconciler.merge.avro_schema import arrow_schema, with_meta_columns
from reconciler.storage.api import Storage
from reconciler.transaction.metadata import record_index_of
from reconciler.transaction.metadata_rewrite import keys_of, newest_schema

if TYPE_CHECKING:
    from reconciler.basefile.writer import WrittenFile

#: path and size of a base file
File = tuple[str, int]
#: keys that are looked up at a time
_TOGETHER: Final = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """What a write has done, as files.

    ``added``: partition path ("" of a table without partitions) -> its new files, which are on
    storage. ``before``: path of a new file -> the one that it follows in its file group.
    ``replaced``: files of file groups that are gone with the write. ``columns``: those whose ranges
    the index knows; ``kinds``: Arrow types of all columns of the new files; ``alone``: partitions
    of which the new files hold all rows.
    """

    added: Mapping[str, Sequence[WrittenFile]]
    before: Mapping[str, File] = field(default_factory=dict)
    replaced: Sequence[File] = ()
    columns: Sequence[str] = ()
    kinds: Mapping[str, Any] = field(default_factory=dict)
    alone: frozenset[str] = frozenset()


def plan_commit_sync(  # noqa: PLR0913
    storage: Storage,
    properties: TableProperties,
    timeline: Timeline,
    told: Told,
    *,
    instant: str,
    completed: str,
    instant_ms: int,
) -> RewriteSync:
    """What the metadata table must be told of a write, and which partitions of it must go.

    As ``plan_rewrite_sync``, whose errors it raises; what to do then is said there.
    """
    if not properties.metadata_partitions:
        return RewriteSync()
    table = open_metadata(
        storage,
        version=properties.table_version,
        data=timeline,
        live=properties.metadata_partitions,
    )
    index = record_index_of(storage, properties, timeline) if told.replaced else None
    moved = _Moved(storage, told, index)
    writing = Writing(
        instant=instant,
        completed=completed,
        instant_ms=instant_ms,
        added=told.added,
        columns=told.columns,
        keys=moved.new,
        deleted=moved.gone,
        kinds=told.kinds,
        alone=told.alone,
        begun=_begun(storage, properties, timeline, told),
    )
    inflight = properties.metadata_partitions_inflight
    return commit_sync(table, read_listing(table), writing, inflight=inflight)


def _begun(
    storage: Storage, properties: TableProperties, timeline: Timeline, told: Told
) -> list[str]:
    """The columns that the table had not before, or not in this type if they are indexed."""
    if COLUMN_STATS not in properties.metadata_partitions:
        return []
    found = newest_schema(storage, properties, timeline)
    if found is None:
        return []
    before = with_meta_columns(arrow_schema(*found))
    indexed = {column.partition(".")[0] for column in told.columns}
    return [
        name
        for name, kind in told.kinds.items()
        if name not in before.names or (name in indexed and before.field(name).type != kind)
    ]


@dataclass(frozen=True, slots=True)
class _Moved:
    """Which keys are new in a file group, and which are gone: by the files before and after."""

    storage: Storage
    told: Told
    index: RecordIndex | None

    def new(self, path: str, size: int) -> Iterator[Any]:
        """The keys of a new file that the one before has not."""
        before = self.told.before.get(path)
        if before is None:
            yield from keys_of(self.storage, path, size)
            return
        yield from _not_in(keys_of(self.storage, path, size), keys_of(self.storage, *before))

    def gone(self) -> Iterator[Any]:
        """The keys of files before that the next one has not, and of file groups that are gone."""
        sizes = {
            f"{partition}/{file.name}" if partition else file.name: file.size
            for partition, files in self.told.added.items()
            for file in files
        }
        for path, before in self.told.before.items():
            after = keys_of(self.storage, path, sizes[path])
            yield from _not_in(keys_of(self.storage, *before), after)
        for keys in self._replaced():
            if self.index is None:
                yield keys
            else:
                places = {_place(path) for path, _size in self.told.replaced}
                yield from keys_in(self.index, self.storage, keys, places)

    def _replaced(self) -> Iterator[Any]:
        """The keys of file groups that are gone, many at a time.

        The index keeps those that it has elsewhere, unlike Hudi's: an insert may have brought a key
        again, and the row that it brought stays. Whoever looked for it would bring it once more.
        """
        import pyarrow as pa  # noqa: PLC0415

        some: list[Any] = []
        for keys in (keys for file in self.told.replaced for keys in keys_of(self.storage, *file)):
            some.append(keys)
            if sum(map(len, some)) >= _TOGETHER:
                yield pa.concat_arrays(some)
                some = []
        if some:
            yield pa.concat_arrays(some)


def _place(path: str) -> Place:
    """The partition and the file group of a base file."""
    partition, _, name = path.rpartition("/")
    found = BaseName.parse(name)
    assert found is not None, "a base file of the table"
    return partition, found.file_id


def _not_in(some: Iterable[Any], others: Iterable[Any]) -> Iterator[Any]:
    """The keys of ``some`` that are not among the ``others``; memory: the others."""
    import pyarrow as pa  # noqa: PLC0415
    import pyarrow.compute as pc  # noqa: PLC0415

    known = pa.chunked_array(list(others), pa.string())
    for keys in some:
        yield keys.filter(pc.invert(pc.is_in(keys, value_set=known)))
