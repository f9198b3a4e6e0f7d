"""Name base files above ``files.large`` that no rewrite makes smaller; pure."""

from __future__ import annotations

import numpy as np

from reconciler import units
from reconciler.planners.cluster import notes
from reconciler.planners.cluster.planner import ClusteringDecision
from reconciler.planners.cluster.size_limits import SizeLimits
from reconciler.planners.cluster.slice_verdicts import RULES
from reconciler.planners.picture import TablePicture
from reconciler.planners.reasons import format_bytes, pluralize
from reconciler.plans.model import Finding
from reconciler.spec.rules import LARGE_FACTOR


def find_oversized(picture: TablePicture, decision: ClusteringDecision) -> Finding | None:
    """Return that base files stay above ``files.large``, why, and what to declare; None if none do.

    It is a difference without a step: the declared sizes cannot be reached.
    """
    oversized = np.flatnonzero(decision.rule == RULES.index("oversized"))
    limits = SizeLimits.from_spec(picture.file_sizes)
    if not len(oversized) or limits.large is None:
        return None
    candidates, sizes = decision.candidates, picture.statistics.sizes
    greatest = int(candidates.base[oversized].max())
    if not limits.can_split(candidates, sizes)[oversized].all():
        cause = (
            f"about {format_bytes(sizes.fixed)} of each are not rows (bloom filter, schema, "
            "statistics), and each new file would have them too"
        )
        target = _round_to_power(LARGE_FACTOR * sizes.fixed)
    else:
        cause = "an earlier split brought them no lower, so their rows are too large"
        target = _round_to_power(-(-greatest // LARGE_FACTOR))
    target = max(target, notes.LEAST_OUTPUT_BYTES)
    several = len(oversized) > 1
    partitions = pluralize(len(np.unique(candidates.partition[oversized])), "partition")
    return Finding(
        field="files.large",
        desired=limits.large,
        actual=greatest,
        because=f"{pluralize(len(oversized), 'base file')} in {partitions} "
        f"{'are' if several else 'is'} above it and cannot be split into smaller files: {cause}; "
        f"declare at least files.target: {units.format_size(target)} and files.large: "
        f"{units.format_size(LARGE_FACTOR * target)}",
    )


def _round_to_power(size: int) -> int:
    """Return the least power of two that is not below a size.

    >>> _round_to_power(860_000), _round_to_power(1)
    (1048576, 1)
    """
    return 1 << (size - 1).bit_length() if size > 1 else 1
