"""Tables with a pending clustering of real Hudi, and applies that finish it or die."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any, ClassVar

from reconciler.plans.model import ResumeStep
from reconciler.plans.plan import Plan
from tests.crash.clustering_drill import ClusteringDrill, PlannedDrill, make_drill_of
from tests.crash.failed_write_drill import age
from tests.crash.write_drill import set_store_clock

ZIPPED = Path(__file__).parents[1] / "tables"
#: a table of version 6, and one of version 9
TABLES = (
    "reading/pending_clustering_of_some_0.15.0",
    "reading/pending_clustering_of_some_1.2.0",
)
#: the same with a metadata table, and with rows to be sorted
LISTED = ("v6_cow_part", "v9_cow_part")
SPEC = """\
apiVersion: reconciler/v1
kind: HudiTable
metadata: {{name: {name}}}
spec:
  path: {path}
  timezone: UTC
  concurrency: {{lock: {{provider: {lock}}}, staleAfter: 1h, pending: {pending}}}
{more}"""
#: how the file is named that a dead attempt wrote
ATTEMPT = "99999999-9999-9999-9999-999999999999-0_9-9-9"


class FinishDrill(PlannedDrill):
    """A table whose pending clustering is finished; its store has the clock of its runs."""

    SPEC_TEXT: ClassVar[str] = SPEC

    def apply(self, plan: Plan, *, around: Any = lambda storage: storage, **more: Any) -> Any:
        clocked = set_store_clock(self.clock.ms)
        return super().apply(plan, around=lambda storage: around(clocked(storage)), **more)

    def copy(self, folder: Path, **said: str) -> FinishDrill:
        shutil.copytree(self.folder, folder)
        return FinishDrill(folder, {**self.said, **said})


def make_pending(name: str, folder: Path, **said: str) -> FinishDrill:
    """Unpack a table with a requested clustering that nobody has touched for a month."""
    more = {"pending": "{clustering: finish}", **said}
    it = make_drill_of(FinishDrill, ZIPPED / f"{name}.zip", folder, **more)
    remove_failed_writes(it)
    age_all(it)
    return it


def remove_failed_writes(it: ClusteringDrill) -> None:
    """Remove what else is pending, with its files, markers and heartbeat."""
    state = it.state()
    kept = {pending.instant for pending in state.pending_clusterings}
    for instant in state.timeline.instants:
        if instant.is_completed or instant.requested in kept:
            continue
        for path in it.table.rglob(f"*{instant.requested}*"):
            shutil.rmtree(path) if path.is_dir() else path.unlink()


def age_all(it: ClusteringDrill) -> None:
    """Move the times of all files of the table into the past."""
    for path in it.table.rglob("*"):
        if path.is_file():
            age(path, 30 * 86400)


def get_pending(it: ClusteringDrill) -> str:
    """Return the instant of the pending clustering."""
    (pending,) = it.state().pending_clusterings
    return pending.instant


def begin(it: ClusteringDrill) -> list[str]:
    """Leave the table as a writer does that dies while it executes the clustering.

    Its inflight file is there, a file that is cut, and a marker of a file that it never wrote.
    Returns the paths of the files.
    """
    (pending,) = it.state().pending_clusterings
    folder = it.table / find_timeline(it)
    action = "clustering" if it.state().table_version >= 8 else "replacecommit"
    left = [folder / f"{pending.instant}.{action}.inflight"]
    left[0].touch()
    partition = pending.plan.groups[0].slices[0].partition
    names = [f"{ATTEMPT}{n}_{pending.instant}.parquet" for n in range(2)]
    for name in names:
        marker = it.table / ".hoodie/.temp" / pending.instant / partition
        marker.mkdir(parents=True, exist_ok=True)
        left.append(marker / f"{name}.marker.CREATE")
        left[-1].touch()
    written = it.table / partition / names[0]
    written.write_bytes(b"PAR1 cut")
    for path in (*left, written):
        age(path, 30 * 86400)
    return [f"{partition}/{names[0]}".lstrip("/")]


def find_timeline(it: ClusteringDrill) -> str:
    return ".hoodie/timeline" if it.state().layout > 1 else ".hoodie"


def get_step(plan: Plan) -> ResumeStep:
    """Return the step that finishes the clustering of a plan of one table."""
    (step,) = (step for step in plan.tables[0].steps if isinstance(step, ResumeStep))
    return step


def list_left(it: ClusteringDrill) -> list[str]:
    """Return what an apply must not leave: pending instants, markers, heartbeats, a lock."""
    left = [str(path) for path in (it.table / ".hoodie/.temp").glob("*")]
    left += [str(path) for path in (it.table / ".hoodie/.heartbeat").glob("*")]
    left += [str(path) for path in (it.table / ".hoodie").glob("lock*")]
    left += [i.file_name for i in it.state().timeline.instants if not i.is_completed]
    return left


def touch_now(it: ClusteringDrill, path: Path) -> None:
    """Give a file the time of the drill's clock."""
    now = it.clock.ms / 1000
    os.utime(path, (now, now))
