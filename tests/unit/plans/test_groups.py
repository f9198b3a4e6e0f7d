from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from reconciler import canonical_json
from reconciler.errors import PlanError
from reconciler.plans.compact_step import CompactStep, ExpectedCompaction
from reconciler.plans.decode import empty_removed_files
from reconciler.plans.document import _read_canonical as read_canonical
from reconciler.plans.document import dump_plan, load_plan
from reconciler.plans.encode import compute_spec_digest
from reconciler.plans.groups import group_of_slices, rewrites_from_json, slice_paths
from reconciler.plans.layout_change import Untouched
from reconciler.plans.model import (
    CleanStep,
    ClusterStep,
    ResumeStep,
    Step,
    TablePlan,
    removal_steps,
    rewritten_groups,
)
from reconciler.plans.plan import Plan
from tests.unit.executor.rows import make_clean_step

SMALL = {
    "partition": "p=1",
    "outputs": 1,
    "bytes": 30,
    "because": 'two "small" files become one',
    "slices": [
        {"fileId": "f1", "base": "f1_1.parquet", "logs": [".f1_1.log.1", ".f1_1.log.2"]},
        {"fileId": "f2", "base": None, "logs": [".f2_1.log.1"]},
    ],
}
WIDE = {
    "partition": "p=2",
    "outputs": 3,
    "bytes": 900,
    "because": "overlap",
    "slices": [{"fileId": "f1", "base": "f1_9.parquet", "logs": []}],
}


def cluster(*groups: dict[str, Any], **fields: Any) -> ClusterStep:
    asked = {"columns": ("a", "b"), "curve": "kd-tree", "mapping": "rank", **fields}
    return ClusterStep(**asked, groups=rewrites_from_json(groups))


def compact(*groups: dict[str, Any]) -> CompactStep:
    expected = [
        ExpectedCompaction(
            partition=group["partition"],
            slices=1,
            log_files=2,
            log_bytes=20,
            bytes=group["bytes"],
            expected_bytes=10,
        )
        for group in groups
    ]
    return CompactStep(
        order="logBytes",
        groups=rewrites_from_json(groups),
        expected=tuple(expected),
        untouched=(Untouched("when", 3, "no condition holds"),),
    )


def resume(*groups: dict[str, Any]) -> ResumeStep:
    return ResumeStep(
        instant="7",
        action="clustering",
        files=empty_removed_files(),
        groups=rewrites_from_json(groups),
    )


def clean() -> CleanStep:
    return CleanStep(
        policy="KEEP_LATEST_COMMITS", earliest_instant_to_retain="1", files=empty_removed_files()
    )


def plan(*steps: Step) -> Plan:
    table = TablePlan(
        name="t", path="/w/t", spec={}, spec_digest=compute_spec_digest({}), steps=steps
    )
    return Plan(created_at="2026-11-21T09:00:00+00:00", tool="hudi-reconciler 0", tables=(table,))


def test_a_cluster_step_is_exactly_this():
    document = json.loads(dump_plan(plan(cluster(SMALL, WIDE))))

    assert [
        {
            "kind": "cluster",
            "columns": ["a", "b"],
            "curve": "kd-tree",
            "mapping": "rank",
            "groups": [SMALL, WIDE],
        }
    ] == document["tables"][0]["steps"]


SLICE = {**SMALL, "partition": "p=3", "slices": SMALL["slices"][:1]}


def test_a_compact_step_is_exactly_this():
    document = json.loads(dump_plan(plan(compact(SLICE))))

    assert [
        {
            "kind": "compact",
            "order": "logBytes",
            "groups": [SLICE],
            "expected": [
                {
                    "partition": "p=3",
                    "slices": 1,
                    "logFiles": 2,
                    "logBytes": 20,
                    "bytes": 30,
                    "expectedBytes": 10,
                }
            ],
            "untouched": [{"rule": "when", "slices": 3, "because": "no condition holds"}],
        }
    ] == document["tables"][0]["steps"]


def test_a_compact_step_is_read_as_columns_wherever_it_stands():
    steps = (resume(WIDE), cluster(SMALL), compact(SLICE), clean())
    resumed_clean = ResumeStep(instant="6", action="clean", files=make_clean_step("p=1/f").files)
    for chosen in (steps, steps[2:], steps[:3], steps[2:3], (resumed_clean, *steps[2:])):
        found = read_canonical(dump_plan(plan(*chosen)))
        assert found is not None
        (step,) = (one for one in found.tables[0].steps if isinstance(one, CompactStep))
        assert (["f1"], [[".f1_1.log.1", ".f1_1.log.2"]], 10) == (
            step.groups.file_id.to_pylist(),
            step.groups.logs.to_pylist(),
            step.expected_bytes,
        )
        assert (30, "when") == (step.groups.bytes.sum(), step.untouched[0].rule)


def test_a_plan_that_compacts_slices_together_is_refused():
    with pytest.raises(PlanError, match="compacts file slices of table t together"):
        load_plan(dump_plan(plan(compact(SMALL))), "plan.json")


