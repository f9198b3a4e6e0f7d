"""What pending instants hold back, beside what the planner of clusterings leaves out."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from reconciler.hudi.timeline.active import Timeline, TimelineFile
from reconciler.hudi.timeline.instant import Action, Instant, State
from reconciler.planners.newest_slices import find_candidates
from reconciler.planners.recovery.held_back import measure_held_back
from reconciler.state.model import PendingCompactionGroup
from tests.unit.planners.cow import base, commit, stamp, table

FILES = {"a": [base("f", 0), base("g", 0)], "b": [base("h", 0), base("i", 0)]}


def with_pending(action, **more):
    """A table with a pending instant that was last changed at 0."""
    state = table(FILES, [commit(0)], **more)
    pending = Instant(stamp(9), action, State.REQUESTED)
    files = (*state.timeline.files, TimelineFile(pending, pending.file_name, 0, 0))
    return replace(state, timeline=Timeline.from_files(files))


def with_compaction():
    groups = [("a", "f"), ("b", "h"), ("b", "i")]
    return with_pending(
        Action.COMPACTION,
        compactions=tuple(
            PendingCompactionGroup(
                instant=stamp(9),
                action=Action.COMPACTION,
                partition=partition,
                file_id=file_id,
                base_instant=stamp(0),
            )
            for partition, file_id in groups
        ),
    )


def with_write():
    """A pending write that has written a new file of one file group, and a new file group."""
    state = with_pending(Action.COMMIT)
    files = {"a": [*FILES["a"], base("f", 9), base("new", 9)], "b": FILES["b"]}
    return replace(state, files=table(files, [commit(0)]).files)


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        (with_compaction(), (3, 3, 2, "clusterings and other compactions")),
        (with_write(), (1, 1, 1, "clusterings")),
    ],
    ids=["compaction", "write"],
)
def test_the_file_groups_are_those_that_a_clustering_leaves_out(state, expected):
    held = measure_held_back(stamp(9), state, None)
    candidates = find_candidates(state)
    left = candidates.holder >= 0

    assert expected == (held.groups, held.files, held.partitions, held.services)
    assert (int(left.sum()), len(np.unique(candidates.partition[left]))) == expected[:3:2]
