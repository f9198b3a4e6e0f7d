"""Read the plan of a pending replacecommit or clustering: HoodieRequestedReplaceMetadata."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

from reconciler.hudi.codecs import avro_container
from reconciler.hudi.codecs.avro_binary import decoding, require
from reconciler.hudi.codecs.avro_container import parse_file_name, read_strings, read_text_map


@dataclass(frozen=True, slots=True, kw_only=True)
class InputSlice:
    """One slice to be rewritten, as file names. ``base_file`` is None for a log-only slice."""

    partition: str
    file_id: str
    base_file: str | None
    log_files: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestedReplace:
    """The content of a requested replacecommit or clustering.

    ``is_clustering`` is False for an insert_overwrite or delete_partition, whose request names no
    slices. ``strategy``: the plan's strategy parameters by Hudi's option names. Hudi writes only
    the sort columns there; curve and target size are options of the executor. ``extra``: the
    request's extra metadata.
    """

    operation: str | None
    is_clustering: bool
    slices: tuple[InputSlice, ...]
    strategy: Mapping[str, str] = field(default_factory=dict)
    extra: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def parse(cls, data: bytes, path: str) -> Self:
        """Decode a requested file; raises FormatError naming ``path``."""
        record = avro_container.decode_container(data, "HoodieRequestedReplaceMetadata", path)
        with decoding(path, "HoodieRequestedReplaceMetadata"):
            plan = record["clusteringPlan"]
            operation = record["operationType"]
            groups = (plan["inputGroups"] or ()) if plan else ()
            return cls(
                operation=operation,
                is_clustering=operation == "CLUSTER" and plan is not None,
                slices=tuple(
                    parse_input_slice(input_slice, path)
                    for group in groups
                    for input_slice in group["slices"] or ()
                ),
                strategy=_read_strategy(plan),
                extra=read_text_map(record.get("extraMetadata")),
            )


def _read_strategy(plan: Mapping[str, Any] | None) -> Mapping[str, str]:
    strategy = plan.get("strategy") if plan else None  # optional: planners do not need it
    return read_text_map(strategy.get("strategyParams")) if strategy else {}


def parse_input_slice(record: Mapping[str, Any], path: str) -> InputSlice:
    """Decode one slice of a plan; raises errors that ``decoding`` turns into FormatError."""
    partition, file_id = record["partitionPath"], record["fileId"]
    require(isinstance(partition, str), "a slice has no partition")
    require(isinstance(file_id, str) and bool(file_id), "a slice has no file id")
    return InputSlice(
        partition=partition,
        file_id=file_id,
        base_file=parse_file_name(record["dataFilePath"], path) if record["dataFilePath"] else None,
        log_files=tuple(
            parse_file_name(name, path) for name in read_strings(record["deltaFilePaths"])
        ),
    )
