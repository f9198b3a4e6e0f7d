"""What of a reviewed clustering may still run, group by group: every slice as it was reviewed.

The fresh plan need not choose the same groups (what triggers and what a run may cost is decided at
the review), but its slices must still be the newest ones, with the same files and in nobody's hand.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from reconciler.apply.result import LeftGroup
from reconciler.hudi.arrow import flags, integers, numbers, strings
from reconciler.hudi.view import group_codes
from reconciler.plan.groups import owners, paths
from reconciler.plan.model import Rewrites
from reconciler.planners.candidates import Candidates, candidates
from reconciler.planners.slices import view_of
from reconciler.state.model import TableState

_HOLDS: Final = {
    "pendingCompaction": "pending compaction {} is going to rewrite",
    "pendingLogCompaction": "pending log compaction {} is going to rewrite",
    "pendingClustering": "pending clustering {} is going to rewrite",
    "pendingWrite": "{} is pending and has written to",
}
_NOTHING: Final[Mapping[tuple[str, str], str]] = {}
_SKELETON: Final = "_00000000000001.parquet"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Regrouped:
    """``groups`` may run; ``left`` may not; ``gone`` groups an earlier apply has rewritten."""

    groups: Rewrites
    left: tuple[LeftGroup, ...] = ()
    gone: int = 0


def regroup(  # noqa: PLR0913 (each says why another slice stays)
    reviewed: Rewrites,
    state: TableState,
    *,
    ours: str | None = None,
    done: Collection[str] = (),
    refusal: str = "",
    cut: Mapping[tuple[str, str], str] = _NOTHING,
    lost: Mapping[tuple[str, str], str] = _NOTHING,
) -> Regrouped:
    """Reviewed ∩ fresh. ``ours``: the pending clustering that has these slices in hand itself.

    ``done``: completed clusterings of this very plan; what they replaced is done, while what any
    other write replaced has fallen out. ``refusal``: why slices with log files of this table cannot
    be merged, empty where they can. ``cut``: damaged log files, by partition and name; ``lost``:
    file groups of which a file is gone, by partition and file id.
    """
    found = candidates(state, view_of(state))
    keys = paths(reviewed)
    rows = numbers(pc.index_in(keys, value_set=_keys(found)).fill_null(-1)).astype(np.int64)
    because = _Reasons(len(keys))
    by = _replaced_by(reviewed, state)
    is_done = _is_done(reviewed, state, by, done)
    because.say(
        np.array([time is not None for time in by], np.bool_),
        lambda at: f"its file group {_id(reviewed, at)} was replaced by {by[at]} meanwhile",
    )
    because.say(rows < 0, lambda at: f"file group {_id(reviewed, at)} is no longer there")
    _say_held(because, reviewed, found, rows, ours)
    _say_lost(because, reviewed, lost)
    _say_changed(because, reviewed, found, rows)
    _say_unreadable(because, reviewed, refusal)
    _say_cut(because, reviewed, cut)
    of, count = owners(reviewed), len(reviewed)
    is_gone = np.bincount(of[is_done], minlength=count) == np.diff(reviewed.starts)
    bad = np.zeros(count, np.bool_)
    bad[of[because.is_said]] = True
    partitions = reviewed.partition.to_pylist()
    left = tuple(
        LeftGroup(
            partition=partitions[group],
            slices=int(reviewed.starts[group + 1] - reviewed.starts[group]),
            because=because.first(int(reviewed.starts[group]), int(reviewed.starts[group + 1])),
        )
        for group in np.flatnonzero(bad & ~is_gone).tolist()
    )
    return Regrouped(
        groups=take_groups(reviewed, np.flatnonzero(~bad)), left=left, gone=int(is_gone.sum())
    )


def take_groups(groups: Rewrites, rows: NDArray[np.int64]) -> Rewrites:
    """Some of the groups, with their slices."""
    counts = np.diff(groups.starts)[rows]
    starts = np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)])
    slices = integers(
        np.repeat(groups.starts[:-1][rows] - starts[:-1], counts) + np.arange(starts[-1])
    )
    taken = integers(rows)
    return Rewrites(
        partition=groups.partition.take(taken),
        outputs=groups.outputs[rows],
        bytes=groups.bytes[rows],
        because=groups.because.take(taken),
        starts=starts,
        file_id=groups.file_id.take(slices),
        base=groups.base.take(slices),
        logs=groups.logs.take(slices),
    )


@dataclass(slots=True)
class _Reasons:
    """A sentence a slice, the first that is said."""

    count: int
    said: dict[int, str] | None = None

    def say(self, mask: NDArray[np.bool_], says: Any) -> None:
        known = self.said = self.said or {}
        for at in np.flatnonzero(mask).tolist():
            if at not in known:
                known[at] = says(at)

    @property
    def is_said(self) -> NDArray[np.bool_]:
        found = np.zeros(self.count, np.bool_)
        found[list(self.said or ())] = True
        return found

    def first(self, start: int, end: int) -> str:
        said = self.said or {}
        return next(said[at] for at in range(start, end) if at in said)


def _say_held(
    because: _Reasons,
    reviewed: Rewrites,
    found: Candidates,
    rows: NDArray[np.int64],
    ours: str | None,
) -> None:
    holder = np.where(rows >= 0, found.holder[rows], -1) if len(found) else np.full(len(rows), -1)
    own = [code for code, (_, instant) in enumerate(found.holders) if instant == ours]

    def says(at: int) -> str:
        rule, instant = found.holders[int(holder[at])]
        return f"{_HOLDS[rule].format(instant)} its file group {_id(reviewed, at)}"

    because.say((holder >= 0) & ~np.isin(holder, own), says)


def _say_changed(
    because: _Reasons, reviewed: Rewrites, found: Candidates, rows: NDArray[np.int64]
) -> None:
    """A slice that has another base file than was reviewed, or other log files."""
    files, there = found.view.files, rows >= 0
    base_row = np.where(there, found.base_row[rows], -1) if len(found) else rows
    names = files.name.take(_nullable(base_row))
    is_same = flags(pc.fill_null(pc.equal(names, reviewed.base), False))
    is_same |= flags(pc.and_(pc.is_null(names), pc.is_null(reviewed.base)))
    because.say(
        there & ~is_same,
        lambda at: f"its file group {_id(reviewed, at)} has a newer file slice than was reviewed",
    )
    logs = _joined_logs(found).take(_nullable(rows))
    reviewed_logs = pc.binary_join(reviewed.logs, "/")
    same_logs = flags(pc.fill_null(pc.equal(logs, reviewed_logs), False))
    because.say(
        there & ~same_logs,
        lambda at: f"its file group {_id(reviewed, at)} has other log files than were reviewed",
    )


def _say_unreadable(because: _Reasons, reviewed: Rewrites, refusal: str) -> None:
    skeleton = flags(pc.fill_null(pc.ends_with(reviewed.base, _SKELETON), False))
    because.say(
        skeleton,
        lambda at: (
            f"file group {_id(reviewed, at)} is a bootstrap skeleton, whose data lie outside the "
            "table; let Hudi cluster it"
        ),
    )
    if refusal:
        has_logs = numbers(pc.list_value_length(reviewed.logs)) > 0
        because.say(has_logs, lambda _at: f"{refusal}; its log files cannot be read")


def _say_cut(because: _Reasons, reviewed: Rewrites, cut: Mapping[tuple[str, str], str]) -> None:
    if not cut:
        return
    folders = reviewed.partition.take(integers(owners(reviewed))).to_pylist()
    said = [
        next((cut[folder, name] for name in names if (folder, name) in cut), None)
        for folder, names in zip(folders, reviewed.logs.to_pylist(), strict=True)
    ]
    because.say(np.array([one is not None for one in said], np.bool_), said.__getitem__)


def _say_lost(because: _Reasons, reviewed: Rewrites, lost: Mapping[tuple[str, str], str]) -> None:
    if lost:
        said = [lost.get(pair) for pair in _pairs(paths(reviewed))]
        because.say(np.array([one is not None for one in said], np.bool_), said.__getitem__)


def _replaced_by(reviewed: Rewrites, state: TableState) -> list[str | None]:
    """Per slice the instant that replaced its file group, None where nothing has."""
    return [state.replaced.get(pair) for pair in _pairs(paths(reviewed))]


def _is_done(
    reviewed: Rewrites, state: TableState, by: Sequence[str | None], done: Collection[str]
) -> NDArray[np.bool_]:
    """Per slice whether this plan has replaced it, or did and its files are cleaned away."""
    files = state.files
    there = np.zeros(len(files.group_partition), np.bool_)
    there[files.group] = True
    groups = group_codes(files, _pairs(paths(reviewed)))
    is_there = np.where(groups >= 0, there[groups], False) if len(there) else groups >= 0
    found = np.array([time in done for time in by], np.bool_)
    unknown = np.array([time is None for time in by], np.bool_) & ~is_there
    return found | unknown if done else found


def _pairs(keys: Any) -> list[tuple[str, str]]:
    split = (key.rpartition("/") for key in keys.to_pylist())
    return [(partition, file_id) for partition, _, file_id in split]


def _keys(found: Candidates) -> Any:
    files = found.view.files
    folders = strings(files.partitions).take(integers(found.partition))
    ids = files.group_id.take(integers(found.group))
    return pc.binary_join_element_wise(folders, ids, "/")


def _joined_logs(found: Candidates) -> Any:
    """The names of the log files of every candidate, with slashes between."""
    ends = np.searchsorted(found.log_of, np.arange(len(found) + 1)).astype(np.int32)
    names = found.view.files.name.take(integers(found.log_row))
    return pc.binary_join(pa.ListArray.from_arrays(integers(ends), names), "/")


def _nullable(rows: NDArray[np.int64]) -> Any:
    return pc.if_else(pa.array(rows >= 0), pa.array(rows, pa.int64()), None)


def _id(reviewed: Rewrites, at: int) -> str:
    return str(reviewed.file_id[at].as_py())
