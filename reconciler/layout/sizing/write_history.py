"""Statistics of past writes, as arrays, for estimating record sizes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from reconciler.hudi.timeline.instant import Action


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PastWrite:
    """The files that one completed instant wrote, an element a write statistic.

    ``rows``: int64, numWrites: the records in the file; in a merged base file, old and new ones.
    ``bytes``: int64, totalWriteBytes: for a base file, the size of the file. ``is_base``: bool, a
    base file, not a log file. ``operation``: Hudi's name of the write operation. ``is_ours``:
    whether this tool wrote them. ``inserts``: new rows by partition, without partitions of zero.
    """

    instant: str
    action: Action
    rows: NDArray[np.int64]
    bytes: NDArray[np.int64]
    is_base: NDArray[np.bool_]
    operation: str | None = None
    is_ours: bool = False
    inserts: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FooterSizes:
    """Sizes from the footers of base files, an element a file.

    ``data``: int64, compressed bytes of the row groups. The rest of ``bytes`` are the fixed bytes
    of the file: bloom filter, schema, column statistics.
    """

    rows: NDArray[np.int64]
    bytes: NDArray[np.int64]
    data: NDArray[np.int64]
