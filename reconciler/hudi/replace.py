"""What a completed clustering says it did: HoodieReplaceCommitMetadata, as Hudi spells it.

Source: CommitMetadataSerDeV1 (JSON, layout 1) and V2 (Avro, layout 2), CommitUtils.buildMetadata.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from reconciler.hudi.avro import encode

_SCHEMA: Final = "HoodieReplaceCommitMetadata.avsc"
#: the table version from which commits are Avro
_AVRO_FROM: Final = 8
#: fields that JSON commits spell out although they are null
_NULLS: Final = ("cdcStats", "tempPath", "minEventTime", "maxEventTime")
_NO_TIMES: Final = {"totalScanTime": 0, "totalUpsertTime": 0, "totalCreateTime": 0}
#: what only Avro commits know
_ZEROS_OF_AVRO: Final = ("totalLogReadTimeMs", "numUpdates")


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplaceCommit:
    """A completed clustering.

    ``written``: partition -> write statistics by Hudi's names (``basefile.stat.created_stat``);
    ``replaced``: partition -> ids of the file groups that are gone from now on, as planned.
    """

    written: Mapping[str, Sequence[Mapping[str, Any]]]
    replaced: Mapping[str, Sequence[str]]
    extra: Mapping[str, str] = field(default_factory=dict)
    operation: str = "CLUSTER"

    def encode(self, *, version: int) -> bytes:
        """The completed file of a table version: JSON before 8, an Avro container from then on."""
        is_avro = version >= _AVRO_FROM
        spelled = _avro_stat if is_avro else _json_stat
        record: dict[str, Any] = {
            "partitionToWriteStats": {
                path: [spelled(stat) for stat in stats] for path, stats in self.written.items()
            },
            "compacted": False,
            "extraMetadata": dict(self.extra),
            "operationType": self.operation,
            "partitionToReplaceFileIds": {path: [*ids] for path, ids in self.replaced.items()},
        }
        if is_avro:
            return encode(_SCHEMA, record | {"version": None})
        return json.dumps(record, indent=2, separators=(",", " : ")).encode()


def _json_stat(stat: Mapping[str, Any]) -> dict[str, Any]:
    return {**dict.fromkeys(_NULLS), **stat, "runtimeStats": _NO_TIMES}


def _avro_stat(stat: Mapping[str, Any]) -> dict[str, Any]:
    return {**dict.fromkeys(_ZEROS_OF_AVRO, 0), **stat, "runtimeStats": _NO_TIMES}
