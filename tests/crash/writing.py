"""Runs that write to a table of three rows, stopped or disturbed, and what they must not leave."""

from __future__ import annotations

import json
import re
import shutil
from dataclasses import replace
from pathlib import Path

from reconciler.hudi import avro
from reconciler.hudi.heartbeat import HEARTBEAT_FOLDER
from reconciler.hudi.load import load_properties, load_timeline
from reconciler.hudi.markers import MARKER_FOLDER
from reconciler.storage.open import open_storage
from reconciler.storage.wrappers import Recording
from reconciler.transaction.metadata_rewrite import missing
from reconciler.writer.asked import Way
from tests.crash.drill import Killed
from tests.holding import spec_of
from tests.written import Runs, rows

BEFORE = [(1, "a", 1, "one"), (2, "b", 1, "two"), (3, "b", 1, "three")]
BATCH = rows((1, "a", 2, "ONE"), (4, "c", 1, "four"))
AFTER = [(1, "a", 2, "ONE"), (2, "b", 1, "two"), (3, "b", 1, "three"), (4, "c", 1, "four")]
#: an instant after all that runs of a test take
LATE = "20261201000100000"


def begun(folder, version):
    folder.mkdir()
    it = Runs(spec_of(folder, version=version))
    it.write(rows(*BEFORE))
    return it


def again(it, folder):
    """The same table in another folder."""
    shutil.copytree(Path(it.spec.path).parent, folder)
    found = Runs(spec_of(folder, version=it.spec.table.version))
    found.clock, found.count = it.clock, it.count
    return found


def left(it):
    """What runs should not leave: markers, heartbeats, pending instants, what is listed wrong."""
    storage = open_storage(it.spec.path)
    properties = load_properties(storage)
    timeline = load_timeline(storage, properties)
    found = [one.file_name for one in timeline.instants if not one.is_completed]
    for folder in (HEARTBEAT_FOLDER, MARKER_FOLDER):
        path = Path(it.spec.path, folder)
        found += [one.name for one in path.iterdir()] if path.is_dir() else []
    found += missing(storage, properties, timeline, {"p=a": [], "p=b": [], "p=c": []})
    return found


def meanwhile(it, folder, batch, way=Way.UPSERT):
    """Storage in which another run writes a batch just before this one writes its first file."""
    other = again(it, folder)
    other.spec, other.count = it.spec, 50
    seen = []

    class Between(Recording):
        def create_from(self, path, file):
            if not seen:
                seen.append(path)
                other.write(batch, way, living=frozenset({it.count}))
            super().create_from(path, file)

    return Between


def timeline_of(it):
    """The folder of its timeline."""
    old = it.spec.table.version < 8
    return Path(it.spec.path, ".hoodie" if old else ".hoodie/timeline")


def put(it, name, data=b""):
    """A file of the timeline."""
    (timeline_of(it) / name).write_bytes(data)


def completed_name(it, instant, action):
    """Of a completed instant, which says when in layout 2."""
    return f"{instant}.{action}" if it.spec.table.version < 8 else f"{instant}_{LATE}.{action}"


def instant_now(it):
    """The newest instant of a commit that is pending."""
    names = [path.name for path in timeline_of(it).glob("*.commit.requested")]
    return max(name[:17] for name in names)


def when(pattern, act):
    """Storage in which somebody acts just after the first change of a path that matches."""
    seen = []

    class When(Recording):
        def _gate(self, call, what, torn=None):
            found = super()._gate(call, what, torn)
            if call.mutates and not seen and re.search(pattern, call.paths[0]):
                seen.append(call)
                act()
            return found

    return When


def dies_at(pattern):
    """Storage of a process that is gone before it changes a path that matches."""
    dead = []

    class Dies(Recording):
        def _gate(self, call, what, torn=None):
            if call.mutates and any(re.search(pattern, path) for path in call.paths[:1]):
                dead.append(call)
            if dead:
                raise Killed
            return super()._gate(call, what, torn)

    return Dies


def at_time(ms):
    """Storage of a store whose clock says so many epoch milliseconds."""

    class AtTime(Recording):
        def stat(self, path):
            entry = super().stat(path)
            is_asked = entry is not None and path.endswith(".clock")
            return replace(entry, modified_ms=ms) if is_asked else entry

    return AtTime


def rolls_back(it, instant, rollback=LATE, *, is_done=False):
    """A rollback of Hudi: begun, or completed with nothing left on the timeline."""
    said = {"commitTime": instant, "action": "commit"}
    plan = {"instantToRollback": said, "RollbackRequests": [], "version": 1}
    put(it, f"{rollback}.rollback.requested", avro.encode("HoodieRollbackPlan.avsc", plan))
    put(it, f"{rollback}.rollback.inflight")
    if not is_done:
        return
    for path in Path(it.spec.path).glob(f"*/*_{instant}.parquet"):
        path.unlink()
    shutil.rmtree(Path(it.spec.path, MARKER_FOLDER, instant))
    for path in timeline_of(it).glob(f"{instant}*"):
        path.unlink()
    put(it, completed_name(it, rollback, "rollback"))


def said_by(it, record, name="HoodieReplaceCommitMetadata"):
    """A completed write's file."""
    old = it.spec.table.version < 8
    return json.dumps(record).encode() if old else avro.encode(f"{name}.avsc", record)
