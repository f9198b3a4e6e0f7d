"""Read the plan of a pending compaction or log compaction: HoodieCompactionPlan."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

from reconciler.hudi.codecs import avro_container
from reconciler.hudi.codecs.avro_binary import decoding, require
from reconciler.hudi.codecs.avro_container import parse_file_name, read_strings


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionOperation:
    """One file slice to compact; ``base_file`` is None for a log-only slice."""

    partition: str
    file_id: str
    base_instant: str
    base_file: str | None
    log_files: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionPlan:
    """The content of ``<time>.compaction.requested`` and ``<time>.logcompaction.requested``."""

    operations: tuple[CompactionOperation, ...]

    @classmethod
    def parse(cls, data: bytes, path: str) -> Self:
        """Decode a requested file; raises FormatError naming ``path``."""
        record = avro_container.decode_container(data, "HoodieCompactionPlan", path)
        with decoding(path, "HoodieCompactionPlan"):
            return cls(
                operations=tuple(_parse_operation(op, path) for op in record["operations"] or ())
            )


def _parse_operation(record: dict[str, Any], path: str) -> CompactionOperation:
    partition, file_id, instant = (
        record["partitionPath"],
        record["fileId"],
        record["baseInstantTime"],
    )
    require(isinstance(file_id, str) and bool(file_id), "an operation has no file id")
    require(isinstance(partition, str), "an operation has no partition")
    require(isinstance(instant, str), "an operation has no base instant")
    return CompactionOperation(
        partition=partition,
        file_id=file_id,
        base_instant=instant,
        base_file=parse_file_name(record["dataFilePath"], path) if record["dataFilePath"] else None,
        log_files=tuple(
            parse_file_name(name, path) for name in read_strings(record["deltaFilePaths"])
        ),
    )
