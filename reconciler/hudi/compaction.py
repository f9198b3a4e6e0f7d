"""What a pending compaction or log compaction is going to read: HoodieCompactionPlan."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

from reconciler.hudi import avro
from reconciler.hudi.avro import file_name, names
from reconciler.hudi.schemaless import decoding, require


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """One file slice to compact; ``base_file`` is None for a slice of logs alone."""

    partition: str
    file_id: str
    base_instant: str
    base_file: str | None
    log_files: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionPlan:
    """The content of ``<time>.compaction.requested`` and of ``<time>.logcompaction.requested``."""

    operations: tuple[Operation, ...]

    @classmethod
    def parse(cls, data: bytes, path: str) -> Self:
        """The plan in a requested file; raises FormatError naming ``path``."""
        record = avro.decode(data, "HoodieCompactionPlan", path)
        with decoding(path, "HoodieCompactionPlan"):
            return cls(operations=tuple(_operation(op, path) for op in record["operations"] or ()))


def _operation(found: dict[str, Any], path: str) -> Operation:
    partition, file_id, instant = found["partitionPath"], found["fileId"], found["baseInstantTime"]
    require(isinstance(file_id, str) and bool(file_id), "an operation names no file group")
    require(isinstance(partition, str), "an operation names no partition")
    require(isinstance(instant, str), "an operation names no base instant")
    return Operation(
        partition=partition,
        file_id=file_id,
        base_instant=instant,
        base_file=file_name(found["dataFilePath"], path) if found["dataFilePath"] else None,
        log_files=tuple(file_name(name, path) for name in names(found["deltaFilePaths"])),
    )
