"""The file slices that a step rewrites, in groups, by columns."""

from __future__ import annotations

from typing import Any

from reconciler.arrays import Integers
from reconciler.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True, eq=False)
class Rewrites:
    """Groups of file slices to rewrite, ordered by partition.

    Group g has the slices ``starts[g]:starts[g + 1]``.

    Per group: ``partition``: pyarrow dictionary<int32, string>; ``outputs``: int64, files written;
    ``bytes``: int64, bytes of base and log files read; ``because``: a dictionary array of
    sentences. ``starts``: int64, one more than there are groups.
    Per slice: ``file_id``: pyarrow string; ``base``: pyarrow string, null for a slice without a
    base file; ``logs``: pyarrow list<string>, names in merge order.
    """

    partition: Any
    outputs: Integers
    bytes: Integers
    because: Any
    starts: Integers
    file_id: Any
    base: Any
    logs: Any

    def __len__(self) -> int:
        return len(self.outputs)
