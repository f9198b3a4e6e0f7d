"""Bring existing files to the declared sizes: which are small or large, and how many they become.

Pure. Files of declared sizes are between ``small`` and ``large``. Because ``large`` is at least
twice ``small``, any amount of rows above ``small`` can be cut into such files.
"""

from __future__ import annotations

from typing import Final, Self

import numpy as np

from reconciler.arrays import Integers, Mask
from reconciler.layout.sizing.record_size import RecordSize, estimate_compacted_bytes
from reconciler.layout.sizing.split_rule import SplitRule
from reconciler.lazy_dataclass import dataclass
from reconciler.planners.newest_slices import CandidateSlices
from reconciler.spec.model import FileSizes, TableSpec
from reconciler.spec.rules import find_large

#: distance from the limits that a predicted size keeps, because it is only predicted
_MARGIN: Final = 1.05


@dataclass(frozen=True, slots=True, kw_only=True)
class SizeLimits:
    """The declared sizes of base files, in bytes.

    ``large`` None: existing files are not brought to these sizes, and files are only filled to the
    ``target``. Else ``target`` is far enough below ``large`` that a file predicted to have it stays
    within ``large``. ``splits``: larger files are split. ``keeps_no_small``: a partition that is
    rewritten keeps no small file, however small their share.
    """

    target: int
    small: int
    large: int | None = None
    splits: bool = False
    keeps_no_small: bool = False

    @classmethod
    def from_spec(cls, files: FileSizes) -> Self:
        if files.when is None:
            return cls(target=files.target, small=files.small)
        small = files.existing_small
        large = max(files.large or find_large(files.target), find_large(small))
        target = min(files.target, int(large / _MARGIN))
        return cls(
            target=target,
            small=small,
            large=large,
            splits=files.when.large_files,
            keeps_no_small=files.quiet is not None,
        )

    def count_files(self, sizes: RecordSize, data: Integers) -> Integers:
        """Return the number of files, at least one, for ``data`` bytes of rows.

        Files near the target; fewer and bigger ones where those would be small.
        """
        files = sizes.count_files(data, self.target)
        if self.large is None:
            return files
        chosen = files
        for margin in (1.0, _MARGIN):
            room = max(int(margin * self.small) - sizes.fixed, 1)
            fewer = np.clip(data // room, 1, files)
            fits = (sizes.fixed + data / fewer) * margin <= self.large
            chosen = np.where(fits, fewer, chosen)
        return chosen

    def find_small(self, candidates: CandidateSlices) -> Mask:
        """Return which slices are small, with what their log files add to a new base file."""
        if self.large is None:
            return candidates.has_base & (candidates.base < self.small)
        return estimate_new_bytes(candidates) < self.small

    def find_large(self, candidates: CandidateSlices) -> Mask:
        """Return which slices have a base file above ``large`` that is to be split."""
        if self.large is None or not self.splits:
            return np.zeros(len(candidates), np.bool_)
        return candidates.has_base & (candidates.base > self.large)

    def can_split(self, candidates: CandidateSlices, sizes: RecordSize) -> Mask:
        """Return which slices become files within ``large``; footers alone may exceed it."""
        data = sizes.data_bytes(candidates.base, candidates.logs)
        files = self.count_files(sizes, data)
        return (files > 1) & (sizes.fixed + data / files <= (self.large or 0))


def find_split_rule(spec: TableSpec) -> SplitRule:
    """Return when a rewrite of the table splits a new file, in the apply as in forecasts.

    Under ``when: always`` files are only filled to the target.
    """
    limits, rewriting = SizeLimits.from_spec(spec.files or FileSizes()), spec.rewriting
    is_always = rewriting is None or rewriting.when.always
    return SplitRule(target=limits.target, large=None if is_always else limits.large)


def estimate_new_bytes(candidates: CandidateSlices) -> Integers:
    """Return the bytes of each slice as one base file."""
    total: Integers = candidates.base + estimate_compacted_bytes(candidates.logs)
    return total