def test_without_columns_curve_and_mapping_are_null():
    step = cluster(SMALL, columns=(), curve=None, mapping=None)
    document = json.loads(dump_plan(load_plan(dump_plan(plan(step)), "plan.json")))

    found = document["tables"][0]["steps"][0]
    assert {"columns": [], "curve": None, "mapping": None} == {
        key: found[key] for key in ("columns", "curve", "mapping")
    }


def test_canonical_groups_never_take_the_slow_path():
    data = dump_plan(plan(resume(WIDE), cluster(SMALL), clean()))

    found = read_canonical(data)
    assert found is not None
    first, second, _ = found.tables[0].steps
    assert isinstance(first, ResumeStep)
    assert isinstance(second, ClusterStep)
    assert first.groups is not None
    assert ["f1"] == first.groups.file_id.to_pylist()
    groups = second.groups
    assert ["f1_1.parquet", None] == groups.base.to_pylist()
    assert [[".f1_1.log.1", ".f1_1.log.2"], [".f2_1.log.1"]] == groups.logs.to_pylist()
    assert [0, 2] == groups.starts.tolist()
    assert ['two "small" files become one'] == groups.because.to_pylist()


def test_what_steps_remove_and_rewrite_is_told_apart():
    steps = (resume(WIDE), resume(), cluster(SMALL), clean())

    assert (steps[0], steps[1], steps[3]) == removal_steps(steps)
    assert [900, 30] == [int(groups.bytes.sum()) for groups in rewritten_groups(steps)]


def test_every_slice_knows_its_group_and_its_path():
    groups = cluster(SMALL, WIDE).groups

    assert [0, 0, 1] == group_of_slices(groups).tolist()
    assert ["p=1/f1", "p=1/f2", "p=2/f1"] == slice_paths(groups).to_pylist()


def _first(document: dict[str, Any]) -> dict[str, Any]:
    group: dict[str, Any] = document["tables"][0]["steps"][0]["groups"][0]
    return group


BROKEN: dict[str, tuple[Callable[[dict[str, Any]], Any], str]] = {
    "a base climbs out": (
        lambda d: _first(d)["slices"][0].update(base="../x"),
        "groups[0].slices[0].base must be the name of a file in its partition, not '../x'",
    ),
    "a log climbs out": (
        lambda d: _first(d)["slices"][0]["logs"].append(".."),
        "groups[0].slices[0].logs[2] must be the name of a file in its partition",
    ),
    "a file id climbs out": (
        lambda d: _first(d)["slices"][1].update(fileId="a/b"),
        "groups[0].slices[1].fileId must be the name of a file in its partition",
    ),
    "a partition climbs out": (
        lambda d: _first(d).update(partition="p=1/../.."),
        "groups[0].partition must be the path of a partition inside the table",
    ),
    "a size is negative": (
        lambda d: _first(d).update(bytes=-1),
        "groups[0].bytes must be between 0 and 2^63",
    ),
    "nothing is to come out of less than nothing": (
        lambda d: _first(d).update(outputs=-1),
        "groups[0].outputs must be between 0 and 2^63",
    ),
    "rows are to be in no file at all": (
        lambda d: _first(d).update(outputs=0),
        "groups[0].outputs must be at least 1",
    ),
    "a group is of nothing": (
        lambda d: _first(d).update(slices=[]),
        "groups[0].slices must have at least 1 item",
    ),
    "a curve is unknown": (
        lambda d: d["tables"][0]["steps"][0].update(curve="peano"),
        "curve must be one of linear, z-order, hilbert, kd-tree, not 'peano'",
    ),
    "a file group is rewritten twice": (
        lambda d: _first(d)["slices"].append(_first(d)["slices"][1]),
        "rewrites file group 'p=1/f2' of table t twice",
    ),
    "a file group is rewritten in two steps": (
        lambda d: d["tables"][0]["steps"].append(d["tables"][0]["steps"][0]),
        "rewrites file group 'p=1/f1' of table t twice",
    ),
}


@pytest.mark.parametrize("case", BROKEN)
@pytest.mark.parametrize("layout", ["canonical", "indented"])
def test_a_resealed_cluster_step_is_still_refused_when(case: str, layout: str):
    change, sentence = BROKEN[case]
    document = json.loads(dump_plan(plan(cluster(SMALL, WIDE))))
    change(document)
    table = document["tables"][0]
    table["stepsDigest"] = canonical_json.digest_document(table["steps"])
    covered = {k: v for k, v in document.items() if k not in ("digest", "createdAt", "tool")}
    document["digest"] = canonical_json.digest_document(covered)
    data = canonical_json.to_bytes(document) + b"\n"
    if layout == "indented":
        data = json.dumps(document, indent=2).encode()

    with pytest.raises(PlanError) as found:
        load_plan(data, "plan.json")
    assert sentence in str(found.value)
