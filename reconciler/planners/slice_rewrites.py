"""Write groups of file slices as the columns of a plan; pure."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from reconciler.arrays import Integers, to_arrow
from reconciler.planners.newest_slices import CandidateSlices
from reconciler.plans.columns import build_dictionary, nullable_indices
from reconciler.plans.rewrites import Rewrites


def build_rewrites(
    candidates: CandidateSlices,
    members: Integers,
    starts: Integers,
    outputs: Integers,
    because: list[str],
) -> Rewrites:
    """Return the columns of groups; ``because``: one sentence per group.

    Group g has the slices ``members[starts[g]:starts[g + 1]]``, at least one.
    """
    files = candidates.view.files
    rows = candidates.base_row[members]
    sums = np.concatenate([np.zeros(1, np.int64), np.cumsum(candidates.bytes[members])])
    return Rewrites(
        partition=build_dictionary(candidates.partition[members[starts[:-1]]], files.partitions),
        outputs=outputs,
        bytes=np.diff(sums[starts]),
        because=build_dictionary(np.arange(len(outputs), dtype=np.int32), because),
        starts=starts,
        file_id=files.group_id.take(to_arrow(candidates.group[members])),
        base=files.name.take(nullable_indices(rows)),
        logs=_log_lists(candidates, members),
    )


def _log_lists(candidates: CandidateSlices, members: Integers) -> Any:
    """Return the log files of slices, one list per slice."""
    starts = np.searchsorted(candidates.log_slice, members)
    counts = np.searchsorted(candidates.log_slice, members, side="right") - starts
    ends = np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)])
    places = np.arange(ends[-1]) + np.repeat(starts - ends[:-1], counts)
    names = candidates.view.files.name.take(to_arrow(candidates.log_row[places]))
    return pa.ListArray.from_arrays(to_arrow(ends.astype(np.int32)), names)
