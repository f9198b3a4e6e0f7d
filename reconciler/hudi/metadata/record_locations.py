"""Build the record index's entries for rows in new files, and delete entries of removed keys.

It works on columns: a few bytes of every key are in memory at once, and the cells of one file
group. Source: HoodieTableMetadataUtil.convertMetadataToRecordIndexRecords, reduceByKeys (a key that
is deleted in one file and written in another is only written), mapRecordKeyToFileGroupIndex.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import field
from typing import Any

import numpy as np
import pyarrow as pa

from reconciler.arrays import to_arrow, to_numpy
from reconciler.errors import UnsupportedError
from reconciler.hudi.codecs import hfile_writer
from reconciler.hudi.metadata.deltacommit import NewFileGroup
from reconciler.hudi.metadata.first_groups import name_group
from reconciler.hudi.metadata.index_keys import find_record_groups
from reconciler.hudi.metadata.record_index import list_global_slices
from reconciler.hudi.metadata.sync_decisions import RECORD_INDEX
from reconciler.hudi.metadata.table import MetadataSlice, MetadataTable
from reconciler.lazy_dataclass import dataclass

#: path, size, and the index's value for every key of the file
FileLocation = tuple[str, int, bytes]


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupLocations:
    """The new entries of one file group of the record index.

    ``content``: an HFile of ``rows`` records, None without any. ``deleted_keys``: sorted keys to
    delete, none of them in ``content``.
    """

    file_slice: MetadataSlice
    rows: int
    content: bytes | None
    deleted_keys: list[str]


def build_location_blocks(
    table: MetadataTable,
    locations: Sequence[FileLocation],
    read_keys: Callable[[str, int], Iterable[Any]],
    schema: str,
    deleted_keys: Iterable[Any] = (),
) -> Iterator[GroupLocations]:
    """Yield the new entries of each touched file group of the record index.

    ``read_keys``: path and size of a file -> string arrays of record keys. When several rows have
    the same key, the last one of the last file counts, because the index holds one location per
    key. ``deleted_keys``: string arrays of keys that the table no longer has, unless a new file has
    them.

    Raises UnsupportedError for an index whose file groups are not chosen by key alone, for rows
    without a key and for keys that are too long; FormatError.
    """
    slices = list_global_slices(table)
    if slices is None:
        raise UnsupportedError("the record index keeps keys per partition")
    groups = _read_groups(len(slices), locations, read_keys)
    deleted = [_GroupKeys() for _ in slices]
    for keys in deleted_keys:
        _distribute_keys(keys, 0, deleted, "deleted keys")
    values = _list_values(locations)
    for at, file_slice in enumerate(slices):
        group, groups[at] = groups[at], _GroupKeys()
        deleted_rest, deleted[at] = deleted[at].subtract(group), _GroupKeys()
        count, content = group.encode(values, schema) if group.keys else (0, None)
        if group.keys or deleted_rest:
            yield GroupLocations(
                file_slice=file_slice, rows=count, content=content, deleted_keys=deleted_rest
            )


def build_first_locations(
    locations: Sequence[FileLocation],
    read_keys: Callable[[str, int], Iterable[Any]],
    schema: str,
    *,
    count: int,
) -> Iterator[NewFileGroup]:
    """Yield the file groups of a new record index of ``count`` file groups.

    Works and raises as ``build_location_blocks``.
    """
    groups = _read_groups(count, locations, read_keys)
    values = _list_values(locations)
    for number in range(count):
        group, groups[number] = groups[number], _GroupKeys()
        rows, content = group.encode(values, schema, is_base_file=True) if group.keys else (0, None)
        yield NewFileGroup(
            partition=RECORD_INDEX,
            group=name_group(RECORD_INDEX, number),
            data=content,
            rows=rows,
        )


def _read_groups(
    count: int, locations: Sequence[FileLocation], read_keys: Callable[[str, int], Iterable[Any]]
) -> list[_GroupKeys]:
    groups = [_GroupKeys() for _ in range(count)]
    for number, (path, size, _value) in enumerate(locations):
        for keys in read_keys(path, size):
            _distribute_keys(keys, number, groups, path)
    return groups


def _list_values(locations: Sequence[FileLocation]) -> Any:
    return pa.array([value for _path, _size, value in locations], pa.binary())


@dataclass(slots=True)
class _GroupKeys:
    """Keys of one file group, an array per batch, and the file that each batch is from."""

    keys: list[Any] = field(default_factory=list)
    files: list[int] = field(default_factory=list)

    def subtract(self, written: _GroupKeys) -> list[str]:
        """Return the distinct keys that ``written`` does not have, sorted."""
        import pyarrow.compute as pc  # noqa: PLC0415

        if not self.keys:
            return []
        keys = pc.unique(pa.concat_arrays([array.cast(pa.large_string()) for array in self.keys]))
        if written.keys:
            written_keys = pa.concat_arrays(
                [array.cast(pa.large_string()) for array in written.keys]
            )
            keys = keys.filter(pc.invert(pc.is_in(keys, value_set=written_keys)))
        remaining: list[str] = pc.take(keys, pc.sort_indices(keys)).to_pylist()
        return remaining

    def encode(self, values: Any, schema: str, *, is_base_file: bool = False) -> tuple[int, bytes]:
        """Return the number of distinct keys and their HFile."""
        import pyarrow.compute as pc  # noqa: PLC0415

        keys = pa.concat_arrays([array.cast(pa.large_binary()) for array in self.keys])
        counts = [len(array) for array in self.keys]
        files = to_arrow(np.repeat(np.array(self.files, np.int32), counts))
        order = pc.array_sort_indices(keys)  # stable, so the last read of equal keys is last
        keys, files = keys.take(order), files.take(order)
        is_last = np.ones(len(keys), np.bool_)
        is_last[:-1] = to_numpy(pc.not_equal(keys[1:], keys[:-1]))
        if not is_last.all():
            keys, files = (keys.filter(to_arrow(is_last)), files.filter(to_arrow(is_last)))
        content = hfile_writer.encode_hfile_arrays(
            keys, values.take(files), schema, is_base_file=is_base_file
        )
        return len(keys), content


def _distribute_keys(keys: Any, number: int, groups: Sequence[_GroupKeys], path: str) -> None:
    """Give each file group its keys, as slices of one array."""
    import pyarrow.compute as pc  # noqa: PLC0415

    if keys.null_count:
        raise UnsupportedError(f"{path}: has rows without a record key")
    if not len(keys):
        return
    if pc.max(pc.binary_length(keys)).as_py() > hfile_writer.MAX_KEY_BYTES:
        raise UnsupportedError(f"{path}: has a key that is too long for the record index")
    chosen = find_record_groups(keys, len(groups))
    ordered = keys.take(to_arrow(np.argsort(chosen, kind="stable")))
    ends = np.cumsum(np.bincount(chosen, minlength=len(groups)))
    for group, start, end in zip(groups, (0, *ends[:-1].tolist()), ends.tolist(), strict=True):
        if start < end:
            group.keys.append(ordered.slice(start, end - start))
            group.files.append(number)
