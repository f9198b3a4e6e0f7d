"""What is read together: a slice, or a share of a big base file; and where its rows lie."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from reconciler.file_slices.merge.slice_reader import RowGroupShare, SliceFiles
from reconciler.layout.sizing.record_size import LOG_RATIO
from reconciler.rewrite.model import RewriteGroup

#: bytes of a base file that one task reads, where its row groups allow it
PART_BYTES: Final = 64 * 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class SlicePart:
    """What one task reads: ``share`` of a slice.

    ``group``: without its slices. ``number``: of the part in its group, in the order of the rows.
    ``size``: bytes of base file that the rows of the slice come to, of ``total`` in the group;
    ``begin``: such bytes before it. ``progress``: the part's share of the group's bytes.
    """

    group: RewriteGroup
    number: int
    files: SliceFiles
    share: RowGroupShare
    size: float
    begin: float
    total: float
    progress: int

    def span(self, footer: Any) -> tuple[float, float]:
        """Where the part's rows lie among those of its group, between 0 and 1.

        ``footer``: the base file's; None for a slice of log files alone.
        """
        first, last = (0.0, 1.0) if footer is None else self.share.byte_span(footer)
        ends = self.begin + first * self.size, self.begin + last * self.size
        return ends[0] / self.total, ends[1] / self.total


def split_into_parts(group: RewriteGroup, *, part_bytes: int = PART_BYTES) -> list[SlicePart]:
    """The parts of a group, in the order of its slices; their ``progress`` sums up to its bytes."""
    logs = sum(len(one.logs) for one in group.slices)
    base = sum(one.base_size for one in group.slices)
    of_log = max(group.bytes - base, 0) / max(logs, 1)
    cut: list[tuple[SliceFiles, RowGroupShare, float, float, float]] = []
    filled = 0.0
    for one in group.slices:
        of = 1 if one.logs or one.base is None else max(1, -(-one.base_size // part_bytes))
        size = one.base_size if one.base is not None else of_log * LOG_RATIO * len(one.logs)
        read = one.base_size + of_log * len(one.logs)
        cut += [
            (one, RowGroupShare(index=nth, count=of), size, filled, read / of) for nth in range(of)
        ]
        filled += size
    weight = sum(read for *_, read in cut) or 1.0
    bare = replace(group, slices=())
    found = []
    told = 0.0
    for number, (files, share, size, begin, read) in enumerate(cut):
        before = round(told / weight * group.bytes)
        found.append(
            SlicePart(
                group=bare,
                number=number,
                files=files,
                share=share,
                size=size,
                begin=begin,
                total=filled or 1.0,
                progress=round((told + read) / weight * group.bytes) - before,
            )
        )
        told += read
    return found


def estimate_output_bytes(group: RewriteGroup) -> float:
    """Of each of a group's new files: what tells the biggest."""
    return group.bytes / max(group.outputs, 1)


def split_into_waves(
    groups: Sequence[RewriteGroup], most_bytes: int, most_groups: int, most_outputs: int
) -> list[list[RewriteGroup]]:
    """Groups in turns that have no more of anything, or are of one group."""
    found: list[list[RewriteGroup]] = []
    left = (0, 0, 0)
    for group in groups:
        left = (left[0] - group.bytes, left[1] - 1, left[2] - group.outputs)
        if min(left) < 0:
            found.append([])
            left = (most_bytes - group.bytes, most_groups - 1, most_outputs - group.outputs)
        found[-1].append(group)
    return found
