"""Tables with a failed write of real Hudi, and applies that roll it back or die."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

from reconciler.hudi.files.names import BaseName, LogName
from reconciler.hudi.files.table_files import FileKind
from reconciler.hudi.load import load_properties, load_timeline
from reconciler.hudi.metadata.listing import read_metadata_listing
from reconciler.hudi.metadata.table import open_live_metadata
from reconciler.plans.model import RollbackStep
from reconciler.spec.load import load_specs
from tests.crash.drill import Drill, list_data_files
from tests.crash.write_drill import set_store_clock
from tests.trees import Tree, unpack

TABLES = Path(__file__).parents[1] / "tables"
RETENTION = "commits: 50, failedWrites: LAZY"
#: tables of every version and type with a failed write, with and without a metadata table
FAILED = (
    "v6_lazy_cow_direct",
    "v6_lazy_mor_tls",
    "v6_failed_mor",
    "v6_cow_part",
    "v8_lazy_mor_tls",
    "v8_mor_part",
    "v9_cow_part",
    "v9_lazy_cow_tls",
)


class FailedDrill(Drill):
    """A drill whose store has the clock of its runs, whenever the tests run."""

    def apply(self, plan: Any, *, around: Any = lambda storage: storage, **more: Any) -> Any:
        clocked = set_store_clock(self.clock.ms)
        return super().apply(plan, around=lambda storage: around(clocked(storage)), **more)

    def copy(self, folder: Path, **said: str) -> FailedDrill:
        Tree.from_folder(self.folder).write(folder)
        return FailedDrill(folder, {**self.said, **said})


def make_failed(name: str, folder: Path, **said: str) -> FailedDrill:
    """Unpack a table with a failed write."""
    (zipped,) = (path for path in (TABLES, TABLES / "failed") if (path / f"{name}.zip").exists())
    unpack(zipped / f"{name}.zip", folder / "unpacked")
    (found,) = (
        path.parent
        for path in (folder / "unpacked").rglob(".hoodie")
        if "metadata" not in path.parts
    )
    found.rename(folder / "table")
    shutil.rmtree(folder / "unpacked", ignore_errors=True)
    return FailedDrill(folder, {"retention": RETENTION, **said})


def get_step(plan) -> RollbackStep:
    """Return the rollback of a plan of one table."""
    (step,) = (step for step in plan.tables[0].steps if isinstance(step, RollbackStep))
    return step


def list_named(step: RollbackStep) -> list[str]:
    pairs = zip(step.files.partition.to_pylist(), step.files.name.to_pylist(), strict=True)
    return [f"{partition}/{name}".lstrip("/") for partition, name in pairs]


def list_instant_names(it: Drill, instant: str) -> list[str]:
    """Return every file that still belongs to an instant: data, timeline, markers, heartbeat."""
    found = []
    for path in it.table.rglob("*"):
        relative = path.relative_to(it.table)
        name = path.name
        parsed = BaseName.parse(name) or LogName.parse(name)
        is_data = parsed is not None and parsed.instant == instant
        is_other = name.startswith(f"{instant}.") or f"/{instant}" in f"/{relative}"
        if path.is_file() and (is_data or is_other):
            found.append(str(relative))
    return sorted(found)


def list_unlisted(it: Drill) -> set[str]:
    """Return where metadata table and folders differ; empty without a metadata table."""
    properties = load_properties(it.storage)
    if not properties.metadata_partitions:
        return set()
    table = open_live_metadata(it.storage, properties, load_timeline(it.storage, properties))
    listed = {
        f"{path}/{name}".lstrip("/")
        for path, names, _sizes in read_metadata_listing(table).read_folders()
        for name in names
    }
    there = {name for name in list_data_files(it.table) if ".hoodie_partition" not in name}
    return listed ^ there


def list_visible(it: Drill) -> set[str]:
    """Return the files that a snapshot read takes, by the view of the table's files."""
    state = it.state()
    view, files = state.view, state.files
    rows = (view.is_newest & view.is_live & view.is_visible)[view.row_slice]
    rows = rows & (files.kind == FileKind.BASE)
    names = files.name.to_pylist()
    return {f"{files.partitions[files.partition[row]]}/{names[row]}" for row in rows.nonzero()[0]}


def age(path: Path, seconds: int) -> None:
    """Move a file's time into the past, or into the future."""
    before = path.stat().st_mtime - seconds
    os.utime(path, (before, before))


def declare_pending(it: Drill, pending: str = "{clustering: rollback}") -> Drill:
    """Add to the spec what becomes of pending clusterings, and leave failed writes."""
    file = it.folder / "spec.yaml"
    text = file.read_text().replace(", failedWrites: LAZY", "")
    file.write_text(text.replace("staleAfter: 1h", f"staleAfter: 1h, pending: {pending}"))
    (it.spec,) = load_specs([file])
    return it
