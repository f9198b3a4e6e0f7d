"""Choose slices and groups for the declared file sizes, apart from the order of rows; pure."""

from __future__ import annotations

import numpy as np

from reconciler import units
from reconciler.arrays import Integers, Mask
from reconciler.planners.cluster.clustering_input import ClusteringInput
from reconciler.planners.cluster.grouping import SliceGroups
from reconciler.planners.cluster.passes import has_few_logs
from reconciler.planners.cluster.slice_verdicts import SliceVerdicts


def find_wrong_sizes(need: ClusteringInput, selected: Mask) -> Mask:
    """Return which of the ``selected`` slices are rewritten even if they are clustered as declared.

    Those are large ones, and small ones with another file that they become one with: another small
    one in their partition, or the one that takes the rest.
    """
    if need.limits.large is None:
        return np.zeros_like(selected)
    if not need.clustering.columns:
        return selected
    triggers, partition = need.triggers, need.candidates.partition
    is_small = selected & triggers.is_small
    is_joined = is_small | (selected & triggers.takes_rest)
    several = np.bincount(partition[is_joined], minlength=len(triggers.fires)) > 1
    wrong: Mask = selected & (triggers.is_large | (is_joined & several[partition]))
    return wrong


def is_worth_for_sizes(need: ClusteringInput, groups: SliceGroups, outputs: Integers) -> Mask:
    """Return per group whether rewriting it brings files closer to the declared sizes.

    It makes fewer files, splits a large one, leaves none of its small ones where a partition keeps
    none, or gives a base file to rows in log files.
    """
    fewer = outputs < groups.sizes
    if need.limits.large is None:
        return fewer
    candidates = need.candidates
    has_gain = need.triggers.is_large | ~candidates.has_base | ~has_few_logs(candidates)
    worth: Mask = fewer | (groups.sum_values(has_gain.astype(np.int64)) > 0)
    if need.limits.keeps_no_small:
        size = need.sizes.fixed + groups.sum_values(need.row_bytes) / outputs
        has_small = groups.sum_values(need.triggers.is_small.astype(np.int64)) > 0
        worth |= has_small & (size >= need.limits.small)
    # a file that takes the rest has made no pass: it must not let the others make one too many
    needs_pass = ~need.passes.is_done & ~need.triggers.takes_rest
    return worth & (groups.sum_values(needs_pass.astype(np.int64)) > 0)


def is_settled_throughout(need: ClusteringInput, groups: SliceGroups) -> Mask:
    """Return per group whether all of its slices are clustered as declared."""
    settled: Mask = groups.sum_values(need.is_settled.astype(np.int64)) == groups.sizes
    return settled


def explain_unsplit(need: ClusteringInput, verdicts: SliceVerdicts, stays: Mask) -> None:
    """Record the reason of slices that stay although their base file is above ``large``."""
    stays = stays & need.limits.find_large(need.candidates) & ~need.triggers.is_large
    limit = units.format_size(need.limits.large or 0)
    verdicts.decide(
        "oversized",
        stays & need.passes.is_done,
        f"its base file is still above files.large ({limit}) after it was split as often as that "
        "may help; its rows are too large",
    )
    verdicts.decide(
        "oversized",
        stays,
        f"its base file is above files.large ({limit}), but more files would not be smaller: "
        f"{units.format_size(need.sizes.fixed)} of each are not rows",
    )
