"""Read what the archival of a table's timeline depends on.

The archive itself is read only if something on the active timeline shows that a run stopped in the
middle of an archival, or that files have no instant.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Final

import numpy as np

from reconciler.errors import FormatError
from reconciler.hudi.load import (
    load_archived_keys,
    load_metadata_properties,
    load_timeline,
    read_instant_file,
)
from reconciler.hudi.timeline.clean import CleanerPlan
from reconciler.hudi.timeline.heartbeat import HEARTBEAT_FOLDER
from reconciler.hudi.timeline.instant import COMMITS, Action, State
from reconciler.hudi.timeline.markers import MARKER_FOLDER
from reconciler.state.archival_facts import (
    SIDE_ACTIONS,
    ArchivalFacts,
    InstantKey,
    MetadataArchival,
    NewestClean,
)
from reconciler.storage.paths import list_if_exists

if TYPE_CHECKING:
    from reconciler.hudi.table.properties import TableProperties
    from reconciler.hudi.timeline.active import Timeline
    from reconciler.state.model import TableState
    from reconciler.storage.api import Storage

#: the folder where Hudi keeps the history of a table's schemas
SCHEMA_FOLDER: Final = ".hoodie/.schema"


def read_archival_facts(
    storage: Storage, properties: TableProperties, state: TableState
) -> ArchivalFacts:
    """Read the facts for a table whose spec declares how long its timeline gets.

    Raises FormatError for a damaged archive or metadata table, StorageError, and NotFoundError if
    the timeline has changed since it was listed.
    """
    timeline = state.timeline
    beats = (e for e in list_if_exists(storage, HEARTBEAT_FOLDER) if not e.is_folder and not e.size)
    return ArchivalFacts(
        clean=_read_newest_clean(storage, properties, state),
        archived=_find_archived(storage, properties, timeline),
        replacing_instant=_find_replacing_instant(state),
        unknown_instant=_find_unknown_instant(storage, properties, state),
        metadata=_read_metadata(storage, properties),
        heartbeats={entry.name: entry.modified_ms for entry in beats},
        marker_folders=_read_marker_folders(storage, timeline),
        schema_files=tuple(
            sorted(e.name for e in list_if_exists(storage, SCHEMA_FOLDER) if not e.is_folder)
        ),
    )


def _read_newest_clean(
    storage: Storage, properties: TableProperties, state: TableState
) -> NewestClean | None:
    """Return the newest completed clean by its plan, as Hudi's archiver reads it."""
    done = state.timeline.completed_files({Action.CLEAN})
    if not done:
        return None
    time = done[-1].instant.requested
    plan, problem = None, "its requested file is missing"
    if (file := state.timeline.find_file(time, Action.CLEAN, State.REQUESTED)) is not None:
        try:
            plan = CleanerPlan.parse(*read_instant_file(storage, properties, file))
        except FormatError as damage:
            problem = str(damage)
    known = next((c for c in state.cleans if c.instant == time and not c.is_blank), None)
    if plan is None and known is None:
        return NewestClean(instant=time, problem=problem)
    bounds = [plan.earliest_instant or ""] if plan else []
    bounds += [known.earliest_instant_to_retain.strip()] if known else []
    text = plan.extra.get("savepointed_timestamps", "") if plan else ""
    savepointed = {time.strip() for time in text.split(",") if time.strip()}
    savepointed |= set(known.savepointed) if known else set()
    return NewestClean(
        instant=time,
        earliest=min(filter(None, bounds), default=None),
        savepointed=tuple(sorted(savepointed)),
    )


def _find_archived(
    storage: Storage, properties: TableProperties, timeline: Timeline
) -> frozenset[InstantKey]:
    """Return the active instants that an archival that stopped has archived already.

    An archival removes the pending files of its instants before the completed ones. So an instant
    that has only its completed file may be one of these.
    """
    suspects = {
        (instant.requested, instant.action)
        for instant in timeline.completed(COMMITS | SIDE_ACTIONS)
        if not _has_pending_file(timeline, instant.requested, instant.action)
    }
    if not suspects:
        return frozenset()
    return frozenset(load_archived_keys(storage, properties, suspects))


def _has_pending_file(timeline: Timeline, time: str, action: Action) -> bool:
    began = [one for one in Action if one.completes_as is action]
    return any(
        timeline.find_file(time, one, state) is not None
        for one in began
        for state in (State.REQUESTED, State.INFLIGHT)
    )


def _find_replacing_instant(state: TableState) -> str | None:
    """Return the oldest replacement of file groups that have files still.

    Cleans do not always say that they left some: those of Hudi under file versions never do.
    """
    view = state.view
    replaced = view.replaced[view.replaced != view.never_code]
    return view.times[int(replaced.min())] if len(replaced) else None


def _find_unknown_instant(
    storage: Storage, properties: TableProperties, state: TableState
) -> str | None:
    """Return the oldest instant of files that is after the timeline's start and on no timeline."""
    start = state.timeline.start
    if start is None:
        return None
    active = {instant.requested for instant in state.timeline.instants}
    used = np.flatnonzero(np.bincount(state.files.instant, minlength=1))
    times = (state.files.instants[code] for code in used.tolist()) if len(state.files) else ()
    unknown = {time for time in times if time > start and time not in active}
    if not unknown:
        return None
    wanted = {(time, action) for time in unknown for action in COMMITS}
    archived = {time for time, _action in load_archived_keys(storage, properties, wanted)}
    return min(unknown - archived, default=None)


def _read_metadata(storage: Storage, properties: TableProperties) -> MetadataArchival | None:
    if not properties.metadata_partitions:
        return None
    own = load_metadata_properties(storage)
    timeline = load_timeline(storage, own)
    return MetadataArchival(timeline=timeline, archived=_find_archived(storage, own, timeline))


def _read_marker_folders(storage: Storage, timeline: Timeline) -> Mapping[str, int]:
    """Return the folders with markers of instants that are not pending, and their last change."""
    pending = {i.requested for i in timeline.instants if not i.is_completed}
    return {
        entry.name: max([entry.modified_ms, *_list_times(storage, f"{MARKER_FOLDER}/{entry.name}")])
        for entry in list_if_exists(storage, MARKER_FOLDER)
        if entry.is_folder and entry.name.isdigit() and entry.name not in pending
    }


def _list_times(storage: Storage, folder: str) -> Collection[int]:
    times = []
    for entry in list_if_exists(storage, folder):
        times.append(entry.modified_ms)
        if entry.is_folder:
            times += _list_times(storage, f"{folder}/{entry.name}")
    return times
