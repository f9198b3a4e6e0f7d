"""Which partitions of the metadata table an action must bring up to date, leave or drop.

One function decides for all of them, so that none is forgotten: an index that silently lacks what
an action did loses rows. Source: MetadataPartitionType and
HoodieTableMetadataUtil.convertMetadataToRecords (0.15 to 1.2), and experiments with each of them.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from reconciler.errors import BusyError, UnsupportedError
from reconciler.hudi.instant import Action
from reconciler.hudi.metadata_table import FILES


class Decision(StrEnum):
    """What becomes of a metadata partition.

    ``sync``: written, or readers see what isn't there; ``tidy``: right as it is, but entries that
    nobody looks up any more are deleted where their keys can be known; ``leave``: right as it is.
    """

    SYNC = "sync"
    TIDY = "tidy"
    LEAVE = "leave"


@dataclass(frozen=True, slots=True)
class Verdict:
    """A decision and why."""

    decision: Decision
    because: str


_CLEAN: Final[Mapping[str, Verdict]] = {
    FILES: Verdict(Decision.SYNC, "it lists the files"),
    "column_stats": Verdict(
        Decision.TIDY, "statistics are only looked up for files that `files` lists"
    ),
    "bloom_filters": Verdict(
        Decision.TIDY, "bloom filters are only looked up for files that `files` lists"
    ),
    "partition_stats": Verdict(
        Decision.LEAVE, "a clean removes no row of a newest slice, so no range narrows"
    ),
    "record_index": Verdict(
        Decision.LEAVE, "a clean moves no row: keys stay in the file groups they are in"
    ),
}
#: partitions of user-defined indexes, by prefix; Hudi's own cleans leave them alone too
_CLEAN_PREFIXES: Final[Mapping[str, Verdict]] = {
    "secondary_index_": Verdict(Decision.LEAVE, "a clean moves no row"),
    "expr_index_": Verdict(
        Decision.LEAVE, "its entries are only looked up for files that `files` lists"
    ),
}


def sync_or_drop(
    action: Action, live: Collection[str], inflight: Collection[str] = ()
) -> dict[str, Verdict]:
    """The verdict for every live metadata partition (``hoodie.table.metadata.partitions``).

    ``inflight``: partitions being built (``…partitions.inflight``). Raises BusyError when there are
    any, UnsupportedError for a partition or an action that is unknown here.
    """
    if inflight:
        raise BusyError(
            f"the metadata partitions {', '.join(sorted(inflight))} are being built; "
            "run again when their indexing has finished or was dropped"
        )
    if action is not Action.CLEAN:
        raise UnsupportedError(f"the metadata table cannot be kept right after a {action} yet")
    if live and FILES not in live:
        raise UnsupportedError(
            f"the metadata table has {', '.join(sorted(live))} but not {FILES}; rebuild it"
        )
    return {partition: _of_clean(partition) for partition in sorted(live)}


def _of_clean(partition: str) -> Verdict:
    if partition in _CLEAN:
        return _CLEAN[partition]
    for prefix, verdict in _CLEAN_PREFIXES.items():
        if partition.startswith(prefix):
            return verdict
    raise UnsupportedError(
        f"the metadata partition {partition!r} is unknown to this version of reconciler, so it "
        "cannot tell what a clean must write there"
    )
