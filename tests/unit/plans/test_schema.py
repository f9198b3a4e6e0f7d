"""jsonschema and the loader refuse the same plan documents by the published schema."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import HealthCheck, given, settings

from reconciler.plans import validation
from reconciler.plans.document import dump_plan
from reconciler.plans.plan import Plan
from tests.laws.plans import plans
from tests.selection import EVERY_CASE

ROOT = Path(__file__).parents[3]
SCHEMA = json.loads(validation.TEXT)
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)
ZERO = "sha256:" + 64 * "0"
FILE = {"name": "a", "bytes": 1, "kind": "base", "rule": "retention", "because": "old"}
GROUP = {
    "partition": "p=1",
    "outputs": 2,
    "bytes": 1,
    "because": "small files",
    "slices": [{"fileId": "f", "base": None, "logs": [".f.log"]}],
}
OUTLOOK = {
    "rows": 9,
    "filled": 1,
    "filledRows": 4,
    "filledTo": {"least": 1, "most": 1},
    "rewritten": 1,
    "new": 0,
    "newOf": None,
    "small": 0,
}
SIZES = {
    "target": 2,
    "smallBelow": 1,
    "files": 1,
    "bytes": 1,
    "small": 1,
    "logOnly": 0,
    "logFiles": {"files": 2, "bytes": 1, "slices": 1},
    "histogram": [{"least": 0, "below": 1, "files": 1, "bytes": 1}],
    "smallPartitions": 1,
    "partitions": [{"partition": "", "files": 1, "small": 1, "pinned": 0, "bytes": 1}],
    "operations": [{"operation": "INSERT", "files": 1, "small": 1, "bytes": 1}],
    "nextInsert": {
        "rows": 9,
        "because": "b",
        "into": 1,
        "total": OUTLOOK,
        "partitions": [{"partition": ""} | OUTLOOK],
    },
}
FIGURES = {"files": 1, "small": 0, "bytes": 1, "overlap": 1.5, "sizes": [0, 1]}
STEPS: dict[str, dict[str, Any]] = {
    "resume": {
        "kind": "resume",
        "instant": "20260101000000000",
        "action": "clustering",
        "partitions": [],
        "groups": [GROUP],
        "because": "left behind",
    },
    "rollback": {
        "kind": "rollback",
        "instant": "20260101000000000",
        "action": "commit",
        "files": [{"partition": "p=1", "name": "a"}],
        "because": "it failed",
    },
    "cluster": {
        "kind": "cluster",
        "columns": ["a"],
        "curve": "kd-tree",
        "mapping": "rank",
        "groups": [GROUP],
    },
    "index": {
        "kind": "index",
        "targets": ["zindex", "column_stats"],
        "columns": ["a"],
        "add": ["a"],
        "drop": [],
        "files": 1,
        "because": "declared",
    },
    "clean": {
        "kind": "clean",
        "policy": "KEEP_LATEST_COMMITS",
        "earliestInstantToRetain": None,
        "partitions": [{"path": "p=1", "deletePartition": False, "files": [FILE]}],
    },
}


def document(*steps: dict[str, Any]) -> dict[str, Any]:
    return {
        "format": 1,
        "digest": ZERO,
        "createdAt": "2026-11-21T09:00:00+00:00",
        "tool": "x",
        "selection": {"tables": 1, "of": 2, "by": ["--name t"], "removed": []},
        "tables": [
            {
                "name": "t",
                "path": "/w/t",
                "spec": {},
                "specDigest": ZERO,
                "stepsDigest": ZERO,
                "error": None,
                "observed": {
                    "tableVersion": 9,
                    "tableType": "COPY_ON_WRITE",
                    "lastCompleted": None,
                    "pending": [{"instant": "1", "action": "clean", "state": "INFLIGHT"}],
                    "savepoints": ["1"],
                    "files": 0,
                    "bytes": 0,
                    "smallFiles": 0,
                },
                "drift": [{"field": "f", "desired": 1, "actual": None, "because": "b"}],
                "steps": list(steps),
                "kept": [{"partition": "", "name": "k", "rule": "cap", "because": "b"}],
                "predictions": [
                    {
                        "query": "q",
                        "filesBefore": 1,
                        "filesAfter": 1,
                        "bytesBefore": 1,
                        "bytesAfter": 1,
                        "error": 0.05,
                    }
                ],
                "impact": {
                    "filesRemoved": 0,
                    "bytesRemoved": 0,
                    "bytesRewritten": 0,
                    "earliestReadable": {"before": None, "after": "1"},
                },
                "fileSizes": SIZES,
                "layout": {
                    "below": [1],
                    "before": FIGURES,
                    "after": FIGURES,
                    "untouched": [{"rule": "r", "slices": 1, "because": "b"}],
                },
                "refusals": [{"rule": "r", "because": "b"}],
                "warnings": [],
            }
        ],
    }


def test_the_published_copy_is_the_same():
    assert validation.TEXT == (ROOT / "schemas/plan.v1.json").read_text()


def test_the_schema_is_a_schema():
    jsonschema.Draft202012Validator.check_schema(SCHEMA)


def test_the_schema_is_closed_and_described():
    def objects(node: Any) -> list[dict[str, Any]]:
        if isinstance(node, list):
            return [found for item in node for found in objects(item)]
        if not isinstance(node, dict):
            return []
        here = [node] if "properties" in node else []
        return here + [found for item in node.values() for found in objects(item)]

    assert all(node["additionalProperties"] is False for node in objects(SCHEMA))
    optional = {"selection", "layout", "sampled", "gains", "fileSizes", "nextInsert", "step"}
    optional |= {"purpose", "bytesWritten", "date", "writer", "rollback", "appends", "attempt"}
    optional |= {"purpose", "bytesWritten", "otherSavepoints", "logFiles", "merging"}
    optional |= {"costs", "storagePerGbMonth", "scanPerTb", "rewritePerTb", "freedPerMonth"}
    optional |= {"rewriteOnce", "addedPerMonth", "deletedPerMonth", "queries", "paysBackDays"}
    optional |= {"runsPerDay", "perDayBefore", "perDayAfter", "newestWrite"}
    optional |= {"merged", "written", "brought", "writtenPerByte"}
    for node in objects(SCHEMA):
        names, required = set(node["properties"]), set(node["required"])
        assert names - optional <= required <= names
    assert all(node["description"] for node in objects(SCHEMA))


@settings(
    max_examples=40,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
@given(plans())
def test_every_plan_is_valid(plan: Plan):
    VALIDATOR.validate(json.loads(dump_plan(plan)))


@pytest.mark.parametrize("kind", STEPS)
def test_every_step_of_the_contract_is_valid(kind: str):
    VALIDATOR.validate(document(STEPS[kind]))


def _everywhere(node: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The paths of all values below the node that the format does not leave open."""
    if path[-1:] in [("spec",), ("desired",), ("actual",)]:
        return []
    items = node.items() if isinstance(node, dict) else enumerate(node)
    found = []
    for key, value in items:
        found.append((*path, key))
        if isinstance(value, dict | list):
            found += _everywhere(value, (*path, key))
    return found


