"""Split file slices into parts that one task reads each, and locate the rows of a part."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

from reconciler.file_slices.merge.slice_reader import RowGroupShare, SliceFiles
from reconciler.layout.sizing.record_size import LOG_RATIO
from reconciler.lazy_dataclass import dataclass
from reconciler.rewrite.model import RewriteGroup

#: bytes of a base file that one task reads, as far as row groups allow
PART_BYTES: Final = 64 * 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class SlicePart:
    """The input of one task: a share of a slice's row groups.

    ``group``: the group without its slices. ``number``: the part's index in its group, by its rows.
    ``size``: bytes that the slice's rows take as base file; ``total``: the group's; ``begin``:
    those before the slice. ``progress``: the part's share of the group's bytes.
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
        """Return where the part's rows lie among those of the group, as fractions from 0 to 1.

        ``footer``: the base file's; None for a slice with log files only.
        """
        first, last = (0.0, 1.0) if footer is None else self.share.byte_span(footer)
        ends = self.begin + first * self.size, self.begin + last * self.size
        return ends[0] / self.total, ends[1] / self.total


def split_into_parts(group: RewriteGroup, *, part_bytes: int = PART_BYTES) -> list[SlicePart]:
    """Return the parts of a group in slice order; their ``progress`` adds up to its bytes."""
    logs = sum(len(slice_.logs) for slice_ in group.slices)
    base = sum(slice_.base_size for slice_ in group.slices)
    log_bytes = max(group.bytes - base, 0) / max(logs, 1)
    pieces: list[tuple[SliceFiles, RowGroupShare, float, float, float]] = []
    begin_bytes = 0.0
    for slice_ in group.slices:
        shares = (
            1 if slice_.logs or slice_.base is None else max(1, -(-slice_.base_size // part_bytes))
        )
        size = (
            slice_.base_size
            if slice_.base is not None
            else log_bytes * LOG_RATIO * len(slice_.logs)
        )
        read = slice_.base_size + log_bytes * len(slice_.logs)
        pieces += [
            (slice_, RowGroupShare(index=nth, count=shares), size, begin_bytes, read / shares)
            for nth in range(shares)
        ]
        begin_bytes += size
    weight = sum(read for *_, read in pieces) or 1.0
    outline = replace(group, slices=())
    parts = []
    done_bytes = 0.0
    for number, (files, share, size, begin, read) in enumerate(pieces):
        before = round(done_bytes / weight * group.bytes)
        parts.append(
            SlicePart(
                group=outline,
                number=number,
                files=files,
                share=share,
                size=size,
                begin=begin,
                total=begin_bytes or 1.0,
                progress=round((done_bytes + read) / weight * group.bytes) - before,
            )
        )
        done_bytes += read
    return parts


def estimate_output_bytes(group: RewriteGroup) -> float:
    """Return the expected size of each new file of a group."""
    return group.bytes / max(group.outputs, 1)


def split_into_waves(
    groups: Sequence[RewriteGroup], most_bytes: int, most_groups: int, most_outputs: int
) -> list[list[RewriteGroup]]:
    """Split groups into waves within the limits; a group that exceeds them is a wave of its own."""
    parts: list[list[RewriteGroup]] = []
    capacity = (0, 0, 0)
    for group in groups:
        capacity = (capacity[0] - group.bytes, capacity[1] - 1, capacity[2] - group.outputs)
        if min(capacity) < 0:
            parts.append([])
            capacity = (most_bytes - group.bytes, most_groups - 1, most_outputs - group.outputs)
        parts[-1].append(group)
    return parts
