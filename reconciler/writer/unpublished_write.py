"""Define a write whose files exist and that is not complete: a value between work and commit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from reconciler.arrays import Integers
from reconciler.hudi.timeline.instant import Action
from reconciler.lazy_dataclass import dataclass
from reconciler.transaction.footprints import CompletedWrites, collect_completed_writes
from reconciler.writer.bucket import WrittenBaseFile
from reconciler.writer.facts import WriteFacts
from reconciler.writer.job import RowCounts, WrittenDataFile
from reconciler.writer.log_bucket import WrittenLog
from reconciler.writer.lookup_costs import KeyLookup
from reconciler.writer.request import WriteMode


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class UnpublishedWrite:
    """A write whose base files and log files exist.

    ``replaced``: the groups of ``facts`` that it replaces. ``extra``: extra metadata of the
    instant. ``lookup``: how keys were looked up, None if none were.
    """

    mode: WriteMode
    instant: str
    action: Action
    facts: WriteFacts
    files: Sequence[WrittenBaseFile]
    logs: Sequence[WrittenLog]
    counts: RowCounts
    replaced: Integers
    extra: Mapping[str, str]
    lookup: KeyLookup | None = None

    @property
    def partitions(self) -> set[str]:
        """The partitions with new files."""
        return {written.partition for written in self.all_files}

    @property
    def all_files(self) -> tuple[WrittenDataFile, ...]:
        """The new base files and log files."""
        return (*self.files, *self.logs)

    @property
    def known_writes(self) -> CompletedWrites:
        """The writes that had completed when it began."""
        return collect_completed_writes(self.facts.state.timeline)
