"""What lint knows of the columns that declared queries ask for: those of ``table.schema``."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from reconciler.errors import Problems, ReconcilerError
from reconciler.spec.yaml_nodes import MappingNode, SequenceNode

#: for messages that nobody reads: ``write`` says what is wrong with a schema
_SCHEMA_FIELD: Final = "table.schema"


def check_query_columns(
    problems: Problems, spec: Mapping[str, Any], node: MappingNode, path: str
) -> None:
    """Warn of names in ``queries`` that are close to a column of ``table.schema`` and none of it.

    Of others nothing is said: columns may have come to the table since it was created.
    """
    asked, queries = spec.get("queries", ()), node.get("queries")
    schema = spec.get("table", {}).get("schema")
    if not isinstance(queries, SequenceNode) or len(asked) != len(queries.items) or not schema:
        return
    columns = _schema_columns(schema)
    if columns is None:
        return
    from reconciler.index.predicate_columns import find_unknown_names  # noqa: PLC0415 - few specs have both

    for nth, (query, item) in enumerate(zip(asked, queries.items, strict=True)):
        place = item.key_position("where") if isinstance(item, MappingNode) else item.position
        for unknown in find_unknown_names(query.get("where", ""), columns):
            if unknown.suggestion is not None:
                problems.warning(
                    place,
                    f"{path}.queries[{nth}].where",
                    f"table.schema has no column {unknown.name!r}",
                    f"did you mean {unknown.suggestion!r}?",
                )


def _schema_columns(schema: Any) -> Any:
    """As Arrow has them, with Hudi's own; None where it is no schema."""
    from reconciler.file_slices.merge.avro_schema import add_meta_columns, to_arrow_schema  # noqa: PLC0415

    try:
        return add_meta_columns(to_arrow_schema(json.dumps(schema), _SCHEMA_FIELD))
    except (ReconcilerError, TypeError, ValueError):
        return None
