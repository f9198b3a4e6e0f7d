"""Find the partitions that were written too recently to be rewritten (``files.quiet``); pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import timedelta
from functools import partial

import numpy as np

from reconciler import units
from reconciler.arrays import sort_unique
from reconciler.planners.picture import TablePicture
from reconciler.plans.model import Note
from reconciler.plans.refusals import explain_zone, find_timeline_zone, format_instant
from reconciler.state.model import TableState

_TOO_EARLY = "its partition was written by {}, less than {} ago (files.quiet)"


def find_busy_partitions(picture: TablePicture) -> dict[str, str]:
    """Return the partitions that were written within ``files.quiet``, each with the reason.

    Pending writes count, and clusterings don't: they write no rows. Empty if the time or the zone
    of the timeline is unknown; without a zone ``refuse_unknown_zone`` refuses the step.
    """
    spec, state = picture.spec, picture.state
    quiet = spec.files.quiet if spec.files is not None and spec.files.when is not None else None
    zone = find_timeline_zone(spec, state)
    if quiet is None or picture.now is None or zone is None:
        return {}
    boundary = format_instant(picture.now - timedelta(seconds=quiet), zone)
    clusterings = {past.instant for past in picture.statistics.past}
    newest: dict[str, str] = {}
    is_recent = partial(_is_since, boundary)
    for partition, instant in (
        *_list_file_writes(state, is_recent),
        *_list_past_writes(picture, is_recent),
    ):
        if instant not in clusterings:
            newest[partition] = max(instant, newest.get(partition, ""))
    age = units.format_duration(quiet)
    return {path: _TOO_EARLY.format(instant, age) for path, instant in newest.items()}


def refuse_unknown_zone(picture: TablePicture) -> tuple[Note, ...]:
    """Return the refusal of a rewrite under ``files.quiet`` if the timeline's zone is unknown."""
    spec = picture.spec
    if spec.files is None or spec.files.when is None or spec.files.quiet is None:
        return ()
    if find_timeline_zone(spec, picture.state) is not None:
        return ()
    return (
        Note(
            "zone",
            f"files.quiet needs the timeline's time zone. {explain_zone(picture.state)}",
            step="cluster",
        ),
    )


def _is_since(boundary: str, instant: str) -> bool:
    """Return whether an instant, with milliseconds or without, is not before a boundary.

    >>> _is_since("20240101120000500", "20240101120000"), _is_since("20240102000000000", "20240101")
    (True, False)
    """
    return instant >= boundary[: len(instant)]


def _list_file_writes(
    state: TableState, is_recent: Callable[[str], bool]
) -> Iterator[tuple[str, str]]:
    """Yield each partition with the recent instants in the names of its files."""
    files = state.files
    of_instant = np.array([is_recent(instant) for instant in files.instants], np.bool_)
    rows = np.flatnonzero(of_instant[files.instant])
    partition, count = files.partition[rows].astype(np.int64), len(files.instants)
    for pair in sort_unique(partition * count + files.instant[rows]).tolist():
        yield files.partitions[pair // count], files.instants[pair % count]


def _list_past_writes(
    picture: TablePicture, is_recent: Callable[[str], bool]
) -> Iterator[tuple[str, str]]:
    """Yield the partitions of recent writes: in version 6 log files are named for their base."""
    for write in picture.statistics.facts.written:
        if is_recent(write.instant):
            yield from ((partition, write.instant) for partition in write.partitions)
