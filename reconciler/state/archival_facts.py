"""What the archival of a timeline depends on, beside the timeline itself; pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Final

from reconciler.hudi.timeline.active import Timeline
from reconciler.hudi.timeline.instant import Action
from reconciler.lazy_dataclass import dataclass

#: requested time and action (as completed) of an instant
InstantKey = tuple[str, Action]
#: actions whose completed instants Hudi archives beside commits
SIDE_ACTIONS: Final = frozenset({Action.CLEAN, Action.ROLLBACK})


@dataclass(frozen=True, slots=True, kw_only=True)
class NewestClean:
    """The newest completed clean of the active timeline.

    ``earliest``: the earliest instant to retain of its plan, None under file versions.
    ``savepointed``: the savepoints that it found. ``problem``: why neither its plan nor its
    metadata can be read, or None.
    """

    instant: str
    earliest: str | None = None
    savepointed: tuple[str, ...] = ()
    problem: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MetadataArchival:
    """The metadata table's own timeline; ``archived``: as in ``ArchivalFacts``."""

    timeline: Timeline
    archived: frozenset[InstantKey] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchivalFacts:
    """Facts for a spec that declares how long the timeline gets.

    ``archived``: instants that are active and archived, because an archival stopped.
    ``replacing_instant``: the oldest replacement of file groups that have files still.
    ``unknown_instant``: the oldest instant after the timeline's start that has files, and that is
    neither active nor archived. ``metadata``: None without a live metadata table. ``heartbeats``
    and ``marker_folders``: by instant, with the time of their newest change, milliseconds since
    1970; heartbeats of reconciler are not among them. ``schema_files``: names in ``.schema``.
    """

    clean: NewestClean | None = None
    archived: frozenset[InstantKey] = frozenset()
    replacing_instant: str | None = None
    unknown_instant: str | None = None
    metadata: MetadataArchival | None = None
    heartbeats: Mapping[str, int] = field(default_factory=dict)
    marker_folders: Mapping[str, int] = field(default_factory=dict)
    schema_files: tuple[str, ...] = ()
