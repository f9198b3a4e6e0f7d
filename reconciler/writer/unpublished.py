"""A write whose files exist but are not visible yet."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from reconciler.transaction.footprints import CompletedWrites
from reconciler.writer.bucket import WrittenBaseFile
from reconciler.writer.facts import WriteFacts
from reconciler.writer.job import RowCounts
from reconciler.writer.request import WriteMode


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class UnpublishedWrite:
    """A write whose files exist. ``known_writes``: the writes that it has seen.

    ``replaced``: indexes into the groups of ``facts`` that it replaces; ``extra``: of the instant.
    """

    mode: WriteMode
    instant: str
    facts: WriteFacts
    known_writes: CompletedWrites
    files: Sequence[WrittenBaseFile]
    counts: RowCounts
    replaced: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))
    extra: Mapping[str, str] = field(default_factory=dict)
