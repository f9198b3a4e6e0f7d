"""Read the metadata of a savepoint: HoodieSavepointMetadata."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

from reconciler.hudi.codecs import avro_container
from reconciler.hudi.codecs.avro_binary import decoding
from reconciler.hudi.codecs.avro_container import parse_file_name, read_strings


@dataclass(frozen=True, slots=True, kw_only=True)
class SavepointMetadata:
    """The pinned files, as partition -> file names, and who made the savepoint when."""

    user: str
    created_ms: int
    comments: str
    files: Mapping[str, tuple[str, ...]]

    @classmethod
    def parse(cls, data: bytes, path: str) -> Self:
        """Decode a completed savepoint; raises FormatError naming ``path``."""
        record = avro_container.decode_container(data, "HoodieSavepointMetadata", path)
        with decoding(path, "HoodieSavepointMetadata"):
            return cls(
                user=str(record["savepointedBy"]),
                created_ms=int(record["savepointedAt"]),
                comments=str(record["comments"]),
                files={
                    str(partition): tuple(
                        parse_file_name(name, path)
                        for name in read_strings(saved["savepointDataFile"])
                    )
                    for partition, saved in record["partitionMetadata"].items()
                },
            )
