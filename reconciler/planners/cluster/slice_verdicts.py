"""Record the verdict on every slice while a clustering is planned; pure."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from reconciler.arrays import Integers, Mask
from reconciler.planners.reasons import RowReasons, Sentence, pluralize

#: why a slice is rewritten (the first rule) or stays
RULES: Final = (
    "group",
    "pendingCompaction",
    "pendingLogCompaction",
    "pendingClustering",
    "pendingWrite",
    "partition",
    "expired",
    "quiet",
    "damaged",
    "afterCommits",
    "bucket",
    "logs",
    "oversized",
    "large",
    "unmeasured",
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
    "partition": "{block}.partitions leaves out {}",
    "expired": "{} are in partitions past retention.partitions",
    "quiet": "files.quiet leaves out {} in partitions that were written recently",
    "damaged": "{} cannot be read",
    "bucket": "{} are buckets that are as declared, and are not merged or split",
    "logs": "{} have no base file yet",
    "oversized": "{} are above files.large and cannot be split into smaller files",
    "large": "{} are not small",
    "unmeasured": "{} have no known statistics on clustering.columns, so their gain is unknown",
    "when": "{} are in partitions below the thresholds of {block}.when",
    "clustered": "{} are clustered as declared",
    "noGain": "{} would not make fewer files",
    "singleFile": "{} have no other file to be rewritten with",
    "budget": "{block}.budget is too small for {}",
}
#: plural and singular forms in these sentences
_SINGULAR_FORMS: Final = (
    ("{} wait ", "{} waits "),
    ("{} have ", "{} has "),
    ("so their gain", "so its gain"),
    ("{} are buckets that are as declared, and are not", "{} is a bucket as declared, and is not"),
    ("{} are ", "{} is "),
    ("in partitions below", "in a partition below"),
    ("in partitions past", "in a partition past"),
)
_UNDECIDED: Final = -1
#: why a slice stays that could only be rewritten alone
SINGLE_FILE: Final = "no other file of its partition is rewritten (clustering.singleFile)"


class SliceVerdicts:
    """A rule and a sentence per slice; the first decision stays. ``rule``: int8 into RULES."""

    def __init__(self, slices: int) -> None:
        self.rule = np.full(slices, _UNDECIDED, np.int8)
        self._is_reserved = np.zeros(slices, np.bool_)
        self._reasons = RowReasons(slices)

    @property
    def is_open(self) -> Mask:
        """Return which slices are undecided and not reserved."""
        is_open: Mask = (self.rule == _UNDECIDED) & ~self._is_reserved
        return is_open

    def reserve(self, slices: Integers) -> None:
        """Keep undecided slices from all decisions until ``release``."""
        self._is_reserved[slices] = True

    def release(self) -> None:
        """Let reserved slices be decided again."""
        self._is_reserved[:] = False

    def decide(
        self,
        rule: str,
        where: Mask | Integers,
        sentence: Sentence,
        key: NDArray[Any] | int = 0,
    ) -> None:
        """Decide about undecided slices; the ``sentence`` may be a function of their ``key``."""
        chosen = np.zeros(len(self.rule), np.bool_)
        chosen[where] = True
        chosen &= self.is_open
        self._reasons.assign(chosen, sentence, key)
        self.rule[chosen] = RULES.index(rule)

    @property
    def because(self) -> Any:
        """Return the sentence of each slice as a dictionary array; all must be decided."""
        return self._reasons.build_column(np.arange(len(self.rule)))


def explain_no_groups(rule: NDArray[np.int8], block: str = "clustering") -> str:
    """Explain why no slice is rewritten, the most frequent rule first.

    ``block``: the block of the spec that declares the rewrite.
    """
    counts = np.bincount(rule, minlength=len(RULES))
    codes = sorted(np.flatnonzero(counts).tolist(), key=lambda code: -counts[code])
    sentences = [
        format_slices(_RULE_SENTENCES[RULES[code]].replace("{block}", block), int(counts[code]))
        for code in codes
    ]
    step = "clustering" if block == "clustering" else "rewrite for file sizes"
    return f"no {step}: {'; '.join(sentences) or 'the table has no file slice'}"


def format_slices(sentence: str, count: int) -> str:
    """Format a sentence written for several slices for this number of slices."""
    for several, one in _SINGULAR_FORMS if count == 1 else ():
        sentence = sentence.replace(several, one)
    return sentence.format(pluralize(count, "file slice"))
