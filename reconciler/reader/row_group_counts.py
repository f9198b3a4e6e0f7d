"""Count row groups that may match, by the footers of base files that a read touches."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pyarrow as pa

from reconciler.arrays import to_arrow, to_numpy
from reconciler.errors import ReconcilerError
from reconciler.index.footer_tails import FooterTails
from reconciler.index.footer_validation import is_valid_footer
from reconciler.lazy_dataclass import dataclass
from reconciler.reader.model import Scan
from reconciler.reader.skipping import RowGroupTest
from reconciler.storage import parallel
from reconciler.storage.api import Storage

#: maximum number of footers to read, and how many at once
MAX_FOOTERS: Final = 64
_AT_ONCE: Final = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class RowGroupCounts:
    """Row groups by the footers of base files without log files: ``looked_at`` of ``files`` files.

    ``groups``, ``bytes``: all row groups of those files; ``kept_groups``, ``kept_bytes``: those
    that may match. Bytes are compressed, of all columns.
    """

    files: int
    looked_at: int
    groups: int
    kept_groups: int
    bytes: int
    kept_bytes: int


def count_row_groups(storage: Storage, kept: Scan) -> RowGroupCounts | None:
    """Count row groups of a scan's base files for its condition; None for no condition.

    Of more than ``MAX_FOOTERS`` files an even sample is read. Files with unreadable footers do not
    count.
    """
    test = RowGroupTest.from_scan(kept)
    if test is None:
        return None
    is_whole = to_numpy(kept.slices.column("base").combine_chunks().is_valid()) & ~kept.has_logs
    rows = np.flatnonzero(is_whole)
    sampled = rows[np.linspace(0, len(rows) - 1, min(len(rows), MAX_FOOTERS)).astype(np.int64)]
    files = kept.slices.take(to_arrow(sampled)).select(["partition", "base", "base_size"])
    tails = FooterTails(storage)

    def count_file(file: dict[str, Any]) -> tuple[int, int, int, int] | None:
        try:
            tail = tails.read(file["base"], file["base_size"])
        except ReconcilerError:
            return None
        footer = _read_footer(tail)
        if footer is None:
            return None
        mask = test.may_match(file["base"], tail, kept.get_partition_values(file["partition"]))
        sizes = np.array([_sum_bytes(footer.row_group(at)) for at in range(len(mask))], np.int64)
        return len(mask), int(mask.sum()), int(sizes.sum()), int(sizes[mask].sum())

    results = parallel.run_parallel(count_file, files.to_pylist(), parallelism=_AT_ONCE)
    counts = [count for count in results if count is not None]
    sums = np.array(counts, np.int64).reshape(-1, 4).sum(axis=0).tolist()
    return RowGroupCounts(
        files=len(rows),
        looked_at=len(counts),
        groups=sums[0],
        kept_groups=sums[1],
        bytes=sums[2],
        kept_bytes=sums[3],
    )


def _read_footer(tail: bytes) -> Any:
    import pyarrow.parquet as pq  # noqa: PLC0415 (heavy)

    try:
        footer = pq.read_metadata(pa.BufferReader(tail))
        return footer if is_valid_footer(tail, pq.ParquetSchema(footer)) else None
    except (pa.ArrowException, OSError, ValueError):
        return None


def _sum_bytes(group: Any) -> int:
    return sum(group.column(at).total_compressed_size for at in range(group.num_columns))
