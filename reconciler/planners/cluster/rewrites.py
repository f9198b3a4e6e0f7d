"""Build the columns of the groups that a clustering rewrites; pure."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from reconciler.arrays import Integers, to_arrow
from reconciler.planners.cluster.candidates import CandidateSlices
from reconciler.planners.cluster.grouping import SliceGroups
from reconciler.plans.columns import build_dictionary, nullable_indices
from reconciler.plans.model import Rewrites


def build_rewrites(
    candidates: CandidateSlices, groups: SliceGroups, outputs: Integers, because: list[str]
) -> Rewrites:
    """Return the columns of groups; ``because``: one sentence per group."""
    files, members = candidates.view.files, groups.members
    rows = candidates.base_row[members]
    return Rewrites(
        partition=build_dictionary(candidates.partition[groups.first_members], files.partitions),
        outputs=outputs,
        bytes=groups.sum_values(candidates.bytes),
        because=build_dictionary(np.arange(len(groups), dtype=np.int32), because),
        starts=groups.starts,
        file_id=files.group_id.take(to_arrow(candidates.group[members])),
        base=files.name.take(nullable_indices(rows)),
        logs=_log_lists(candidates, members),
    )


def _log_lists(found: CandidateSlices, members: Integers) -> Any:
    """Return the log files of slices, one list per slice."""
    starts = np.searchsorted(found.log_slice, members)
    counts = np.searchsorted(found.log_slice, members, side="right") - starts
    ends = np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)])
    places = np.arange(ends[-1]) + np.repeat(starts - ends[:-1], counts)
    names = found.view.files.name.take(to_arrow(found.log_row[places]))
    return pa.ListArray.from_arrays(to_arrow(ends.astype(np.int32)), names)
