"""Drills of the index: tables with their rows, applies that die, and what the index says then."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.compute as pc

import reconciler
from reconciler.apply.result import Indexed, Result
from reconciler.index.build import Threads
from reconciler.index.may_match import may_match
from reconciler.index.store import list_versions, read_last
from reconciler.index.versions import FOLDER
from reconciler.plan.model import Plan
from reconciler.predicates.parse import parse
from reconciler.rewrite.local import InProcess
from reconciler.storage.api import Storage
from reconciler.world import open_storage
from tests.crash.clustering import Clustering
from tests.crash.drill import NOW, Drill
from tests.trees import unpack
from tests.truth import lies, values_of

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
class Indexing(Clustering):
    """A table whose columns are indexed."""

    def __post_init__(self) -> None:
        text = SPEC + "".join(line for key, line in MORE.items() if key in self.said)
        (self.folder / "spec.yaml").write_text(text.format(path=self.table, **self.said))
        (self.spec,) = reconciler.load_specs(self.folder / "spec.yaml")

    def plan(self) -> Plan:
        return reconciler.plan([self.spec], now=NOW)

    def steps(self) -> list[str]:
        """The kinds of steps of a plan made now."""
        (table,) = self.plan().tables
        assert table.error is None, table.error
        return [step.kind for step in table.steps]

    def apply(
        self,
        plan: Plan,
        *,
        around: Callable[[Storage], Storage] = lambda storage: storage,
        **more: Any,
    ) -> Result:
        """One file at a time, so that calls come in one order."""
        opened: dict[str, Storage] = {}

        def of(storage: Storage) -> Storage:
            return opened.setdefault(storage.location, around(storage))

        tools = {
            "rewriter": InProcess(lambda ref: of(open_storage(ref))),
            "builder": Threads(lambda ref: of(open_storage(ref)), at_once=1),
        }
        return Drill.apply(self, plan, around=of, **{**tools, **more})

    def now(self, **said: str) -> Indexing:
        """The same table with another spec."""
        return Indexing(self.folder, {**self.said, **said})

    def versions(self) -> list[str]:
        """The versions that are whole, oldest first."""
        return [str(version.name) for version in list_versions(self.storage).valid]

    def below(self) -> list[str]:
        """Everything below the index's folder."""
        folder = self.table / FOLDER
        return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))

    def problems(self, predicate: str) -> list[str]:
        """What is wrong with the version that counts: lies, and files that a read would miss."""
        found = read_last(self.storage, list_versions(self.storage))
        if found is None:
            return []
        index = found[1]
        known = self.state().index
        assert known is not None
        keeps = may_match(parse(predicate), index, schema=known.schema, zone="UTC")
        column, bound = predicate.split(" >= ")
        wrong = lies(index, self.table)
        for row in range(len(index)):
            name = index.name[row].as_py()
            path = self.table / index.partition[row].as_py() / name
            if keeps[row] or not path.exists() or column not in index.columns:
                continue
            values = values_of(path, column, index.columns[column].type)
            if values is not None and pc.any(pc.greater_equal(values, int(bound))).as_py():
                wrong.append(f"{name} is left out and has rows where {predicate}")
        return wrong


def indexing(zipped: Path, folder: Path, **said: str) -> Indexing:
    """Unpack a table with its times and its rows; ``said``: index, clustering, retention."""
    there = folder.parent / f"{folder.name}.unpacked"
    unpack(zipped, there)
    root = there if (there / ".hoodie").exists() else next(there.iterdir())
    folder.mkdir(parents=True)
    root.rename(folder / "table")
    return Indexing(folder, said)


def indexed(result: Result) -> Indexed:
    """What became of the index of the one table."""
    (table,) = result.tables
    assert table.error is None, table.error
    (found,) = [one.indexed for one in table.outcomes if one.indexed is not None]
    return found
