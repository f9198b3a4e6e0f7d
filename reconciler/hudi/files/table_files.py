"""Hold all files of a table's partitions as columns: one row per file, no object per file.

Names are parsed here as columns. The grammar is Hudi's (FSUtils, HoodieLogFile). A name that does
not match it is a stray and has no row.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from enum import IntEnum
from functools import cache
from itertools import accumulate, chain, pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from reconciler.arrays import (
    Codes,
    Integers,
    Mask,
    encode_distinct,
    encode_sorted_distinct,
    find_distinct,
    to_arrow,
    to_numpy,
)
from reconciler.errors import UnsupportedError
from reconciler.hudi.files.names import make_file_path
from reconciler.hudi.files.uniform_names import split_uniform_names
from reconciler.lazy_dataclass import dataclass

_MAX_BYTES = np.iinfo(np.int32).max
#: files of which the keys are made at once
_KEYS_AT_ONCE = 1 << 16
#: files of which the names are converted at once
_FILES_AT_ONCE = 1 << 14
#: path, file names and sizes in bytes
_Folder = tuple[str, Sequence[str], Sequence[int]]
# the patterns of ``names`` with named groups
_BASE = r"^(?P<id>[^_./]+)_[^_./]+_(?P<instant>\d+)"
_LOG = (
    r"^\.(?P<id>[^_./]+)_(?P<instant>\d+)\.(?:log|archive)\.(?P<version>\d{1,9})"
    r"(?:_\d+-\d+-\d+)?(?P<cdc>\.cdc)?$"
)


class FileKind(IntEnum):
    """The kind of a file; the value is the code in ``TableFiles.kind``."""

    BASE = 0
    LOG = 1
    CDC = 2


@dataclass(frozen=True, slots=True, eq=False)
class TableFiles:
    """Files sorted by (partition, name). Arrays have one element per file unless said otherwise.

    ``partitions``: every partition path, sorted, also of partitions without files.

    ``partition``: int32, index into ``partitions``.

    ``name``: pyarrow string array, no nulls, one chunk.

    ``size``: int64, bytes.

    ``kind``: int8, FileKind.

    ``group``: int32, index into ``group_partition`` and ``group_id``.

    ``instant``: int32, index into ``instants``: the instant in the name. It is the write of a base
    file; for a log file it is the base instant in version 6 and the deltacommit later. ``instants``
    is sorted, so codes compare as instants.

    ``version``: int32, version of a log file, 0 for a base file.

    ``group_partition``: int32 per group. ``group_id``: pyarrow string array, a file id per group.
    Groups are numbered partition by partition.
    """

    partitions: tuple[str, ...]
    partition: Codes
    name: Any
    size: Integers
    kind: NDArray[np.int8]
    group: Codes
    instant: Codes
    version: Codes
    instants: tuple[str, ...]
    group_partition: Codes
    group_id: Any

    def __len__(self) -> int:
        return len(self.size)

    def locate_file(self, row: int) -> tuple[str, int]:
        """Return the path of a file, relative to the table's root, and its size."""
        folder, name = self.partitions[self.partition[row]], self.name[int(row)].as_py()
        return make_file_path(folder, name), int(self.size[row])


def build_files(folders: Iterable[_Folder], base_extension: str) -> TableFiles:
    """Build the columns from (partition, file names, sizes in bytes), which may be a stream.

    ``base_extension`` includes its dot (".parquet"). Base files of other formats are strays, as in
    Hudi's view. Each partition comes once. Raises UnsupportedError for more than 2 GiB of file
    names.
    """
    columns: dict[str, tuple[Any, Integers]] = {}
    text_bytes = 0
    for batch in _batch_folders(folders):
        counts, name, size = _convert_batch(batch)
        text_bytes += name.nbytes
        ends = list(accumulate(counts, initial=0))
        for (partition, *_), (start, end) in zip(batch, pairwise(ends), strict=True):
            columns[partition] = (name[start:end], size[start:end])
    if text_bytes > _MAX_BYTES:
        raise UnsupportedError(
            "the table has more than 2 GiB of file names, which is not supported"
        )
    if not columns:
        return _make_empty()
    partitions = tuple(sorted(columns))
    names, sizes = [to_arrow([])], [np.zeros(0, np.int64)]
    for partition in partitions:
        name, size = columns[partition]
        names.append(name)
        sizes.append(size)
    counts = [len(size) for size in sizes[1:]]
    return build_files_from_columns(
        partitions,
        np.repeat(np.arange(len(partitions), dtype=np.int32), counts).astype(np.int32),
        pa.concat_arrays(names),
        np.concatenate(sizes),
        base_extension,
    )


