"""Dead writes, and plans and applies that roll them back, on the host of the runs."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from functools import cache
from pathlib import Path

import pytest

import reconciler
from reconciler.executor.deletion import LocalDeleter
from reconciler.planners.compose import plan_table
from reconciler.plans.document import dump_plan, load_plan
from reconciler.plans.plan import Plan
from reconciler.state.observe import observe
from reconciler.storage.open import open_storage
from tests.applying import admit_and_apply
from tests.crash.drill import Killed, process
from tests.crash.write_drill import (
    BATCH,
    copy_table,
    die_at,
    find_pending_instant,
    make_shared_folder,
    make_table,
)

#: a process that is not one of the runs
PLANNER = 900


def make_dead_write(folder, version):
    """Return a write that died after its files and its metadata table entries."""
    return copy_table(_write_and_die(version), folder, own_clock=True)


@cache
def _write_and_die(version):
    """Leave the dead write of a version once for all tests of this process, which copy it."""
    found = make_table(Path(make_shared_folder(), f"dead-{version}"), version)
    with pytest.raises(Killed):
        found.write(BATCH, around=die_at(r"timeline/\d+_\d+\.commit$|\.hoodie/\d+\.commit$"))
    assert 2 == len(list_instant_files(found, find_pending_instant(found)))
    return found


def add_spec_line(it, line):
    """Add a line to the spec of the runs."""
    file = Path(it.spec.path).parent / "spec.yaml"
    file.write_text(file.read_text().replace("  timezone:", f"  {line}\n  timezone:"))
    (it.spec,) = reconciler.load_specs(file)
    return it


def make_plan(it, *, living=frozenset()):
    """Plan on the host of the runs, and read the plan from its document."""
    ms = it.clock.now_ms()
    state = observe(
        open_storage(it.spec.path),
        it.spec,
        observed_ms=ms,
        check_process=process(PLANNER, living).is_alive,
    )
    table = plan_table(it.spec, state, datetime.fromtimestamp(ms / 1000, UTC))
    made = Plan(created_at="2026-12-01T00:00:00+00:00", tool="test", tables=(table,))
    return load_plan(dump_plan(made), "plan.json")


def apply_once(it, plan, *, around=lambda storage: storage, living=frozenset(), host="here"):
    """Apply in a process of its own."""
    it.count += 1
    opened = {}

    def opener(ref, _options=None):
        location = ref if isinstance(ref, str) else ref.location
        if location not in opened:
            opened[location] = around(open_storage(ref))
        return opened[location]

    return admit_and_apply(
        plan,
        open_storage=opener,
        deleter=LocalDeleter(opener),
        clock=it.clock,
        new_token=iter(f"apply-{it.count}-{n}" for n in range(9)).__next__,
        process=replace(process(it.count, living), host=host),
        lock_wait_s=0,
    )


def list_instant_files(it, instant):
    root = Path(it.spec.path)
    found = root.rglob(f"*_{instant}.parquet")
    return sorted(str(path.relative_to(root)) for path in found if ".hoodie" not in path.parts)


def get_steps(plan):
    return plan.tables[0].steps


def list_step_files(step):
    pairs = zip(step.files.partition.to_pylist(), step.files.name.to_pylist(), strict=True)
    return ["/".join(pair) for pair in pairs]


def write_late_file(it, instant, folder="p=b", *, is_marked=True):
    """Write a marker and a file, as a task of the dead write that still runs."""
    name = f"99999999-9999-9999-9999-999999999999-0_9-9-9_{instant}.parquet"
    storage = open_storage(it.spec.path)
    if is_marked:
        storage.create(f".hoodie/.temp/{instant}/{folder}/{name}.marker.CREATE", b"")
    storage.create(f"{folder}/{name}", b"late")
    return f"{folder}/{name}"


def read_all_files(it):
    """Read every file but the lock."""
    root = Path(it.spec.path)
    files = [path for path in root.rglob("*") if path.is_file() and path.name != "lock"]
    return {str(path.relative_to(root)): path.read_bytes() for path in files}


def list_names(rows):
    pairs = zip(rows.partition.to_pylist(), rows.name.to_pylist(), strict=True)
    return ["/".join(pair) for pair in pairs]
