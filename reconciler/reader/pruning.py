"""What a condition leaves of a scan: partitions, then the index, then statistics of log files.

Storage is touched for the index alone, and only where the condition names a column that it may
know.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from reconciler.reader.indexed import Read, read_index
from reconciler.reader.log_statistics import logs_cannot_match
from reconciler.reader.routes import of_slices
from reconciler.reader.skipping import (
    Decision,
    all_of,
    code_of,
    decided,
    indexed_columns,
    is_read,
    waiting,
    with_logs,
)

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from reconciler.reader.model import Scan
    from reconciler.storage.api import Storage


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Pruned:
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


def unpruned(scan: Scan, why: Decision = Decision.NO_CONDITION) -> Pruned:
    """A scan all of which is read."""
    return Pruned(scan=scan, kept=scan, decisions=all_of(why, len(scan.slices)))


def pruned_by_index(scan: Scan, storage: Storage) -> Pruned:
    """What the scan's condition leaves of it, by statistics of base and log files.

    One listing of the index and a read, where the condition names a column that can be indexed.
    Raises nothing: what cannot be read says nothing.
    """
    condition = scan.condition
    if condition is None:
        return unpruned(scan)
    columns = indexed_columns(scan, condition)
    found = read_index(storage, columns) if columns and len(scan.slices) else Read()
    decisions = decided(scan, condition, found.index)
    slices = waiting(scan, decisions)
    cannot, problem = logs_cannot_match(storage, scan, slices)
    decisions = with_logs(scan, decisions, cannot)
    return Pruned(
        scan=scan,
        kept=of_slices(scan, is_read(decisions)),
        decisions=decisions,
        index=found.version,
        problems=(*found.problems, *([problem] if problem else [])),
    )


def among(whole: Scan, of_partitions: NDArray[np.bool_], found: Pruned) -> Pruned:
    """The same about a whole scan, of which only the marked slices were looked at."""
    decisions = all_of(Decision.PARTITION, len(whole.slices))
    decisions[of_partitions] = found.decisions
    return replace(found, scan=whole, decisions=decisions)


def count(found: Pruned, decision: Decision) -> int:
    """How many slices had a fate."""
    return int((found.decisions == code_of(decision)).sum())