@cache
def _make_empty() -> TableFiles:
    """Return no files of no partitions, as the removed files of most tables are."""
    nothing = np.zeros(0, np.int32)
    return build_files_from_columns((), nothing, to_arrow([]), np.zeros(0, np.int64), ".parquet")


def _batch_folders(folders: Iterable[_Folder]) -> Iterator[list[_Folder]]:
    """Yield folders in batches, because converting many small ones takes longer one by one."""
    batch: list[_Folder] = []
    count = 0
    for folder in folders:
        if not isinstance(folder[1], list):  # columns already
            yield [folder]
            continue
        batch.append(folder)
        count += len(folder[1])
        if count >= _FILES_AT_ONCE:
            yield batch
            batch, count = [], 0
    if batch:
        yield batch


def _convert_batch(batch: Sequence[_Folder]) -> tuple[list[int], Any, Integers]:
    """Return the number of files in each folder, and their names and sizes as columns."""
    (_path, first_names, first_sizes), *_rest = batch
    if isinstance(first_names, pa.Array):
        return [len(first_names)], first_names, np.asarray(first_sizes, np.int64)
    names = list(chain.from_iterable(in_folder for _path, in_folder, _sizes in batch))
    sizes = list(chain.from_iterable(in_bytes for _path, _names, in_bytes in batch))
    counts = [len(in_folder) for _path, in_folder, _sizes in batch]
    try:
        column = to_arrow(names)
    except UnicodeEncodeError:  # not UTF-8 on disk, so not a name of Hudi's
        known = [
            (path, [(n, s) for n, s in zip(in_folder, in_bytes, strict=True) if _is_utf8(n)])
            for path, in_folder, in_bytes in batch
        ]
        return _convert_batch(
            [(path, [n for n, _ in pairs], [s for _, s in pairs]) for path, pairs in known]
        )
    return counts, column, np.fromiter(sizes, np.int64, len(sizes))


