"""Read and extend Hudi's definitions of the metadata table's indexes."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Final

from reconciler.errors import NotFoundError
from reconciler.hudi.byte_source import ByteSource
from reconciler.hudi.codecs.avro_binary import decoding, require
from reconciler.hudi.metadata.sync_decisions import COLUMN_STATS, RECORD_INDEX

DEFINITIONS: Final = ".hoodie/.index_defs/index.json"
#: the first table version whose definitions have a version
_VERSIONED: Final = 9


def read_defined_columns(source: ByteSource) -> tuple[str, ...]:
    """Return the columns of column_stats that Hudi recorded, empty if it did not."""
    columns = _read_definition(source, COLUMN_STATS).get("sourceFields") or []
    with decoding(DEFINITIONS, "the index definitions"):
        require(all(isinstance(column, str) for column in columns), "a column name is not a text")
        return tuple(columns)


def is_record_index_partitioned(source: ByteSource) -> bool:
    """Return whether the record index keeps keys per data partition (since 1.1)."""
    options = _read_definition(source, RECORD_INDEX).get("indexOptions") or {}
    with decoding(DEFINITIONS, "the index definitions"):
        return str(options.get("isPartitioned", "false")).lower() != "false"


def _read_definition(source: ByteSource, index: str) -> dict[str, Any]:
    """Return Hudi's definition of an index, empty if there is none, as before version 8."""
    try:
        data = source.read(DEFINITIONS)
    except NotFoundError:
        return {}
    with decoding(DEFINITIONS, "the index definitions"):
        return dict(json.loads(data)["indexDefinitions"].get(index) or {})


def add_column_stats_definition(data: bytes | None, columns: Sequence[str], version: int) -> bytes:
    """Return the index definitions with this definition of column_stats.

    ``data``: the current definitions, None without any. Raises FormatError.
    """
    document: dict[str, Any] = {}
    if data is not None:
        with decoding(DEFINITIONS, "the index definitions"):
            document = json.loads(data)
            require(
                isinstance(document["indexDefinitions"], dict), "it has no indexDefinitions object"
            )
    definition: dict[str, Any] = {
        "indexName": COLUMN_STATS,
        "indexType": COLUMN_STATS,
        "indexFunction": COLUMN_STATS,
        "sourceFields": [*columns],
        "indexOptions": {},
    }
    if version >= _VERSIONED:
        definition["version"] = "V2"
    definitions = {**document.get("indexDefinitions", {}), COLUMN_STATS: definition}
    return json.dumps({**document, "indexDefinitions": definitions}, indent=2).encode()
