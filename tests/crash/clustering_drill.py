"""Clustering drills: tables with real rows, steps of the planner, applies that die."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, TypeVar

import pyarrow as pa

import reconciler
from reconciler.executor.result import ApplyResult
from reconciler.file_slices.merge.slice_reader import SliceFiles
from reconciler.hudi.load import load_properties, load_timeline
from reconciler.planners.cluster.planner import plan_clustering
from reconciler.planners.known_statistics import KnownStatistics
from reconciler.plans.model import ClusterStep, ResumeStep
from reconciler.plans.plan import Plan
from reconciler.reader.model import ReadRequest
from reconciler.reader.open_scan import open_scan
from reconciler.reader.slice_rows import SliceRowReader
from reconciler.rewrite.local import LocalRewriter
from reconciler.runtime import open_storage
from reconciler.storage.api import Storage
from tests.crash.drill import NOW, Drill, TestClock
from tests.trees import unpack

SPEC = """\
apiVersion: reconciler/v1
kind: HudiTable
metadata: {{name: {name}}}
spec:
  path: {path}
  timezone: UTC
  files: {{target: {target}, small: 100MiB}}
  clustering: {{columns: {columns}, curve: {curve}, when: always}}
  concurrency: {{lock: {{provider: {lock}}}, staleAfter: 1h{concurrency}}}
{more}"""
#: earlier than our instants, later than those of the tables
OURS = "20261130"
DEFAULTS = {
    "target": "120MiB",
    "columns": "[]",
    "curve": "linear",
    "lock": "filesystem",
    "concurrency": "",
    "more": "",
}


@dataclass
class ClusteringDrill(Drill):
    """A table with real rows that is clustered. ``SPEC_TEXT``: with names of what is said."""

    SPEC_TEXT: ClassVar[str] = SPEC

    def __post_init__(self) -> None:
        text = self.SPEC_TEXT.format(name="t", path=self.table, **{**DEFAULTS, **self.said})
        (self.folder / "spec.yaml").write_text(text)
        (self.spec,) = reconciler.load_specs(self.folder / "spec.yaml")

    def plan(self) -> Plan:
        """Plan again, with what runs left behind."""
        plan = reconciler.plan([self.spec], now=NOW)
        (table,) = plan.tables
        assert table.error is None
        decision = plan_clustering(self.spec, self.state(), KnownStatistics())
        layout = decision.layout
        step = ClusterStep(
            columns=layout.columns,
            curve=layout.curve,
            mapping=layout.mapping,
            groups=decision.groups,
        )
        steps = tuple(step for step in table.steps if isinstance(step, ResumeStep))
        steps += (step,) if len(decision.groups) else ()
        return replace(plan, tables=(replace(table, steps=steps),))

    def apply(
        self,
        plan: Plan,
        *,
        around: Callable[[Storage], Storage] = lambda storage: storage,
        **more: Any,
    ) -> ApplyResult:
        opened: dict[str, Storage] = {}

        def of(storage: Storage) -> Storage:
            return opened.setdefault(storage.location, around(storage))

        rewriter = LocalRewriter(lambda ref: of(open_storage(ref)))
        return super().apply(plan, around=of, **{"rewriter": rewriter, **more})

    def rows(self) -> list[dict[str, Any]]:
        """Read every row that a reader sees, by key, without file names."""
        scan = open_scan(self.storage, ReadRequest())
        reading = SliceRowReader.from_scan(scan)
        found = []
        for slice_ in scan.slices.to_pylist():
            files = SliceFiles(
                base=slice_["base"], base_size=slice_["base_size"], logs=tuple(slice_["logs"])
            )
            values = scan.get_partition_values(slice_["partition"])
            found += list(reading.read(files, values, self.storage))
        table = pa.Table.from_batches(found, schema=scan.schema)
        names = [name for name in table.column_names if name != "_hoodie_file_name"]
        return sorted(table.select(names).to_pylist(), key=repr)

    def copy(self, folder: Path, **said: str) -> ClusteringDrill:
        """Copy the table with its rows and times to another folder."""
        shutil.copytree(self.folder, folder)
        return ClusteringDrill(folder, {**self.said, **said})

    def again(self, before: Path) -> None:
        """Restore the folder, and forget what happened since."""
        shutil.rmtree(self.folder)
        shutil.copytree(before, self.folder)
        self.clock, self.runs = TestClock(), 0


class PlannedDrill(ClusteringDrill):
    """A table that is planned as users plan it."""

    plan = Drill.plan


_Kind = TypeVar("_Kind", bound=ClusteringDrill)


def make_clustering_drill(zipped: Path, folder: Path, **said: str) -> ClusteringDrill:
    """Unpack a table with its times and rows."""
    return make_drill_of(ClusteringDrill, zipped, folder, **said)


def make_drill_of(kind: type[_Kind], zipped: Path, folder: Path, **said: str) -> _Kind:
    """Unpack a table with its times and rows for a kind of drills."""
    there = folder.parent / f"{folder.name}.unpacked"
    unpack(zipped, there)
    root = there if (there / ".hoodie").exists() else next(there.iterdir())
    folder.mkdir(parents=True)
    root.rename(folder / "table")
    return kind(folder, said)


def list_leftovers(table: Path, of: str | None = None) -> list[str]:
    """Return what a run must not leave: a lock, heartbeats, markers and pending files.

    ``of``: the instant; None for every clustering of ours.
    """
    left = [".hoodie/lock"] if (table / ".hoodie/lock").exists() else []
    left += [str(path) for path in (table / ".hoodie/.heartbeat").glob("*")]
    storage = open_storage(str(table))
    timeline = load_timeline(storage, load_properties(storage))
    for instant in timeline.instants:
        if instant.requested == of or (of is None and instant.requested > OURS):
            left += [str(path) for path in (table / ".hoodie/.temp").glob(instant.requested)]
            left += [] if instant.is_completed else [instant.file_name]
    return left


def get_outcome(result: ApplyResult) -> Mapping[str, Any]:
    """Return the one outcome of the one table."""
    (table,) = result.tables
    (outcome,) = table.outcomes
    return {"how": outcome.how, "code": result.exit_code, "error": table.error}
