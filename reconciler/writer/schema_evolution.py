"""Evolve a table's schema for rows with other columns; pure.

The table's columns keep their positions and new ones come last, in nested records too; a type
becomes the wider one of both. (Hudi 0.x takes the rows' column order.) Hudi allows more: fractions
as text in Java's spelling, text as decimals, integers as timestamps; those are refused here.
Source: HoodieSchemaUtils.deduceWriterSchema, AvroSchemaUtils of 1.x.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Final, Self

import pyarrow as pa

from reconciler.errors import RowsError
from reconciler.file_slices.merge.avro_schema import to_arrow_schema
from reconciler.file_slices.merge.schema_evolution import evolve_batch
from reconciler.writer.declared_schema import make_avro_schema
from reconciler.writer.schema_widening import (
    NO_TYPE,
    SchemaDifference,
    SchemaWidening,
    list_named_types,
)

#: tables from this version on may get wider decimals; Hudi 0.15 and 1.0 refuse them
_WIDER_DECIMALS: Final = 9


@dataclass(frozen=True, slots=True, kw_only=True)
class SchemaEvolution:
    """``avro``: the table's schema after the write; the same text where nothing changes.

    ``columns``: what rows are converted to, in the types that Spark gives the table. ``incoming``:
    what the rows are before.
    """

    avro: str
    columns: pa.Schema
    incoming: pa.Schema

    @classmethod
    def from_schemas(
        cls,
        table: str,
        rows: pa.Schema,
        *,
        table_name: str,
        table_version: int,
        fills_missing: bool = False,
    ) -> Self:
        """Evolve a table's Avro schema, from its last commit, for the columns of new rows.

        ``fills_missing``: columns that the rows lack become null, as with Hudi's option
        ``hoodie.write.set.null.for.missing.columns``; otherwise they are refused, as by Hudi.
        Raises RowsError listing every column that does not fit, and as ``make_avro_schema`` does;
        FormatError and UnsupportedError for an unreadable schema of the table.
        """
        to_arrow_schema(
            table, f"the schema of table {table_name}"
        )  # raises for an unreadable schema
        declared = make_avro_schema(rows, table_name, table_version=table_version)
        current, incoming_schema = json.loads(table), json.loads(declared)
        widening = SchemaWidening(
            fills_missing=fills_missing,
            widens_decimals=table_version >= _WIDER_DECIMALS,
            named=list_named_types(current),
        )
        merged = widening.merge_records(current, incoming_schema, "")
        if widening.differences:
            raise RowsError(_describe_differences(table_name, widening.differences))
        avro = table if merged == current else _to_json(merged)
        return cls(
            avro=avro,
            columns=to_arrow_schema(avro, f"the schema of table {table_name}"),
            incoming=to_arrow_schema(declared, "the schema of the rows"),
        )

    def convert_batch(self, batch: Any) -> Any:
        """Convert rows to the table's columns and types, null where they lack one.

        Raises UnsupportedError naming the column where a value does not fit the table's type.
        """
        return evolve_batch(
            evolve_batch(batch, self.incoming, "the rows"), self.columns, "the rows"
        )


def _describe_types(found: SchemaDifference) -> str:
    if found.rows == NO_TYPE:
        return f"missing required column ({found.table})"
    if found.table == NO_TYPE:
        return f"new column ({found.rows})"
    return f"the table has {found.table}, the rows have {found.rows}"


def _to_json(schema: Any) -> str:
    return json.dumps(schema, separators=(",", ":"), ensure_ascii=False)


def _describe_differences(table_name: str, differences: list[SchemaDifference]) -> str:
    lines = "\n".join(
        f"  {found.column}: {_describe_types(found)}: {found.why}" for found in differences
    )
    return f"the rows do not fit the schema of table {table_name}:\n{lines}"
