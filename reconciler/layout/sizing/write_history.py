"""What past writes wrote, as columns: the ground that sizes are estimated on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from reconciler.hudi.timeline.instant import Action


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PastWrite:
    """The files that one completed instant wrote, one element a write statistic.

    ``rows``: int64, records in the file (numWrites: of a merged base file all, old and new).
    ``bytes``: int64, bytes written (totalWriteBytes: of a base file the whole file).
    ``is_base``: bool, a base file, not a log file.
    ``operation``: Hudi's name of what wrote them; ``is_own_clean``: an apply of this tool did.
    ``inserts``: by partition the rows that were not in the table before, where there are any.
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
    """What footers of base files say, one element a file.

    ``data``: int64, compressed bytes of the row groups; the rest of ``bytes`` is the file's fixed
    cost: bloom filter, schema, column statistics.
    """

    rows: NDArray[np.int64]
    bytes: NDArray[np.int64]
    data: NDArray[np.int64]