def build_files_from_columns(
    partitions: tuple[str, ...],
    partition: Codes,
    name: Any,
    size: Integers,
    base_extension: str,
) -> TableFiles:
    """Build the columns from parallel arrays of partition codes, names and sizes.

    ``partitions`` is sorted and the codes ascend; names within a partition may have any order.
    Strays are dropped.
    """
    name, size = _sort_names(partition, name, size)
    rows, ids, stamps, kind, version = _parse_names(name, base_extension)
    file_id, file_ids = encode_distinct(ids)
    stamp, instants = encode_sorted_distinct(stamps)
    group_keys = partition[rows].astype(np.int64) * max(len(file_ids), 1) + file_id
    distinct_groups, group = find_distinct(group_keys)
    return TableFiles(
        partitions=partitions,
        partition=partition[rows],
        name=name if len(rows) == len(name) else name.take(to_arrow(rows)),
        size=size[rows],
        kind=kind,
        group=group.astype(np.int32),
        instant=stamp,
        version=version,
        instants=instants,
        group_partition=(distinct_groups // max(len(file_ids), 1)).astype(np.int32),
        group_id=file_ids.take(to_arrow(distinct_groups % max(len(file_ids), 1))),
    )


def _sort_names(partition: Codes, name: Any, size: Integers) -> tuple[Any, Integers]:
    """Return names and sizes sorted by (partition, name), unchanged if already sorted."""
    if len(name) < 2:  # noqa: PLR2004
        return name, size
    rises = to_numpy(pc.less(name[:-1], name[1:]))
    if (rises | (partition[:-1] < partition[1:])).all():
        return name, size
    ends = np.flatnonzero(np.diff(partition)) + 1
    order = np.empty(len(name), np.int64)
    for start, end in zip([0, *ends], [*ends, len(name)], strict=True):
        order[start:end] = to_numpy(pc.array_sort_indices(name[start:end])) + np.uint64(start)
    return name.take(to_arrow(order)), size[order]


def _parse_names(
    name: Any, base_extension: str
) -> tuple[Integers, Any, Any, NDArray[np.int8], Codes]:
    """Return the rows that are data files, their file ids, instants, kinds and log versions."""
    if (uniform := split_uniform_names(name, base_extension)) is not None:
        return _make_bases(np.arange(len(name)), *uniform)
    is_log = to_numpy(pc.starts_with(name, "."))
    bases, base_parts = _match_names(
        name, np.flatnonzero(~is_log), _BASE + re.escape(base_extension) + "$"
    )
    if not is_log.any():
        return _make_bases(bases, base_parts.field("id"), base_parts.field("instant"))
    logs, log_parts = _match_names(name, np.flatnonzero(is_log), _LOG)
    is_cdc = to_numpy(pc.binary_length(log_parts.field("cdc"))) > 0
    kind = np.zeros(len(bases) + len(logs), np.int8)
    kind[len(bases) :] = np.where(is_cdc, FileKind.CDC, FileKind.LOG)
    version = np.zeros(len(kind), np.int32)
    version[len(bases) :] = to_numpy(log_parts.field("version").cast(pa.int32()))
    rows = np.concatenate([bases, logs])
    order = np.argsort(rows, kind="stable")
    both = to_arrow(order)
    ids = pa.concat_arrays([base_parts.field("id"), log_parts.field("id")])
    stamps = pa.concat_arrays([base_parts.field("instant"), log_parts.field("instant")])
    return rows[order], ids.take(both), stamps.take(both), kind[order], version[order]


def _make_bases(
    rows: Integers, ids: Any, instants: Any
) -> tuple[Integers, Any, Any, NDArray[np.int8], Codes]:
    return rows, ids, instants, np.zeros(len(rows), np.int8), np.zeros(len(rows), np.int32)


def make_present_keys(files: TableFiles) -> Any:
    """Return ``partition/name`` of every file: names may repeat across partitions, these do not."""
    return pa.concat_arrays([to_arrow([]), *(keys for _start, keys in _scan_keys(files))])


def _scan_keys(files: TableFiles) -> Iterator[tuple[int, Any]]:
    """Yield the first row and the keys of some files after the other."""
    paths = to_arrow(files.partitions)
    for start in range(0, len(files), _KEYS_AT_ONCE):
        rows = slice(start, start + _KEYS_AT_ONCE)
        in_partition = paths.take(to_arrow(files.partition[rows]))
        yield start, pc.binary_join_element_wise(in_partition, files.name[rows], "/")


def make_name_lookup(files: TableFiles) -> Callable[[str], list[str]]:
    """Return a function that returns the names of the files of a partition, by its path."""
    bounds = np.searchsorted(files.partition, np.arange(len(files.partitions) + 1)).tolist()
    codes = {path: code for code, path in enumerate(files.partitions)}

    def list_names(path: str) -> list[str]:
        code = codes.get(path)
        if code is None:
            return []
        names: list[str] = files.name[bounds[code] : bounds[code + 1]].to_pylist()
        return names

    return list_names


def find_rows(files: TableFiles, keys: Any) -> Integers:
    """Return the rows of files by ``partition/name``, -1 for a null and for a missing file.

    Few keys of a large table need memory for the keys alone, not for those of all files.
    """
    named = keys.dictionary_encode()
    distinct = np.full(len(named.dictionary) + 1, -1, np.int64)  # the last one is for a null
    for start, present in _scan_keys(files):
        found = to_numpy(pc.index_in(present, value_set=named.dictionary).fill_null(-1))
        at = np.flatnonzero(found >= 0)
        distinct[found[at]] = start + at
    rows: Integers = distinct[to_numpy(named.indices.fill_null(-1))]
    return rows


def has_files(files: TableFiles, keys: Any) -> Mask:
    """Return per ``partition/name`` whether the table has the file."""
    found: Mask = find_rows(files, keys) >= 0
    return found


def is_named(files: TableFiles, keys: Any) -> Mask:
    """Return per file whether the keys (``partition/name``) have it."""
    named = np.zeros(len(files), np.bool_)
    for start, present in _scan_keys(files):
        named[start : start + len(present)] = to_numpy(pc.is_in(present, value_set=keys))
    return named


def find_sizes(files: TableFiles, keys: Any) -> Integers:
    """Return the bytes of files by ``partition/name``, -1 for a null and for a missing file."""
    rows = find_rows(files, keys)
    sizes = files.size[rows] if len(files) else np.zeros(len(rows), np.int64)
    known_sizes: Integers = np.where(rows >= 0, sizes, -1)
    return known_sizes


def _match_names(name: Any, rows: Integers, pattern: str) -> tuple[Integers, Any]:
    """Return the rows whose names match, and the pattern's groups of each."""
    names = name if len(rows) == len(name) else name.take(to_arrow(rows))
    groups = pc.extract_regex(names, pattern)
    if not groups.null_count:
        return rows, groups
    is_match = to_numpy(pc.is_valid(groups))
    return rows[is_match], groups.filter(to_arrow(is_match))


def _is_utf8(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True
