"""Refusals and warnings about the groups of a clustering; pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

import numpy as np
from numpy.typing import NDArray

from reconciler import units
from reconciler.planners.cluster.buckets import has_agreed_buckets
from reconciler.planners.cluster.grouping import SliceGroups
from reconciler.planners.cluster.slice_verdicts import RULES, format_slices
from reconciler.planners.newest_slices import CandidateSlices
from reconciler.planners.reasons import format_bytes, pluralize
from reconciler.plans.model import Finding, Note
from reconciler.plans.rewrites import Rewrites
from reconciler.spec.model import Clustering
from reconciler.state.clustering_facts import UNMEASURED_REMEDY

#: smaller files cost a reader more to open than to read
LEAST_OUTPUT_BYTES: Final = 64 * 1024
_RAISE_TARGET: Final = "raise files.target, for example to 120MiB"
#: damaged files that a warning names
_MAX_NAMES: Final = 5


def refuse_agreed_buckets(candidates: CandidateSlices) -> Iterable[Note]:
    """Refuse to cluster buckets whose file ids non-blocking writers agree on."""
    if has_agreed_buckets(candidates):
        yield Note(
            "bucketIndex",
            "writers with non-blocking concurrency control name the file group of a bucket by its "
            "number alone; a running one would go on writing to a file group that clustering has "
            "replaced, and its rows would never be read; let Hudi compact the table instead",
            step="cluster",
        )


def refuse_tiny_files(groups: Rewrites, rows: int | None, target: int) -> Iterable[Note]:
    """Refuse to make more files that are tiny: of less than a row, or of less than 64 KiB.

    Groups that become no more files are never refused, however small. ``rows``: in all groups; None
    if unknown. ``target``: the declared size of new files, bytes.
    """
    counts = np.diff(groups.starts)
    is_more = groups.outputs > counts
    if not is_more.any():
        return
    outputs, slices, size = (
        int(values[is_more].sum()) for values in (groups.outputs, counts, groups.bytes)
    )
    work = (
        f"files.target: {units.format_size(target)} would make {outputs:,} files from "
        f"{pluralize(slices, 'file slice')} of {format_bytes(size)}"
    )
    if rows is not None and outputs > rows:
        them = f"which have about {rows:,} rows"
        yield Note("files", f"{work}, {them}; {_RAISE_TARGET}", step="cluster")
    elif size < outputs * LEAST_OUTPUT_BYTES:
        each = f"{format_bytes(size // outputs)} each, less than {format_bytes(LEAST_OUTPUT_BYTES)}"
        yield Note("files", f"{work}: {each}; {_RAISE_TARGET}", step="cluster")


def refuse_tiny_target(target: int, oversized: Finding | None) -> Iterable[Note]:
    """Refuse a target of tiny files that files above ``files.large`` would have to be split into.

    ``oversized``: that such files are there and cannot be split; None if there are none.
    """
    if oversized is not None and target < LEAST_OUTPUT_BYTES:
        yield Note(
            "files",
            f"files.target: {units.format_size(target)} is less than "
            f"{format_bytes(LEAST_OUTPUT_BYTES)}, and files are above files.large; {_RAISE_TARGET}",
            step="cluster",
        )


def warn_of_damaged_files(
    candidates: CandidateSlices, rule: NDArray[np.int8], damaged: Mapping[int, str]
) -> Iterable[Note]:
    """Warn of files that cannot be read.

    ``rule``: index of each slice's rule; ``damaged``: why a file cannot be read, by its row.
    """
    out = np.flatnonzero(rule == RULES.index("damaged"))
    if len(out):
        problems = [damaged[row] for row in candidates.base_row[out].tolist()]
        some = "; ".join(problems[:_MAX_NAMES])
        more = f" (and {len(problems) - _MAX_NAMES} more)" if len(problems) > _MAX_NAMES else ""
        left = format_slices("{} are not clustered because files are damaged", len(problems))
        yield Note("damagedFile", f"{left}: {some}{more}")


def warn_of_pending_writes(candidates: CandidateSlices, groups: SliceGroups) -> Iterable[Note]:
    """Warn of groups that Hudi's rule selects and an apply skips because a write is pending."""
    holder, numbers = candidates.holder[groups.members], groups.number_members()
    for code, (rule, instant) in enumerate(candidates.holders):
        count = len(np.unique(numbers[holder == code]))
        if rule == "pendingWrite" and count:
            yield Note(
                rule,
                f"{instant} is pending and has written to {pluralize(count, 'group')} of the plan; "
                f"apply skips {'it' if count == 1 else 'them'} until the write is completed or "
                "rolled back",
            )


def warn_of_unmeasured(
    candidates: CandidateSlices, clustering: Clustering, rule: NDArray[np.int8]
) -> Iterable[Note]:
    """Warn of thresholds that are not checked, because files have no statistics.

    ``rule``: per slice, the index of its rule.
    """
    partition = candidates.partition[rule == RULES.index("unmeasured")]
    if not len(partition):
        return
    when, count = clustering.when, len(np.unique(partition))
    is_all = count == len(np.unique(candidates.partition[candidates.has_base]))
    where = "" if is_all else f" in {pluralize(count, 'partition')}"
    limits = {"overlap": when.overlap_above, "gain": when.gain_above}
    for measure in (name for name, limit in limits.items() if limit is not None):
        yield Note(
            measure,
            f"clustering.when.{measure}Above is not checked{where}: the base files have no known "
            f"statistics on {', '.join(clustering.columns)}; {UNMEASURED_REMEDY}",
        )
