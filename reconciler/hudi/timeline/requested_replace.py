"""What a pending replacecommit or clustering is going to do: HoodieRequestedReplaceMetadata."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

from reconciler.hudi.codecs import avro_container
from reconciler.hudi.codecs.avro_binary import decoding, require
from reconciler.hudi.codecs.avro_container import parse_file_name, read_strings, read_text_map


@dataclass(frozen=True, slots=True, kw_only=True)
class InputSlice:
    """One slice to be rewritten; names only. ``base_file`` is None for a slice of logs alone."""

    partition: str
    file_id: str
    base_file: str | None
    log_files: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestedReplace:
    """``is_clustering`` False: an insert_overwrite or delete_partition, which names no slices.

    ``strategy``: what the plan tells its executor, by Hudi's option names. Hudi writes the sort
    columns there and nothing else; curve and target size are options of whoever executes it.
    ``extra``: what the request says of itself.
    """

    operation: str | None
    is_clustering: bool
    slices: tuple[InputSlice, ...]
    strategy: Mapping[str, str] = field(default_factory=dict)
    extra: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def parse(cls, data: bytes, path: str) -> Self:
        """The content of a requested file; raises FormatError naming ``path``."""
        record = avro_container.decode_container(data, "HoodieRequestedReplaceMetadata", path)
        with decoding(path, "HoodieRequestedReplaceMetadata"):
            plan = record["clusteringPlan"]
            operation = record["operationType"]
            groups = (plan["inputGroups"] or ()) if plan else ()
            return cls(
                operation=operation,
                is_clustering=operation == "CLUSTER" and plan is not None,
                slices=tuple(
                    parse_input_slice(found, path)
                    for group in groups
                    for found in group["slices"] or ()
                ),
                strategy=_read_strategy(plan),
                extra=read_text_map(record.get("extraMetadata")),
            )


def _read_strategy(plan: Mapping[str, Any] | None) -> Mapping[str, str]:
    strategy = plan.get("strategy") if plan else None  # no planner needs it: its lack is no damage
    return read_text_map(strategy.get("strategyParams")) if strategy else {}


def parse_input_slice(found: Mapping[str, Any], path: str) -> InputSlice:
    """A slice as a plan names it; raises what ``decoding`` turns into a FormatError."""
    partition, file_id = found["partitionPath"], found["fileId"]
    require(isinstance(partition, str), "a slice names no partition")
    require(isinstance(file_id, str) and bool(file_id), "a slice names no file group")
    return InputSlice(
        partition=partition,
        file_id=file_id,
        base_file=parse_file_name(found["dataFilePath"], path) if found["dataFilePath"] else None,
        log_files=tuple(
            parse_file_name(name, path) for name in read_strings(found["deltaFilePaths"])
        ),
    )
