"""Index drills: tables with real rows, applies that die, and the resulting index."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.compute as pc

import reconciler
from reconciler.executor.outcomes import IndexOutcome
from reconciler.executor.result import ApplyResult
from reconciler.index.build import ThreadedIndexBuilder
from reconciler.index.may_match import may_match
from reconciler.index.predicates.parse import parse
from reconciler.index.version_store import list_versions, read_newest
from reconciler.index.versions import FOLDER
from reconciler.plans.plan import Plan
from reconciler.rewrite.local import LocalRewriter
from reconciler.runtime import open_storage
from reconciler.storage.api import Storage
from tests.crash.clustering_drill import ClusteringDrill
from tests.crash.drill import NOW, Drill
from tests.index_claims import find_false_claims, read_values
from tests.trees import unpack

SPEC = """\
apiVersion: reconciler/v1
kind: HudiTable
metadata: {{name: t}}
spec:
  path: {path}
  timezone: UTC
  index: {{columns: {index}}}
  concurrency: {{lock: {{provider: filesystem}}, staleAfter: 1h}}
"""
MORE = {
    "clustering": "  clustering: {{columns: {clustering}, curve: linear, when: always}}\n",
    "retention": "  retention: {{{retention}}}\n",
}


@dataclass
class IndexDrill(ClusteringDrill):
    """A table whose columns are indexed."""

    def __post_init__(self) -> None:
        text = SPEC + "".join(line for key, line in MORE.items() if key in self.said)
        (self.folder / "spec.yaml").write_text(text.format(path=self.table, **self.said))
        (self.spec,) = reconciler.load_specs(self.folder / "spec.yaml")

    def plan(self) -> Plan:
        return reconciler.plan([self.spec], now=NOW)

    def steps(self) -> list[str]:
        """Return the kinds of steps of a plan made now."""
        (table,) = self.plan().tables
        assert table.error is None, table.error
        return [step.kind for step in table.steps]

    def apply(
        self,
        plan: Plan,
        *,
        around: Callable[[Storage], Storage] = lambda storage: storage,
        **more: Any,
    ) -> ApplyResult:
        """Apply one file at a time, so that calls come in one order."""
        opened: dict[str, Storage] = {}

        def of(storage: Storage) -> Storage:
            return opened.setdefault(storage.location, around(storage))

        tools = {
            "rewriter": LocalRewriter(lambda ref: of(open_storage(ref))),
            "builder": ThreadedIndexBuilder(lambda ref: of(open_storage(ref)), at_once=1),
        }
        return Drill.apply(self, plan, around=of, **{**tools, **more})

    def now(self, **said: str) -> IndexDrill:
        """Return the same table with another spec."""
        return IndexDrill(self.folder, {**self.said, **said})

    def versions(self) -> list[str]:
        """Return the complete versions, oldest first."""
        return [str(version.name) for version in list_versions(self.storage).valid]

    def below(self) -> list[str]:
        """Return everything below the index's folder."""
        folder = self.table / FOLDER
        return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))

    def problems(self, predicate: str) -> list[str]:
        """Return errors of the current version: wrong statistics, and files that reads miss."""
        found = read_newest(self.storage, list_versions(self.storage))
        if found is None:
            return []
        index = found[1]
        known = self.state().index_state
        assert known is not None
        keeps = may_match(parse(predicate), index, schema=known.schema, zone="UTC")
        column, bound = predicate.split(" >= ")
        wrong = find_false_claims(index, self.table)
        for row in range(len(index)):
            name = index.name[row].as_py()
            path = self.table / index.partition[row].as_py() / name
            if keeps[row] or not path.exists() or column not in index.columns:
                continue
            values = read_values(path, column, index.columns[column].type)
            if values is not None and pc.any(pc.greater_equal(values, int(bound))).as_py():
                wrong.append(f"{name} is left out and has rows where {predicate}")
        return wrong


def make_index_drill(zipped: Path, folder: Path, **said: str) -> IndexDrill:
    """Unpack a table with its times and rows; ``said``: index, clustering, retention."""
    there = folder.parent / f"{folder.name}.unpacked"
    unpack(zipped, there)
    root = there if (there / ".hoodie").exists() else next(there.iterdir())
    folder.mkdir(parents=True)
    root.rename(folder / "table")
    return IndexDrill(folder, said)


def get_index_outcome(result: ApplyResult) -> IndexOutcome:
    """Return the index outcome of the one table."""
    (table,) = result.tables
    assert table.error is None, table.error
    (found,) = [one.indexed for one in table.outcomes if one.indexed is not None]
    return found
