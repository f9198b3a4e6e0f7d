"""Tables as they were when real Hudi scheduled a compaction, and the plan that it made."""

from __future__ import annotations

import io
import json
import re
import shutil
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import fastavro

from reconciler.hudi.files.names import BaseName, LogName
from reconciler.hudi.timeline.instant import Action, Instant
from tests.our_compaction import find_timeline

TESTS = Path(__file__).parent
_KINDS = (
    "tables/compacting/*.zip",
    "cases/clean/mor_*compact*/table.zip",
    "cases/cluster/*compaction*/table.zip",
    "tables/v*_mor_*.zip",
    "tables/reading/*compaction*.zip",
)


def _has_plans(archive: Path) -> bool:
    with zipfile.ZipFile(archive) as opened:
        return any(name.endswith(".compaction.requested") for name in opened.namelist())


#: tables with plans of real Hudi, below this folder
ARCHIVES = [path for kind in _KINDS for path in sorted(TESTS.glob(kind)) if _has_plans(path)]


@dataclass(frozen=True)
class Scheduled:
    """A table just before a compaction was scheduled. ``plan``: what Hudi then wrote.

    ``is_complete``: nothing of what the plan names has been cleaned since.
    """

    table: Path
    instant: str
    plan: dict[str, Any]
    is_complete: bool


def read_plan(data: bytes) -> dict[str, Any]:
    """Return the plan of a requested file."""
    (record,) = fastavro.reader(io.BytesIO(data))
    assert isinstance(record, dict)
    return record


def find_schedules(table: Path) -> list[str]:
    """Return the instants of the compactions that were scheduled, oldest first."""
    files = find_timeline(table).glob("*.compaction.requested")
    return sorted(file.name.partition(".")[0] for file in files)


def rewind(table: Path, instant: str, folder: Path) -> Scheduled:
    """Copy a table as it was when a compaction was scheduled, without its metadata table."""
    copy = folder / f"{table.name}-{instant}"
    shutil.copytree(table, copy, copy_function=shutil.copy2)
    timeline = find_timeline(copy)
    plan = read_plan((timeline / f"{instant}.compaction.requested").read_bytes())
    _drop_later_logs(copy, timeline, instant)
    later = _drop_later_instants(timeline, instant)
    for file in copy.rglob("*"):
        name = BaseName.parse(file.name) or LogName.parse(file.name)
        if name is None or ".hoodie" in file.relative_to(copy).parts:
            continue
        if name.instant >= instant or (isinstance(name, BaseName) and name.instant in later):
            file.unlink()
    _forget_metadata(copy)
    return Scheduled(copy, instant, plan, _has_all(copy, plan))


def _drop_later_logs(copy: Path, timeline: Path, instant: str) -> None:
    """Remove the log files of later writes in version 6, whose names do not tell when."""
    for file in timeline.glob("*.deltacommit"):
        data = file.read_bytes()
        if file.name.partition(".")[0] < instant or data[:1] != b"{":
            continue
        for stats in json.loads(data)["partitionToWriteStats"].values():
            for stat in stats:
                (copy / stat["path"]).unlink(missing_ok=True)


def _drop_later_instants(timeline: Path, instant: str) -> set[str]:
    """Remove what came after; return the compactions that were completed only then."""
    completions = {}
    for file in timeline.iterdir():
        found = Instant.parse(file.name)
        if found is not None and found.is_completed:
            completions[found.requested] = found.completed or found.requested
    pending = set()
    for file in sorted(timeline.iterdir()):
        found = Instant.parse(file.name)
        if found is None:
            continue
        ended = completions.get(found.requested, "9")
        if found.requested >= instant:
            file.unlink()
        elif ended > instant and (found.is_completed or ".inflight" in file.name):
            if found.action in (Action.COMMIT, Action.COMPACTION):
                pending.add(found.requested)
                file.unlink()
            elif found.is_completed:
                file.unlink()
    return pending


def _forget_metadata(table: Path) -> None:
    properties = table / ".hoodie" / "hoodie.properties"
    listed = re.compile(rb"hoodie\.table\.metadata\.partitions=.*")
    properties.write_bytes(
        listed.sub(b"hoodie.table.metadata.partitions=", properties.read_bytes())
    )
    shutil.rmtree(table / ".hoodie" / "metadata", ignore_errors=True)


def _has_all(table: Path, plan: dict[str, Any]) -> bool:
    for one in plan["operations"]:
        folder = table / one["partitionPath"]
        names = [*one["deltaFilePaths"], *([one["dataFilePath"]] if one["dataFilePath"] else [])]
        if not all((folder / name).exists() for name in names):
            return False
    return True
