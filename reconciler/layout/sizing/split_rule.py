"""Split files that became too large: the rule of rewrites, and of the forecasts of rewrites."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from reconciler.arrays import Integers
from reconciler.layout.sizing.assignment_rules import MAX_OVERFILL
from reconciler.lazy_dataclass import dataclass

#: bytes of a footer apart from bloom filter and schema
FOOTER_BYTES: Final = 10_000
#: if footers take more of the target than this, more files do not help
_MAX_FOOTER_SHARE: Final = 0.5
#: added before rounding: parts are rather too small than too large
_ROUNDING: Final = 0.45


@dataclass(frozen=True, slots=True, kw_only=True)
class SplitRule:
    """When a new file is split, and into how many parts.

    ``target``: bytes that a part is filled to. ``large``: bytes above which a file is split; None:
    1.15 times the target.
    """

    target: int
    large: int | None = None

    @property
    def max_bytes(self) -> float:
        """Return the size above which a file is split."""
        return MAX_OVERFILL * self.target if self.large is None else self.large

    def can_split(self, footer: float) -> bool:
        """Return whether parts with ``footer`` bytes of their own would be smaller."""
        return footer <= _MAX_FOOTER_SHARE * self.target

    def count_parts(self, data: Any, footer: float) -> Integers:
        """Return the number of parts of files with ``data`` bytes of rows.

        >>> SplitRule(target=1000).count_parts(np.array([1200, 2400, 3600]), footer=0).tolist()
        [2, 3, 4]
        """
        room = max(self.target - footer, 1)
        return np.round(np.asarray(data) / room + _ROUNDING).astype(np.int64)
