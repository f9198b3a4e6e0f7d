"""Read from footers what new records of the metadata table need besides ranges."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from reconciler.file_slices.base_file.settings import BLOOM
from reconciler.index.footer_tails import FooterTails, damaged_file_error
from reconciler.state.footers import parse_footer
from reconciler.storage.parallel import run_parallel
from reconciler.verification.checked_table import CheckedTable


@dataclass(frozen=True, slots=True)
class FooterFacts:
    """Of one base file: its filter's text, and bytes of columns, compressed and not."""

    bloom: str | None
    sizes: Mapping[str, tuple[int, int]]


def read_footer_facts(
    table: CheckedTable, rows: Sequence[int], columns: Collection[str], *, with_filters: bool
) -> dict[int, FooterFacts]:
    """Return the facts of base files by row, with the bytes of some columns.

    ``with_filters``: keep the filters, which have half a megabyte each. Raises FormatError,
    NotFoundError, StorageError.
    """
    tails = FooterTails(table.storage)

    def read(row: int) -> FooterFacts:
        path, size = table.state.files.locate_file(row)
        tail = tails.read(path, size)
        try:
            footer: Any = parse_footer(tail, path)
        except (pa.ArrowException, OSError, ValueError) as problem:
            raise damaged_file_error(path, " ".join(str(problem).split())) from None
        text = (footer.metadata or {}).get(BLOOM.encode()) if with_filters else None
        return FooterFacts(
            bloom=None if text is None else text.decode("ascii"),
            sizes=_sum_sizes(footer, columns),
        )

    return dict(zip(rows, run_parallel(read, rows, parallelism=table.parallelism), strict=True))


def _sum_sizes(footer: Any, columns: Collection[str]) -> dict[str, tuple[int, int]]:
    """Return compressed and uncompressed bytes of columns."""
    sizes: dict[str, tuple[int, int]] = {}
    for group in range(footer.num_row_groups if columns else 0):
        row_group = footer.row_group(group)
        for at in range(row_group.num_columns):
            chunk = row_group.column(at)
            if chunk.path_in_schema in columns:
                size, plain = sizes.get(chunk.path_in_schema, (0, 0))
                sizes[chunk.path_in_schema] = (
                    size + chunk.total_compressed_size,
                    plain + chunk.total_uncompressed_size,
                )
    return sizes
