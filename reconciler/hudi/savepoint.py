"""What a savepoint pins: HoodieSavepointMetadata."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

from reconciler.hudi import avro
from reconciler.hudi.avro import file_name, names
from reconciler.hudi.schemaless import decoding


@dataclass(frozen=True, slots=True, kw_only=True)
class SavepointMetadata:
    """Who pinned what; ``files``: partition -> file names. ``at_ms`` in epoch milliseconds."""

    by: str
    at_ms: int
    comments: str
    files: Mapping[str, tuple[str, ...]]

    @classmethod
    def parse(cls, data: bytes, path: str) -> Self:
        """The content of a completed savepoint; raises FormatError naming ``path``."""
        record = avro.decode(data, "HoodieSavepointMetadata", path)
        with decoding(path, "HoodieSavepointMetadata"):
            return cls(
                by=str(record["savepointedBy"]),
                at_ms=int(record["savepointedAt"]),
                comments=str(record["comments"]),
                files={
                    str(partition): tuple(
                        file_name(name, path) for name in names(found["savepointDataFile"])
                    )
                    for partition, found in record["partitionMetadata"].items()
                },
            )
