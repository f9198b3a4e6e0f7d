"""Select the groups of a reviewed clustering that may still run.

The fresh plan need not choose the same groups: what triggers a clustering and what it may cost is
decided at the review. But each slice must still be the newest, with the same files, and no pending
instant may hold it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from reconciler.arrays import Integers, Mask, to_arrow, to_numpy
from reconciler.executor.outcomes import ClusterOutcome, LeftGroup
from reconciler.hudi.files.bucket_ids import find_bucket_ids
from reconciler.hudi.files.view import find_group_codes
from reconciler.lazy_dataclass import dataclass
from reconciler.planners.newest_slices import CandidateSlices, find_candidates, find_slices
from reconciler.plans.groups import group_of_slices, slice_paths
from reconciler.plans.rewrites import Rewrites
from reconciler.state.model import TableState
from reconciler.transaction.recovery.damaged_files import DamagedFiles

_PENDING_REASONS: Final = {
    "pendingCompaction": "pending compaction {} is going to rewrite",
    "pendingLogCompaction": "pending log compaction {} is going to rewrite",
    "pendingClustering": "pending clustering {} is going to rewrite",
    "pendingWrite": "{} is pending and has written to",
}
_SKELETON: Final = "_00000000000001.parquet"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class GroupSelection:
    """``groups`` may run; ``left`` may not; ``gone``: how many an earlier apply has rewritten."""

    groups: Rewrites
    left: tuple[LeftGroup, ...] = ()
    gone: int = 0

    @property
    def unchanged(self) -> ClusterOutcome:
        """The outcome if none of the groups is rewritten now."""
        return ClusterOutcome(left=self.left, gone=self.gone)


def select_groups(  # noqa: PLR0913 (what is known of the groups)
    reviewed: Rewrites,
    state: TableState,
    *,
    own: str | None = None,
    but_writes: bool = False,
    done: Collection[str] = (),
    refusal: str = "",
    damage: DamagedFiles = DamagedFiles(),  # noqa: B008 (frozen)
) -> GroupSelection:
    """Return the groups whose slices are still as they were reviewed, and why others stay.

    ``own``: the pending clustering that holds these slices itself. ``but_writes``: slices that a
    pending write has written to may run. ``done``: completed clusterings
    of this very plan; what they replaced is done, while what any other write replaced stays.
    ``refusal``: why slices with log files of this table cannot be merged, empty if they can.
    """
    candidates = find_candidates(state)
    keys = slice_paths(reviewed)
    rows = find_slices(candidates, keys)
    because = _Reasons(len(keys))
    by = _find_replacing_instants(reviewed, state)
    is_done = _find_done(reviewed, state, by, done)
    because.note(
        np.array([time is not None for time in by], np.bool_),
        lambda at: (
            f"its file group {_get_file_id(reviewed, at)} was replaced by {by[at]} meanwhile"
        ),
    )
    because.note(rows < 0, lambda at: f"file group {_get_file_id(reviewed, at)} is no longer there")
    ignored = [
        code
        for code, (rule, instant) in enumerate(candidates.holders)
        if instant == own or (but_writes and rule == "pendingWrite")
    ]
    _note_pending(because, reviewed, candidates, rows, ignored)
    _note_lost_files(because, reviewed, damage.lost)
    _note_changed(because, reviewed, candidates, rows)
    _note_unreadable(because, reviewed, refusal)
    _note_merged_buckets(because, reviewed)
    _note_cut_logs(because, reviewed, damage.cut)
    group_of, count = group_of_slices(reviewed), len(reviewed)
    is_gone = np.bincount(group_of[is_done], minlength=count) == np.diff(reviewed.starts)
    bad = np.zeros(count, np.bool_)
    bad[group_of[because.is_noted]] = True
    starts = reviewed.starts.tolist()
    reasons = {
        group: because.first(starts[group], starts[group + 1])
        for group in np.flatnonzero(bad & ~is_gone).tolist()
    }
    return GroupSelection(
        groups=take_groups(reviewed, np.flatnonzero(~bad)),
        left=leave_groups(reviewed, reasons),
        gone=int(is_gone.sum()),
    )


def leave_groups(groups: Rewrites, because: Mapping[int, str]) -> tuple[LeftGroup, ...]:
    """Return the groups that stay, in order; ``because``: why, by number."""
    partitions, sizes = groups.partition.to_pylist(), np.diff(groups.starts).tolist()
    return tuple(
        LeftGroup(partition=partitions[number], slices=sizes[number], because=because[number])
        for number in sorted(because)
    )


def drop_groups(chosen: GroupSelection, conflicts: Mapping[int, str]) -> GroupSelection:
    """Drop groups with conflicts, which are left with a reason; ``conflicts``: reason by number."""
    rows = np.array([n for n in range(len(chosen.groups)) if n not in conflicts], np.int64)
    return GroupSelection(
        groups=take_groups(chosen.groups, rows),
        left=(*chosen.left, *leave_groups(chosen.groups, conflicts)),
        gone=chosen.gone,
    )


def take_groups(groups: Rewrites, rows: Integers) -> Rewrites:
    """Return some of the groups, with their slices."""
    counts = np.diff(groups.starts)[rows]
    starts = np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)])
    slices = to_arrow(
        np.repeat(groups.starts[:-1][rows] - starts[:-1], counts) + np.arange(starts[-1])
    )
    taken = to_arrow(rows)
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
    """A reason for each slice that stays: the first that is noted."""

    count: int
    noted: dict[int, str] | None = None

    def note(self, mask: Mask, says: Any) -> None:
        known = self.noted = self.noted or {}
        for at in np.flatnonzero(mask).tolist():
            if at not in known:
                known[at] = says(at)

    @property
    def is_noted(self) -> Mask:
        mask = np.zeros(self.count, np.bool_)
        mask[list(self.noted or ())] = True
        return mask

    def first(self, start: int, end: int) -> str:
        noted = self.noted or {}
        return next(noted[at] for at in range(start, end) if at in noted)


def _note_pending(
    because: _Reasons,
    reviewed: Rewrites,
    slices: CandidateSlices,
    rows: Integers,
    ignored: Sequence[int],
) -> None:
    """Note slices with a holder; ``ignored``: codes of those that do not count."""
    holder = np.where(rows >= 0, slices.holder[rows], -1) if len(slices) else np.full(len(rows), -1)

    def says(at: int) -> str:
        rule, instant = slices.holders[int(holder[at])]
        return (
            f"{_PENDING_REASONS[rule].format(instant)} its file group {_get_file_id(reviewed, at)}"
        )

    because.note((holder >= 0) & ~np.isin(holder, ignored), says)


def _note_changed(
    because: _Reasons, reviewed: Rewrites, candidates: CandidateSlices, rows: Integers
) -> None:
    """Note slices that have another base file than was reviewed, or other log files."""
    files, is_found = candidates.view.files, rows >= 0
    base_row = np.where(is_found, candidates.base_row[rows], -1) if len(candidates) else rows
    names = files.name.take(_make_nullable(base_row))
    is_same = to_numpy(pc.fill_null(pc.equal(names, reviewed.base), False))
    is_same |= to_numpy(pc.and_(pc.is_null(names), pc.is_null(reviewed.base)))
    because.note(
        is_found & ~is_same,
        lambda at: (
            f"its file group {_get_file_id(reviewed, at)} has a newer file slice than was reviewed"
        ),
    )
    logs = _join_logs(candidates).take(_make_nullable(rows))
    reviewed_logs = pc.binary_join(reviewed.logs, "/")
    same_logs = to_numpy(pc.fill_null(pc.equal(logs, reviewed_logs), False))
    because.note(
        is_found & ~same_logs,
        lambda at: (
            f"its file group {_get_file_id(reviewed, at)} has other log files than were reviewed"
        ),
    )


def _note_unreadable(because: _Reasons, reviewed: Rewrites, refusal: str) -> None:
    skeleton = to_numpy(pc.fill_null(pc.ends_with(reviewed.base, _SKELETON), False))
    because.note(
        skeleton,
        lambda at: (
            f"file group {_get_file_id(reviewed, at)} is a bootstrap skeleton, whose data lie "
            "outside the table; let Hudi cluster it"
        ),
    )
    if refusal:
        has_logs = to_numpy(pc.list_value_length(reviewed.logs)) > 0
        because.note(has_logs, lambda _at: f"{refusal}; its log files cannot be read")


def _note_merged_buckets(because: _Reasons, reviewed: Rewrites) -> None:
    """Note slices of groups in which several buckets would be merged, or one would be split."""
    is_bucket, group_of = find_bucket_ids(reviewed.file_id), group_of_slices(reviewed)
    buckets = np.bincount(group_of[is_bucket], minlength=len(reviewed))
    size = np.diff(reviewed.starts)
    is_merged = (buckets == size) & (size > 1)
    because.note(
        is_merged[group_of],
        lambda at: (
            f"its file group {_get_file_id(reviewed, at)} is a bucket, which is not merged with "
            "others: plan again"
        ),
    )


def _note_cut_logs(
    because: _Reasons, reviewed: Rewrites, cut: Mapping[tuple[str, str], str]
) -> None:
    if not cut:
        return
    folders = reviewed.partition.take(to_arrow(group_of_slices(reviewed))).to_pylist()
    reasons = [
        next((cut[folder, name] for name in names if (folder, name) in cut), None)
        for folder, names in zip(folders, reviewed.logs.to_pylist(), strict=True)
    ]
    because.note(np.array([why is not None for why in reasons], np.bool_), reasons.__getitem__)


def _note_lost_files(
    because: _Reasons, reviewed: Rewrites, lost: Mapping[tuple[str, str], str]
) -> None:
    if lost:
        reasons = [lost.get(pair) for pair in _split_keys(slice_paths(reviewed))]
        because.note(np.array([why is not None for why in reasons], np.bool_), reasons.__getitem__)


def _find_replacing_instants(reviewed: Rewrites, state: TableState) -> list[str | None]:
    """Return for each slice the instant that replaced its file group, None if none has."""
    return [state.replaced.get(pair) for pair in _split_keys(slice_paths(reviewed))]


def _find_done(
    reviewed: Rewrites, state: TableState, by: Sequence[str | None], done: Collection[str]
) -> Mask:
    """Return for each slice whether this plan has replaced it, even if its files are cleaned."""
    files = state.files
    has_files = np.zeros(len(files.group_partition), np.bool_)
    has_files[files.group] = True
    groups = find_group_codes(files, _split_keys(slice_paths(reviewed)))
    is_there = np.where(groups >= 0, has_files[groups], False) if len(has_files) else groups >= 0
    is_done = np.array([time in done for time in by], np.bool_)
    unknown = np.array([time is None for time in by], np.bool_) & ~is_there
    return is_done | unknown if done else is_done


def _split_keys(keys: Any) -> list[tuple[str, str]]:
    split = (key.rpartition("/") for key in keys.to_pylist())
    return [(partition, file_id) for partition, _, file_id in split]


def _join_logs(candidates: CandidateSlices) -> Any:
    """Return the names of the log files of every candidate, joined by slashes."""
    ends = np.searchsorted(candidates.log_slice, np.arange(len(candidates) + 1)).astype(np.int32)
    names = candidates.view.files.name.take(to_arrow(candidates.log_row))
    return pc.binary_join(pa.ListArray.from_arrays(to_arrow(ends), names), "/")


def _make_nullable(rows: Integers) -> Any:
    return pc.if_else(pa.array(rows >= 0), pa.array(rows, pa.int64()), None)


def _get_file_id(reviewed: Rewrites, at: int) -> str:
    return str(reviewed.file_id[at].as_py())
