"""Decode selected fields of a write's file on the timeline.

Layout 1 uses JSON, layout 2 Avro. The first byte decides, because upgraded tables hold both.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

from reconciler.errors import FormatError
from reconciler.hudi.codecs.avro_binary import decoding, parse_schema, require
from reconciler.hudi.codecs.avro_container import decode_with_schema, is_container

#: types of fields that may be null, in Hudi's order
TEXT: Final = ("null", "string")
COUNT: Final = ("null", "long")

_NAMESPACE: Final = "org.apache.hudi.avro.model"
_REPLACES: Final = "HoodieReplaceCommitMetadata"
_NAMES: Final = frozenset({"HoodieCommitMetadata", _REPLACES})
_MORE: Final[dict[str, Any]] = {
    "extraMetadata": ["null", {"type": "map", "values": "string"}],
    "operationType": ["null", "string"],
}
_IDS: Final = ["null", {"type": "map", "values": {"type": "array", "items": "string"}}]


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitProjection:
    """The fields to read of HoodieCommitMetadata and HoodieReplaceCommitMetadata.

    ``stat_fields``: names and types of write statistic fields. ``with_replaced_groups``: read the
    replaced file groups too. Extra metadata and operation are always read. No field has a default,
    so an Avro record that lacks one is damaged.
    """

    stat_fields: tuple[tuple[str, tuple[str, str]], ...]
    with_replaced_groups: bool = False

    def read(self, data: bytes, path: str) -> dict[str, Any]:
        """Decode the record of a file.

        Raises FormatError naming ``path``, also for an empty file.
        """
        if not data:
            raise FormatError(
                path,
                "is empty, so the files it wrote are unknown",
                "restore it from a copy or roll the instant back with Hudi",
            )
        with decoding(path, "the commit metadata"):
            record = (
                decode_with_schema(data, path, self._reader_schema)
                if is_container(data)
                else _parse_json(data)
            )
            operation = record.get("operationType")
            require(operation is None or isinstance(operation, str), "its operation is not a text")
            return record

    def _reader_schema(self, name: str, _written: str = "") -> Any:
        require(name in _NAMES, f"it holds a {name} record")
        return _build_schema(self, name)


@cache
def _build_schema(wanted: CommitProjection, name: str) -> Any:
    stat = {
        "type": "record",
        "name": "HoodieWriteStat",
        "fields": [{"name": field, "type": [*kinds]} for field, kinds in wanted.stat_fields],
    }
    stats = {"type": "map", "values": {"type": "array", "items": stat}}
    fields: dict[str, Any] = {"partitionToWriteStats": ["null", stats], **_MORE}
    if wanted.with_replaced_groups and name == _REPLACES:
        fields["partitionToReplaceFileIds"] = _IDS
    schema = {
        "type": "record",
        "name": name,
        "namespace": _NAMESPACE,
        "fields": [{"name": field, "type": kinds} for field, kinds in fields.items()],
    }
    return parse_schema(json.dumps(schema), "")


def _parse_json(data: bytes) -> dict[str, Any]:
    require(data[:1] == b"{", "it is neither Avro nor JSON")
    record = json.loads(data)
    require(isinstance(record, dict), "it is not a JSON object")
    require("partitionToWriteStats" in record, "partitionToWriteStats is missing")
    values: dict[str, Any] = record
    return values
