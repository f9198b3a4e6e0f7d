"""Create a table: its metadata table first, then ``hoodie.properties``.

That one file is created exclusively, and the table exists from then on. Leftovers of a stopped run
are recognised by its absence and created again. The first write is requested before, because
readers of layout 2 need the timeline folder.
"""

from __future__ import annotations

import contextlib
import json
from dataclasses import replace
from functools import partial
from typing import Final

from reconciler.errors import (
    AlreadyExistsError,
    PlanError,
    ReconcilerError,
    SpecError,
    StorageError,
)
from reconciler.hudi.files.names import make_file_path
from reconciler.hudi.load import PROPERTIES
from reconciler.hudi.metadata.new_metadata_table import PROPERTIES as METADATA_PROPERTIES
from reconciler.hudi.metadata.new_metadata_table import (
    build_first_listing,
    build_metadata_properties,
)
from reconciler.hudi.metadata.own_timeline import ROOT
from reconciler.hudi.metadata.table import FILES
from reconciler.hudi.table.new_table import NewHudiTable
from reconciler.hudi.timeline.active import Timeline, TimelineFile
from reconciler.hudi.timeline.heartbeat import HEARTBEAT_FOLDER
from reconciler.hudi.timeline.instant import Action, Instant, State
from reconciler.hudi.timeline.lock_file import LOCK_FILE
from reconciler.hudi.timeline.markers import MARKER_FOLDER
from reconciler.hudi.timeline.storage_lock import LOCKS_FOLDER
from reconciler.spec.model import TableSpec
from reconciler.storage.api import StorageEntry
from reconciler.storage.paths import list_files_below, list_if_exists
from reconciler.transaction.locks.file_lock import LOCK_CLOCK
from reconciler.transaction.session import TableSession
from reconciler.writer.request import get_plain_action

_UTC: Final = "UTC"
_HOODIE: Final = ".hoodie"
_TIMELINE: Final = f"{_HOODIE}/timeline"
#: the actions that announce a new table
_FIRST_ACTIONS: Final = frozenset({Action.COMMIT, Action.DELTACOMMIT})
#: what a run that stopped during the creation leaves in ``.hoodie``
_LEFTOVERS: Final = frozenset({_TIMELINE, ROOT, HEARTBEAT_FOLDER, MARKER_FOLDER})


def create_table(session: TableSession, table: NewHudiTable, lock: str = _HOODIE) -> str | None:
    """Create the table and request its first write; returns the write's instant.

    The write has a heartbeat already. None if another writer has created the table meanwhile.
    ``session``: on the future table, with its future properties; takes the lock. ``lock``: the
    folder of the lock file. Raises PlanError if the folder has other content, StorageError.
    """
    return session.run_locked(partial(_create_locked, session, table, lock))


def _create_locked(session: TableSession, table: NewHudiTable, lock: str) -> str | None:
    storage = session.storage
    if storage.stat(PROPERTIES) is not None:
        return None
    try:
        timeline = _check_vacant(session, lock.partition("/")[0])
    except PlanError:
        if storage.stat(PROPERTIES) is not None:  # our lock vanished before we looked
            return None
        raise
    _remove_files_below(session, ROOT)
    session.lock.confirm()
    action = get_plain_action(table.type)
    instant = session.request_write(action, timeline, b"")
    try:
        _create_metadata(session, table)
        session.lock.confirm()
        storage.create(PROPERTIES, replace(table, metadata_partitions=(FILES,)).properties_bytes)
    except ReconcilerError as error:
        with contextlib.suppress(ReconcilerError):
            session.publisher.withdraw(instant, action)
            session.make_heartbeat(instant).remove()
        if isinstance(error, AlreadyExistsError):
            return None
        raise
    return instant


def _check_vacant(session: TableSession, lock: str) -> Timeline:
    """Return instants that stopped runs requested; PlanError for anything else in the folder."""
    location = session.storage.location
    for entry in list_if_exists(session.storage, ""):
        if entry.name not in (_HOODIE, LOCK_FILE, LOCK_CLOCK, lock):
            raise PlanError(
                f"{location}: has {entry.name} but no Hudi table, so no table is created there; "
                "use an empty folder as spec.path, or create the table with Hudi"
            )
    requested = []
    for folder in (_HOODIE, _TIMELINE):
        for entry in list_if_exists(session.storage, folder):
            if f"{folder}/{entry.name}" in _LEFTOVERS or _is_ignored(entry):
                continue
            instant = None if entry.is_folder else Instant.parse(entry.name)
            is_first = instant is not None and instant.action in _FIRST_ACTIONS
            if instant is None or not is_first or instant.state is not State.REQUESTED:
                raise PlanError(
                    f"{location}/{folder}/{entry.name} exists, but {PROPERTIES} does not: an "
                    f"existing table has lost it and must not be overwritten; restore {PROPERTIES} "
                    "from a copy"
                )
            requested.append(TimelineFile(instant, entry.name, entry.size, entry.modified_ms))
    return Timeline.from_files(requested)


def _is_ignored(entry: StorageEntry) -> bool:
    """True if it is the lock, or a file that stores and their clients add."""
    return entry.name in (LOCK_FILE, LOCK_CLOCK, LOCKS_FOLDER) or (
        entry.name.startswith(".") and entry.name.endswith(".crc")
    )


def _create_metadata(session: TableSession, table: NewHudiTable) -> None:
    storage = session.storage
    storage.create(METADATA_PROPERTIES, build_metadata_properties(table.name, table.version))
    nothing = Timeline.from_files([])
    for write in build_first_listing(
        storage,
        version=table.version,
        data=nothing,
        completion_time=session.publisher.choose_time(nothing),
        partitions={},
    ):
        storage.create(write.path, write.data)


def _remove_files_below(session: TableSession, root: str) -> None:
    """Delete the leftovers of a metadata table. Raises BusyError, StorageError."""
    paths = [
        f"{root}/{make_file_path(folder, name)}"
        for folder, name in list_files_below(session.storage, root)
    ]
    if paths:
        session.lock.confirm()  # if it vanished, they may be those of another's new table
    for deletion in session.storage.delete_many(paths):
        if deletion.error is not None:
            raise StorageError(deletion.path, deletion.error)


def make_declared_table(spec: TableSpec, schema: str | None = None) -> NewHudiTable:
    """Return the ``hoodie.properties`` of a new table from the spec's ``table`` block; pure.

    ``sales.orders`` is table orders of database sales. ``schema``: Avro's JSON text of the rows,
    if the spec declares none. Times are in UTC unless ``timezone`` names another zone, that of
    the table's other writers. Raises SpecError without a ``table`` block.
    """
    declared = spec.table
    if declared is None:
        raise SpecError(
            f"{spec.name}: no table at {spec.path}, and the spec has no table block to create one; "
            "declare spec.table, at least type, version and recordKey"
        )
    database, _, name = spec.name.rpartition(".")
    schema_text = None if declared.schema is None else json.dumps(dict(declared.schema))
    return NewHudiTable(
        name=name,
        database=database,
        type=declared.type,
        version=declared.version,
        record_keys=declared.record_key,
        partition_fields=declared.partition_by,
        ordering=declared.ordering,
        hive_style=declared.hive_style,
        schema=schema_text or schema,
        is_utc=spec.timezone in (None, _UTC),
    )
