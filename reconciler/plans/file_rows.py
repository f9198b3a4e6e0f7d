"""Decode lists of files, which ``encode_files`` has written, in chunks, not an object per file.

This relies on the canonical form: every row has the same keys in the same order, so the n-th quote
of a row always delimits the same field. ``document.load_plan`` checks the result by writing it
again and comparing bytes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from reconciler import arrays
from reconciler.arrays import Integers
from reconciler.lazy_dataclass import dataclass
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

_CHUNK_BYTES = 1 << 23
_ROW, _NAMED_ROW = b'{"because":"', b'{"name":"'
_REMOVED_QUOTES, _ORPHAN_QUOTES, _KEPT_QUOTES, _NAMED_QUOTES = 18, 14, 16, 8


def read_partitions(document: bytes, start: int, end: int) -> tuple[RemovedFiles, tuple[str, ...]]:
    """Undo ``encode_partitions`` for the bytes from start to end.

    Raises ValueError or IndexError when the bytes are not canonical.
    """
    chunks = [_parse_removed(chunk) for chunk in _split_document(document, start, end)]
    goes = [flag for chunk in chunks for flag in chunk.is_deleted]
    files = _join_sized([chunk.files for chunk in chunks])
    removed = RemovedFiles(
        partition=files.partition,
        name=files.name,
        bytes=files.bytes,
        kind=files.kind,
        rule=np.concatenate([chunk.rule for chunk in chunks]),
        because=files.because,
    )
    paths = [path for chunk in chunks for path in chunk.files.paths]
    return removed, tuple(path for path, flag in zip(paths, goes, strict=True) if flag)


def read_orphans(document: bytes, start: int, end: int) -> OrphanFiles:
    """Undo ``encode_orphans``; raises like ``read_partitions``."""
    return _join_sized([_parse_orphans(c) for c in _split_document(document, start, end)])


def _join_sized(chunks: Sequence[_SizedChunk]) -> OrphanFiles:
    """Return the files of all chunks."""
    paths = [path for chunk in chunks for path in chunk.paths]
    before = np.cumsum([0, *(chunk.heads for chunk in chunks)])
    owners = [chunk.partition + n for chunk, n in zip(chunks, before, strict=False)]
    return OrphanFiles(
        partition=columns.build_dictionary(np.concatenate(owners), paths),
        name=pa.concat_arrays([chunk.name for chunk in chunks]),
        bytes=np.concatenate([chunk.bytes for chunk in chunks]),
        kind=np.concatenate([chunk.kind for chunk in chunks]),
        because=_unify_dictionaries([chunk.because for chunk in chunks]),
    )


def read_kept(document: bytes, start: int, end: int) -> KeptFiles:
    """Undo ``encode_kept``; raises like ``read_partitions``."""
    because, names, partitions, rules = [], [], [], []
    for block in _split_document(document, start, end):
        at = columns.find_quotes(block).reshape(-1, _KEPT_QUOTES)
        because.append(_string_values(block, at, 2).dictionary_encode())
        names.append(_string_values(block, at, 6))
        partitions.append(_string_values(block, at, 10).dictionary_encode())
        rules.append(_encode_names(_string_values(block, at, 14), KEEP_RULES))
    return KeptFiles(
        partition=_unify_dictionaries(partitions),
        name=pa.concat_arrays(names),
        rule=np.concatenate(rules),
        because=_unify_dictionaries(because),
    )


def read_named(document: bytes, start: int, end: int) -> NamedFiles:
    """Undo ``encode_named``; raises like ``read_partitions``."""
    names, partitions = [], []
    for block in _split_document(document, start, end, _NAMED_ROW):
        at = columns.find_quotes(block).reshape(-1, _NAMED_QUOTES)
        names.append(_string_values(block, at, 2))
        partitions.append(_string_values(block, at, 6).dictionary_encode())
    return NamedFiles(partition=_unify_dictionaries(partitions), name=pa.concat_arrays(names))


@dataclass(frozen=True, slots=True)
class _SizedChunk:
    """One chunk of files with sizes, below their partitions.

    ``partition``: number of the partition among those that open in the chunk; -1 for the one
    before. ``heads``: how many open. ``paths``: paths of the partitions that close in the chunk.
    """

    partition: Integers
    heads: int
    name: Any
    bytes: Integers
    kind: NDArray[np.int8]
    because: Any
    paths: list[str]


@dataclass(frozen=True, slots=True)
class _RemovedChunk:
    """One chunk of removed files; ``is_deleted``: of the partitions that open in the chunk."""

    files: _SizedChunk
    rule: NDArray[np.int8]
    is_deleted: list[bool]


def _parse_removed(block: bytes) -> _RemovedChunk:
    text = np.frombuffer(block, np.uint8)
    at = columns.find_quotes(block)
    files, fields, heads = _parse_sized(block, at, "d", _REMOVED_QUOTES)
    return _RemovedChunk(
        files=files,
        rule=_encode_names(_string_values(block, fields, 16), REMOVAL_RULES),
        is_deleted=(text[at[heads + 1] + 2] == ord("t")).tolist(),
    )


def _parse_orphans(block: bytes) -> _SizedChunk:
    return _parse_sized(block, columns.find_quotes(block), "f", _ORPHAN_QUOTES)[0]


def _parse_sized(
    block: bytes, at: Integers, head: str, quotes: int
) -> tuple[_SizedChunk, Integers, Integers]:
    """Return files with sizes, the quotes of each, and the first quotes of partitions.

    ``at``: all quotes. ``head``: how a partition's first key begins. ``quotes``: those of a file.
    """
    text = np.frombuffer(block, np.uint8)
    opens = text[at - 1] == ord("{")
    rows = np.flatnonzero(opens & (text[at + 1] == ord("b")))
    heads = np.flatnonzero(opens & (text[at + 1] == ord(head)))
    is_last = block.endswith(b'"}')
    tails = np.append(heads[heads > 0], len(at)) if is_last else heads[heads > 0]
    fields = at[rows[:, None] + np.arange(quotes)]
    sizes = columns.cut_strings(block, fields[:, 5] + 2, fields[:, 6] - 1).cast(pa.int64())
    files = _SizedChunk(
        partition=np.searchsorted(heads, rows) - 1,
        heads=len(heads),
        name=_string_values(block, fields, 12),
        bytes=np.frombuffer(sizes.buffers()[1] or b"", np.int64)[: len(sizes)],
        kind=_encode_names(_string_values(block, fields, 8), FILE_KINDS),
        because=_string_values(block, fields, 2).dictionary_encode(),
        paths=columns.unescape_json(
            columns.cut_strings(block, at[tails - 2] + 1, at[tails - 1])
        ).to_pylist(),
    )
    return files, fields, heads


def _split_document(document: bytes, start: int, end: int, row: bytes = _ROW) -> Iterator[bytes]:
    """Yield the bytes from start to end in pieces; each but the first begins with a row."""
    while start < end:
        stop = document.find(row, min(start + _CHUNK_BYTES, end), end)
        stop = end if stop < 0 else stop
        yield document[start:stop]
        start = stop


def _string_values(block: bytes, at: Integers, quote: int) -> Any:
    """Return the string of each row that begins at its n-th quote."""
    return columns.unescape_json(columns.cut_strings(block, at[:, quote] + 1, at[:, quote + 1]))


def _encode_names(column: Any, names: Sequence[str]) -> NDArray[np.int8]:
    """Return values as indexes into ``names``; raises ValueError for an unknown value."""
    encoded = column.dictionary_encode()
    known = np.array([names.index(value) for value in encoded.dictionary.to_pylist()], np.int8)
    return known.take(columns.dictionary_codes(encoded))


def _unify_dictionaries(chunks: Sequence[Any]) -> Any:
    joined = pa.chunked_array(chunks).unify_dictionaries()
    return pa.concat_arrays(joined.chunks)


# --- reading parsed JSON, an object per file -----------------------------------------------------


def removed_from_json(
    partitions: Sequence[Mapping[str, Any]],
) -> tuple[RemovedFiles, tuple[str, ...]]:
    """Return the columns of a validated ``partitions`` and the partitions to delete."""
    files = [file for partition in partitions for file in partition["files"]]
    paths = [partition["path"] for partition in partitions for _ in partition["files"]]
    removed = RemovedFiles(
        partition=columns.encode_dictionary(paths),
        name=arrays.to_arrow([file["name"] for file in files]),
        bytes=np.array([file["bytes"] for file in files], np.int64),
        kind=np.array([FILE_KINDS.index(file["kind"]) for file in files], np.int8),
        rule=np.array([REMOVAL_RULES.index(file["rule"]) for file in files], np.int8),
        because=columns.encode_dictionary([file["because"] for file in files]),
    )
    return removed, tuple(p["path"] for p in partitions if p["deletePartition"])


def orphans_from_json(partitions: Sequence[Mapping[str, Any]]) -> OrphanFiles:
    """Return the columns of the validated ``partitions`` of orphan files."""
    files = [file for partition in partitions for file in partition["files"]]
    paths = [partition["path"] for partition in partitions for _ in partition["files"]]
    return OrphanFiles(
        partition=columns.encode_dictionary(paths),
        name=arrays.to_arrow([file["name"] for file in files]),
        bytes=np.array([file["bytes"] for file in files], np.int64),
        kind=np.array([FILE_KINDS.index(file["kind"]) for file in files], np.int8),
        because=columns.encode_dictionary([file["because"] for file in files]),
    )


def named_from_json(files: Sequence[Mapping[str, Any]]) -> NamedFiles:
    """Return the columns of the validated ``files`` of a rollback."""
    return NamedFiles(
        partition=columns.encode_dictionary([file["partition"] for file in files]),
        name=arrays.to_arrow([file["name"] for file in files]),
    )


def kept_from_json(kept: Sequence[Mapping[str, Any]]) -> KeptFiles:
    """Return the columns of a validated ``kept``."""
    return KeptFiles(
        partition=columns.encode_dictionary([file["partition"] for file in kept]),
        name=arrays.to_arrow([file["name"] for file in kept]),
        rule=np.array([KEEP_RULES.index(file["rule"]) for file in kept], np.int8),
        because=columns.encode_dictionary([file["because"] for file in kept]),
    )
