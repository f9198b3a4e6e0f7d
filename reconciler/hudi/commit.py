"""What a completed write did: HoodieCommitMetadata and HoodieReplaceCommitMetadata.

JSON on layout 1, Avro on layout 2, told apart by the first byte, because upgraded tables hold both.
A hundred thousand write statistics may be in one file, so only what is asked for is decoded.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Self

from reconciler.errors import FormatError
from reconciler.hudi.avro import check_framing, container, is_container, names, text_map
from reconciler.hudi.schemaless import decoding, require

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
    def parse(cls, data: bytes, path: str) -> Self:
        """The content of a completed (or, as a profile, inflight) write.

        Raises FormatError naming ``path``, also for an empty file: what it did is lost.
        """
        if not data:
            raise FormatError(
                path,
                "is empty, so what it wrote or replaced is not known",
                "restore it from a copy or roll the instant back with Hudi",
            )
        with decoding(path, "the commit metadata"):
            record = _avro(data) if is_container(data) else _json(data)
            stats = record.get("partitionToWriteStats") or {}
            replaced = record.get("partitionToReplaceFileIds") or {}
            return cls(
                operation=record.get("operationType"),
                written={str(p): any(map(_has_predecessor, s or ())) for p, s in stats.items()},
                replaced={str(p): names(ids) for p, ids in replaced.items()},
                extra=text_map(record.get("extraMetadata")),
            )


def _has_predecessor(stat: Mapping[str, Any]) -> bool:
    previous = stat.get("prevCommit")
    return previous is not None and str(previous).lower() != "null"


def _json(data: bytes) -> dict[str, Any]:
    require(data[:1] == b"{", "it is neither Avro nor JSON")
    record = json.loads(data)
    require(isinstance(record, dict), "it holds no record")
    require("partitionToWriteStats" in record, "partitionToWriteStats is missing")
    found: dict[str, Any] = record
    return found


def _avro(data: bytes) -> dict[str, Any]:
    check_framing(data)
    _, records = container(data, _projection)
    require(len(records) == 1, f"{len(records)} records where one must be")
    found: dict[str, Any] = records[0]
    return found


def _projection(name: str) -> dict[str, Any]:
    """The part of the schema that is read; the rest is skipped, not decoded."""
    require(name in _NAMES, f"it holds a {name}")
    stat = {
        "type": "record",
        "name": "HoodieWriteStat",
        "fields": [{"name": "prevCommit", "type": _TEXT, "default": None}],
    }
    fields: list[dict[str, Any]] = [
        {
            "name": "partitionToWriteStats",
            "type": ["null", {"type": "map", "values": {"type": "array", "items": stat}}],
            "default": None,
        },
        {
            "name": "extraMetadata",
            "type": ["null", {"type": "map", "values": "string", "default": None}],
            "default": None,
        },
        {"name": "operationType", "type": _TEXT, "default": None},
    ]
    if name == "HoodieReplaceCommitMetadata":
        ids = {"type": "map", "values": {"type": "array", "items": "string"}}
        fields.append({"name": "partitionToReplaceFileIds", "type": ["null", ids], "default": None})
    return {"type": "record", "name": name, "namespace": _NAMESPACE, "fields": fields}
