"""How rows are assigned to files: as Hudi's writers do it, or steadily."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from reconciler.layout.sizing.record_size import RecordSize

MIB: Final = 1024 * 1024
#: bytes of a record where nobody says any (hoodie.copyonwrite.record.size.estimate)
DEFAULT_RECORD_SIZE: Final = 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class FileSizeLimits:
    """Bytes: a file is filled up to ``target``, and is small below ``small`` (0: none is)."""

    target: int = 120 * MIB
    small: int = 100 * MIB

    def __post_init__(self) -> None:
        assert self.target > 0, "a file's target size is above 0"


@dataclass(frozen=True, slots=True)
class CopyOnWrite:
    """A file that takes rows is written again, with the old rows and the new ones."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MergeOnRead:
    """Rows are appended as log files where the table's index finds rows in there.

    ``indexes_logs``: it does (in-memory, HBase and consistently hashing indexes); otherwise new
    rows are merged into base files without log files. ``max_candidates``: of those, how many in a partition
    take rows by Hudi's rule (hoodie.merge.small.file.group.candidates.limit).
    """

    indexes_logs: bool = False
    max_candidates: int = 1


TableKind = CopyOnWrite | MergeOnRead


@dataclass(frozen=True, slots=True, kw_only=True)
class HudiRule:
    """Hudi's rule: the files of its view in order, filled by the average record size.

    ``average``: bytes of a record (sizing.average). ``split_rows``: rows of a new file
    (hoodie.copyonwrite.insert.split.size), None where the average decides (auto.split).
    """

    sizes: FileSizeLimits
    average: int
    split_rows: int | None = None

    def __post_init__(self) -> None:
        assert self.average > 0, "a record has bytes"
        assert self.split_rows is None or self.split_rows > 0, "a file has rows"


@dataclass(frozen=True, slots=True, kw_only=True)
class RewriteCap:
    """How much may be written again to fill a file.

    A file is filled if its rows have at most ``free_bytes`` bytes, or at most ``max_ratio`` the bytes of the
    rows that it gets. ``docs/writing.md`` says where the defaults come from.

    >>> cap = Cap(times=32, least=8 * MIB)
    >>> cap.admits(90 * MIB, 3 * MIB), cap.admits(90 * MIB, 2 * MIB), cap.admits(8 * MIB, 1)
    (True, False, True)
    """

    max_ratio: float = 32.0
    free_bytes: int = 8 * MIB

    def allows(self, rewritten: int, inserted: int) -> bool:
        """Whether so many bytes may be written again for so many new ones."""
        return rewritten <= max(self.max_ratio * inserted, self.free_bytes)


@dataclass(frozen=True, slots=True, kw_only=True)
class SteadyRule:
    """Ours: files that are written anyway, then smallest first; a file's fixed cost counts.

    ``rewrite_cap`` None: small files are filled whatever it takes. ``needs_row_sizes``: next to nothing is known of
    rows, so that a write has to look at its own before it assigns them.
    """

    sizes: FileSizeLimits
    record_size: RecordSize
    rewrite_cap: RewriteCap | None = RewriteCap()
    needs_row_sizes: bool = False

    def __post_init__(self) -> None:
        assert self.record_size.per_row > 0, "a row has bytes"


AssignmentRule = HudiRule | SteadyRule
