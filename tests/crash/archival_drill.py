"""Drills of archivals: tables that real Hudi wrote, with enough commits to archive."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from reconciler.hudi.load import (
    load_archived_instants,
    load_metadata_properties,
    load_properties,
    load_timeline,
)
from reconciler.hudi.table.properties import TableProperties
from reconciler.hudi.timeline.instant import State
from tests.crash.clustering_drill import PlannedDrill
from tests.trees import unpack

TABLES = Path(__file__).parents[1] / "tables" / "archival"
#: a table of each layout and of each type
USUAL = ("0.15.0_cow", "1.2.0_mor")
OTHERS = ("0.15.0_mor", "1.0.2_cow", "1.0.2_mor", "1.2.0_cow")
SPEC = """\
apiVersion: reconciler/v1
kind: HudiTable
metadata: {{name: {name}}}
spec:
  path: {path}
  timezone: UTC
  fileTimes: copied
  timeline: {{keep: {keep}}}
  concurrency: {{lock: {{provider: {lock}}}, staleAfter: 1h}}
"""
Key = tuple[str, str]


class ArchivalDrill(PlannedDrill):
    """A table whose spec declares the length of its timeline alone."""

    SPEC_TEXT = SPEC

    @property
    def timelines(self) -> Iterator[TableProperties]:
        """The table's own timeline, and that of its metadata table."""
        yield load_properties(self.storage)
        yield load_metadata_properties(self.storage)

    def active(self) -> list[set[Key]]:
        """Return the instants of both timelines."""
        return [
            {(i.requested, i.action.value) for i in load_timeline(self.storage, one).instants}
            for one in self.timelines
        ]

    def archived(self) -> list[list[Key]]:
        """Return the archived instants of both timelines, sorted."""
        return [
            [(i.requested, i.action.value) for i in load_archived_instants(self.storage, one)]
            for one in self.timelines
        ]

    def list_halves(self) -> list[str]:
        """Return instants that look pending, because their completed file went too early."""
        return [
            instant.file_name
            for one in self.timelines
            for instant in load_timeline(self.storage, one).instants
            if instant.state is not State.COMPLETED
        ]


def make_drill(name: str, folder: Path, **said: str) -> ArchivalDrill:
    """Unpack a table with its times; data files are empty, because nobody reads them."""
    unpack(TABLES / f"{name}.zip", folder / "table")
    return ArchivalDrill(folder, {"keep": "2..3", **said})
