"""What a condition leaves of a scan: partitions, then the index, then statistics of log files.

Storage is touched for the index alone, and only where the condition names a column that it may
know.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from reconciler.reader.index_reading import IndexRead, read_index
from reconciler.reader.log_statistics import find_unmatched_logs
from reconciler.reader.skipping import (
    SkipDecision,
    decide_by_index,
    decide_by_logs,
    find_slices_with_undecided_logs,
    get_decision_code,
    list_file_columns,
    mark_read_slices,
    repeat_decision,
)
from reconciler.reader.slice_readers import select_slices

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from reconciler.reader.model import Scan
    from reconciler.storage.api import Storage


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PrunedScan:
    """A scan and what is read of it.

    ``decisions``: int8, per slice of ``scan`` the place of its ``Decision``. ``kept``: the slices
    that are read, with the condition where row groups may be left out by it. ``index``: the file
    of the version that was asked, below the table; None: none was. ``problems``: why something was
    not asked that could have been, a sentence each.
    """

    scan: Scan
    kept: Scan
    decisions: NDArray[np.int8]
    index: str | None = None
    problems: tuple[str, ...] = ()


def keep_all(scan: Scan, why: SkipDecision = SkipDecision.NO_CONDITION) -> PrunedScan:
    """A scan all of which is read."""
    return PrunedScan(scan=scan, kept=scan, decisions=repeat_decision(why, len(scan.slices)))


def prune_by_index(scan: Scan, storage: Storage) -> PrunedScan:
    """What the scan's condition leaves of it, by statistics of base and log files.

    One listing of the index and a read, where the condition names a column that can be indexed.
    Raises nothing: what cannot be read says nothing.
    """
    condition = scan.condition
    if condition is None:
        return keep_all(scan)
    columns = list_file_columns(scan, condition)
    found = read_index(storage, columns) if columns and len(scan.slices) else IndexRead()
    decisions = decide_by_index(scan, condition, found.index)
    slices = find_slices_with_undecided_logs(scan, decisions)
    cannot, problem = find_unmatched_logs(storage, scan, slices)
    decisions = decide_by_logs(scan, decisions, cannot)
    return PrunedScan(
        scan=scan,
        kept=select_slices(scan, mark_read_slices(decisions)),
        decisions=decisions,
        index=found.version,
        problems=(*found.problems, *([problem] if problem else [])),
    )


def widen_to_scan(whole: Scan, of_partitions: NDArray[np.bool_], found: PrunedScan) -> PrunedScan:
    """The same about a whole scan, of which only the marked slices were looked at."""
    decisions = repeat_decision(SkipDecision.PARTITION, len(whole.slices))
    decisions[of_partitions] = found.decisions
    return replace(found, scan=whole, decisions=decisions)


def count_slices(found: PrunedScan, decision: SkipDecision) -> int:
    """How many slices had a fate."""
    return int((found.decisions == get_decision_code(decision)).sum())
