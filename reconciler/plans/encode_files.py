"""Encode lists of files as canonical JSON: columns of texts are joined, not an object per file.

What stands around the files of a partition is a text too, of its first and of its last file, so
that nothing is done once for each partition.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from reconciler import arrays, canonical_json
from reconciler.plans import columns
from reconciler.plans.model import (
    FILE_KINDS,
    KEEP_RULES,
    REMOVAL_RULES,
    KeptFiles,
    NamedFiles,
    OrphanFiles,
    RemovedFiles,
)

_CHUNK_ROWS = 1 << 15
#: bytes that are hashed and written at a time, while they are near the processor
_PIECE_BYTES = 1 << 17
_EMPTY = arrays.to_arrow([""])[0]

_TextPart = Callable[[slice], Any]


def encode_partitions(files: RemovedFiles, deleted: Sequence[str]) -> Iterator[memoryview]:
    """Yield the text between the brackets of ``partitions``, sorted by path.

    ``deleted``: partitions whose directory is deleted, with or without files.
    """
    goes = frozenset(deleted)

    def open_partition(path: str) -> str:
        return f'{{"deletePartition":{"true" if path in goes else "false"},"files":['

    parts = (
        *_sized_text_parts(files),
        lambda rows: columns.escape_json(files.name[rows]),
        _constant_text('","rule":"{}"}}', REMOVAL_RULES, files.rule),
    )
    return _join_partitions(files, parts, open_partition, goes)


def encode_orphans(files: OrphanFiles) -> Iterator[memoryview]:
    """Yield the text between the brackets of the ``partitions`` of orphan files, by path."""
    parts = (
        *_sized_text_parts(files),
        lambda rows: columns.escape_json(files.name[rows]),
        _constant_text('"}}', ("",), np.zeros(len(files), np.int8)),
    )
    return _join_partitions(files, parts, lambda _path: '{"files":[')


def encode_kept(kept: KeptFiles) -> Iterator[memoryview]:
    """Yield the text between the brackets of ``kept``."""
    parts = (
        _text_at(len(kept), [0], [""], ","),
        _dictionary_text('{"because":"', kept.because, '","name":"'),
        lambda rows: columns.escape_json(kept.name[rows]),
        _dictionary_text('","partition":"', kept.partition, '","rule":"'),
        _constant_text('{}"}}', KEEP_RULES, kept.rule),
    )
    return _join_rows(len(kept), parts)


def encode_named(files: NamedFiles) -> Iterator[memoryview]:
    """Yield the text between the brackets of the ``files`` of a rollback."""
    parts = (
        _text_at(len(files), [0], ['{"name":"'], ',{"name":"'),
        lambda rows: columns.escape_json(files.name[rows]),
        _dictionary_text('","partition":"', files.partition, '"}'),
    )
    return _join_rows(len(files), parts)


# --- partitions ----------------------------------------------------------------------------------


def _join_partitions(
    files: RemovedFiles | OrphanFiles,
    parts: Sequence[_TextPart],
    open_partition: Callable[[str], str],
    others: Collection[str] = (),
) -> Iterator[memoryview]:
    """Yield files with what stands around those of each partition.

    ``parts``: the text of each file. ``others``: partitions that are written without files, too.
    """
    paths, by_row = columns.rank_values(files.partition)
    firsts, lasts = _find_runs(by_row)
    listed = [paths[code] for code in by_row[firsts].tolist()]
    openings, rest = _open_partitions(listed, open_partition, others)
    count = len(files)
    framed = (
        _text_at(count, firsts, openings, ","),
        *parts,
        _text_at(count, lasts, list(map(_close_partition, listed)), ""),
    )
    yield from _join_rows(count, framed)
    yield memoryview(rest.encode())


def _open_partitions(
    listed: Sequence[str], open_partition: Callable[[str], str], others: Collection[str]
) -> tuple[list[str], str]:
    """Return the text before the files of each listed partition, and that behind all of them.

    Partitions without files are in the text before the next partition that has some.
    """
    with_files = frozenset(listed)
    openings, before, comma = list[str](), list[str](), ""
    for path in sorted(with_files.union(others)):
        before.append(comma + open_partition(path))
        comma = ","
        if path in with_files:
            openings.append("".join(before))
            before = []
        else:
            before.append(_close_partition(path))
    return openings, "".join(before)


def _close_partition(path: str) -> str:
    return f'],"path":{canonical_json.to_bytes(path).decode()}}}'


def _find_runs(codes: NDArray[Any]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the rows at which runs of equal codes begin, and the last row of each."""
    lasts = np.flatnonzero(np.diff(codes))
    if not len(codes):
        return lasts, lasts
    return np.append(0, lasts + 1), np.append(lasts, len(codes) - 1)


# --- texts ---------------------------------------------------------------------------------------


def _sized_text_parts(files: RemovedFiles | OrphanFiles) -> tuple[_TextPart, ...]:
    """Return what is written of a file up to its name."""
    return (
        _dictionary_text('{"because":"', files.because, '","bytes":'),
        lambda rows: arrays.to_arrow(files.bytes[rows]).cast(pa.string()),
        _constant_text(',"kind":"{}","name":"', FILE_KINDS, files.kind),
    )


def _text_at(
    count: int, rows: Sequence[int] | NDArray[np.int64], texts: Sequence[str], otherwise: str
) -> _TextPart:
    """Return a text for some of ``count`` rows, and another one for all others."""
    codes = np.zeros(count, np.int32)
    codes[rows[:count]] = np.arange(1, min(len(texts), count) + 1)
    values = arrays.to_arrow([otherwise, *texts])
    return lambda rows: values.take(arrays.to_arrow(codes[rows]))


def _dictionary_text(before: str, column: Any, after: str) -> _TextPart:
    """Return a dictionary column between two constants; each distinct value is escaped once."""
    distinct = columns.escape_json(column.dictionary)
    texts = pc.binary_join_element_wise(
        arrays.to_arrow([before])[0], distinct, arrays.to_arrow([after])[0], _EMPTY
    )
    return lambda rows: texts.take(column.indices[rows])


def _constant_text(template: str, names: Sequence[str], codes: NDArray[np.int8]) -> _TextPart:
    texts = arrays.to_arrow([template.format(name) for name in names])
    return lambda rows: texts.take(arrays.to_arrow(codes[rows]))


def _join_rows(count: int, parts: Sequence[_TextPart]) -> Iterator[memoryview]:
    """Yield the text of all rows in pieces."""
    for start in range(0, count, _CHUNK_ROWS):
        rows = slice(start, min(start + _CHUNK_ROWS, count))
        text = pc.binary_join_element_wise(*(part(rows) for part in parts), _EMPTY)
        whole = columns.get_text(text)
        for at in range(0, len(whole), _PIECE_BYTES):
            yield whole[at : at + _PIECE_BYTES]
