"""The step that compacts file slices: which ones, and what they are expected to become."""

from __future__ import annotations

from dataclasses import field
from typing import Literal

from reconciler.lazy_dataclass import dataclass
from reconciler.plans.layout_change import Untouched
from reconciler.plans.rewrites import Rewrites


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpectedCompaction:
    """What the compaction of one partition reads, and about how much it writes.

    ``bytes``: of base and log files. ``expected_bytes``: of the new base files, estimated; a slice
    without a base file counts with the share of its log files that Hudi expects one to have.
    """

    partition: str
    slices: int
    log_files: int
    log_bytes: int
    bytes: int
    expected_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CompactStep:
    """Merge the log files of file slices into new base files, one for each slice.

    ``order``: as declared; in this order the slices are requested. ``groups``: one slice each.
    ``expected``: sorted by partition. ``untouched``: slices with log files that stay, by rule.
    """

    kind: Literal["compact"] = "compact"
    order: Literal["logBytes", "oldest"]
    groups: Rewrites = field(metadata={"name": None})
    expected: tuple[ExpectedCompaction, ...]
    untouched: tuple[Untouched, ...] = ()

    @property
    def expected_bytes(self) -> int:
        """Return the estimated bytes of the new base files."""
        return sum(partition.expected_bytes for partition in self.expected)
