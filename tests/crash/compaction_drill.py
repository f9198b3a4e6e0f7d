"""Compaction drills: tables with a pending compaction of real Hudi, and applies that die."""

from __future__ import annotations

import io
import re
import shutil
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import fastavro
import pytest

from reconciler.errors import StorageError
from reconciler.executor.result import ApplyResult
from reconciler.hudi.files.names import BaseName, LogName
from reconciler.plans.model import ResumeStep
from reconciler.plans.plan import Plan
from reconciler.reader.model import ReadRequest
from reconciler.reader.open_scan import open_scan
from reconciler.rewrite.local import LocalRewriter
from reconciler.storage.api import Storage
from reconciler.storage.open import open_storage
from tests.crash.clustering_drill import PlannedDrill
from tests.crash.drill import Killed
from tests.crash.write_drill import set_store_clock
from tests.our_compaction import find_timeline
from tests.selection import take_turn
from tests.storage_wrappers import FaultyStorage, RecordingStorage, StorageFault
from tests.trees import unpack

TABLES = Path(__file__).parents[1] / "tables" / "compacting"
VERSIONS = ("0.15.0", "1.0.2", "1.2.0")
#: what Hudi has left of a compaction: only its plan, or files and metadata table entries too
STATES = ("requested", "inflight")
SPEC = """\
apiVersion: reconciler/v1
kind: HudiTable
metadata: {{name: {name}}}
spec:
  path: {path}
  timezone: UTC
  retention: {{commits: {commits}}}
  concurrency: {{lock: {{provider: {lock}}}, pending: {pending}}}
{more}"""


@dataclass
class CompactionDrill(PlannedDrill):
    """A table with a compaction that nobody finishes; its store has the clock of its runs."""

    SPEC_TEXT: ClassVar[str] = SPEC

    def __post_init__(self) -> None:
        self.said = {"commits": "50", "pending": "{compaction: finish}", **self.said}
        super().__post_init__()

    def apply(
        self,
        plan: Plan,
        *,
        around: Callable[[Storage], Storage] = lambda storage: storage,
        **more: Any,
    ) -> ApplyResult:
        clocked = set_store_clock(self.clock.ms)
        return super().apply(plan, around=lambda storage: around(clocked(storage)), **more)

    def copy(self, folder: Path, **said: str) -> CompactionDrill:
        shutil.copytree(self.folder, folder)
        return CompactionDrill(folder, {**self.said, **said})

    @property
    def instant(self) -> str:
        """The compaction's."""
        (file,) = find_timeline(self.table).glob("*.compaction.requested")
        return file.name.partition(".")[0]

    def list_states(self) -> list[str]:
        """Return the timeline files of the compaction without its times."""
        names = (entry.name for entry in find_timeline(self.table).iterdir())
        mine = (name for name in names if name.startswith(self.instant))
        return sorted(re.sub(r"^\d+(_\d+)?", "", name) for name in mine)

    def forget_metadata(self) -> None:
        """Remove the metadata table, so that folders are listed."""
        properties = self.table / ".hoodie" / "hoodie.properties"
        listed = re.compile(rb"hoodie\.table\.metadata\.partitions=.*")
        none = b"hoodie.table.metadata.partitions="
        properties.write_bytes(listed.sub(none, properties.read_bytes()))
        shutil.rmtree(self.table / ".hoodie" / "metadata")

    def list_written(self) -> list[str]:
        """Return the base files of the compaction, relative, sorted."""
        found = self.table.rglob(f"*_{self.instant}.parquet")
        return sorted(str(p.relative_to(self.table)) for p in found if ".hoodie" not in p.parts)

    def list_leftovers(self) -> list[str]:
        """Return what an apply must not leave: a lock, heartbeats, markers."""
        hoodie = self.table / ".hoodie"
        left = [hoodie / "lock", *(hoodie / ".heartbeat").glob("*"), *(hoodie / ".temp").glob("*")]
        return [str(path.relative_to(self.table)) for path in left if path.exists()]


