"""Build an index from the statistics in Parquet footers.

pyarrow parses the footers. Files that differ only in their row groups are merged into one footer
first, without key-value pairs: Hudi's footers are mostly bloom filter, and copying it costs more
than reading all statistics.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import islice
from typing import Any, Final

import numpy as np
import pyarrow as pa

from reconciler.arrays import to_arrow
from reconciler.errors import UnsupportedError
from reconciler.index.column_chunks import STATISTICS_KEYS, ColumnChunks, FooterFile
from reconciler.index.file_forms import SchemaForms
from reconciler.index.file_keys import sort_index
from reconciler.index.footer_validation import ChunkStarts, find_chunk_starts
from reconciler.index.model import (
    UNKNOWN,
    ColumnStats,
    FileIndex,
    indexed_type,
    list_indexable_fields,
)
from reconciler.index.slim_footers import FooterForm, FooterSlimmer, SlimFooter, merge_footers
from reconciler.index.thrift_compact import MalformedError

#: bytes of row groups that wait to be read together
_MAX_WAITING_BYTES: Final = 2 << 20
#: the most fields of a struct that a message names
_MAX_SHOWN_FIELDS: Final = 5


def index_footers(
    files: Iterable[tuple[str, str, int, Any]],
    columns: Sequence[str],
    schema: Any,
    *,
    supplied: Collection[str] = (),
) -> FileIndex:
    """Return the index of files given as (partition, name, size, footer), each file once.

    ``footer``: a SlimFooter, pyarrow's FileMetaData, or the end of the file from the footer's first
    byte or earlier. A footer that is None or damaged makes the file unknown, with -1 rows.
    ``columns``: names, with dots into structs. ``schema``: the table's columns as an Arrow schema.
    ``supplied``: columns that readers fill with other values than null if a file lacks them
    (from the partition path, from another name). Raises UnsupportedError for a column that the
    schema lacks or whose type has no bounds.
    """
    reading = _FooterReader(find_index_types(columns, schema), supplied)
    keys: list[tuple[str, str, int]] = []
    for partition, name, size, footer in files:
        keys.append((partition, name, size))
        reading.add_file(name, footer)
    stats = reading.statistics()  # reads what still waits, which may make rows unknown
    index = FileIndex(
        partition=to_arrow([partition for partition, _, _ in keys]).dictionary_encode(),
        name=to_arrow([name for _, name, _ in keys]),
        size=np.array([size for _, _, size in keys], np.int64),
        rows=np.array(reading.rows, np.int64),
        columns=stats,
    )
    return sort_index(index)


def index_row_groups(
    name: str, footer: Any, columns: Sequence[str], schema: Any, *, supplied: Collection[str] = ()
) -> FileIndex:
    """Return an index with one element per row group of a file, in the file's order.

    ``name``: the file's; the elements are named by their numbers. An unreadable footer gives no
    elements. Arguments and errors are those of ``index_footers``.
    """
    reading = _FooterReader(find_index_types(columns, schema), supplied)
    reading.add_row_groups(name, footer)
    groups = range(len(reading.rows))
    return FileIndex(
        partition=to_arrow([""] * len(groups)).dictionary_encode(),
        name=to_arrow([str(group) for group in groups]),
        size=np.zeros(len(groups), np.int64),
        rows=np.array(reading.rows, np.int64),
        columns=reading.statistics(),
    )


def find_index_types(columns: Sequence[str], schema: Any) -> dict[str, Any]:
    """Return the type in which the bounds of each column are kept.

    Raises UnsupportedError for a column that does not exist or whose type has no bounds.
    """
    types = {}
    for column in columns:
        kind = _find_type(column, schema)
        kept = None if kind is None else indexed_type(kind)
        if kept is None:
            why = (
                "the table has no such column" if kind is None else _explain_no_bounds(column, kind)
            )
            raise UnsupportedError(f"column {column} cannot be indexed: {why}")
        types[column] = kept
    return types


def _explain_no_bounds(column: str, kind: Any) -> str:
    """Explain why a column has no bounds, and name its fields that have some."""
    fields = list_indexable_fields(column, kind)
    if not fields:
        return f"it is of type {kind}"
    more = (
        f" (and {len(fields) - _MAX_SHOWN_FIELDS} more)" if len(fields) > _MAX_SHOWN_FIELDS else ""
    )
    return f"it is a struct; name its fields: {', '.join(fields[:_MAX_SHOWN_FIELDS])}{more}"


def _find_type(column: str, schema: Any) -> Any:
    """Return the type of a column named with dots; None if it does not exist."""
    first, *rest = column.split(".")
    fields = {part.name: part.type for part in schema}
    kind = fields.get(first)
    for name in rest:
        if kind is None or not pa.types.is_struct(kind):
            return None
        kind = {part.name: part.type for part in kind}.get(name)
    return kind


class _FooterReader:
    """Reads one footer after another; ``rows``: number per file, -1 for an unreadable footer."""

    def __init__(self, wanted: Mapping[str, Any], supplied: Collection[str]) -> None:
        self.wanted = wanted
        self.rows: list[int] = []
        self.forms = SchemaForms(wanted=tuple(wanted), supplied=frozenset(supplied))
        self._slimmer = FooterSlimmer(STATISTICS_KEYS)
        self._by_form: dict[FooterForm, list[tuple[FooterFile, SlimFooter]]] = {}
        self._waiting_bytes = 0
        self._chunks = {column: ColumnChunks() for column in wanted}

    def add_file(self, name: str, footer: Any) -> None:
        """Add the next file."""
        number = len(self.rows)
        cut = self._slimmer.slim(footer) if isinstance(footer, bytes) else footer
        if isinstance(cut, SlimFooter):
            self.rows.append(cut.rows)
            file = FooterFile(number, name, cut.rows, cut.group_count, cut.pairs)
            self._by_form.setdefault(cut.form, []).append((file, cut))
            self._waiting_bytes += len(cut.groups)
            if self._waiting_bytes > _MAX_WAITING_BYTES:
                self._read_waiting()
            return
        self.rows.append(UNKNOWN)
        metadata = _parse_footer(footer)
        if metadata is not None:
            count, pairs = metadata.num_row_groups, metadata.metadata or {}
            file = FooterFile(number, name, metadata.num_rows, count, pairs)
            if self._read(metadata, [file], range(count), _find_chunks(footer)):
                self.rows[number] = file.rows

    def add_row_groups(self, name: str, footer: Any) -> None:
        """Add each row group of a file as a file of its own."""
        metadata = _parse_footer(footer)
        if metadata is None:
            return
        pairs = metadata.metadata or {}
        groups = range(metadata.num_row_groups)
        files = [
            FooterFile(number, name, metadata.row_group(number).num_rows, 1, pairs)
            for number in groups
        ]
        is_read = self._read(metadata, files, groups, _find_chunks(footer))
        self.rows = [file.rows if is_read else UNKNOWN for file in files]

    def _read_waiting(self) -> None:
        """Read the waiting footers, those with the same form together."""
        for files in self._by_form.values():
            self._read_same_form(files)
        self._by_form.clear()
        self._waiting_bytes = 0

    def _read_same_form(self, files: Sequence[tuple[FooterFile, SlimFooter]]) -> None:
        """Read files that differ only in their row groups together; if that fails, one by one."""
        metadata = _parse_footer(merge_footers([cut for _, cut in files]))
        many = range(sum(file.groups for file, _ in files))
        is_whole = metadata is not None and metadata.num_row_groups == len(many)
        chunks = [(cut.groups, starts) for _, cut in files for starts in cut.chunks]
        if is_whole and self._read(metadata, [file for file, _ in files], many, chunks):
            return
        if len(files) > 1:
            for file in files:
                self._read_same_form([file])
        else:
            self.rows[files[0][0].number] = UNKNOWN

    def _read(
        self,
        metadata: Any,
        files: Sequence[FooterFile],
        numbers: range,
        chunks: Sequence[ChunkStarts] | None,
    ) -> bool:
        """Read the statistics of a footer's row groups; return False if the footer is damaged."""
        try:
            form = self.forms.find_form(metadata, chunks)
            groups = [metadata.row_group(number) for number in numbers]
            rows = [group.num_rows for group in groups]
        except (pa.ArrowException, OSError, ValueError):  # names that are not valid text
            return False
        if (
            any(group.num_columns != len(form.schema) for group in groups)
            or not _has_matching_rows(files, rows)
            or (chunks is not None and not form.has_valid_chunks(chunks, len(groups)))
        ):
            return False
        for column, place in zip(self.wanted, form.places, strict=True):
            self._chunks[column].add_files(column, place, files, groups, rows)
        return True

    def statistics(self) -> dict[str, ColumnStats]:
        """Return the statistics of every column, an element a file."""
        self._read_waiting()
        kinds = tuple(self.forms.kinds)
        return {
            column: self._chunks[column].file_statistics(kind, kinds, len(self.rows))
            for column, kind in self.wanted.items()
        }


def _has_matching_rows(files: Sequence[FooterFile], rows: Sequence[int]) -> bool:
    """Return whether each file has as many rows as its row groups, given in the files' order."""
    left = iter(rows)
    return all(sum(islice(left, file.groups)) == file.rows for file in files)


def _find_chunks(footer: Any) -> list[ChunkStarts] | None:
    """Return the offsets of the column chunks in each row group; an empty list if damaged.

    None for a footer that pyarrow has already parsed: its bytes are not available.
    """
    if not isinstance(footer, bytes | memoryview):
        return None
    data = bytes(footer)
    try:
        return [(data, starts) for starts in find_chunk_starts(data)]
    except MalformedError:
        return []


def _parse_footer(footer: Any) -> Any:
    """Return pyarrow's FileMetaData; None for an unreadable footer."""
    import pyarrow.parquet as pq  # noqa: PLC0415 (needed only to build an index)

    if footer is None or isinstance(footer, pq.FileMetaData):
        return footer
    try:
        return pq.read_metadata(pa.BufferReader(pa.py_buffer(footer)))
    except (pa.ArrowException, OSError, ValueError, OverflowError):
        return None
