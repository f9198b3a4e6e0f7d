"""Read and write the metadata of a savepoint: HoodieSavepointMetadata."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Self

from reconciler.hudi.codecs.avro_container import (
    decoding_container,
    encode_container,
    read_file_names,
)
from reconciler.lazy_dataclass import dataclass

_NAME: Final = "HoodieSavepointMetadata"
_SCHEMA: Final = "HoodieSavepointMetadata.avsc"
_VERSION: Final = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class SavepointMetadata:
    """The content of ``<time>.savepoint``.

    ``made_by``: the user that Hudi records. ``made_ms``: epoch milliseconds. ``files``: partition
    -> names of the pinned files.
    """

    made_by: str
    made_ms: int
    comment: str
    files: Mapping[str, tuple[str, ...]]

    @classmethod
    def parse(cls, data: bytes, path: str) -> Self:
        """Decode the file of a savepoint; raises FormatError naming ``path``."""
        with decoding_container(data, _NAME, path) as record:
            return cls(
                made_by=str(record["savepointedBy"]),
                made_ms=int(record["savepointedAt"]),
                comment=str(record["comments"]),
                files={
                    str(partition): read_file_names(saved["savepointDataFile"], path)
                    for partition, saved in record["partitionMetadata"].items()
                },
            )

    def encode(self) -> bytes:
        """Encode as an Avro container, the same in table versions 6, 8 and 9."""
        record = {
            "savepointedBy": self.made_by,
            "savepointedAt": self.made_ms,
            "comments": self.comment,
            "partitionMetadata": {
                partition: {"partitionPath": partition, "savepointDataFile": list(names)}
                for partition, names in self.files.items()
            },
            "version": _VERSION,
        }
        return encode_container(_SCHEMA, record)
