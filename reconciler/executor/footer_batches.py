"""Read ranges and bytes of columns from footers, a batch of base files at a time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from reconciler.errors import FormatError
from reconciler.index.build import IndexRequest
from reconciler.index.column_chunks import STATISTICS_KEYS
from reconciler.index.file_keys import find_rows, take_files
from reconciler.index.footer_tails import FooterTails, SlimFooterTails
from reconciler.index.footers import index_footers
from reconciler.index.model import FileIndex
from reconciler.index.slim_footers import FooterSlimmer, SlimFooter, merge_footers
from reconciler.lazy_dataclass import dataclass
from reconciler.state.index_state_reader import build_file_keys
from reconciler.storage.parallel import run_parallel
from reconciler.verification.checked_table import CheckedTable

#: files whose footers are in memory together
_BATCH_FILES: Final = 1024

#: compressed and uncompressed bytes of columns
ColumnBytes = Mapping[str, tuple[int, int]]


@dataclass(frozen=True, slots=True, kw_only=True)
class FooterBatch:
    """The footers of some base files, an element per file.

    ``rows``: of the state's files. ``index``: their ranges. ``bytes``: of their columns.
    ``problems``: why a footer cannot be read, None if it can.
    """

    rows: Sequence[int]
    index: FileIndex
    bytes: Sequence[ColumnBytes]
    problems: Sequence[str | None]


def read_footer_batches(
    table: CheckedTable, rows: Sequence[int], request: IndexRequest
) -> Iterator[FooterBatch]:
    """Yield the footers of base files. Raises NotFoundError, StorageError."""
    tails = SlimFooterTails(FooterTails(table.storage), FooterSlimmer(STATISTICS_KEYS))
    for start in range(0, len(rows), _BATCH_FILES):
        yield _read_batch(table, tails, rows[start : start + _BATCH_FILES], request)


def _read_batch(
    table: CheckedTable, tails: SlimFooterTails, rows: Sequence[int], request: IndexRequest
) -> FooterBatch:
    files = table.state.files

    def read(row: int) -> SlimFooter | memoryview | str:
        try:
            return tails.read(*files.locate_file(row))
        except FormatError as problem:
            return str(problem)

    found = run_parallel(read, rows, parallelism=table.parallelism)
    footers = [None if isinstance(footer, str) else footer for footer in found]
    index = index_footers(
        (
            (*table.name_file(row), int(files.size[row]), footer)
            for row, footer in zip(rows, footers, strict=True)
        ),
        request.columns,
        request.schema,
        supplied=request.supplied,
    )
    keys = build_file_keys(table.state, np.array(rows, np.int64))
    index = take_files(index, find_rows(index, keys))
    problems = [
        footer
        if isinstance(footer, str)
        else None
        if count >= 0
        else f"{files.locate_file(row)[0]}: the footer cannot be read"
        for row, footer, count in zip(rows, found, index.rows.tolist(), strict=True)
    ]
    readable = [None if problem else one for one, problem in zip(footers, problems, strict=True)]
    return FooterBatch(
        rows=rows, index=index, bytes=_sum_bytes(readable, request.columns), problems=problems
    )


def _sum_bytes(
    footers: Sequence[SlimFooter | memoryview | None], columns: Sequence[str]
) -> list[ColumnBytes]:
    """Return the bytes of columns per footer; footers of one form are parsed together."""
    found: list[ColumnBytes] = [{} for _ in footers]
    alike: dict[Any, list[int]] = {}
    for at, footer in enumerate(footers):
        if footer is not None:
            form = footer.form if isinstance(footer, SlimFooter) else at
            alike.setdefault(form, []).append(at)
    for numbers in alike.values():
        parts = [footers[at] for at in numbers]
        slim = [part for part in parts if isinstance(part, SlimFooter)]
        counts = [part.group_count for part in slim] or [0]
        whole = merge_footers(slim) if slim else parts[0]
        metadata = pq.read_metadata(pa.BufferReader(pa.py_buffer(whole)))
        places = _find_places(metadata, columns)
        first = 0
        for at, count in zip(numbers, counts, strict=True):
            end = first + count if slim else metadata.num_row_groups
            found[at] = _sum_groups(metadata, range(first, end), places)
            first = end
    return found


def _find_places(metadata: Any, columns: Sequence[str]) -> dict[str, int]:
    """Return the numbers of columns in row groups."""
    names = [metadata.schema.column(at).path for at in range(metadata.num_columns)]
    return {name: at for at, name in enumerate(names) if name in set(columns)}


def _sum_groups(metadata: Any, groups: range, places: Mapping[str, int]) -> ColumnBytes:
    sizes = dict.fromkeys(places, (0, 0))
    for group in groups:
        row_group = metadata.row_group(group)
        for name, place in places.items():
            chunk = row_group.column(place)
            size, plain = sizes[name]
            sizes[name] = (
                size + chunk.total_compressed_size,
                plain + chunk.total_uncompressed_size,
            )
    return sizes
