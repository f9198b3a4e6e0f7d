"""Crash drills: a real table, a reviewed plan, applies that die, and checks of the result."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

import reconciler
from reconciler.executor.deletion import LocalDeleter
from reconciler.executor.result import ApplyResult
from reconciler.hudi.files.table_files import make_present_keys
from reconciler.hudi.load import load_properties, load_timeline, read_instant_file
from reconciler.hudi.timeline.clean import CleanMetadata
from reconciler.hudi.timeline.instant import Action
from reconciler.plans.plan import Plan
from reconciler.runtime import open_storage
from reconciler.spec.load import load_specs
from reconciler.spec.model import Option, TableSpec
from reconciler.state.model import TableState
from reconciler.state.observe import observe
from reconciler.storage.api import Storage, StorageRef
from reconciler.transaction.process import Process
from tests.applying import admit_and_apply
from tests.trees import Tree, unpack

CASES = Path(__file__).parents[1] / "cases" / "clean"
#: later than all instants of the fixtures
NOW = datetime(2026, 12, 1, tzinfo=UTC)
SPEC = """\
apiVersion: reconciler/v1
kind: HudiTable
metadata: {{name: {name}}}
spec:
  path: {path}
  timezone: UTC
  retention: {{{retention}}}
  concurrency: {{lock: {{provider: {lock}}}, staleAfter: 1h}}
"""


class Killed(BaseException):
    """An error that nothing catches."""


@dataclass
class TestClock:
    """Shows NOW plus the time slept, plus a millisecond per reading."""

    __test__ = False
    ms: int = int(NOW.timestamp() * 1000)

    def now_ms(self) -> int:
        self.ms += 1
        return self.ms

    def sleep(self, seconds: float) -> None:
        self.ms += int(seconds * 1000)


def process(pid: int, living: frozenset[int] = frozenset()) -> Process:
    """Return a process of this host; the ``living`` ones run beside it."""
    return Process(
        who="ann",
        host="here",
        pid=pid,
        started="boot",
        tool="reconciler test",
        is_running=lambda other, _started: other == pid or other in living,
    )


@dataclass
class Drill:
    """One table in a folder, and applies of one reviewed plan."""

    folder: Path
    said: Mapping[str, str]
    spec: TableSpec = field(init=False)
    clock: TestClock = field(default_factory=TestClock)
    runs: int = 0

    def __post_init__(self) -> None:
        text = SPEC.format(name="t", path=self.table, **{"lock": "filesystem", **self.said})
        (self.folder / "spec.yaml").write_text(text)
        (self.spec,) = load_specs([self.folder / "spec.yaml"])

    @property
    def table(self) -> Path:
        return self.folder / "table"

    @property
    def storage(self) -> Storage:
        return open_storage(str(self.table))

    def plan(self) -> Plan:
        return reconciler.plan([self.spec], now=NOW)

    def state(self) -> TableState:
        return observe(self.storage, self.spec, observed_ms=self.clock.now_ms())

    def apply(
        self,
        plan: Plan,
        *,
        around: Callable[[Storage], Storage] = lambda storage: storage,
        pid: int | None = None,
        living: frozenset[int] = frozenset(),
        **more: Any,
    ) -> ApplyResult:
        """Apply as a new process; ``around`` wraps the storage of driver and executors."""
        self.runs += 1
        opened: dict[str, Storage] = {}

        def opener(ref: StorageRef | str, options: Mapping[str, Option] | None = None) -> Storage:
            location = ref if isinstance(ref, str) else ref.location
            if location not in opened:
                opened[location] = around(open_storage(ref, options))
            return opened[location]

        return admit_and_apply(
            plan,
            open_storage=opener,
            deleter=LocalDeleter(opener),
            clock=self.clock,
            new_token=iter(f"run{self.runs}-{n}" for n in range(9)).__next__,
            **{
                "process": process(pid or self.runs, living),
                "now": NOW,
                "lock_wait_s": 0,
                **more,
            },
        )

    def copy(self, folder: Path, **said: str) -> Drill:
        """Copy the table with its times; the copy gets a plan of its own."""
        Tree.from_folder(self.folder).write(folder)
        return Drill(folder, {**self.said, **said})

    def begin_again(self, tree: Tree) -> None:
        """Restore the folder and forget what happened; the plan stays."""
        shutil.rmtree(self.folder)
        tree.write(self.folder)
        self.clock, self.runs = TestClock(), 0


def make_drill(zipped: Path, folder: Path, **said: str) -> Drill:
    """Unpack a table with its times; data files are empty, because nobody reads them."""
    unpack(zipped, folder / "table", hollow=True)
    return Drill(folder, said)


def list_data_files(table: Path) -> set[str]:
    """Return every file outside ``.hoodie``, relative, without checksums."""
    return {
        os.path.relpath(os.path.join(folder, name), table)
        for folder, names in _data_folders(table)
        for name in names
        if not name.endswith(".crc")
    }


def list_folders(table: Path) -> set[str]:
    return {os.path.relpath(folder, table) for folder, _ in _data_folders(table)} - {"."}


def _data_folders(table: Path) -> Iterator[tuple[str, list[str]]]:
    for folder, below, names in os.walk(table):
        if ".hoodie" in below:
            below.remove(".hoodie")
        yield folder, names


def list_newest_files(state: TableState) -> set[str]:
    """Return the files of every live group's newest visible slice, as a snapshot reads them."""
    view = state.view
    slices = view.is_newest & view.is_live
    rows = np.flatnonzero(slices[view.row_slice])
    names = view.files.name.to_pylist()
    paths = view.files.partitions
    return {f"{paths[view.files.partition[row]]}/{names[row]}".lstrip("/") for row in rows}


