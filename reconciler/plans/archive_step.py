"""The step that archives instants: what it archives, and what holds the rest."""

from __future__ import annotations

from typing import Literal

from reconciler.lazy_dataclass import dataclass

#: what keeps commits on the active timeline
ArchiveRule = Literal[
    "pendingWrite",
    "savepoint",
    "compaction",
    "replacedFiles",
    "newestClean",
    "metadataTable",
    "dataTable",
    "unknownFiles",
    "schemaHistory",
]


@dataclass(frozen=True, slots=True, order=True)
class ArchivedInstant:
    """A completed instant that goes to the archived timeline."""

    instant: str
    action: str


@dataclass(frozen=True, slots=True, order=True)
class Leftover:
    """A file or folder in ``.hoodie`` that nothing needs; ``path``: relative to the table."""

    path: str
    because: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchiveBound:
    """The rule that keeps ``commits`` active beyond the declared number, from ``instant`` on.

    ``instant`` is empty if nothing at all can be archived.
    """

    rule: ArchiveRule
    instant: str
    commits: int
    because: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchiveStep:
    """Move the oldest completed instants from the active to the archived timeline.

    ``keep``: as declared. ``commits``: completed commits that are active now. ``instants`` and
    ``metadata_table``: instants of the table's timeline and of the metadata table's own, ordered by
    time. ``leftovers``: what stopped runs left in ``.hoodie``. ``bound``: what keeps more commits
    active than declared, or None.
    """

    kind: Literal["archive"] = "archive"
    keep: str
    commits: int
    instants: tuple[ArchivedInstant, ...] = ()
    metadata_table: tuple[ArchivedInstant, ...] = ()
    leftovers: tuple[Leftover, ...] = ()
    bound: ArchiveBound | None = None
    because: str
