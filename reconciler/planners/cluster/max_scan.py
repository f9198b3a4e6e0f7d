"""The slices that a clustering rewrites because queries read more than their ``maxScan``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from reconciler.arrays import Integers, Mask
from reconciler.planners.cluster.grouping import SliceGroups

#: returns which groups are worth a rewrite, from their output files and, per slice, whether it is
#: clustered as declared
GainCheck = Callable[[SliceGroups, Integers, Mask], Mask]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MaxScanDemand:
    """The slices to rewrite because queries exceed their ``maxScan``.

    ``is_read``: per slice, a query over its limit reads it. ``gains``: returns which groups are
    worth it; None: all. ``reason``: the sentence for the plan.
    """

    is_read: Mask
    reason: str
    gains: GainCheck | None = None
