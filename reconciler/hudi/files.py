"""All files of a table's partitions as columns: one row a file, never an object a file.

Names are parsed here, vectorised; the grammar is Hudi's (FSUtils, HoodieLogFile). Names that are
not of the grammar (strays) have no row.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray


class FileKind(IntEnum):
    """What a file is; the order is the code in ``Files.kind``."""

    BASE = 0
    LOG = 1
    CDC = 2


KIND_NAMES = ("base", "log", "cdc")


@dataclass(frozen=True, slots=True, eq=False)
class Files:
    """Rows sorted by (partition, name). Arrays have one element a row unless said otherwise.

    ``partitions``: every partition path, sorted, also those without files.
    ``partition``: int32, index into ``partitions``.
    ``name``: pyarrow string array, no nulls, one chunk.
    ``size``: int64, bytes.
    ``kind``: int8, FileKind.
    ``group``: int32, index into ``group_partition`` and ``group_id``.
    ``instant``: int32, index into ``instants`` (sorted as strings, so codes compare as instants):
    the instant in the name (base: the write; log: base instant in version 6, deltacommit later).
    ``version``: int32, N of a log file, 0 for a base file.
    ``group_partition``: int32 per group; ``group_id``: pyarrow string array per group (the file id).
    """

    partitions: tuple[str, ...]
    partition: NDArray[np.int32]
    name: Any
    size: NDArray[np.int64]
    kind: NDArray[np.int8]
    group: NDArray[np.int32]
    instant: NDArray[np.int32]
    version: NDArray[np.int32]
    instants: tuple[str, ...]
    group_partition: NDArray[np.int32]
    group_id: Any

    def __len__(self) -> int:
        return len(self.size)
