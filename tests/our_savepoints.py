"""Plan and apply savepoints in tests: a spec whose savepoints change, and what tables have."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import reconciler
from reconciler.hudi.timeline.instant import Action, Instant
from reconciler.hudi.timeline.savepoint import SavepointMetadata
from reconciler.planners.savepoints.instants import list_completed_writes
from reconciler.spec.model import TableSpec
from reconciler.state.model import TableState
from reconciler.state.observe import observe
from reconciler.storage.open import open_storage

SPEC = """\
apiVersion: reconciler/v1
kind: HudiTable
metadata: {{name: t}}
spec:
  path: "{path}"
  timezone: UTC
  {retention}
  savepoints: [{savepoints}]
  concurrency: {{lock: {{provider: filesystem}}, staleAfter: 1h}}
"""
#: in the year 2096
_LATE_MS = 4_000_000_000_000


def make_spec(table: Path, *savepoints: str, retention: str = "") -> TableSpec:
    """Load the spec of a table with these savepoints, such as ``name: q, at: 2026-09-30``."""
    file = table.parent / f"{table.name}.savepoints.yaml"
    listed = ", ".join(f"{{{one}}}" for one in savepoints)
    kept = f"retention: {{{retention}}}" if retention else ""
    file.write_text(SPEC.format(path=table, retention=kept, savepoints=listed))
    (spec,) = reconciler.load_specs(file)
    return spec


def read_state(table: Path) -> TableState:
    """Observe a table so late that no damaged file is waited for."""
    return observe(open_storage(str(table)), None, observed_ms=_LATE_MS)


def list_writes(table: Path) -> list[tuple[str, str]]:
    """Return the requested time of each completed write, and its completion as a spec has it."""
    spec = TableSpec(name="t", path=str(table))
    return [
        (requested, format_moment(completed))
        for requested, completed in list_completed_writes(spec, read_state(table))
    ]


def format_moment(instant: str) -> str:
    moment = datetime.strptime(f"{instant:0<20}", "%Y%m%d%H%M%S%f").replace(tzinfo=UTC)
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{moment.microsecond // 1000:03d}Z"


def list_savepoint_files(table: Path) -> list[str]:
    """Return the names of a table's timeline files of savepoints, sorted."""
    folder = table / ".hoodie"
    folder = folder / "timeline" if (folder / "timeline").is_dir() else folder
    names = sorted(entry.name for entry in folder.iterdir())
    found = [name for name in names if not name.endswith(".crc") and "savepoint" in name]
    assert all((one := Instant.parse(n)) and one.action is Action.SAVEPOINT for n in found)
    return found


def read_record(table: Path) -> SavepointMetadata:
    """Return the record of the only completed savepoint."""
    (name,) = (n for n in list_savepoint_files(table) if n.endswith(".savepoint"))
    folder = table / ".hoodie"
    folder = folder / "timeline" if (folder / "timeline").is_dir() else folder
    return SavepointMetadata.parse((folder / name).read_bytes(), name)
