"""Open a table for a write, and create it first if it does not exist."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, tzinfo
from zoneinfo import ZoneInfo

from reconciler.errors import (
    BlockedError,
    FormatError,
    PlanError,
    RowsError,
    SpecError,
    UnsupportedError,
)
from reconciler.file_slices.merge.avro_schema import to_arrow_schema
from reconciler.hudi.load import PROPERTIES, find_properties, load_properties, load_timeline
from reconciler.hudi.table.new_table import NewHudiTable
from reconciler.hudi.table.properties import TableProperties
from reconciler.hudi.timeline.active import Timeline
from reconciler.plans.timeline_zone import find_contradiction
from reconciler.spec.model import Lock, TableSpec
from reconciler.storage.api import Storage
from reconciler.transaction.session import RunContext, TableSession, open_session
from reconciler.writer.request import WriteMode, WriteRequest
from reconciler.writer.table_creation import create_table, make_declared_table

_TIMEZONE = "hoodie.table.timeline.timezone"


def open_for_writing(
    spec: TableSpec, storage: Storage, context: RunContext, token: str, request: WriteRequest
) -> tuple[TableSession, str | None]:
    """Open a session on the table; also returns the first write's instant of a new table.

    ``token``: a text that no other run has. Raises BlockedError if the spec declares no lock, no
    needed time zone, or one that the times of the timeline's files contradict; SpecError for a
    missing table without a ``table`` block, and for an existing one with other keys or partitions;
    RowsError if the first rows lack a declared column; PlanError if the folder has other content,
    and for deletions from a missing table; as ``load_properties``.
    """
    lock = _get_lock(spec)
    owner = context.process.make_owner(token)
    properties = find_properties(storage)
    if properties is None:
        table = make_declared_table(spec)
        _check_new_table(spec, table, request.mode)
        _check_first_rows(spec, table, request)
        future = TableProperties.parse(table.properties_bytes, PROPERTIES)
        empty = Timeline.from_files([])
        zone = _find_zone(spec, future, empty)
        hold = open_session(spec, storage, future, empty, zone, owner=owner, context=context)
        hold.lock.release_stale()
        announced = create_table(hold, table, lock.path)
        if announced is not None:
            return hold, announced
        properties = load_properties(storage)
    timeline = load_timeline(storage, properties)
    _check_declared(spec, properties, timeline)
    zone = _find_zone(spec, properties, timeline)
    hold = open_session(spec, storage, properties, timeline, zone, owner=owner, context=context)
    hold.lock.release_stale()
    return hold, None


def check_declaration(spec: TableSpec, storage: Storage, mode: WriteMode) -> TableProperties | None:
    """Raise an error if the spec and the table's properties alone forbid a write.

    Returns the properties, None for a table that the write creates. The errors are those of
    ``open_for_writing``; nothing is changed.
    """
    _get_lock(spec)
    properties = find_properties(storage)
    if properties is None:
        _check_new_table(spec, make_declared_table(spec), mode)
        return None
    timeline = load_timeline(storage, properties)
    _check_declared(spec, properties, timeline)
    _find_zone(spec, properties, timeline)
    return properties


def _get_lock(spec: TableSpec) -> Lock:
    if spec.concurrency is None or spec.concurrency.lock is None:
        raise BlockedError(
            f"{spec.name}: concurrency.lock is missing; declare the lock that the table's writers "
            "share (provider: filesystem, or none for a single writer)"
        )
    return spec.concurrency.lock


def _check_new_table(spec: TableSpec, table: NewHudiTable, mode: WriteMode) -> None:
    """Raise an error if a table cannot be created as declared."""
    if mode in (WriteMode.DELETE, WriteMode.DELETE_PARTITION):
        raise PlanError(f"{spec.name}: no table at {spec.path} to delete from")
    _check_declared_schema(spec, table)


def _check_first_rows(spec: TableSpec, table: NewHudiTable, request: WriteRequest) -> None:
    """Raise an error if a table cannot start with these rows; its keys cannot change later."""
    names = request.schema.names
    for field, paths in (
        ("recordKey", table.record_keys),
        ("partitionBy", table.partition_fields),
        ("ordering", table.ordering),
    ):
        absent = [path for path in paths if path.partition(".")[0] not in names]
        if absent:
            raise RowsError(
                f"{spec.name}: the rows lack column {absent[0]}, which spec.table.{field} names; "
                f"their columns are {', '.join(names)}"
            )
    counts = Counter(name.lower() for name in names)
    ambiguous = sorted(name for name in names if counts[name.lower()] > 1)
    if ambiguous:
        raise RowsError(
            f"{spec.name}: the rows have the columns {', '.join(ambiguous)}, which Hudi's readers "
            "cannot tell apart; rename them"
        )


def _check_declared_schema(spec: TableSpec, table: NewHudiTable) -> None:
    """Raise SpecError for an invalid declared schema, with which the table could not be read."""
    if table.schema is None:
        return
    try:
        columns = to_arrow_schema(table.schema, "spec.table.schema")
    except (FormatError, UnsupportedError) as error:
        problem = error.problem if isinstance(error, FormatError) else str(error)
        raise SpecError(
            f"{spec.name}: spec.table.schema is no Avro schema of a table: {problem}"
        ) from None
    if not columns.names:
        raise SpecError(f"{spec.name}: spec.table.schema is no Avro schema of a table: no fields")


def _check_declared(spec: TableSpec, properties: TableProperties, timeline: Timeline) -> None:
    """Raise SpecError if an existing table differs from the declared one."""
    if spec.table is None:
        return
    instead = "make another table"
    if not timeline.instants:
        instead = "remove its folder: nothing was written to it yet"
    for field, declared, actual in (
        ("type", (spec.table.type,), (properties.table_type,)),
        ("recordKey", spec.table.record_key, properties.record_keys),
        ("partitionBy", spec.table.partition_by, properties.partition_fields),
        ("ordering", spec.table.ordering, properties.ordering_fields),
    ):
        # common in specs of tables that Hudi created
        is_undeclared = field == "ordering" and not declared
        if not is_undeclared and tuple(declared) != tuple(actual):
            raise SpecError(
                f"{spec.name}: spec.table.{field} is {', '.join(declared) or 'nothing'}, and the "
                f"table at {spec.path} has {', '.join(actual) or 'none'}; a table keeps what it "
                f"was made with, so correct the spec, or {instead}"
            )


def _find_zone(spec: TableSpec, properties: TableProperties, timeline: Timeline) -> tzinfo:
    """Return the zone of the timeline's instants.

    A wrong one is refused: an instant in a zone east of the writers' is later than those that they
    choose next, so readers would take the older file slice of a group for the newer.
    """
    if properties.timezone == "UTC":
        return UTC
    if spec.timezone is None:
        raise BlockedError(
            f"{spec.name}: its writers take times from their own zone ({_TIMEZONE} is not UTC), so "
            "spec.timezone has to name it"
        )
    contradiction = find_contradiction(timeline, spec.timezone)
    if contradiction is not None:
        raise BlockedError(f"{spec.name}: {contradiction}")
    return ZoneInfo(spec.timezone)
