"""A table as the spec's ``table`` block declares it, for its first write; pure."""

from __future__ import annotations

import json

from reconciler.errors import SpecError
from reconciler.hudi.table.new_table import NewHudiTable
from reconciler.spec.model import TableSpec

_UTC = "UTC"


def make_declared_table(spec: TableSpec, schema: str | None = None) -> NewHudiTable:
    """What ``hoodie.properties`` of the new table will say.

    ``sales.orders`` is table orders of database sales. ``schema``: Avro's JSON text of the rows,
    where the spec declares none. Times are in UTC unless ``timezone`` names another zone, which is
    that of the table's other writers. Raises SpecError where there is no ``table`` block.
    """
    declared = spec.table
    if declared is None:
        raise SpecError(
            f"{spec.name}: there is no table at {spec.path}, and the spec has no table block that "
            "says how to make one; declare spec.table, at least type, version and recordKey"
        )
    database, _, name = spec.name.rpartition(".")
    said = None if declared.schema is None else json.dumps(dict(declared.schema))
    return NewHudiTable(
        name=name,
        database=database,
        type=declared.type,
        version=declared.version,
        record_keys=declared.record_key,
        partition_fields=declared.partition_by,
        ordering=declared.ordering,
        hive_style=declared.hive_style,
        schema=said or schema,
        is_utc=spec.timezone in (None, _UTC),
    )
