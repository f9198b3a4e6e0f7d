"""Read the pending writes of ours, which are identified by their heartbeat files.

Nothing is read from the store if no write is pending. Heartbeats of other tools are empty, so they
are only listed.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import replace
from typing import Final

from reconciler.errors import NotFoundError
from reconciler.hudi.timeline.active import Timeline
from reconciler.hudi.timeline.heartbeat import HEARTBEAT_FOLDER, heartbeat_path
from reconciler.hudi.timeline.instant import Action, Instant
from reconciler.hudi.timeline.owner import Owner
from reconciler.state.model import PendingWrite
from reconciler.storage.api import Storage, StorageEntry

#: returns whether an owner's process runs; None if that is unknown
ProcessCheck = Callable[[Owner], bool | None]

_WRITES: Final = frozenset({Action.COMMIT, Action.REPLACECOMMIT})


def find_pending_instants(timeline: Timeline, clusterings: Collection[str]) -> tuple[Instant, ...]:
    """Return pending instants that may be writes of ours, without ``clusterings``."""
    return tuple(i for i in timeline.pending(_WRITES) if i.requested not in clusterings)


def read_pending_writes(
    storage: Storage,
    pending: Iterable[Instant],
    check_process: ProcessCheck,
    unlisted: Iterable[tuple[str, str, int]],
    rolled_back: Callable[[], Collection[str]],
) -> tuple[PendingWrite, ...]:
    """Return the pending instants that are writes of ours, oldest first.

    ``unlisted``: folder, name and size of files outside of partitions. ``rolled_back`` returns the
    instants that pending rollbacks undo; it is called only if there is a write of ours.
    Raises StorageError, FormatError.
    """
    instants = tuple(pending)
    entries = _list_heartbeats(storage) if instants else {}
    written = tuple(unlisted)
    found = []
    for instant in instants:
        entry = entries.get(instant.requested)
        if entry is None or not entry.size:
            continue
        owner = Owner.parse(storage.read(heartbeat_path(instant.requested)))
        if owner is not None:
            ours = tuple(one for one in written if f"_{instant.requested}." in one[1])
            found.append(
                PendingWrite(
                    instant=instant.requested,
                    action=instant.action,
                    state=instant.state.value,
                    owner=owner,
                    beat_ms=entry.modified_ms,
                    is_running=check_process(owner),
                    unlisted=ours,
                )
            )
    undone = rolled_back() if found else ()
    return tuple(replace(one, is_rolled_back=one.instant in undone) for one in found)


def _list_heartbeats(storage: Storage) -> dict[str, StorageEntry]:
    """Return the heartbeat files by instant."""
    try:
        entries = storage.list(HEARTBEAT_FOLDER)
    except NotFoundError:
        return {}
    return {entry.name: entry for entry in entries if not entry.is_folder}
