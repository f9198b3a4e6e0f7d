"""What a person has to know beside the groups of a clustering: refusals and warnings; pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

import numpy as np
import pyarrow.compute as pc
from numpy.typing import NDArray

from reconciler.arrays import to_numpy_bools
from reconciler.planners.cluster.candidates import CandidateSlices
from reconciler.planners.cluster.grouping import SliceGroups
from reconciler.planners.cluster.slice_verdicts import RULES, format_slices
from reconciler.planners.reasons import pluralize
from reconciler.plans.model import Note

#: damaged files that a warning names
_NAMED: Final = 5
#: file ids that begin with the number of a bucket, of fewer than 100 000
_BUCKET: Final = r"^000\d{5}-"


def refuse_bucket_index(candidates: CandidateSlices) -> Iterable[Note]:
    """What must not be rewritten at all."""
    ids = candidates.view.files.group_id
    if len(ids) and to_numpy_bools(pc.match_substring_regex(ids, _BUCKET)).all():
        yield Note(
            "bucketIndex",
            "the names of all file groups begin with the number of a bucket: writers with a bucket "
            "index look for rows in the bucket's file group, and clustering would take them out of "
            "it; let Hudi resize the buckets",
        )


def warn_of_damaged_files(
    candidates: CandidateSlices, rule: NDArray[np.int8], damaged: Mapping[int, str]
) -> Iterable[Note]:
    """Files that cannot be read; ``rule``: of every slice, ``damaged``: why, by row of a file."""
    out = np.flatnonzero(rule == RULES.index("damaged"))
    if len(out):
        problems = [damaged[row] for row in candidates.base_row[out].tolist()]
        some = "; ".join(problems[:_NAMED])
        more = f" (and {len(problems) - _NAMED} more)" if len(problems) > _NAMED else ""
        left = format_slices("{} are left out of the clustering", len(problems))
        yield Note("damagedFile", f"{left}: {some}{more}")


def warn_of_pending_writes(candidates: CandidateSlices, groups: SliceGroups) -> Iterable[Note]:
    """Groups that Hudi's own rule takes and an apply leaves out: somebody is writing to them."""
    holder, numbers = candidates.holder[groups.members], groups.number_members()
    for code, (rule, instant) in enumerate(candidates.holders):
        count = len(np.unique(numbers[holder == code]))
        if rule == "pendingWrite" and count:
            yield Note(
                rule,
                f"{instant} is pending and has written to {pluralize(count, 'group')} of the plan: an "
                f"apply leaves {'it' if count == 1 else 'them'} out until the write is completed "
                "or rolled back",
            )
