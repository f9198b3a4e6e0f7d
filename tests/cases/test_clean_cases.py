"""Tables that real Hudi wrote, and the clean that real Hudi planned on each; ours must be the same.

Where it is not, a table below says why: a deviation on purpose, or an older version's rule. Cases
that no spec can ask for are listed too, so that nothing falls out in silence.
"""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from reconciler.planners.clean.planner import plan_clean
from reconciler.planners.compose import plan_table
from reconciler.plans.model import CleanStep
from reconciler.plans.refusals import format_instant
from reconciler.spec.model import Policy, Retention, TableSpec
from reconciler.state.observe import observe
from reconciler.storage.open import open_storage
from tests.trees import unpack

CASES = Path(__file__).parent / "clean"
SCENARIOS = sorted(path.name for path in CASES.iterdir() if path.is_dir())

#: what differs on purpose, whichever version planned it
DEVIATIONS = {
    "cow_delete_partition_savepoint": "a partition directory that holds savepointed files stays",
    "cow_hours_pending": "pending writes hold the hours boundary back too",
    "mor_hours__0.15.0": "logs of version 6 stay while Hudi 1.x reads them with a later slice",
}
# One more has no case here: an emptied partition stays while a write is pending on the timeline.
#: what differs from the version that planned it, and not from 1.2.0
OLDER_VERSIONS = {
    "cow_insert_partitions_incr__1.0.2": "COW insert-only partitions in the window: scanned",
}
#: Hudi repeats the empty clean's own plan instead of planning; an empty file is no clean here
REPAIRS = ("cow_empty_completed_clean__1.1.1", "cow_empty_completed_clean__1.2.0")


def retention_of(options: dict[str, str]) -> Retention:
    """Hudi's options as a spec's retention: policy inference and defaults are Hudi's."""
    known = {k.replace("hoodie.cleaner.", "hoodie.clean."): v for k, v in options.items()}
    kept = {
        Policy.COMMITS: known.get("hoodie.clean.commits.retained"),
        Policy.HOURS: known.get("hoodie.clean.hours.retained"),
        Policy.FILE_VERSIONS: known.get("hoodie.clean.fileversions.retained"),
    }
    given = [policy for policy, keep in kept.items() if keep is not None]
    inferred = given[0] if len(given) == 1 else Policy.COMMITS
    policy = Policy(known.get("hoodie.clean.policy", inferred))
    default = {Policy.COMMITS: "10", Policy.HOURS: "24", Policy.FILE_VERSIONS: "3"}[policy]
    return Retention(
        policy=policy,
        keep=int(kept[policy] or default),
        scan="full" if known.get("hoodie.clean.incremental.mode") == "false" else "incremental",
        after_commits=int(known.get("hoodie.clean.max.commits", "1")),
    )


def unsayable(options: dict[str, str]) -> str | None:
    """Why no spec can ask for this, None when one can."""
    if any("partition.filter" in key for key in options):
        return "a retention is of the whole table: it has no partition filter"
    if retention_of(options).keep < 1:
        return "a retention is an integer of at least 1"
    return None


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory):
    """Unpacks a case's table."""

    def of(scenario):
        folder = tmp_path_factory.mktemp(scenario, numbered=True)
        return unpack(CASES / scenario / "table.zip", folder, hollow=True)

    return of


def by_hudi(case):
    planner = case["planner"]
    earliest = planner["earliestInstantToRetain"]
    partitions = planner.get("partitions") or {}
    return {
        "earliest": re.match(r"\[(?:==>)?(\d+)", earliest)[1] if earliest else None,
        "lastCompleted": planner["lastCompletedCommitTimestamp"],
        "scanned": planner["partitionsScanned"],
        "files": {
            path: sorted(Path(f).name for f in found["files"])
            for path, found in partitions.items()
            if found["files"]
        },
        "deleted": sorted(p for p, found in partitions.items() if found["toDeletePartition"]),
    }


def by_us(state, decision):
    step = decision.step
    files: dict[str, list[str]] = {}
    if step is not None:
        pairs = zip(step.files.partition.to_pylist(), step.files.name.to_pylist(), strict=True)
        for path, name in pairs:
            files.setdefault(path, []).append(name)
    return {
        "earliest": decision.expired.earliest,
        "lastCompleted": state.commits_timeline[-1].requested if state.commits_timeline else "",
        "scanned": list(decision.expired.scanned),
        "files": files,
        "deleted": list(step.delete_partitions) if step else [],
    }


