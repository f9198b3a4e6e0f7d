"""Runs that write to a table of three rows, stopped or disturbed, and their leftovers."""

from __future__ import annotations

import atexit
import json
import re
import shutil
import tempfile
from copy import copy
from dataclasses import replace
from functools import cache
from pathlib import Path

from reconciler.hudi.codecs import avro_container
from reconciler.hudi.files.table_files import make_present_keys
from reconciler.hudi.load import load_properties, load_timeline
from reconciler.hudi.timeline.heartbeat import HEARTBEAT_FOLDER
from reconciler.hudi.timeline.markers import MARKER_FOLDER
from reconciler.state.observe import observe
from reconciler.storage.open import open_storage
from reconciler.transaction.metadata.rewrite_sync import find_listing_differences
from reconciler.writer.request import WriteMode
from tests.crash.drill import Killed
from tests.storage_wrappers import RecordingStorage
from tests.table_sessions import write_spec
from tests.write_runs import WriteRuns, make_rows

BEFORE = [(1, "a", 1, "one"), (2, "b", 1, "two"), (3, "b", 1, "three")]
BATCH = make_rows((1, "a", 2, "ONE"), (4, "c", 1, "four"))
AFTER = [(1, "a", 2, "ONE"), (2, "b", 1, "two"), (3, "b", 1, "three"), (4, "c", 1, "four")]
#: an instant later than those of a test's runs
LATE = "20261201000100000"


def make_table(folder, version, kind="COPY_ON_WRITE"):
    return copy_table(_write_table(version, kind), folder, own_clock=True)


@cache
def _write_table(version, kind):
    """Write the table of a version once for all tests of this process, which copy it."""
    folder = Path(make_shared_folder(), f"{kind}-{version}")
    folder.mkdir()
    it = WriteRuns(write_spec(folder, version=version, kind=kind))
    if kind == "MERGE_ON_READ":  # with a log file in each partition
        older = [(key, path, 0, "old") for key, path, _ts, _text in BEFORE]
        it.write(make_rows(*older))
    it.write(make_rows(*BEFORE))
    return it


@cache
def make_shared_folder():
    """Make a folder for tables that tests copy; it goes when this process ends."""
    folder = tempfile.mkdtemp(prefix="write-drill-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def copy_table(it, folder, *, own_clock=False):
    """Copy the table to another folder; ``own_clock``: the runs there have a clock of their own."""
    shutil.copytree(Path(it.spec.path).parent, folder)
    table = it.spec.table
    buckets = None if table.index is None else table.index.buckets
    spec = write_spec(folder, version=table.version, kind=table.type, buckets=buckets)
    found = WriteRuns(spec)
    found.clock, found.count = copy(it.clock) if own_clock else it.clock, it.count
    return found


def list_leftovers(it):
    """Return what runs must not leave: markers, heartbeats, pending instants, wrong listings."""
    storage = open_storage(it.spec.path)
    properties = load_properties(storage)
    timeline = load_timeline(storage, properties)
    found = [one.file_name for one in timeline.instants if not one.is_completed]
    for folder in (HEARTBEAT_FOLDER, MARKER_FOLDER):
        path = Path(it.spec.path, folder)
        found += [one.name for one in path.iterdir()] if path.is_dir() else []
    found += find_listing_differences(
        storage, properties, timeline, {"p=a": [], "p=b": [], "p=c": []}
    )
    return found + _list_unlisted_files(storage)


def _list_unlisted_files(storage):
    """Return data files that the metadata table does not list."""
    disk, listed = (
        observe(storage, None, observed_ms=0, listing=source) for source in ("storage", "metadata")
    )
    names = (set(make_present_keys(state.files).to_pylist()) for state in (disk, listed))
    on_disk, in_metadata = names
    return sorted(on_disk - in_metadata)


def write_in_between(it, folder, batch, way=WriteMode.UPSERT):
    """Return storage in which another run writes a batch before this one's first file."""
    other = copy_table(it, folder)
    other.spec, other.count = it.spec, 50
    seen = []

    class Between(RecordingStorage):
        def create_from(self, path, file):
            if not seen:
                seen.append(path)
                other.write(batch, way, living=frozenset({it.count}))
            super().create_from(path, file)

    return Between


def get_timeline_folder(it):
    """Return the timeline folder."""
    old = it.spec.table.version < 8
    return Path(it.spec.path, ".hoodie" if old else ".hoodie/timeline")


def put_timeline_file(it, name, data=b""):
    """Write a file of the timeline."""
    (get_timeline_folder(it) / name).write_bytes(data)


def make_completed_name(it, instant, action):
    """Return the name of a completed instant; layout 2 adds the completion time."""
    return f"{instant}.{action}" if it.spec.table.version < 8 else f"{instant}_{LATE}.{action}"


def find_pending_instant(it):
    """Return the newest pending commit."""
    names = [path.name for path in get_timeline_folder(it).glob("*.commit.requested")]
    return max(name[:17] for name in names)


def act_after(pattern, act):
    """Return storage that calls ``act`` after the first change of a matching path."""
    seen = []

    class When(RecordingStorage):
        def _intercept(self, call, what, torn=None):
            found = super()._intercept(call, what, torn)
            if call.mutates and not seen and re.search(pattern, call.paths[0]):
                seen.append(call)
                act()
            return found

    return When


def die_at(pattern):
    """Return storage of a process that dies before it changes a matching path."""
    dead = []

    class Dies(RecordingStorage):
        def _intercept(self, call, what, torn=None):
            if call.mutates and any(re.search(pattern, path) for path in call.paths[:1]):
                dead.append(call)
            if dead:
                raise Killed
            return super()._intercept(call, what, torn)

    return Dies


def set_store_clock(ms):
    """Return storage whose clock shows so many epoch milliseconds."""

    class AtTime(RecordingStorage):
        def stat(self, path):
            entry = super().stat(path)
            is_asked = entry is not None and path.endswith(".clock")
            return replace(entry, modified_ms=ms) if is_asked else entry

    return AtTime


def write_rollback(it, instant, rollback=LATE, *, is_done=False):
    """Write a rollback of Hudi: pending, or completed, with nothing of the write left."""
    said = {"commitTime": instant, "action": "commit"}
    plan = {"instantToRollback": said, "RollbackRequests": [], "version": 1}
    put_timeline_file(
        it,
        f"{rollback}.rollback.requested",
        avro_container.encode_container("HoodieRollbackPlan.avsc", plan),
    )
    put_timeline_file(it, f"{rollback}.rollback.inflight")
    if not is_done:
        return
    for path in Path(it.spec.path).glob(f"*/*_{instant}.parquet"):
        path.unlink()
    shutil.rmtree(Path(it.spec.path, MARKER_FOLDER, instant))
    for path in get_timeline_folder(it).glob(f"{instant}*"):
        path.unlink()
    put_timeline_file(it, make_completed_name(it, rollback, "rollback"))


def encode_completed(it, record, name="HoodieReplaceCommitMetadata"):
    """Encode the file of a completed write."""
    old = it.spec.table.version < 8
    return (
        json.dumps(record).encode()
        if old
        else avro_container.encode_container(f"{name}.avsc", record)
    )
