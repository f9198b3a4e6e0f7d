"""What to write so that the metadata table knows of new files into which rows were moved.

One deltacommit of the data instant, as of a clean: nobody sees any of it before the data table's
instant completes. Files that the new ones replace stay listed until a clean removes them.
Source: HoodieTableMetadataUtil.convertMetadataToRecords (0.15 to 1.2).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from reconciler.hudi.instant import Action
from reconciler.hudi.metadata_partitions import RewriteFacts, Verdict, sync_or_drop
from reconciler.hudi.metadata_read import MetadataListing
from reconciler.hudi.metadata_table import MetadataTable
from reconciler.hudi.metadata_told import (
    Keys,
    NewFile,
    RewriteSync,
    Teller,
    Tidings,
    pending_action,
    synced,
)

__all__ = ["REWRITES", "Keys", "NewFile", "RewriteSync", "Rewriting", "rewrite_sync"]

REWRITES: Final = frozenset({Action.REPLACECOMMIT, Action.CLUSTERING})


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Rewriting(Tidings):
    """One rewrite as the metadata table is told of it; ``keys`` gives all keys of a new file."""


def rewrite_sync(
    table: MetadataTable,
    listing: MetadataListing,
    rewriting: Rewriting,
    *,
    inflight: Sequence[str] = (),
) -> RewriteSync:
    """Tell every live partition of the metadata table of new files, or say that it must go.

    ``inflight``: partitions that are being built. What an earlier attempt at the same instant wrote
    is taken back and written again. Raises FormatError, UnsupportedError; StaleError when the
    table's data timeline doesn't show the instant as pending; BusyError when a partition must go
    while another write is pending, which may be counting on it.
    """
    action = pending_action(table, rewriting.instant, REWRITES, "clustering")
    rows = sum(file.rows for _path, file in rewriting.files)
    teller = Teller.of(table, listing, rewriting)

    def judged(obstacles: Mapping[str, str]) -> dict[str, Verdict]:
        facts = RewriteFacts(table_version=table.version, rows=rows, obstacles=obstacles)
        return sync_or_drop(action, table.live, inflight, facts)

    return synced(teller, teller.makers(), judged)
