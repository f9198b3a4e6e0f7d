"""Which partitions of the metadata table an action must bring up to date, leave or drop.

One function decides for all of them, so that none is forgotten: an index that silently lacks what
an action did loses rows. Source: MetadataPartitionType and
HoodieTableMetadataUtil.convertMetadataToRecords (0.15 to 1.2), and experiments with each of them.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from reconciler.errors import BusyError, UnsupportedError
from reconciler.hudi.metadata.own_timeline import KNOWN_VERSIONS
from reconciler.hudi.metadata.table import FILES
from reconciler.hudi.timeline.instant import Action

COLUMN_STATS: Final = "column_stats"
PARTITION_STATS: Final = "partition_stats"
BLOOM_FILTERS: Final = "bloom_filters"
RECORD_INDEX: Final = "record_index"
#: the indexes that a Hudi writer builds anew by itself when they are not there
DROPPABLE: Final = (BLOOM_FILTERS, COLUMN_STATS, PARTITION_STATS, RECORD_INDEX)
#: rows whose places are written into the record index rather than the index dropped. A row takes
#: 150 bytes of memory, its 25 in the log file among them, and three microseconds: 0.6 GB and twelve
#: seconds at most, on the driver and under the lock. Beyond it a job that reads the keys where the
#: rows are is the better one: the writer that builds the index anew.
MAX_RECORDS: Final = 4_000_000

_SECONDARY: Final = "secondary_index_"
_EXPRESSION: Final = "expr_index_"


class SyncDecision(StrEnum):
    """What becomes of a metadata partition.

    ``sync``: written, or readers see what isn't there; ``tidy``: right as it is, but entries that
    nobody looks up any more are deleted where their keys can be known; ``leave``: right as it is;
    ``drop``: taken out of the table's properties, for a Hudi writer to build anew.
    """

    SYNC = "sync"
    TIDY = "tidy"
    LEAVE = "leave"
    DROP = "drop"


@dataclass(frozen=True, slots=True)
class PartitionDecision:
    """A decision and why."""

    decision: SyncDecision
    because: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NewFilesFacts:
    """What new files do and what is known of them. ``rows``: those whose places are told.

    ``obstacles``: metadata partition -> why it cannot be told of the new files. Before the files
    are written nothing is known to stand in the way. ``adds_values``: whether there are values in them
    that their partition did not have, as a write brings them; a rewrite only moves rows.
    """

    table_version: int
    rows: int
    obstacles: Mapping[str, str] = field(default_factory=dict)
    adds_values: bool = False


_CLEAN: Final[Mapping[str, PartitionDecision]] = {
    FILES: PartitionDecision(SyncDecision.SYNC, "it lists the files"),
    COLUMN_STATS: PartitionDecision(
        SyncDecision.TIDY, "statistics are only looked up for files that `files` lists"
    ),
    BLOOM_FILTERS: PartitionDecision(
        SyncDecision.TIDY, "bloom filters are only looked up for files that `files` lists"
    ),
    PARTITION_STATS: PartitionDecision(
        SyncDecision.LEAVE, "a clean removes no row of a newest slice, so no range narrows"
    ),
    RECORD_INDEX: PartitionDecision(
        SyncDecision.LEAVE, "a clean moves no row: keys stay in the file groups they are in"
    ),
}
#: partitions of user-defined indexes, by prefix; Hudi's own cleans leave them alone too
_CLEAN_PREFIXES: Final[Mapping[str, PartitionDecision]] = {
    _SECONDARY: PartitionDecision(SyncDecision.LEAVE, "a clean moves no row"),
    _EXPRESSION: PartitionDecision(
        SyncDecision.LEAVE, "its entries are only looked up for files that `files` lists"
    ),
}
#: actions whose new files the partitions are told of
_WRITES: Final = frozenset({Action.COMMIT, Action.REPLACECOMMIT, Action.CLUSTERING})


def decide_sync(
    action: Action,
    live_partitions: Collection[str],
    inflight: Collection[str] = (),
    rewrite: NewFilesFacts | None = None,
) -> dict[str, PartitionDecision]:
    """The verdict for every live metadata partition (``hoodie.table.metadata.partitions``).

    ``inflight``: partitions being built (``…partitions.inflight``). ``rewrite``: of an action that
    has made new files: a clustering, or a write of rows.
    Raises BusyError when there are any in flight, UnsupportedError for a partition or an action
    that is unknown here, and for an index that a rewrite could only drop but no writer builds anew.
    """
    if inflight:
        raise BusyError(
            f"the metadata partitions {', '.join(sorted(inflight))} are being built; "
            "run again when their indexing has finished or was dropped"
        )
    if live_partitions and FILES not in live_partitions:
        raise UnsupportedError(
            f"the metadata table has {', '.join(sorted(live_partitions))} but not {FILES}; rebuild it"
        )
    if action is Action.CLEAN:
        return {partition: _decide_clean(partition) for partition in sorted(live_partitions)}
    if action in _WRITES and rewrite is not None:
        return _decide_rewrites(frozenset(live_partitions), rewrite)
    raise UnsupportedError(f"the metadata table cannot be kept right after a {action} yet")


def decide_rewrite_sync(
    live_partitions: Collection[str],
    *,
    table_version: int,
    rows: int,
    inflight: Collection[str] = (),
) -> dict[str, PartitionDecision]:
    """What a rewrite of so many rows will do to each live metadata partition, before it is done.

    What comes out of it may be dropped although it says ``sync`` here, when the index turns out to
    hold what cannot be made anew (a column without bounds, a file without filter, a record index
    by partition). Raises as ``decide_sync`` does.
    """
    facts = NewFilesFacts(table_version=table_version, rows=rows)
    return decide_sync(Action.CLUSTERING, live_partitions, inflight, facts)


def decide_write_sync(
    live_partitions: Collection[str], *, table_version: int, inflight: Collection[str] = ()
) -> dict[str, PartitionDecision]:
    """What a write of rows will do to each live metadata partition, before it is done.

    As ``decide_rewrite_sync``; so many keys may be new or deleted that the record index goes.
    """
    facts = NewFilesFacts(table_version=table_version, rows=0, adds_values=True)
    return decide_sync(Action.COMMIT, live_partitions, inflight, facts)


def _decide_clean(partition: str) -> PartitionDecision:
    if partition in _CLEAN:
        return _CLEAN[partition]
    for prefix, verdict in _CLEAN_PREFIXES.items():
        if partition.startswith(prefix):
            return verdict
    raise UnsupportedError(
        f"the metadata partition {partition!r} is unknown to this version of reconciler, so it "
        "cannot tell what a clean must write there"
    )


def _decide_rewrites(live: frozenset[str], facts: NewFilesFacts) -> dict[str, PartitionDecision]:
    if live and facts.table_version not in KNOWN_VERSIONS:
        raise UnsupportedError(
            f"the metadata table of table version {facts.table_version} is unknown to this version "
            f"of reconciler; it knows {', '.join(map(str, KNOWN_VERSIONS))}"
        )
    return {partition: _decide_rewrite(partition, live, facts) for partition in sorted(live)}


def _decide_rewrite(
    partition: str, live: frozenset[str], facts: NewFilesFacts
) -> PartitionDecision:
    obstacle = facts.obstacles.get(partition)
    if partition == FILES:
        return PartitionDecision(SyncDecision.SYNC, "it lists the files")
    if partition == PARTITION_STATS:
        return _decide_partition_stats(live, facts)
    if partition == RECORD_INDEX and facts.rows > MAX_RECORDS:
        obstacle = f"{facts.rows} rows move, and more than {MAX_RECORDS} are not written there"
    if partition in _SYNCED:
        if obstacle is not None:
            return PartitionDecision(SyncDecision.DROP, obstacle)
        return PartitionDecision(SyncDecision.SYNC, _SYNCED[partition])
    raise _refusal(partition, facts)


_SYNCED: Final[Mapping[str, str]] = {
    COLUMN_STATS: "the ranges of the new files are known, and a partition's come from its files'",
    BLOOM_FILTERS: "the new files have filters",
    RECORD_INDEX: "it says in which file group a key is",
}


def _decide_partition_stats(live: frozenset[str], facts: NewFilesFacts) -> PartitionDecision:
    """Bounds are recomputed from ``column_stats`` by the next write and then count as exact."""
    obstacle, own = facts.obstacles.get(COLUMN_STATS), facts.obstacles.get(PARTITION_STATS)
    if obstacle is not None:
        because = f"they come from {COLUMN_STATS}, which is dropped: {obstacle}"
    elif COLUMN_STATS not in live:
        because = f"the next write would narrow them, since the table has no {COLUMN_STATS}"
    elif own is not None:
        because = own
    elif facts.adds_values:
        return PartitionDecision(
            SyncDecision.SYNC, "what is new may lie outside of its partition's bounds"
        )
    else:
        return PartitionDecision(SyncDecision.LEAVE, "a rewrite changes no partition's bounds")
    return PartitionDecision(SyncDecision.DROP, because)


def _refusal(partition: str, facts: NewFilesFacts) -> UnsupportedError:
    what, remedy = "clustering", "let Hudi cluster the table"
    if facts.adds_values:
        what, remedy = "write", "let Hudi write the rows"
    for prefix, kind in ((_SECONDARY, "secondary"), (_EXPRESSION, "expression")):
        if partition.startswith(prefix):
            name = partition.removeprefix(prefix)
            return UnsupportedError(
                f"the table has the {kind} index {name}, which would lose the rows of new files, "
                f"and no writer builds it anew by itself; {remedy}, or drop the index and create "
                "it again afterwards"
            )
    return UnsupportedError(
        f"the metadata partition {partition!r} is unknown to this version of reconciler, so it "
        f"cannot tell what a {what} must write there; {remedy}"
    )
