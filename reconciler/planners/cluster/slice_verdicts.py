"""What is decided about every slice, and why, while a clustering is being planned."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from reconciler.planners.reasons import RowReasons, pluralize

#: why a slice is rewritten (the first one) or stays as it is
RULES: Final = (
    "group",
    "pendingCompaction",
    "pendingLogCompaction",
    "pendingClustering",
    "pendingWrite",
    "partition",
    "damaged",
    "afterCommits",
    "logs",
    "large",
    "when",
    "clustered",
    "noGain",
    "singleFile",
    "budget",
)
_RULE_SENTENCES: Final = {
    "pendingCompaction": "{} wait for a pending compaction",
    "pendingLogCompaction": "{} wait for a pending log compaction",
    "pendingClustering": "{} wait for a pending clustering",
    "pendingWrite": "{} wait for a pending write",
    "partition": "clustering.partitions leaves out {}",
    "damaged": "{} cannot be read",
    "logs": "{} have no base file yet",
    "large": "{} are not small",
    "when": "{} are of partitions that don't need it",
    "clustered": "{} are laid out as declared",
    "noGain": "{} would make no fewer files",
    "singleFile": "{} have nothing to be rewritten with",
    "budget": "clustering.budget is too small for {}",
}
#: what a sentence says of several slices, and of one
_SINGULAR_FORMS: Final = (
    ("{} wait ", "{} waits "),
    ("{} have ", "{} has "),
    ("{} are ", "{} is "),
    ("of partitions that don't", "of a partition that doesn't"),
)
_UNDECIDED: Final = -1


class SliceVerdicts:
    """A rule and a sentence a slice; the first decision stays. ``rule``: int8 into RULES."""

    def __init__(self, slices: int) -> None:
        self.rule = np.full(slices, _UNDECIDED, np.int8)
        self._phrases = RowReasons(slices)

    @property
    def is_open(self) -> NDArray[np.bool_]:
        """Nothing is decided about the slice yet."""
        is_open: NDArray[np.bool_] = self.rule == _UNDECIDED
        return is_open

    def decide(
        self,
        rule: str,
        where: NDArray[np.bool_] | NDArray[np.int64],
        key: NDArray[Any] | int,
        sentence: Callable[[int], str],
    ) -> None:
        """Decide about the slices that are still open; the sentence depends on ``key`` alone."""
        chosen = np.zeros(len(self.rule), np.bool_)
        chosen[where] = True
        chosen &= self.is_open
        self._phrases.assign(chosen, np.broadcast_to(key, len(self.rule)), sentence)
        self.rule[chosen] = RULES.index(rule)

    @property
    def because(self) -> Any:
        """A sentence a slice, as a dictionary array; all must be decided."""
        return self._phrases.build_column(np.arange(len(self.rule)))


def explain_no_groups(rule: NDArray[np.int8]) -> str:
    """Why no slice is rewritten: the rules that leave them, the most frequent first."""
    counts = np.bincount(rule, minlength=len(RULES))
    codes = sorted(np.flatnonzero(counts).tolist(), key=lambda code: -counts[code])
    said = [format_slices(_RULE_SENTENCES[RULES[code]], int(counts[code])) for code in codes]
    return "; ".join(said) or "the table has no file slice"


def format_slices(sentence: str, count: int) -> str:
    """A sentence about so many slices, which is written for several."""
    for several, one in _SINGULAR_FORMS if count == 1 else ():
        sentence = sentence.replace(several, one)
    return sentence.format(pluralize(count, "file slice"))
