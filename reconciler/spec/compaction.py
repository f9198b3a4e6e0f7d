"""The compaction block of a spec: which log files are merged into base files, and when."""

from __future__ import annotations

from dataclasses import field
from typing import Literal

from reconciler.lazy_dataclass import dataclass
from reconciler.spec.partition_filter import PartitionFilter


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionTrigger:
    """Conditions of a file slice that make it worth compacting, any of them.

    ``log_share_above``: bytes of log files as a share of those of the whole slice, 0 to 1.
    ``older_than``: age of the slice's oldest log file, seconds.
    """

    log_share_above: float | None = None
    log_files_above: int | None = None
    older_than: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionBudget:
    """Limits of one run: bytes that are read and written, and file slices; None is unlimited."""

    rewrite: int | None = None
    groups: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Compaction:
    """Compact after ``after_delta_commits`` deltacommits since the newest compaction.

    ``when`` None: every slice with log files is worth it. ``order``: which slices a budget takes
    first, those with most bytes of logs or with the oldest log file.
    """

    after_delta_commits: int = 5
    when: CompactionTrigger | None = None
    order: Literal["logBytes", "oldest"] = "logBytes"
    partitions: PartitionFilter = field(default_factory=PartitionFilter)
    budget: CompactionBudget = CompactionBudget()
