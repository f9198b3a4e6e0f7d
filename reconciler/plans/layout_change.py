"""The effect of a clustering on the layout of a table, as a plan shows it."""

from __future__ import annotations

from dataclasses import field

from reconciler.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class LayoutFigures:
    """Figures about the base files of newest slices. ``small``: files below ``files.small``.

    ``overlap``: mean number of files that cover a row on the clustering columns; None if unknown.
    ``sizes``: number of files in each size class.
    """

    files: int
    small: int
    bytes: int
    overlap: float | None
    sizes: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Untouched:
    """The number of file slices that a rule leaves unchanged, and the most frequent reason."""

    rule: str
    slices: int
    because: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionGain:
    """What a rewrite brings to the reads of a partition; files and bytes are those of one read.

    ``files_before``, ``files_after``: files read today and predicted. ``bytes``: bytes that are
    rewritten. ``bytes_saved``: bytes that each read saves; negative if it reads more.
    """

    partition: str
    files_before: float
    files_after: float
    bytes: int
    bytes_saved: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Sampled:
    """The sample that predictions are based on.

    ``row_groups`` were read, of ``total_row_groups`` in the sampled files; ``rows`` were used.
    """

    row_groups: int
    total_row_groups: int = field(metadata={"name": "of"})
    rows: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LayoutChange:
    """The effect of a clustering: measured figures ``before`` it and predicted figures ``after``.

    ``below``: upper bounds of the size classes, bytes, ascending; the last class has no bound.
    ``bytes_written``: of the new files, predicted; None in plans of earlier versions.
    ``untouched``: the rule with most slices first. ``sampled``: None if the spec has no queries.
    ``gains``: partitions that are rewritten because queries read fewer files; None if there are
    none.
    """

    below: tuple[int, ...]
    before: LayoutFigures
    after: LayoutFigures
    untouched: tuple[Untouched, ...] = ()
    bytes_written: int | None = field(default=None, metadata={"optional": True})
    sampled: Sampled | None = field(default=None, metadata={"optional": True})
    gains: tuple[PartitionGain, ...] | None = field(default=None, metadata={"optional": True})
