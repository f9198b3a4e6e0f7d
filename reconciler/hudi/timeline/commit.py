"""What a completed write did: HoodieCommitMetadata and HoodieReplaceCommitMetadata.

A hundred thousand write statistics may be in one file, so only what is asked for is decoded.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Self

from reconciler.errors import FormatError
from reconciler.hudi.codecs.avro_binary import decoding, require
from reconciler.hudi.codecs.avro_container import read_strings, read_text_map
from reconciler.hudi.timeline.commit_projection import TEXT, CommitProjection

_WANTED: Final = CommitProjection(
    stat_fields=(("prevCommit", TEXT),), with_extra=True, with_replaced_groups=True
)


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitMetadata:
    """``has_updates``: partition -> whether any of its files has a predecessor (an update).

    ``replaced``: partition -> ids of the file groups that a replacecommit took out.
    """

    operation: str | None
    has_updates: Mapping[str, bool]
    replaced: Mapping[str, tuple[str, ...]]
    extra: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def parse(cls, data: bytes, path: str, *, replaces: bool = False) -> Self:
        """The content of a completed (or, as a profile, inflight) write.

        ``replaces``: it is a completed replacecommit, so it must say which groups it took out.
        Raises FormatError naming ``path``, also for an empty file: what it did is lost.
        """
        if not data:
            raise FormatError(
                path,
                "is empty, so what it wrote or replaced is not known",
                "restore it from a copy or roll the instant back with Hudi",
            )
        with decoding(path, "the commit metadata"):
            record = _WANTED.read(data, path)
            stats = record.get("partitionToWriteStats") or {}
            replaced = record.get("partitionToReplaceFileIds")
            require(
                replaced is not None or not replaces,
                "it does not say which file groups it replaced",
            )
            operation = record.get("operationType")
            require(operation is None or isinstance(operation, str), "its operation is no text")
            return cls(
                operation=operation,
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
    """The text itself; JSON can spell half of a character, which no path holds."""
    value.encode()
    return value
