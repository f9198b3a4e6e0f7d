"""Making a table that is not there yet: its metadata table, then ``hoodie.properties``.

That one file, created exclusively, is the moment from which there is a table. What a run that was
stopped before has left is known by that, and done again. The first write is announced even before:
readers of layout 2 need the folder of the timeline.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from reconciler.errors import (
    AlreadyExistsError,
    NotFoundError,
    PlanError,
    ReconcilerError,
    StorageError,
)
from reconciler.hudi.heartbeat import HEARTBEAT_FOLDER
from reconciler.hudi.instant import Action, Instant, State
from reconciler.hudi.load import PROPERTIES
from reconciler.hudi.locks import LOCK_FILE
from reconciler.hudi.markers import MARKER_FOLDER
from reconciler.hudi.metadata_table import FILES
from reconciler.hudi.metadata_timeline import ROOT
from reconciler.hudi.new_metadata import PROPERTIES as METADATA_PROPERTIES
from reconciler.hudi.new_metadata import first_listing, metadata_properties
from reconciler.hudi.new_table import NewTable
from reconciler.hudi.timeline import Timeline, TimelineFile
from reconciler.storage.api import Entry
from reconciler.transaction.hold import Hold
from reconciler.transaction.lock import LOCK_CLOCK

_HOODIE: Final = ".hoodie"
_TIMELINE: Final = f"{_HOODIE}/timeline"
#: what a run that was stopped while it made the table has left in ``.hoodie``
_LEFT: Final = frozenset({_TIMELINE, ROOT, HEARTBEAT_FOLDER, MARKER_FOLDER})


def create_table(hold: Hold, table: NewTable, lock: str = _HOODIE) -> str | None:
    """Make the table and announce its first write, whose instant is given; that beats already.

    None where somebody else has made it meanwhile. ``hold``: on the folder where it is to be, with
    the properties that it will have; takes the lock. ``lock``: the folder of the lock's file.
    Raises PlanError where the folder has other things in it, StorageError.
    """
    storage = hold.storage
    with hold.locked():
        if storage.stat(PROPERTIES) is not None:
            return None
        timeline = _vacant(hold, lock.partition("/")[0])
        _remove_below(hold, ROOT)
        hold.lock.confirm()
        instant = hold.announce(Action.COMMIT, timeline, b"")
        try:
            _create_metadata(hold, table)
            hold.lock.confirm()
            storage.create(PROPERTIES, replace(table, live=(FILES,)).properties)
        except ReconcilerError as error:
            with contextlib.suppress(ReconcilerError):
                hold.publisher.withdraw(instant, Action.COMMIT)
                hold.heartbeat(instant).remove()
            if isinstance(error, AlreadyExistsError):
                return None
            raise
    return instant


def _vacant(hold: Hold, lock: str) -> Timeline:
    """What stopped runs have announced; PlanError where the folder holds anything else."""
    location = hold.storage.location
    for entry in _listed(hold, ""):
        if entry.name not in (_HOODIE, LOCK_FILE, LOCK_CLOCK, lock):
            raise PlanError(
                f"{location}: holds {entry.name} and no Hudi table, so none is made there; give an "
                "empty folder as spec.path, or bring the table in with Hudi"
            )
    found = []
    for folder in (_HOODIE, _TIMELINE):
        for entry in _listed(hold, folder):
            if f"{folder}/{entry.name}" in _LEFT or _is_aside(entry):
                continue
            instant = None if entry.is_folder else Instant.parse(entry.name)
            if instant is None or (instant.action, instant.state) != (
                Action.COMMIT,
                State.REQUESTED,
            ):
                raise PlanError(
                    f"{location}/{folder}/{entry.name} is there, but {PROPERTIES} is not: a table "
                    f"has lost it, and nothing is written over that; restore {PROPERTIES} from a "
                    "copy"
                )
            found.append(TimelineFile(instant, entry.name, entry.size, entry.modified_ms))
    return Timeline.of(found)


def _is_aside(entry: Entry) -> bool:
    """The lock, and what stores and their clients lay beside files."""
    return entry.name in (LOCK_FILE, LOCK_CLOCK) or (
        entry.name.startswith(".") and entry.name.endswith(".crc")
    )


def _create_metadata(hold: Hold, table: NewTable) -> None:
    storage = hold.storage
    storage.create(METADATA_PROPERTIES, metadata_properties(table.name, table.version))
    nothing = Timeline.of([])
    for write in first_listing(
        storage,
        version=table.version,
        data=nothing,
        completed=hold.publisher.new_time(nothing),
        partitions={},
    ):
        storage.create(write.path, write.data)


def _remove_below(hold: Hold, folder: str) -> None:
    """Delete what is left of a metadata table that never was one. Raises StorageError."""
    paths = [*_files_below(hold, folder)]
    for done in hold.storage.delete_many(paths):
        if done.error is not None:
            raise StorageError(done.path, done.error)


def _files_below(hold: Hold, folder: str) -> Iterator[str]:
    for entry in _listed(hold, folder):
        path = f"{folder}/{entry.name}"
        if entry.is_folder:
            yield from _files_below(hold, path)
        else:
            yield path


def _listed(hold: Hold, folder: str) -> list[Entry]:
    try:
        return hold.storage.list(folder)
    except NotFoundError:
        return []
