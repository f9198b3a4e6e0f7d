"""Writes of real Hudi that died, and our rollback of them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress

from reconciler.executor.result import ApplyResult
from reconciler.hudi.files.names import LogName
from reconciler.hudi.timeline.commit import WriteFootprint
from reconciler.hudi.timeline.markers import APPEND, marker_path
from reconciler.plans.model import RollbackStep
from reconciler.plans.plan import Plan
from reconciler.storage.open import open_storage
from tests import our_compaction
from tests.crash.drill import Killed
from tests.crash.write_drill import die_at
from tests.oracle import our_clean
from tests.oracle.hudi import HudiFailedError, HudiTable, RealHudi

#: a check before the commit that no write passes, so that its files and markers stay
FAILING = {
    "hoodie.precommit.validators": (
        "org.apache.hudi.client.validator.SqlQuerySingleResultPreCommitValidator"
    ),
    "hoodie.precommit.validators.single.value.sql.queries": "select count(*) from <TABLE_NAME>#-1",
}
LAZY = {
    "hoodie.cleaner.policy.failed.writes": "LAZY",
    "hoodie.clean.failed.writes.policy": "LAZY",
}
#: markers in lists that a timeline server writes
SERVED_MARKERS = {"hoodie.embed.timeline.server": "true"}
RETENTION = {"commits": 50, "failedWrites": "LAZY"}
#: rows of the writes that die: an update in each of two partitions, and a new row
BATCH = (("a1", "a", 90), ("b1", "b", 90), ("n1", "a", 90))


def fail_write(
    hudi: RealHudi,
    table: HudiTable,
    rows: Sequence[Sequence[object]] = BATCH,
    options: dict[str, str] | None = None,
) -> str:
    """Have a write die after its files were written, before it is committed; return its instant."""
    try:
        hudi.write(table, rows, options={**LAZY, **FAILING, **(options or {})})
    except HudiFailedError:
        instant = find_pending(table)
        make_old(table, instant)
        return instant
    raise AssertionError("the write was committed")


def break_off_clustering(hudi: RealHudi, table: HudiTable) -> str:
    """Have a clustering die after its files and metadata table entries; return its instant."""
    instant = hudi.schedule(table, "CLUSTER")
    assert instant
    hudi.cluster(table, instant)
    remove_completed(table, instant)
    return instant


def break_off(
    hudi: RealHudi,
    table: HudiTable,
    rows: Sequence[Sequence[object]] = BATCH,
    *,
    with_markers: bool = False,
    options: dict[str, str] | None = None,
) -> str:
    """Have a write die after its metadata table entries; return its instant.

    ``with_markers``: False leaves none, so that Hudi's rollback leaves the files.
    """
    instant = hudi.write(table, rows, options={**LAZY, **(options or {})})
    if with_markers:
        restore_markers(table, instant)
    remove_completed(table, instant)
    return instant


def restore_markers(table: HudiTable, instant: str) -> None:
    """Write the markers of a completed write again, which Hudi has removed."""
    shares_logs = table.timeline.name == ".hoodie"  # before version 8
    path = table.timeline / _find_completed(table, instant)
    for partition, name in WriteFootprint.parse(path.read_bytes(), str(path)).files:
        kind = APPEND if LogName.parse(name) and shares_logs else "CREATE"
        marker = table.path / marker_path(instant, partition, name, kind)
        marker.parent.mkdir(parents=True, exist_ok=True)
        marker.touch()


def remove_completed(table: HudiTable, instant: str) -> None:
    """Take an instant back to inflight, as if its writer had died just before it completed."""
    done = _find_completed(table, instant)
    for path in (table.timeline / done, table.timeline / f".{done}.crc"):
        path.unlink(missing_ok=True)
    make_old(table, instant)


def _find_completed(table: HudiTable, instant: str) -> str:
    (done,) = [n for n in table.instants() if re.fullmatch(rf"{instant}(_\d+)?\.\w*commit", n)]
    return done


def find_pending(table: HudiTable) -> str:
    """Return the newest instant without a completed file."""
    names = table.instants()
    done = {
        re.split(r"[._]", n)[0]
        for n in names
        if re.fullmatch(r"\d+(_\d+)?\.[a-z]+", n) and not n.endswith(".inflight")
    }
    return max(re.split(r"[._]", n)[0] for n in names if re.split(r"[._]", n)[0] not in done)


def make_old(table: HudiTable, instant: str) -> None:
    """Move the times of what a dead writer left into the past, without waiting."""
    our_compaction.make_old(table.path, instant)


def list_written(table: HudiTable, instant: str) -> set[str]:
    """Return the data files that are named by an instant."""
    found = table.path.rglob(f"*_{instant}.*")
    return {
        str(p.relative_to(table.path))
        for p in found
        if ".hoodie" not in p.parts and not p.name.endswith(".crc")
    }


def make_plan(table: HudiTable) -> Plan:
    """Plan with a short patience for writers and for clusterings."""
    patience = "1m, pending: {clustering: rollback, after: 1m}"
    return our_clean.make_plan(table, RETENTION, stale_after=patience)


def get_step(plan: Plan) -> RollbackStep:
    (step,) = plan.tables[0].steps
    assert isinstance(step, RollbackStep)
    return step


def roll_back(table: HudiTable) -> ApplyResult:
    """Plan and apply; everything planned must be done, and nothing is left."""
    result = our_clean.apply_here(make_plan(table))
    assert result.exit_code == 0, [(t.error, t.refusals, t.outcomes) for t in result.tables]
    assert () == make_plan(table).tables[0].steps
    return result


def list_named(step: RollbackStep) -> list[str]:
    """Return the paths of the files that a step names."""
    pairs = zip(step.files.partition.to_pylist(), step.files.name.to_pylist(), strict=True)
    return [f"{partition}/{name}".lstrip("/") for partition, name in pairs]


def die_in_rollback(table: HudiTable) -> None:
    """Have an apply die after its rollback is announced, and before anything is deleted."""
    dying = die_at(r"\.rollback\.inflight$")
    with suppress(Killed):
        our_clean.apply_here(make_plan(table), storage=lambda ref: dying(open_storage(ref)))
    for beat in (table.path / ".hoodie" / ".heartbeat").iterdir():
        if beat.stat().st_size:
            beat.unlink()
    (table.path / ".hoodie" / "lock").unlink(missing_ok=True)


def leave_rollback(hudi: RealHudi, table: HudiTable, instant: str) -> None:
    """Have Hudi roll a write back, and go back to when it had deleted its files."""
    pending = {path: path.read_bytes() for path in table.timeline.glob(f"{instant}*")}
    hudi.rollback(table, instant)
    done = max(table.instants(".rollback"))
    (table.timeline / done).unlink()
    (table.timeline / f".{done}.crc").unlink(missing_ok=True)
    for path, data in pending.items():
        path.write_bytes(data)
    make_old(table, instant)
    make_old(table, re.split(r"[._]", done)[0])
