"""Select what may run of a reviewed clean: what is in the fresh plan too, file by file."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from reconciler.arrays import take_rows, to_arrow, to_numpy
from reconciler.executor.result import FileReasons
from reconciler.hudi.files.table_files import TableFiles, find_sizes, has_files, is_named
from reconciler.hudi.files.view import FileView, find_group_codes
from reconciler.hudi.timeline.active import Timeline
from reconciler.hudi.timeline.instant import Action
from reconciler.lazy_dataclass import dataclass
from reconciler.plans.model import (
    KEEP_RULES,
    CleanStep,
    KeptFiles,
    NamedFiles,
    Note,
    RemovedFiles,
    ResumeStep,
)
from reconciler.state.model import TableState

_Files = TypeVar("_Files", RemovedFiles, FileReasons)
_KEPT_NOW = "a plan made now keeps it: the table has moved since the review"
_PARTITION_KEPT_NOW = "a plan made now keeps the partition: the table has moved since the review"
_SAVEPOINT = KEEP_RULES.index("savepoint")
_REPLACING = frozenset({Action.REPLACECOMMIT, Action.CLUSTERING})


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CleanSelection:
    """The part of a reviewed clean step that may run.

    ``earliest``: the smaller of the two steps' boundaries. ``left_out``: files that were reviewed,
    are still there and stay. ``gone``: how many reviewed files are absent already. ``staying``: the
    keys (partition/name) of every file that the policy would remove and that stays for another
    reason than a savepoint.
    """

    files: RemovedFiles
    delete_partitions: tuple[str, ...]
    earliest: str | None
    left_out: FileReasons
    gone: int
    staying: Any
    partitions_left: tuple[Note, ...] = ()

    @property
    def is_empty(self) -> bool:
        return len(self.files) == 0 and not self.delete_partitions


def select_fresh(
    reviewed: CleanStep | ResumeStep,
    fresh: CleanStep | ResumeStep | None,
    kept: KeptFiles | None,
    present: TableFiles,
    folders: Collection[str],
    earliest: str | None,
) -> CleanSelection:
    """Return what is both reviewed and in the fresh plan.

    ``present``, ``folders``: the existing files and partitions. ``kept``: the fresh plan's kept
    files. ``earliest``: the boundary that the selection carries.
    """
    wanted = make_keys(reviewed.files)
    now = make_keys(fresh.files) if fresh else to_arrow([])
    allowed, exists = is_in(wanted, now), has_files(present, wanted)
    left = ~allowed & exists
    unreviewed = pc.filter(now, to_arrow(~is_in(now, wanted)))
    partitions = tuple(
        p for p in reviewed.delete_partitions if fresh and p in fresh.delete_partitions
    )
    return CleanSelection(
        files=update_sizes(take_files(reviewed.files, allowed), present),
        delete_partitions=partitions,
        earliest=earliest,
        left_out=_explain_left_out(reviewed.files, left, kept),
        gone=int((~allowed & ~exists).sum()),
        staying=pa.concat_arrays(
            [pc.filter(wanted, to_arrow(left)), unreviewed, _make_kept_keys(kept)]
        ),
        partitions_left=tuple(
            Note(path, _PARTITION_KEPT_NOW)
            for path in reviewed.delete_partitions
            if path not in partitions and path in folders
        ),
    )


def choose_published_earliest(
    planned: str | None, expired_staying: str | None, replaced_left: tuple[str, ...]
) -> str | None:
    """Return the earliest instant to retain that a clean may claim.

    ``planned``: the policy's (None for file versions). ``expired_staying``: the smallest base
    instant of the expired slices that stay for another reason than a savepoint. ``replaced_left``:
    replacing instants, pending ones too, of groups that still have files. Hudi's incremental cleans
    look at nothing older, and its archiver removes older replacecommits, whose groups would come
    back.

    >>> choose_published_earliest("5", "3", ("7",)), choose_published_earliest(None, None, ("7",))
    ('3', '7')
    >>> choose_published_earliest(None, None, ()) is None
    True
    """
    known = (planned, expired_staying, *replaced_left)
    return min((time for time in known if time is not None), default=None)


def choose_earliest(
    state: TableState, planned: str | None, staying: Any, removed: RemovedFiles
) -> str | None:
    """Return the earliest instant to retain that a clean of this table publishes.

    ``staying``: keys of the files that stay for another reason than a savepoint.
    """
    replacing = find_replacing_instants(state.files, state.replaced, removed)
    pending = find_pending_replacements(state.timeline)
    expired = find_earliest_base(state.view, staying)
    return choose_published_earliest(planned, expired, (*replacing, *pending))


def find_replacing_instants(
    present: TableFiles, replaced: Mapping[tuple[str, str], str], removed: RemovedFiles
) -> tuple[str, ...]:
    """Return the replacing instants of groups that still have files once these are removed."""
    if not replaced:
        return ()
    stays = ~is_named(present, make_keys(removed))
    with_files = np.unique(present.group[stays])
    groups = find_group_codes(present, replaced)
    is_left = np.isin(groups, with_files)
    return tuple(sorted({i for i, left in zip(replaced.values(), is_left, strict=True) if left}))


def find_pending_replacements(timeline: Timeline) -> tuple[str, ...]:
    """Return pending replacements: the groups that they name are live until they complete.

    Where a clean claims no boundary, as under file versions, Hudi's archiver takes the clean's own
    time for it, and would remove a replacement that completes only after the clean (HUDI-6352).
    """
    return tuple(i.requested for i in timeline.pending(_REPLACING))


def find_earliest_base(view: FileView, staying: Any) -> str | None:
    """Return the smallest base instant of the slices that hold the files of ``staying`` keys.

    Where readers of different versions see a file in different slices, the older one counts.
    """
    rows = is_named(view.files, staying)
    slices = [view.row_slice[rows]]
    if view.row_slice_1x is not None:
        slices.append(view.row_slice_1x[rows])
    keys = view.key[np.concatenate(slices)]
    return view.times[int(keys.min())] if len(keys) else None


def take_files(files: _Files, mask: NDArray[np.bool_]) -> _Files:
    """Return the rows where the mask is true."""
    return take_rows(files, np.flatnonzero(mask))


def update_sizes(files: RemovedFiles, present: TableFiles) -> RemovedFiles:
    """Return the same files with the sizes that they have now; an absent file keeps its size."""
    sizes = find_sizes(present, make_keys(files))
    return replace(files, bytes=np.where(sizes >= 0, sizes, files.bytes))


def make_keys(files: NamedFiles | FileReasons) -> Any:
    """Return ``partition/name`` of each row: names may repeat across partitions, keys do not."""
    return pc.binary_join_element_wise(
        files.partition.dictionary.take(files.partition.indices), files.name, "/"
    )


def is_in(values: Any, among: Any) -> NDArray[np.bool_]:
    """Return for each key whether it is among others."""
    return to_numpy(pc.is_in(values, value_set=among))


def _make_kept_keys(kept: KeptFiles | None) -> Any:
    if kept is None:
        return to_arrow([])
    return pc.filter(make_keys(kept), to_arrow(kept.rule != _SAVEPOINT))


def _explain_left_out(
    files: RemovedFiles, left: NDArray[np.bool_], kept: KeptFiles | None
) -> FileReasons:
    """Return the rows that stay, each with the fresh plan's reason or ours."""
    fallen = take_files(files, left)
    reasons = [_KEPT_NOW]
    chosen = np.zeros(len(fallen), dtype=np.int32)
    if kept is not None and len(fallen):
        reasons += kept.because.dictionary.to_pylist()
        rows = to_numpy(pc.index_in(make_keys(fallen), value_set=make_keys(kept)).fill_null(-1))
        known = rows >= 0
        chosen[known] = to_numpy(kept.because.indices)[rows[known]] + 1
    because = pa.DictionaryArray.from_arrays(to_arrow(chosen), to_arrow(reasons))
    return FileReasons(partition=fallen.partition, name=fallen.name, because=because)
