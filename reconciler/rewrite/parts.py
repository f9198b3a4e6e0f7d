"""What is read together: a slice, or a share of a big base file; and where its rows lie."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from reconciler.merge.slice import FileSliceRef, Share
from reconciler.rewrite.model import Group
from reconciler.sizing.estimate import LOG_RATIO

#: bytes of a base file that one task reads, where its row groups allow it
PIECE: Final = 64 * 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """What one task reads: ``share`` of a slice.

    ``group``: without its slices. ``number``: of the part in its group, in the order of the rows.
    ``size``: bytes of base file that the rows of the slice come to, of ``total`` in the group;
    ``begin``: such bytes before it. ``progress``: the part's share of the group's bytes.
    """

    group: Group
    number: int
    files: FileSliceRef
    share: Share
    size: float
    begin: float
    total: float
    progress: int

    def span(self, footer: Any) -> tuple[float, float]:
        """Where the part's rows lie among those of its group, between 0 and 1.

        ``footer``: the base file's; None for a slice of log files alone.
        """
        first, last = (0.0, 1.0) if footer is None else self.share.span(footer)
        ends = self.begin + first * self.size, self.begin + last * self.size
        return ends[0] / self.total, ends[1] / self.total


def parts_of(group: Group, *, piece: int = PIECE) -> list[Part]:
    """The parts of a group, in the order of its slices; their ``progress`` sums up to its bytes."""
    logs = sum(len(one.logs) for one in group.slices)
    base = sum(one.base_size for one in group.slices)
    of_log = max(group.bytes - base, 0) / max(logs, 1)
    cut: list[tuple[FileSliceRef, Share, float, float, float]] = []
    filled = 0.0
    for one in group.slices:
        of = 1 if one.logs or one.base is None else max(1, -(-one.base_size // piece))
        size = one.base_size if one.base is not None else of_log * LOG_RATIO * len(one.logs)
        read = one.base_size + of_log * len(one.logs)
        cut += [(one, Share(nth=nth, of=of), size, filled, read / of) for nth in range(of)]
        filled += size
    weight = sum(read for *_, read in cut) or 1.0
    bare = replace(group, slices=())
    found = []
    told = 0.0
    for number, (files, share, size, begin, read) in enumerate(cut):
        before = round(told / weight * group.bytes)
        found.append(
            Part(
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


def expected_bytes(group: Group) -> float:
    """Of each of a group's new files: what tells the biggest."""
    return group.bytes / max(group.outputs, 1)


def waves(
    groups: Sequence[Group], most_bytes: int, most_groups: int, most_outputs: int
) -> list[list[Group]]:
    """Groups in turns that have no more of anything, or are of one group."""
    found: list[list[Group]] = []
    left = (0, 0, 0)
    for group in groups:
        left = (left[0] - group.bytes, left[1] - 1, left[2] - group.outputs)
        if min(left) < 0:
            found.append([])
            left = (most_bytes - group.bytes, most_groups - 1, most_outputs - group.outputs)
        found[-1].append(group)
    return found