def list_savepointed_files(state: TableState) -> set[str]:
    """Return the existing files that completed savepoints name."""
    pinned = {name for savepoint in state.savepoints for name in savepoint.files}
    names = state.files.name.to_pylist()
    paths = [state.files.partitions[code] for code in state.files.partition]
    found = (f"{p}/{n}".lstrip("/") for p, n in zip(paths, names, strict=True) if n in pinned)
    return set(found)


def list_traces(table: Path) -> list[str]:
    """Return what a run must not leave: locks, heartbeats, pending cleans."""
    storage = open_storage(str(table))
    timeline = load_timeline(storage, load_properties(storage))
    left = [
        i.file_name for i in timeline.instants if not i.is_completed and i.action.value == "clean"
    ]
    for path in (".hoodie/lock", ".hoodie/.heartbeat"):
        entry = table / path
        left += [path] if entry.is_file() else [str(f) for f in entry.glob("*")]
    return left


def read_cleans(table: Path) -> list[tuple[str, dict[str, tuple[tuple[str, ...], bool]]]]:
    """Return per completed clean its boundary, and per partition its names and its removal."""
    storage = open_storage(str(table))
    properties = load_properties(storage)
    found = []
    for entry in load_timeline(storage, properties).entries:
        if entry.instant.action is Action.CLEAN and entry.instant.is_completed and entry.size:
            said = CleanMetadata.parse(*read_instant_file(storage, properties, entry))
            partitions = {
                path: (tuple(sorted(one.deleted)), one.is_folder_deleted)
                for path, one in said.partitions.items()
            }
            found.append((said.earliest_instant, partitions))
    return found


def list_unlisted(it: Drill, disk: TableState | None = None) -> set[str]:
    """Return where metadata table and disk differ; nothing without a metadata table.

    ``disk``: the table's state, if it has been observed already.
    """
    disk = disk or it.state()
    if not disk.metadata_partitions:
        return set()
    ms = it.clock.now_ms()
    listed = observe(it.storage, it.spec, observed_ms=ms, listing="metadata")
    return set(make_present_keys(disk.files).to_pylist()) ^ set(
        make_present_keys(listed.files).to_pylist()
    )
