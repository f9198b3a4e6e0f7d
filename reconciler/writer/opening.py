"""A table that is to be written, made first where it is not there yet."""

from __future__ import annotations

from datetime import UTC, tzinfo
from zoneinfo import ZoneInfo

from reconciler.errors import BlockedError
from reconciler.hudi.load import PROPERTIES, load_properties, load_timeline
from reconciler.hudi.properties import TableProperties
from reconciler.hudi.timeline import Timeline
from reconciler.spec.model import TableSpec
from reconciler.storage.api import Storage
from reconciler.transaction.hold import Hold, Means, open_hold
from reconciler.writer.creating import create_table
from reconciler.writer.declared import declared_table

_TIMEZONE = "hoodie.table.timeline.timezone"
_BACKUP = f"{PROPERTIES}.backup"


def open_for_writing(
    spec: TableSpec, storage: Storage, means: Means, token: str
) -> tuple[Hold, str | None]:
    """A hold on the table, and the instant of its first write where it was made just now.

    ``token``: a text that no other run has. Raises BlockedError where the spec does not say how the
    table is locked or in which zone its writers count; SpecError for a table that is not there and
    has no ``table`` block; PlanError where its folder holds other things; as ``load_properties``.
    """
    if spec.concurrency is None or spec.concurrency.lock is None:
        raise BlockedError(
            f"{spec.name}: how writers keep out of each other's way must be said; declare "
            "concurrency.lock (provider: filesystem, or none for a single writer)"
        )
    owner = means.process.owner(token)
    is_there = any(storage.stat(path) is not None for path in (PROPERTIES, _BACKUP))
    if not is_there:
        table = declared_table(spec)
        properties = TableProperties.parse(table.properties, PROPERTIES)
        nothing = Timeline.of([])
        zone = _zone(spec, properties)
        hold = open_hold(spec, storage, properties, nothing, zone, owner=owner, means=means)
        hold.lock.release_stale()
        announced = create_table(hold, table)
        if announced is not None:
            return hold, announced
    properties = load_properties(storage)
    timeline = load_timeline(storage, properties)
    zone = _zone(spec, properties)
    hold = open_hold(spec, storage, properties, timeline, zone, owner=owner, means=means)
    hold.lock.release_stale()
    return hold, None


def _zone(spec: TableSpec, properties: TableProperties) -> tzinfo:
    """The zone of the timeline's instants."""
    if properties.timezone == "UTC":
        return UTC
    if spec.timezone is None:
        raise BlockedError(
            f"{spec.name}: its writers take times from their own zone ({_TIMEZONE} is not UTC), so "
            "spec.timezone has to name it"
        )
    return ZoneInfo(spec.timezone)
