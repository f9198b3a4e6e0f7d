"""A write whose files are there, and that nobody sees yet."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from reconciler.transaction.footprints import Known
from reconciler.writer.asked import Way
from reconciler.writer.bucket import NewBase
from reconciler.writer.facts import Facts
from reconciler.writer.request import Totals


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Written:
    """A write whose files are there. ``known``: the writes that it has seen.

    ``replaced``: indexes into the groups of ``facts`` of those that are gone with it; ``extra``:
    of the instant.
    """

    way: Way
    instant: str
    facts: Facts
    known: Known
    files: Sequence[NewBase]
    totals: Totals
    replaced: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))
    extra: Mapping[str, str] = field(default_factory=dict)