@dataclass
class Overtaken:
    """Compacts, and then somebody comes; ``fails``: the work has gone wrong by then."""

    act: Callable[[], Any]
    fails: bool = False

    def compact(self, ref: Any, job: Any, slices: Any, *, progress: Any) -> Any:
        found = LocalRewriter(open_storage).compact(ref, job, slices, progress=progress)
        self.act()
        if self.fails:
            raise StorageError("x", "cannot be written")
        return found


def make_compacting(version: str, folder: Path, state: str = "requested", **said: str) -> Any:
    """Unpack a table with a pending compaction; ``done``: Hudi has completed it."""
    folder.mkdir(exist_ok=True)
    there = unpack(TABLES / f"{version}.zip", folder / "unpacked")
    name = "pending" if state == "requested" else "done"
    (there / name).rename(folder / "table")
    shutil.rmtree(there)
    it = CompactionDrill(folder, said)
    if state == "inflight":
        for done in find_timeline(it.table).glob(f"{it.instant}*.commit"):
            done.unlink()
    return it


def die_everywhere(
    it: CompactionDrill, folder: Path, how: str, *, of: int, turn: int, at_least: int
) -> Iterator[tuple[int, CompactionDrill, ApplyResult]]:
    """Yield copies of a table on which an apply has died at a change, and another one has run.

    ``how``: it died before or after the change. ``of``, ``turn``: which changes, see ``take_turn``;
    an apply makes ``at_least`` so many. Rows are the same after it died.
    """
    rows = it.rows()
    record: list[RecordingStorage] = []
    calls = it.copy(folder / "calls")
    calls.apply(calls.plan(), around=lambda s: record.append(RecordingStorage(s)) or record[-1])
    changes = sum(len(one.mutations) for one in record)
    assert changes >= at_least
    for at in take_turn(range(1, changes + 1), of=of, turn=turn):
        copy = it.copy(folder / f"{at}")
        plan = copy.plan()
        with pytest.raises(Killed):
            copy.apply(
                plan,
                around=lambda s, at=at: FaultyStorage(s, StorageFault(at=at, mode=how), Killed()),
            )
        assert rows == copy.rows(), at
        yield at, copy, copy.apply(plan if at % 2 else copy.plan())
        shutil.rmtree(folder / f"{at}")


def get_step(plan: Plan) -> ResumeStep:
    """Return the only step of a plan, which finishes the compaction."""
    (step,) = plan.tables[0].steps
    assert isinstance(step, ResumeStep)
    assert step.action == "compaction"
    return step


def request_compaction(it: CompactionDrill, instant: str) -> None:
    """Request a compaction of every slice with log files, as Hudi writes its plan."""
    operations = []
    for found in open_scan(it.storage, ReadRequest()).slices.to_pylist():
        if found["logs"]:
            folder, _, name = (found["base"] or found["logs"][0]).rpartition("/")
            parsed = BaseName.parse(name) or LogName.parse(name)
            assert parsed is not None
            operation = {
                "baseInstantTime": parsed.instant,
                "deltaFilePaths": [path.rpartition("/")[2] for path in found["logs"]],
                "dataFilePath": name if found["base"] else None,
                "fileId": parsed.file_id,
                "partitionPath": folder,
                "metrics": None,
                "bootstrapFilePath": None,
            }
            operations.append(operation)
    with zipfile.ZipFile(TABLES / "0.15.0.zip") as opened:
        name = next(n for n in opened.namelist() if n.endswith(".compaction.requested"))
        schema = fastavro.reader(io.BytesIO(opened.read(name))).writer_schema
    data = io.BytesIO()
    plan = {"operations": operations, "extraMetadata": None, "version": 2}
    plan |= {"strategy": None, "preserveHoodieMetadata": None}
    fastavro.writer(data, schema, [plan])
    (find_timeline(it.table) / f"{instant}.compaction.requested").write_bytes(data.getvalue())
