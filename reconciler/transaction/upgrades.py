"""Notice that another writer has upgraded or downgraded a table since a session was opened.

An upgrade moves the timeline to another folder and writes it anew. A session that went on in the
old folder would find nothing new there, and what it publishes would be on no timeline. Source:
SevenToEightUpgradeHandler, EightToSevenDowngradeHandler.
"""

from __future__ import annotations

from contextlib import suppress

from reconciler.errors import FormatError, NoTableError, StaleError
from reconciler.hudi.load import load_properties, load_timeline
from reconciler.hudi.table.properties import TableProperties
from reconciler.hudi.timeline.active import Timeline
from reconciler.storage.api import Storage


def is_same_timeline(before: TableProperties, now: TableProperties) -> bool:
    """Return whether instants are read and written in the same way."""
    return _describe_timeline(before) == _describe_timeline(now)


def _describe_timeline(properties: TableProperties) -> tuple[object, ...]:
    return (
        properties.table_version,
        properties.layout,
        properties.timeline_folder,
        properties.timezone,
    )


def check_same_timeline(name: str, before: TableProperties, now: TableProperties) -> None:
    """Raise StaleError if the table's version or timeline is another one; ``name``: the table's."""
    if is_same_timeline(before, now):
        return
    old, new = before.table_version, now.table_version
    what = "the folder or time zone of its timeline was changed"
    if old != new:
        how = "upgraded" if new > old else "downgraded"
        what = f"the table was {how} from version {old} to {new}"
    raise StaleError(f"{name}: {what} meanwhile; run it again")


def load_timeline_in_place(name: str, storage: Storage, properties: TableProperties) -> Timeline:
    """Return the active timeline, if ``properties`` still say where it is.

    The properties are read again only if nothing on the timeline is completed, as in a new table
    or where the timeline was. Raises StaleError, and as ``load_timeline``.
    """
    try:
        timeline = load_timeline(storage, properties)
    except FormatError:
        _check_in_place(name, storage, properties)
        raise
    if not any(instant.is_completed for instant in timeline.instants):
        _check_in_place(name, storage, properties)
    return timeline


def _check_in_place(name: str, storage: Storage, properties: TableProperties) -> None:
    with suppress(NoTableError):  # it is being created
        check_same_timeline(name, properties, load_properties(storage))
