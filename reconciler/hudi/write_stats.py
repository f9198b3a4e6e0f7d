"""The write statistics of a commit, as columns: which files, how many rows and bytes.

The other half of the same files is in ``commit``. JSON on layout 1, Avro on layout 2, told apart by
the first byte.
"""

from __future__ import annotations

import builtins
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Final, Self

import numpy as np
from numpy.typing import NDArray

from reconciler.errors import FormatError
from reconciler.hudi.avro import is_container, read_as, text_map
from reconciler.hudi.schemaless import decoding, parsed_schema, require

_NAMESPACE: Final = "org.apache.hudi.avro.model"
_NAMES: Final = frozenset({"HoodieCommitMetadata", "HoodieReplaceCommitMetadata"})
_MOST: Final = np.iinfo(np.int64).max


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class WriteStats:
    """One element a write statistic, in no order that means anything.

    ``rows``: int64, numWrites. ``bytes``: int64, totalWriteBytes. ``is_base``: bool, the statistic
    is of a base file (its name does not begin with a dot).
    """

    operation: str | None
    extra: Mapping[str, str]
    rows: NDArray[np.int64]
    bytes: NDArray[np.int64]
    is_base: NDArray[np.bool_]

    @classmethod
    def parse(cls, data: builtins.bytes, path: str) -> Self:
        """The content of a completed commit, deltacommit or replacecommit.

        Raises FormatError naming ``path``, also for an empty file.
        """
        if not data:
            raise FormatError(
                path,
                "is empty, so what it wrote is not known",
                "restore it from a copy or roll the instant back with Hudi",
            )
        with decoding(path, "the write statistics"):
            record = read_as(data, path, _projection) if is_container(data) else _json(data)
            operation = record.get("operationType")
            require(operation is None or isinstance(operation, str), "its operation is no text")
            by_partition = record.get("partitionToWriteStats") or {}
            stats = [stat for found in by_partition.values() for stat in found or ()]
            return cls(
                operation=operation,
                extra=text_map(record.get("extraMetadata")),
                rows=_counts(stats, "numWrites"),
                bytes=_counts(stats, "totalWriteBytes"),
                is_base=np.array([_is_base(stat.get("path")) for stat in stats], np.bool_),
            )


def _counts(stats: list[Mapping[str, Any]], key: str) -> NDArray[np.int64]:
    values = [stat.get(key) or 0 for stat in stats]
    whole = all(type(value) is int and 0 <= value <= _MOST for value in values)
    require(whole, f"a {key} is no count")
    return np.array(values, np.int64)


def _is_base(path: Any) -> bool:
    return isinstance(path, str) and not path.rpartition("/")[2].startswith(".")


def _json(data: bytes) -> dict[str, Any]:
    require(data[:1] == b"{", "it is neither Avro nor JSON")
    record = json.loads(data)
    require(isinstance(record, dict), "it holds no record")
    require("partitionToWriteStats" in record, "partitionToWriteStats is missing")
    found: dict[str, Any] = record
    return found


def _projection(name: str, _written: str = "") -> Any:
    """The part of the schema that is read; the rest is skipped, not decoded."""
    require(name in _NAMES, f"it holds a {name}")
    return _parsed_projection(name)


@cache
def _parsed_projection(name: str) -> Any:
    stat = {
        "type": "record",
        "name": "HoodieWriteStat",
        "fields": [
            {"name": "path", "type": ["null", "string"]},
            {"name": "numWrites", "type": ["null", "long"]},
            {"name": "totalWriteBytes", "type": ["null", "long"]},
        ],
    }
    stats = {"type": "map", "values": {"type": "array", "items": stat}}
    fields: list[dict[str, Any]] = [
        {"name": "partitionToWriteStats", "type": ["null", stats]},
        {"name": "extraMetadata", "type": ["null", {"type": "map", "values": "string"}]},
        {"name": "operationType", "type": ["null", "string"]},
    ]
    schema = {"type": "record", "name": name, "namespace": _NAMESPACE, "fields": fields}
    return parsed_schema(json.dumps(schema), "")
