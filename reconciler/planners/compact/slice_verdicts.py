"""Record the verdict on every file slice with log files while a compaction is planned; pure."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from reconciler.arrays import Integers, Mask
from reconciler.planners.reasons import RowReasons, Sentence, pluralize, speak_of
from reconciler.plans.layout_change import Untouched

#: why a slice is compacted (the first rule) or stays
RULES: Final = (
    "compact",
    "pendingCompaction",
    "pendingLogCompaction",
    "pendingClustering",
    "clustering",
    "partition",
    "expired",
    "bootstrap",
    "afterDeltaCommits",
    "when",
    "pendingWrite",
    "budget",
)
_UNDECIDED: Final = -1


class SliceVerdicts:
    """A rule and a sentence per slice; the first decision stays. ``rule``: int8 into RULES.

    ``is_open``: the slices that are still undecided; at first those with log files.
    """

    def __init__(self, has_logs: Mask) -> None:
        self.rule: NDArray[np.int8] = np.full(len(has_logs), _UNDECIDED, np.int8)
        self.is_open: Mask = has_logs.copy()
        self._reasons = RowReasons(len(has_logs))

    def decide(
        self,
        rule: str,
        where: Mask,
        sentence: Sentence,
        key: NDArray[Any] | int = 0,
    ) -> None:
        """Decide about undecided slices; the ``sentence`` may be a function of their ``key``."""
        chosen = where & self.is_open
        self._reasons.assign(chosen, sentence, key)
        self.rule[chosen] = RULES.index(rule)
        self.is_open[chosen] = False

    def find(self, rule: str) -> Integers:
        """Return the slices that a rule has decided."""
        return np.flatnonzero(self.rule == RULES.index(rule))

    def list_untouched(self) -> tuple[Untouched, ...]:
        """Return the slices that stay by rule, each with its most frequent sentence."""
        untouched = []
        for number, rule in enumerate(RULES):
            codes = self._reasons.codes[self.rule == number]
            if rule != "compact" and len(codes):
                text = self._reasons.texts[int(np.bincount(codes).argmax())]
                untouched.append(Untouched(rule, len(codes), speak_of(len(codes), text)))
        return tuple(sorted(untouched, key=lambda one: (-one.slices, one.rule)))


def explain_nothing(untouched: tuple[Untouched, ...]) -> str:
    """Return why no slice is compacted, the most frequent reason first.

    >>> explain_nothing(())
    'no compaction: no file slice has log files'
    >>> explain_nothing((Untouched("when", 2, "below the limits"),))
    'no compaction: 2 file slices: below the limits'
    """
    counted = [f"{pluralize(one.slices, 'file slice')}: {one.because}" for one in untouched]
    return f"no compaction: {'; '.join(counted) or 'no file slice has log files'}"
