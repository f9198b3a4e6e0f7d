"""Read the metadata of a write: HoodieCommitMetadata and HoodieReplaceCommitMetadata.

One file may hold a hundred thousand write statistics, so only the needed fields are decoded.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Self

from reconciler.hudi.codecs.avro_binary import decoding, require
from reconciler.hudi.codecs.avro_container import read_strings, read_text_map
from reconciler.hudi.timeline.commit_projection import TEXT, CommitProjection

_WANTED: Final = CommitProjection(stat_fields=(("prevCommit", TEXT),), with_replaced_groups=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitMetadata:
    """What a write did.

    ``has_updates``: partition -> whether any written file replaces an older version. ``replaced``:
    partition -> ids of the file groups that a replacecommit replaced.
    """

    operation: str | None
    has_updates: Mapping[str, bool]
    replaced: Mapping[str, tuple[str, ...]]
    extra: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def parse(cls, data: bytes, path: str, *, replaces: bool = False) -> Self:
        """Decode a completed write, or an inflight one, which holds a workload profile.

        ``replaces``: the file is a completed replacecommit, so it must name the groups it replaced.
        Raises FormatError naming ``path``, also for an empty file, whose content is lost.
        """
        record = _WANTED.read(data, path)
        with decoding(path, "the commit metadata"):
            stats = record.get("partitionToWriteStats") or {}
            replaced = record.get("partitionToReplaceFileIds")
            require(
                replaced is not None or not replaces,
                "it does not name the file groups it replaced",
            )
            return cls(
                operation=record.get("operationType"),
                has_updates={
                    _check_text(p): any(map(_has_predecessor, s or ())) for p, s in stats.items()
                },
                replaced={
                    _check_text(p): tuple(map(_check_text, read_strings(ids)))
                    for p, ids in (replaced or {}).items()
                },
                extra=read_text_map(record.get("extraMetadata")),
            )


def _has_predecessor(stat: Mapping[str, Any]) -> bool:
    previous = stat.get("prevCommit")
    return previous is not None and str(previous).lower() != "null"


def _check_text(value: str) -> str:
    """Return the text; raises ValueError for a lone surrogate, which only JSON allows."""
    value.encode()
    return value
