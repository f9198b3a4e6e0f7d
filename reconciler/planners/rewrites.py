"""The groups that a clustering rewrites, as columns: everything that doing it needs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from reconciler.hudi.arrow import booleans, integers
from reconciler.plan.columns import dictionary
from reconciler.plan.model import Rewrites
from reconciler.planners.candidates import Candidates
from reconciler.planners.grouping import Groups


def rewrites(
    found: Candidates, groups: Groups, outputs: NDArray[np.int64], because: list[str]
) -> Rewrites:
    """The columns of some groups; ``because`` is a sentence a group."""
    files, members = found.view.files, groups.members
    rows = found.base_row[members]
    return Rewrites(
        partition=dictionary(found.partition[groups.first], files.partitions),
        outputs=outputs,
        bytes=groups.sums(found.bytes),
        because=dictionary(np.arange(len(groups), dtype=np.int32), because),
        starts=groups.starts,
        file_id=files.group_id.take(integers(found.group[members])),
        base=files.name.take(_nullable(rows)),
        logs=_logs(found, members),
    )


def _nullable(rows: NDArray[np.int64]) -> Any:
    """Rows as Arrow integers, null where there is none."""
    known = booleans(rows >= 0).buffers()[1]
    return pa.Array.from_buffers(pa.int64(), len(rows), [known, pa.py_buffer(rows)])


def _logs(found: Candidates, members: NDArray[np.int64]) -> Any:
    """The log files of some slices, a list a slice."""
    starts = np.searchsorted(found.log_of, members)
    counts = np.searchsorted(found.log_of, members, side="right") - starts
    ends = np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)])
    places = np.arange(ends[-1]) + np.repeat(starts - ends[:-1], counts)
    names = found.view.files.name.take(integers(found.log_row[places]))
    return pa.ListArray.from_arrays(integers(ends.astype(np.int32)), names)
