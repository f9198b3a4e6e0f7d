"""A write whose files exist but are not visible yet."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from reconciler.arrays import Integers
from reconciler.transaction.footprints import CompletedWrites, collect_completed_writes
from reconciler.writer.bucket import WrittenBaseFile
from reconciler.writer.facts import WriteFacts
from reconciler.writer.job import RowCounts
from reconciler.writer.request import WriteMode


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class UnpublishedWrite:
    """A write whose files exist. ``replaced``: the groups of ``facts`` that it replaces.

    ``extra``: extra metadata of the instant.
    """

    mode: WriteMode
    instant: str
    facts: WriteFacts
    files: Sequence[WrittenBaseFile]
    counts: RowCounts
    replaced: Integers
    extra: Mapping[str, str]

    @property
    def known_writes(self) -> CompletedWrites:
        """The writes that had completed when it began."""
        return collect_completed_writes(self.facts.state.timeline)
