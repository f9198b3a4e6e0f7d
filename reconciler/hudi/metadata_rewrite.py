"""What to write so that the metadata table knows of new files into which rows were moved."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from reconciler.hudi.metadata_write import MetadataSync


@dataclass(frozen=True, slots=True, kw_only=True)
class RewriteSync:
    """``drops``: the metadata partitions to take away first, sorted; ``reasons``: why, of each.

    ``sync`` is None where the table has no live metadata table.
    """

    drops: tuple[str, ...] = ()
    sync: MetadataSync | None = None
    reasons: Mapping[str, str] = field(default_factory=dict)
