"""Settings that show on a table: clustering, file sizes, and the writers' time zone. Pure.

Options of writers are not on storage, so the rest stays unknown.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC
from typing import Final

import numpy as np

from reconciler.hudi.files.table_files import FileKind
from reconciler.hudi.files.view import FileView
from reconciler.hudi.timeline.active import Timeline
from reconciler.hudi.timeline.instant import State, parse_instant
from reconciler.hudi.timeline.plans import RequestedReplace

_CURVE: Final = "hoodie.layout.optimize.strategy"
_CURVES: Final = {"linear": "linear", "zorder": "z-order", "hilbert": "hilbert"}

#: fewer files do not show the size that writers fill them to
_MIN_FILES: Final = 10
_HALF_HOUR: Final = 1800
#: an instant is named just before its file is written
_LATEST_FILE_S: Final = 120
_MIN_TIMES: Final = 3
_MAX_OFFSETS: Final = 2
_MAX_OFFSET_S: Final = 14 * 3600


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservedClustering:
    """The newest clustering plan; ``curve`` is None if it does not record one.

    ``equal_plans`` of the ``plans`` on the timeline, this one included, sort by the same columns.
    """

    instant: str
    columns: tuple[str, ...]
    curve: str | None
    equal_plans: int
    plans: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservedSizes:
    """Bytes of the base files in the newest slices: 95 of 100 are at most ``common_size``."""

    files: int
    common_size: int
    largest: int


def observe_clustering(plans: Iterable[tuple[str, RequestedReplace]]) -> ObservedClustering | None:
    """Return the newest clustering of (instant, requested file) pairs; None if there is none."""
    clusterings = {instant: plan for instant, plan in plans if plan.is_clustering}
    if not clusterings:
        return None
    instant = max(clusterings)
    newest = clusterings[instant]
    return ObservedClustering(
        instant=instant,
        columns=newest.sort_columns,
        curve=_CURVES.get(newest.strategy.get(_CURVE, "").lower().replace("-", "")),
        equal_plans=sum(plan.sort_columns == newest.sort_columns for plan in clusterings.values()),
        plans=len(clusterings),
    )


def observe_sizes(view: FileView) -> ObservedSizes | None:
    """Return the sizes of base files in the newest slices; None if there are too few."""
    files = view.files
    is_base = files.kind == FileKind.BASE
    slices = view.row_slice[is_base]
    sizes = files.size[is_base][(view.is_newest & view.is_live)[slices]]
    if len(sizes) < _MIN_FILES:
        return None
    ordered = np.sort(sizes)
    rank = -(-len(ordered) * 95 // 100) - 1  # not np.percentile: take the size of a file
    return ObservedSizes(
        files=len(ordered), common_size=int(ordered[rank]), largest=int(ordered[-1])
    )


def observe_offsets(timeline: Timeline) -> tuple[int, ...]:
    """Return the offsets from UTC in seconds that the times of the timeline's files suggest.

    An instant has the time of the writers' zone, and its requested file is written at once. There
    are at most two offsets, an hour apart, around clock changes. There are none if the times
    disagree, for example after a copy that did not keep them.
    """
    offsets = set()
    times = 0
    for file in timeline.files:
        if file.instant.state is not State.REQUESTED or not file.modified_ms:
            continue
        named = _instant_seconds(file.instant.requested)
        if named is None:
            continue
        ahead = named - file.modified_ms // 1000
        offset = -(-ahead // _HALF_HOUR) * _HALF_HOUR
        if offset - ahead > _LATEST_FILE_S or abs(offset) > _MAX_OFFSET_S:
            return ()
        offsets.add(offset)
        times += 1
    return _plausible_offsets(sorted(offsets)) if times >= _MIN_TIMES else ()


def _plausible_offsets(offsets: Sequence[int]) -> tuple[int, ...]:
    is_plausible = len(offsets) <= _MAX_OFFSETS and offsets[-1] - offsets[0] <= 2 * _HALF_HOUR
    return tuple(offsets) if is_plausible else ()


def _instant_seconds(instant: str) -> int | None:
    """Return an instant as seconds since the epoch, as if its zone were UTC."""
    local = parse_instant(instant)
    return None if local is None else round(local.replace(tzinfo=UTC).timestamp())