def deviation(scenario):
    return next((DEVIATIONS[name] for name in DEVIATIONS if scenario.startswith(name)), None)


def admitted(scenario, scan, hudi, ours):
    """Hudi's plan less what the scenario's deviation takes from it."""
    reason = deviation(scenario) or OLDER_VERSIONS.get(scenario)
    if reason is None:
        return hudi
    for path, files in ours["files"].items():
        assert set(files) <= set(hudi["files"].get(path, ())), reason
    assert set(ours["scanned"]) <= set(hudi["scanned"]), reason
    match scenario.split("__")[0]:
        case "cow_delete_partition_savepoint":
            return hudi | {"deleted": []}
        case "cow_insert_partitions_incr":
            return hudi | ({"scanned": ["b"]} if scan == "incremental" else {})
        case "cow_hours_pending":
            return hudi | {"earliest": ours["earliest"], "files": {}}
        case "mor_hours":
            bases = {p: [n for n in names if n[0] != "."] for p, names in hudi["files"].items()}
            return hudi | {"files": bases}
    raise AssertionError(scenario)


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_the_clean_is_the_one_that_hudi_plans(scenario, unpacked):
    folder = unpacked(scenario)
    differences = []
    for number, case in enumerate(
        json.loads((CASES / scenario / "plan.json").read_text())["cases"]
    ):
        if scenario in REPAIRS or unsayable(case["options"]) or case.get("error"):
            continue
        retention = retention_of(case["options"])
        # Hudi counts hours in the zone of its JVM, which the case names
        zone = ZoneInfo(case["tz"]) if case.get("tz") else UTC
        now = datetime.fromtimestamp(case["now_ms"][0] / 1000, UTC)
        spec = TableSpec(name="t", path=str(folder), timezone="UTC", retention=retention)
        state = observe(open_storage(str(folder)), spec, observed_ms=case["now_ms"][0])
        decision = plan_clean(
            retention, state, cutoff=format_instant(now - timedelta(hours=retention.keep), zone)
        )
        ours = by_us(state, decision)
        hudi = admitted(scenario, retention.scan, by_hudi(case), ours)
        if hudi != ours:
            differences.append((number, case["options"], hudi, ours))

    assert [] == differences


@pytest.mark.parametrize("scenario", [s for s in SCENARIOS if s.endswith("__1.2.0")])
def test_a_clean_is_planned_when_hudi_schedules_one(scenario, unpacked):
    folder = unpacked(scenario)
    differences = []
    for number, case in enumerate(
        json.loads((CASES / scenario / "plan.json").read_text())["cases"]
    ):
        if scenario in REPAIRS or unsayable(case["options"]) or case.get("error"):
            continue
        if case.get("tz") or "hoodie.write.empty.clean.interval.hours" in case["options"]:
            continue  # the zone of a JVM; a clean that only says that it was there
        retention = retention_of(case["options"])
        spec = TableSpec(name="t", path=str(folder), timezone="UTC", retention=retention)
        state = observe(open_storage(str(folder)), spec, observed_ms=case["now_ms"][0])
        now = datetime.fromtimestamp(case["now_ms"][0] / 1000, UTC)
        plan = plan_table(spec, state, now)
        step = next((s for s in plan.steps if isinstance(s, CleanStep)), None)
        if state.pending_cleans:
            continue  # resumed first, or waited for: Hudi plans the same files twice
        if bool(case["scheduled"]) != (step is not None):
            differences.append((number, case["options"], case["scheduled"], plan.warnings))

    assert [] == differences


def test_every_case_is_accounted_for():
    """Cases that are left out above, and why."""
    left_out: dict[str, int] = {}
    for scenario in SCENARIOS:
        for case in json.loads((CASES / scenario / "plan.json").read_text())["cases"]:
            reason = unsayable(case["options"])
            if reason is None and scenario in REPAIRS:
                reason = "Hudi repeats the plan of an empty clean"
            if reason is not None:
                left_out[reason] = left_out.get(reason, 0) + 1
            else:
                assert not case.get("error"), scenario

    expected = {
        "a retention is of the whole table: it has no partition filter": 6,
        "a retention is an integer of at least 1": 18,
        "Hudi repeats the plan of an empty clean": 6,
    }
    assert expected == left_out
