"""Decide which metadata partitions an action must update, leave or drop.

One function decides for all of them, so that none is forgotten: an index that silently misses an
action loses rows. Source: MetadataPartitionType and
HoodieTableMetadataUtil.convertMetadataToRecords (0.15 to 1.2), and experiments with each version.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import field
from enum import StrEnum
from typing import Final

from reconciler.errors import BusyError, UnsupportedError
from reconciler.hudi.metadata.table import FILES
from reconciler.hudi.table.properties import KNOWN_VERSIONS
from reconciler.hudi.timeline.instant import Action
from reconciler.lazy_dataclass import dataclass

COLUMN_STATS: Final = "column_stats"
PARTITION_STATS: Final = "partition_stats"
BLOOM_FILTERS: Final = "bloom_filters"
RECORD_INDEX: Final = "record_index"
#: the indexes that a Hudi writer rebuilds by itself when they are missing
DROPPABLE: Final = (BLOOM_FILTERS, COLUMN_STATS, PARTITION_STATS, RECORD_INDEX)
#: most rows whose locations are written; for more, the record index is dropped. A row takes 150
#: bytes of memory, 25 of them in the log file, and 3 microseconds: at most 0.6 GB and 12 seconds,
#: on the driver and under the lock. For more rows, a distributed job that rebuilds it is better.
MAX_RECORDS: Final = 4_000_000

_SECONDARY: Final = "secondary_index_"
_EXPRESSION: Final = "expr_index_"


class SyncEffect(StrEnum):
    """The effect of an action on a metadata partition.

    ``sync``: it is updated, or readers would miss or invent data. ``tidy``: it stays correct, but
    entries that no reader looks up any more are deleted if their keys are known. ``leave``: it
    stays correct as it is. ``drop``: it is removed from the table's properties, so that a Hudi
    writer rebuilds it.
    """

    SYNC = "sync"
    TIDY = "tidy"
    LEAVE = "leave"
    DROP = "drop"


@dataclass(frozen=True, slots=True)
class Decision:
    """The effect of an action on one metadata partition, and why."""

    effect: SyncEffect
    because: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NewFilesFacts:
    """Facts about an action's new files. ``rows``: number of rows that change location.

    ``obstacles``: metadata partition -> why it cannot be updated for the new files. Before the
    files are written, no obstacle is known. ``adds_values``: the files may hold values that their
    partition did not have, as after a write; a rewrite only moves rows.
    ``keeps_groups``: every key stays in its file group, as after a compaction.
    """

    table_version: int
    rows: int
    obstacles: Mapping[str, str] = field(default_factory=dict)
    adds_values: bool = False
    keeps_groups: bool = False


_CLEAN: Final[Mapping[str, Decision]] = {
    FILES: Decision(SyncEffect.SYNC, "it lists the files"),
    COLUMN_STATS: Decision(SyncEffect.TIDY, "readers look up statistics only for listed files"),
    BLOOM_FILTERS: Decision(SyncEffect.TIDY, "readers look up bloom filters only for listed files"),
    PARTITION_STATS: Decision(
        SyncEffect.LEAVE, "a clean removes no row of a newest slice, so ranges stay"
    ),
    RECORD_INDEX: Decision(
        SyncEffect.LEAVE, "a clean moves no row, so keys stay in their file groups"
    ),
}
#: partitions of user-defined indexes, by prefix; Hudi's own cleans do not touch them either
_CLEAN_PREFIXES: Final[Mapping[str, Decision]] = {
    _SECONDARY: Decision(SyncEffect.LEAVE, "a clean moves no row"),
    _EXPRESSION: Decision(SyncEffect.LEAVE, "readers look up its entries only for listed files"),
}
#: actions whose new files the partitions record
_WRITES: Final = frozenset(
    {
        Action.COMMIT,
        Action.DELTACOMMIT,
        Action.REPLACECOMMIT,
        Action.CLUSTERING,
        Action.COMPACTION,
    }
)


def decide_sync(
    action: Action,
    live_partitions: Collection[str],
    inflight: Collection[str] = (),
    rewrite: NewFilesFacts | None = None,
) -> dict[str, Decision]:
    """Return the decision for every live metadata partition (``hoodie.table.metadata.partitions``).

    ``inflight``: partitions being built (``…partitions.inflight``). ``rewrite``: facts of an action
    that made new files, a clustering or a write of rows. Raises BusyError when a partition is being
    built; UnsupportedError for an unknown partition or action, and for an index that would have to
    be dropped but that no writer rebuilds.
    """
    if inflight:
        raise BusyError(
            f"the metadata partitions {', '.join(sorted(inflight))} are being built; "
            "run again when the build has finished or was dropped"
        )
    if live_partitions and FILES not in live_partitions:
        raise UnsupportedError(
            f"the metadata table has {', '.join(sorted(live_partitions))} but not {FILES}; "
            "rebuild it"
        )
    if action is Action.CLEAN:
        return {partition: _decide_clean(partition) for partition in sorted(live_partitions)}
    if action in _WRITES and rewrite is not None:
        return _decide_rewrites(frozenset(live_partitions), rewrite)
    raise UnsupportedError(f"updating the metadata table after a {action} is not supported")


def decide_rewrite_sync(
    live_partitions: Collection[str],
    *,
    table_version: int,
    rows: int,
    inflight: Collection[str] = (),
) -> dict[str, Decision]:
    """Return what a rewrite of ``rows`` rows will do to each live partition, before it runs.

    A partition may still be dropped although the result says ``sync``, when the index turns out to
    hold what cannot be made again (a column without bounds, a file without filter, a record index
    by partition). Raises as ``decide_sync`` does.
    """
    facts = NewFilesFacts(table_version=table_version, rows=rows)
    return decide_sync(Action.CLUSTERING, live_partitions, inflight, facts)


def decide_compaction_sync(
    live_partitions: Collection[str], *, table_version: int, inflight: Collection[str] = ()
) -> dict[str, Decision]:
    """Return what a compaction will do to each live partition, before it runs.

    As ``decide_rewrite_sync``.
    """
    facts = NewFilesFacts(table_version=table_version, rows=0, keeps_groups=True)
    return decide_sync(Action.COMPACTION, live_partitions, inflight, facts)


def decide_write_sync(
    live_partitions: Collection[str], *, table_version: int, inflight: Collection[str] = ()
) -> dict[str, Decision]:
    """Return what a write of rows will do to each live partition, before it runs.

    As ``decide_rewrite_sync``. The record index may still be dropped when too many keys are new or
    deleted.
    """
    facts = NewFilesFacts(table_version=table_version, rows=0, adds_values=True)
    return decide_sync(Action.COMMIT, live_partitions, inflight, facts)


def _decide_clean(partition: str) -> Decision:
    if partition in _CLEAN:
        return _CLEAN[partition]
    for prefix, decision in _CLEAN_PREFIXES.items():
        if partition.startswith(prefix):
            return decision
    raise UnsupportedError(
        f"the metadata partition {partition!r} is unknown, so a clean cannot "
        "update it; use a newer version of reconciler"
    )


def _decide_rewrites(live: frozenset[str], facts: NewFilesFacts) -> dict[str, Decision]:
    if live and facts.table_version not in KNOWN_VERSIONS:
        raise UnsupportedError(
            f"the metadata table of table version {facts.table_version} is not "
            f"supported; supported are {', '.join(map(str, KNOWN_VERSIONS))}"
        )
    return {partition: _decide_rewrite(partition, live, facts) for partition in sorted(live)}


def _decide_rewrite(partition: str, live: frozenset[str], facts: NewFilesFacts) -> Decision:
    obstacle = facts.obstacles.get(partition)
    if partition == FILES:
        return Decision(SyncEffect.SYNC, "it lists the files")
    if partition == PARTITION_STATS:
        return _decide_partition_stats(live, facts)
    if facts.keeps_groups and _holds_keys(partition):
        return Decision(SyncEffect.LEAVE, "a compaction keeps every key in its file group")
    if partition == RECORD_INDEX and facts.rows > MAX_RECORDS:
        obstacle = f"{facts.rows} rows move, more than the {MAX_RECORDS} that are written"
    if partition in _SYNCED:
        if obstacle is not None:
            return Decision(SyncEffect.DROP, obstacle)
        return Decision(SyncEffect.SYNC, _SYNCED[partition])
    if partition.startswith(_SECONDARY) and not facts.adds_values:
        return _decide_secondary_index(partition, live, facts)
    raise _refusal(partition, facts)


def _holds_keys(partition: str) -> bool:
    """Return whether an index only tells keys and their file groups.

    Hudi's compactions do not update these either (HoodieTableMetadataUtil,
    updateSecondaryIndexIfPresent).
    """
    return partition == RECORD_INDEX or partition.startswith(_SECONDARY)


_SYNCED: Final[Mapping[str, str]] = {
    COLUMN_STATS: "the ranges of the new files are known",
    BLOOM_FILTERS: "the new files have bloom filters",
    RECORD_INDEX: "it holds the file group of each key",
}


def _decide_partition_stats(live: frozenset[str], facts: NewFilesFacts) -> Decision:
    """Decide for partition_stats: the next write recomputes it from ``column_stats``."""
    obstacle, own_obstacle = facts.obstacles.get(COLUMN_STATS), facts.obstacles.get(PARTITION_STATS)
    if obstacle is not None:
        because = f"it is computed from {COLUMN_STATS}, which is dropped: {obstacle}"
    elif COLUMN_STATS not in live:
        because = f"the next write would narrow its bounds, because the table has no {COLUMN_STATS}"
    elif own_obstacle is not None:
        because = own_obstacle
    elif facts.adds_values:
        return Decision(SyncEffect.SYNC, "new values may lie outside their partition's bounds")
    else:
        return Decision(SyncEffect.LEAVE, "a rewrite changes no partition's bounds")
    return Decision(SyncEffect.DROP, because)


def _decide_secondary_index(partition: str, live: frozenset[str], facts: NewFilesFacts) -> Decision:
    """Decide for a secondary index when rows move: it holds keys, and the record index places.

    Hudi does not update it for a clustering either (HoodieBackedTableMetadataWriter,
    updateSecondaryIndexIfPresent). UnsupportedError if the record index cannot place all rows.
    """
    reason = "the table has none"
    if RECORD_INDEX in live:
        located = _decide_rewrite(RECORD_INDEX, live, facts)
        if located.effect is SyncEffect.SYNC:
            because = "it maps values to keys, and the record index locates the keys"
            return Decision(SyncEffect.LEAVE, because)
        reason = f"this would be dropped, because {located.because}"
    raise UnsupportedError(
        f"the table has the secondary index {partition.removeprefix(_SECONDARY)}, which finds rows "
        f"by the record index, but {reason}; rewrite fewer rows at once (files.budget, "
        "clustering.budget), let Hudi cluster the table, or drop the index and create it again "
        "afterwards"
    )


def _refusal(partition: str, facts: NewFilesFacts) -> UnsupportedError:
    """Return the error for an index that cannot be updated.

    An expression index without entries of new files loses their rows: with the next insert, Hudi
    1.2 computes a partition's bounds from the entries alone.
    """
    what, remedy = "clustering", "let Hudi cluster the table"
    if facts.keeps_groups:
        what, remedy = "compaction", "let Hudi compact the table"
    if facts.adds_values:
        what, remedy = "write", "let Hudi write the rows"
    for prefix, kind in ((_SECONDARY, "secondary"), (_EXPRESSION, "expression")):
        if partition.startswith(prefix):
            name = partition.removeprefix(prefix)
            return UnsupportedError(
                f"the table has the {kind} index {name}, which would miss the rows of new files, "
                f"and no writer rebuilds it by itself; {remedy}, or drop the index and create it "
                "again afterwards"
            )
    return UnsupportedError(
        f"the metadata partition {partition!r} is unknown, so a {what} cannot update it; {remedy}"
    )
