"""Read footers for plans and writes: rows, bytes, and least and greatest values of columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from decimal import Decimal
from functools import partial
from typing import Any, Final

import numpy as np

from reconciler.arrays import Integers
from reconciler.errors import FormatError, NotFoundError, PermissionDeniedError
from reconciler.file_slices.base_file.parquet import count_row_bytes
from reconciler.hudi.metadata.column_stats import Bound
from reconciler.index.footer_tails import FooterTails, damaged_file_error
from reconciler.index.footer_validation import is_valid_footer
from reconciler.layout.sizing.file_group_sizes import FileGroupSizes
from reconciler.layout.sizing.record_size import FooterSizes
from reconciler.lazy_dataclass import dataclass
from reconciler.storage.api import Storage
from reconciler.storage.parallel import run_parallel

#: files at a time: reading waits for the store
_AT_ONCE: Final = 16
#: number of footers that show the size of rows; each has a bloom filter of half a megabyte
_SAMPLE: Final = 4
_MAGIC: Final = b"PAR1"
_MICROS: Final = {"milliseconds": (1000, 1), "microseconds": (1, 1), "nanoseconds": (1, 1000)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Footer:
    """The footer of one file. ``row_bytes``: compressed bytes of its row groups.

    ``bounds``: per requested column the least and greatest value, or None if unknown.
    ``problem``: why the footer could not be read.
    """

    rows: int = 0
    bytes: int = 0
    row_bytes: int = 0
    bounds: tuple[tuple[Bound, Bound] | None, ...] = ()
    problem: str | None = None


def read_footers(
    storage: Storage, files: Sequence[tuple[str, int]], columns: Sequence[str]
) -> list[Footer]:
    """Return the footers of files, given by path and size, in their order.

    A file that is missing, damaged or not permitted has only a ``problem``. Raises StorageError.
    """
    read = partial(_read_footer, FooterTails(storage), tuple(columns))
    return run_parallel(read, files, parallelism=_AT_ONCE)


def choose_by_size(sizes: Integers, count: int) -> Integers:
    """Return the positions of at most ``count`` files of all sizes, the smallest first."""
    by_size = np.argsort(sizes, kind="stable")
    if len(by_size) <= count:
        return by_size
    return by_size[np.arange(count) * (len(by_size) - 1) // (count - 1)]


def sum_footers(footers: Sequence[Footer]) -> FooterSizes | None:
    """Return rows and bytes of footers as columns; None without footers."""
    if not footers:
        return None
    return FooterSizes(
        rows=np.array([footer.rows for footer in footers], np.int64),
        bytes=np.array([footer.bytes for footer in footers], np.int64),
        data=np.array([footer.row_bytes for footer in footers], np.int64),
    )


def sample_footers(storage: Storage, groups: FileGroupSizes) -> FooterSizes | None:
    """Return footers of current base files of all sizes; None if none can be read.

    Files of different sizes are needed because the fixed bytes of a small file make its rows look
    big, and the next write would then start too many files. Damaged files are skipped. Raises
    StorageError.
    """
    live = np.flatnonzero(groups.is_live & (groups.base > 0))
    some = live[choose_by_size(groups.base[live], _SAMPLE)]
    files = [(groups.get_base_path(at), int(groups.base[at])) for at in some.tolist()]
    footers = [one for one in read_footers(storage, files, ()) if one.problem is None and one.rows]
    return sum_footers(footers)


def parse_footer(tail: bytes, path: str) -> Any:
    """Return pyarrow's FileMetaData of a file's end after checking that all chunks can be read.

    Raises FormatError, and pyarrow's errors.
    """
    import pyarrow as pa  # noqa: PLC0415
    import pyarrow.parquet as pq  # noqa: PLC0415 (tables without clustering need none)

    metadata = pq.read_metadata(pa.BufferReader(_MAGIC + tail))
    if not is_valid_footer(tail, pq.ParquetSchema(metadata)):
        raise damaged_file_error(path, "its footer cannot be read")
    return metadata


def _read_footer(tails: FooterTails, columns: Sequence[str], file: tuple[str, int]) -> Footer:
    import pyarrow as pa  # noqa: PLC0415

    path, size = file
    try:
        metadata = parse_footer(tails.read(path, size), path)
        return Footer(
            rows=metadata.num_rows,
            bytes=size,
            row_bytes=count_row_bytes(metadata),
            bounds=tuple(_find_bounds(metadata, columns)),
        )
    except (FormatError, NotFoundError, PermissionDeniedError) as problem:
        return Footer(problem=str(problem))
    except (pa.ArrowException, OSError, ValueError, OverflowError) as problem:
        message = f"its footer cannot be read: {' '.join(str(problem).split())}"
        return Footer(problem=str(damaged_file_error(path, message)))


def _find_bounds(metadata: Any, columns: Sequence[str]) -> Iterator[tuple[Bound, Bound] | None]:
    """Yield the bounds of each column."""
    import pyarrow.parquet as pq  # noqa: PLC0415

    schema = pq.ParquetSchema(metadata)  # metadata.schema makes a cycle, and keeps every footer
    places = {schema.column(nth).path: nth for nth in range(metadata.num_columns)}
    groups = [metadata.row_group(nth) for nth in range(metadata.num_row_groups)]
    for column in columns:
        place = places.get(column)
        if place is None:
            yield None
        else:
            chunks, kind = [group.column(place) for group in groups], schema.column(place)
            yield _merge_bounds([_chunk_bounds(chunk, column, kind) for chunk in chunks])


#: bounds of a chunk that has only nulls
_NOTHING: Final = (None, None)


def _chunk_bounds(chunk: Any, column: str, kind: Any) -> tuple[Bound | None, Bound | None] | None:
    """Return the bounds of one column chunk; None if they are unknown.

    A chunk without bounds has only nulls if its null count says so. A chunk of another column or
    type is damaged: reading its statistics would make pyarrow end the process.
    """
    is_it = (chunk.path_in_schema, chunk.physical_type) == (column, kind.physical_type)
    stats = chunk.statistics if is_it else None
    if stats is not None and stats.has_null_count and stats.null_count == chunk.num_values:
        return _NOTHING
    if stats is None or not _has_bounds(stats, kind):
        return None
    if str(kind.logical_type.type) == "DECIMAL":
        return _comparable_pair(stats.min, stats.max)
    least, greatest = stats.min_raw, stats.max_raw
    if str(kind.logical_type.type) == "TIMESTAMP":
        times, by = _microsecond_factors(str(kind.logical_type))
        return least * times // by, greatest * times // by
    return _comparable_pair(least, greatest)


def _has_bounds(stats: Any, kind: Any) -> bool:
    """Return whether a chunk has ordered, exact bounds that do not hide a NaN.

    Hudi writes bounds of zero to zero for a file with NaN.
    """
    if not stats.has_min_max or kind.physical_type == "INT96" or kind.max_repetition_level:
        return False
    if kind.physical_type in ("FLOAT", "DOUBLE"):
        least, greatest = stats.min_raw, stats.max_raw
        return not (least == greatest == 0.0 or least != least or greatest != greatest)  # noqa: PLR0124
    return _is_exact(stats)


def _is_exact(stats: Any) -> bool:
    """Return whether bounds are not truncated, as far as pyarrow knows."""
    return all(
        getattr(stats, name, None) is not False
        for name in ("is_min_value_exact", "is_max_value_exact")
    )


def _comparable_pair(least: Any, greatest: Any) -> tuple[Bound, Bound] | None:
    low, high = _to_comparable(least), _to_comparable(greatest)
    return None if low is None or high is None else (low, high)


def _to_comparable(value: Any) -> Bound | None:
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, bool):
        return int(value)
    return value if isinstance(value, (int, float, bytes, Decimal)) else None


def _microsecond_factors(logical: str) -> tuple[int, int]:
    """Return the factor and divisor that convert a time unit to microseconds."""
    return next((how for unit, how in _MICROS.items() if unit in logical), (1, 1))


def _merge_bounds(
    chunks: Sequence[tuple[Bound | None, Bound | None] | None],
) -> tuple[Bound, Bound] | None:
    """Return the bounds of all row groups together."""
    if any(chunk is None for chunk in chunks):
        return None
    known: list[Any] = [chunk for chunk in chunks if chunk is not None and chunk[0] is not None]
    if not known:
        return None
    return min(low for low, _ in known), max(high for _, high in known)
