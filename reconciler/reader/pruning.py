"""Prune a scan by a condition: partitions, then the index, then statistics of log files.

Storage is read for the index only, and only if the condition names a column that it may have.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from reconciler.arrays import Mask
from reconciler.errors import FormatError, NotFoundError, ReconcilerError
from reconciler.file_slices.merge.range_file import open_range_file
from reconciler.index.codec import decode_index
from reconciler.index.model import FileIndex
from reconciler.index.version_store import list_versions
from reconciler.index.versions import IndexVersion
from reconciler.lazy_dataclass import dataclass
from reconciler.reader.log_statistics import find_unmatched_logs
from reconciler.reader.model import ReadCondition, Scan
from reconciler.reader.skipping import (
    SkipDecision,
    decide_by_index,
    decide_by_logs,
    find_slices_with_undecided_logs,
    list_file_columns,
    mark_matching_partitions,
    mark_read_slices,
    parse_condition,
    repeat_decision,
)
from reconciler.storage.api import Storage

#: index files up to this size are read whole in one call; of larger ones only the wanted columns
_READ_WHOLE_BYTES: Final = 16 * 1024**2


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PrunedScan:
    """A scan, and the part of it that is read.

    ``decisions``: int8, per slice of ``scan`` the code of its ``SkipDecision``. ``kept``: the
    slices that are read, with the condition if row groups may be skipped. ``index``: the index
    file that was read, below the table, None for none. ``problems``: why a possible source was not
    used.
    """

    scan: Scan
    kept: Scan
    decisions: NDArray[np.int8]
    index: str | None = None
    problems: tuple[str, ...] = ()


def keep_all(scan: Scan, why: SkipDecision = SkipDecision.NO_CONDITION) -> PrunedScan:
    """Return a scan of which all is read."""
    return PrunedScan(scan=scan, kept=scan, decisions=repeat_decision(why, len(scan.slices)))


def keep_unsure(scan: Scan, problem: str) -> PrunedScan:
    """Return a scan of which all is read because only Spark interprets its condition."""
    return replace(keep_all(scan, SkipDecision.NOT_UNDERSTOOD), problems=(problem,))


def prune_cautiously(scan: Scan, where: str, index: Storage | None) -> PrunedScan:
    """Prune a scan by what is certain of a condition without a session of Spark.

    A session with the defaults of Spark may skip more.
    """
    condition = parse_condition(where, zone="")
    mask = mark_matching_partitions(scan, condition)[scan.get_numbers("partition")]
    matching = scan.select_slices(mask)
    if index is None:
        return widen_to_scan(scan, mask, keep_all(matching, SkipDecision.SWITCHED_OFF))
    return widen_to_scan(scan, mask, prune_by_index(replace(matching, condition=condition), index))


def prune_by_index(scan: Scan, storage: Storage) -> PrunedScan:
    """Prune a scan by statistics of base and log files.

    Reads the index once if the condition names a column that can be indexed. Raises nothing:
    what cannot be read does not skip anything.
    """
    condition = scan.condition
    if condition is None:
        return keep_all(scan)
    columns = list_file_columns(scan, condition)
    index_read = read_index(storage, columns) if columns and len(scan.slices) else IndexRead()
    decisions = decide_by_index(scan, condition, index_read.index)
    slices = find_slices_with_undecided_logs(scan, decisions)
    is_unmatched, problem = find_unmatched_logs(storage, scan, slices)
    decisions = decide_by_logs(scan, decisions, is_unmatched)
    return PrunedScan(
        scan=scan,
        kept=scan.select_slices(mark_read_slices(decisions)),
        decisions=decisions,
        index=index_read.version,
        problems=(*index_read.problems, *([problem] if problem else [])),
    )


def mark_reached_slices(storage: Storage, scan: Scan, condition: ReadCondition) -> Mask:
    """Return a mask of the slices that a read with this condition touches. Raises nothing."""
    is_in = mark_matching_partitions(scan, condition)[scan.get_numbers("partition")]
    pruned = prune_by_index(replace(scan, condition=condition), storage)
    is_reached: Mask = is_in & mark_read_slices(pruned.decisions)
    return is_reached


def widen_to_scan(whole: Scan, is_kept: Mask, index_read: PrunedScan) -> PrunedScan:
    """Return the pruning for a whole scan, of which only the marked slices were examined."""
    decisions = repeat_decision(SkipDecision.PARTITION, len(whole.slices))
    decisions[is_kept] = index_read.decisions
    return replace(index_read, scan=whole, decisions=decisions)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class IndexRead:
    """The result of reading a table's index.

    ``index``: None if no version can be read; ``version``: its file, below the table;
    ``problems``: a sentence for each newer version that is damaged, and for storage errors.
    """

    index: FileIndex | None = None
    version: str | None = None
    problems: tuple[str, ...] = ()


def read_index(storage: Storage, columns: tuple[str, ...]) -> IndexRead:
    """Read the newest readable version, restricted to some columns. Raises nothing.

    Lists the versions, reads one; for each damaged version one more.
    """
    problems: list[str] = []
    try:
        versions = list_versions(storage)
        for version in reversed(versions.valid):
            try:
                index, _ = decode_index(_open_version(storage, version), version.path, columns)
            except NotFoundError:
                problems.append(f"{version.path}: was removed while it was read")
            except FormatError as damage:
                problems.append(str(damage))
            else:
                return IndexRead(index=index, version=version.path, problems=tuple(problems))
    except ReconcilerError as failure:
        problems.append(str(failure))
    except Exception as unexpected:  # noqa: BLE001 (an index is no reason for a read to fail)
        problems.append(f"the index could not be read: {type(unexpected).__name__}: {unexpected}")
    return IndexRead(problems=tuple(problems))


def _open_version(storage: Storage, version: IndexVersion) -> Any:
    if version.size <= _READ_WHOLE_BYTES:
        return storage.read(version.path)
    return open_range_file(storage, version.path, version.size)
