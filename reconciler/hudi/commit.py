"""What a completed write did: HoodieCommitMetadata and HoodieReplaceCommitMetadata.

JSON on layout 1, Avro on layout 2, told apart by the first byte, because upgraded tables hold both.
A hundred thousand write statistics may be in one file, so only what is asked for is decoded.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Final, Self

from reconciler.errors import FormatError
from reconciler.hudi.avro import is_container, names, read_as, text_map
from reconciler.hudi.schemaless import decoding, parsed_schema, require

_NAMESPACE: Final = "org.apache.hudi.avro.model"
_NAMES: Final = frozenset({"HoodieCommitMetadata", "HoodieReplaceCommitMetadata"})
_TEXT: Final = ["null", "string"]


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitMetadata:
    """``written``: partition -> whether any of its files has a predecessor (an update).

    ``replaced``: partition -> ids of the file groups that a replacecommit took out.
    """

    operation: str | None
    written: Mapping[str, bool]
    replaced: Mapping[str, tuple[str, ...]]
    extra: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def parse(cls, data: bytes, path: str, *, replaces: bool = False) -> Self:
        """The content of a completed (or, as a profile, inflight) write.

        ``replaces``: it is a completed replacecommit, so it must say which groups it took out.
        Raises FormatError naming ``path``, also for an empty file: what it did is lost.
        """
        if not data:
            raise FormatError(
                path,
                "is empty, so what it wrote or replaced is not known",
                "restore it from a copy or roll the instant back with Hudi",
            )
        with decoding(path, "the commit metadata"):
            record = read_as(data, path, _projection) if is_container(data) else _json(data)
            stats = record.get("partitionToWriteStats") or {}
            replaced = record.get("partitionToReplaceFileIds")
            require(
                replaced is not None or not replaces,
                "it does not say which file groups it replaced",
            )
            operation = record.get("operationType")
            require(operation is None or isinstance(operation, str), "its operation is no text")
            return cls(
                operation=operation,
                written={_text(p): any(map(_has_predecessor, s or ())) for p, s in stats.items()},
                replaced={
                    _text(p): tuple(map(_text, names(ids))) for p, ids in (replaced or {}).items()
                },
                extra=text_map(record.get("extraMetadata")),
            )


def _has_predecessor(stat: Mapping[str, Any]) -> bool:
    previous = stat.get("prevCommit")
    return previous is not None and str(previous).lower() != "null"


def _text(value: str) -> str:
    """The text itself; JSON can spell half of a character, which no path holds."""
    value.encode()
    return value


def _json(data: bytes) -> dict[str, Any]:
    require(data[:1] == b"{", "it is neither Avro nor JSON")
    record = json.loads(data)
    require(isinstance(record, dict), "it holds no record")
    require("partitionToWriteStats" in record, "partitionToWriteStats is missing")
    found: dict[str, Any] = record
    return found


def _projection(name: str, _written: str = "") -> Any:
    """The part of the schema that is read; the rest is skipped, not decoded.

    No field has a default, so a writer's schema without one of them is damage.
    """
    require(name in _NAMES, f"it holds a {name}")
    return _parsed_projection(name)


@cache
def _parsed_projection(name: str) -> Any:
    stat = {
        "type": "record",
        "name": "HoodieWriteStat",
        "fields": [{"name": "prevCommit", "type": _TEXT}],
    }
    stats = {"type": "map", "values": {"type": "array", "items": stat}}
    fields: list[dict[str, Any]] = [
        {"name": "partitionToWriteStats", "type": ["null", stats]},
        {"name": "extraMetadata", "type": ["null", {"type": "map", "values": "string"}]},
        {"name": "operationType", "type": _TEXT},
    ]
    if name == "HoodieReplaceCommitMetadata":
        ids = {"type": "map", "values": {"type": "array", "items": "string"}}
        fields.append({"name": "partitionToReplaceFileIds", "type": ["null", ids]})
    schema = {"type": "record", "name": name, "namespace": _NAMESPACE, "fields": fields}
    return parsed_schema(json.dumps(schema), "")
