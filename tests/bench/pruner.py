"""Compute the bytes that queries read, by pruning files with the ranges in Parquet footers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq

from tests.bench.curve_data import Query


@dataclass(frozen=True, kw_only=True)
class FooterRanges:
    """Bytes, rows, and the least and greatest value per column of each file."""

    bytes: np.ndarray
    rows: np.ndarray
    least: dict[str, np.ndarray]
    greatest: dict[str, np.ndarray]

    def __len__(self) -> int:
        return len(self.bytes)

    def shares_read(self, queries: Sequence[Query]) -> np.ndarray:
        """Return, for each query, the share of bytes in files whose ranges match."""
        found = []
        for query in queries:
            met = np.ones(len(self), bool)
            for name, (low, high) in query.items():
                met &= (self.least[name] <= high) & (self.greatest[name] >= low)
            found.append(self.bytes[met].sum() / self.bytes.sum())
        return np.array(found)


def read_file_ranges(files: Sequence[str], columns: Sequence[str]) -> FooterRanges:
    """Read the ranges of Parquet files; exits if a file lacks statistics of a column."""
    read = [pq.read_metadata(file) for file in files]
    ranges = {name: [_column_range(footer, name) for footer in read] for name in columns}
    return FooterRanges(
        bytes=np.array([Path(file).stat().st_size for file in files]),
        rows=np.array([footer.num_rows for footer in read]),
        least={name: np.array([low for low, _ in found]) for name, found in ranges.items()},
        greatest={name: np.array([high for _, high in found]) for name, found in ranges.items()},
    )


def _column_range(footer: pq.FileMetaData, name: str) -> tuple[float, float]:
    at = next(n for n in range(footer.num_columns) if footer.schema.column(n).path == name)
    groups = [footer.row_group(n).column(at).statistics for n in range(footer.num_row_groups)]
    if any(group is None or not group.has_min_max for group in groups):
        raise SystemExit(f"a file has no statistics of {name}")
    return min(group.min for group in groups), max(group.max for group in groups)