SOUND = document(*STEPS.values())


WRONG = (-1, 0.5, "../x\0", True, None, [], [1], {}, {"x": 1}, "absent")
#: five paths beside each other try all wrong values between them
PATHS = [
    (path, WRONG if EVERY_CASE else WRONG[number % 5 :: 5])
    for number, path in enumerate(_everywhere(SOUND))
]


@pytest.mark.parametrize(
    ("path", "others"), PATHS, ids=[".".join(map(str, path)) for path, _ in PATHS]
)
def test_the_schema_and_the_loader_refuse_the_same(path: tuple[Any, ...], others: list[Any]):
    for other in others:
        changed = copy.deepcopy(SOUND)
        holder = changed
        for key in path[:-1]:
            holder = holder[key]
        if other == "absent" and isinstance(holder, dict):
            del holder[path[-1]]
        else:
            holder[path[-1]] = other

        try:
            validation.validate_document(changed)
            is_refused = False
        except validation.PlanError:
            is_refused = True
        assert is_refused is not VALIDATOR.is_valid(changed), other


@pytest.mark.parametrize(
    "name",
    ["a", ".", "..", "...", "..a", "a/b", "a\\b", "a\0", "", ".hoodie", "é", "a\nb"],
)
def test_the_schema_and_the_loader_agree_on_file_names(name: str):
    pattern = {"$ref": "#/$defs/fileName", "$defs": SCHEMA["$defs"]}

    assert validation.is_file_name(name) is jsonschema.Draft202012Validator(pattern).is_valid(name)


@pytest.mark.parametrize(
    "path",
    [
        *("", "a", "a/b", "/a", "a/", "a//b", "..", "a/..", "../a", "a/../b", ".", "./a", "..."),
        *(
            ".hoodie",
            ".hoodie/x",
            ".hoodie2",
            "a/.hoodie",
            "s3://b",
            "a\\b",
            "a\0",
            "é=1/ü",
            "a\nb",
        ),
    ],
)
def test_the_schema_and_the_loader_agree_on_partitions(path: str):
    pattern = {"$ref": "#/$defs/partitionPath", "$defs": SCHEMA["$defs"]}

    assert validation.is_partition(path) is jsonschema.Draft202012Validator(pattern).is_valid(path)
