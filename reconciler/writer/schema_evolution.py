"""What the schema of a table becomes when rows of other columns are written to it; pure.

The table's columns stay where they are and new ones come last, in nested records too; a type
becomes the wider one of both. Source: HoodieSchemaUtils.deduceWriterSchema, AvroSchemaUtils of 1.x.
(Hudi 0.x takes the rows' order of columns.) Hudi takes more than that: fractions as text, which
Java would spell, text as decimals, whole numbers as moments. Those are refused.
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
from reconciler.writer.schema_widening import SchemaDifference, SchemaWidening, list_named_types

#: Hudi 0.15 and 1.0 refuse them; 1.2, whose tables are of this version, takes them
_WIDER_DECIMALS: Final = 9


@dataclass(frozen=True, slots=True, kw_only=True)
class SchemaEvolution:
    """``avro``: the table's schema after the write, the text that it had where nothing changes.

    ``columns``: what rows have to be for it, in the types that Spark gives the table. ``incoming``:
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
        """Of a table's Avro schema, as its last commit holds it, and the columns of new rows.

        ``fills_missing``: columns that the rows have not are null, as with Hudi's option
        ``hoodie.write.set.null.for.missing.columns``; else they are refused, as by Hudi itself.
        Raises RowsError showing every column in which the two do not fit, and as ``make_avro_schema``
        does; FormatError and UnsupportedError for a table's schema that cannot be read.
        """
        to_arrow_schema(table, f"the schema of table {table_name}")  # refuses what cannot be read
        declared = make_avro_schema(rows, table_name, table_version=table_version)
        before, brings = json.loads(table), json.loads(declared)
        widening = SchemaWidening(
            fills_missing=fills_missing,
            widens_decimals=table_version >= _WIDER_DECIMALS,
            named=list_named_types(before),
        )
        after = widening.merge_records(before, brings, "")
        if widening.differences:
            raise RowsError(_describe_differences(table_name, widening.differences))
        avro = table if after == before else _to_json(after)
        return cls(
            avro=avro,
            columns=to_arrow_schema(avro, f"the schema of table {table_name}"),
            incoming=to_arrow_schema(declared, "the schema of the rows"),
        )

    def convert_batch(self, batch: Any) -> Any:
        """Rows as the table has them: columns in its order and types, null where they have none.

        Raises UnsupportedError naming the column when a value is none of the table's type.
        """
        return evolve_batch(
            evolve_batch(batch, self.incoming, "the rows"), self.columns, "the rows"
        )


def _to_json(schema: Any) -> str:
    return json.dumps(schema, separators=(",", ":"), ensure_ascii=False)


def _describe_differences(table_name: str, differences: list[SchemaDifference]) -> str:
    shown = "\n".join(
        f"  {found.column}: the table has {found.table}, the rows have {found.rows}: {found.why}"
        for found in differences
    )
    return f"the rows do not fit the schema of table {table_name}:\n{shown}"
