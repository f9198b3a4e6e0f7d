"""The plan that a compaction requests, as Hudi's schedulers and compactors read it."""

from __future__ import annotations

import pytest

from reconciler.executor.compact.request import list_operations, make_plan
from reconciler.executor.compact.work import measure_inputs
from reconciler.plans.groups import rewrites_from_json
from reconciler.plans.rewrites import Rewrites
from tests.scheduled_compactions import read_plan
from tests.unit.planners.compact.test_planner import log, make_state
from tests.unit.planners.cow import base, stamp


def make_groups(*slices) -> Rewrites:
    return rewrites_from_json(
        [
            {
                "partition": partition,
                "outputs": 1,
                "bytes": 1,
                "because": "",
                "slices": [{"fileId": file_id, "base": base_file, "logs": list(logs)}],
            }
            for partition, file_id, base_file, logs in slices
        ]
    )


G = ("a", "g", base("g", 0), (log("g", 1), log("g", 2)))
H = ("a", "h", base("h", 0), (log("h", 2),))
F = ("b", "f", None, (log("f", 1),))


def request(*slices, order="logBytes", version=9):
    state = make_state(table_version=version)
    operations = list_operations(make_groups(*slices))
    made = make_plan(operations, measure_inputs(operations, state), state, order, {"k": "v"})
    return read_plan(made.encode(version=version, target_bytes=1 << 20))


def test_each_slice_is_an_operation_with_hudis_metrics():
    plan = request(G, F)

    assert [
        {
            "baseInstantTime": stamp(0),
            "deltaFilePaths": [log("g", 1), log("g", 2)],
            "dataFilePath": base("g", 0),
            "fileId": "g",
            "partitionPath": "a",
            "metrics": {
                "TOTAL_LOG_FILES": 2.0,
                "TOTAL_IO_MB": 0.0,
                "TOTAL_IO_READ_MB": 0.0,
                "TOTAL_LOG_FILES_SIZE": 20.0,
                "TOTAL_IO_WRITE_MB": 0.0,
            },
            "bootstrapFilePath": None,
        },
        {
            "baseInstantTime": stamp(1),
            "deltaFilePaths": [log("f", 1)],
            "dataFilePath": None,
            "fileId": "f",
            "partitionPath": "b",
            "metrics": {
                "TOTAL_LOG_FILES": 1.0,
                "TOTAL_IO_MB": 1.0,
                "TOTAL_IO_READ_MB": 0.0,
                "TOTAL_LOG_FILES_SIZE": 10.0,
                "TOTAL_IO_WRITE_MB": 1.0,
            },
            "bootstrapFilePath": None,
        },
    ] == plan["operations"]
    assert ({"k": "v"}, 2, None, False) == (
        plan["extraMetadata"],
        plan["version"],
        plan["strategy"],
        plan["preserveHoodieMetadata"],
    )


@pytest.mark.parametrize(
    ("slices", "left"), [((G, H, F), []), ((G, F), ["a"]), ((G, H), ["b"]), ((G,), ["a", "b"])]
)
def test_partitions_whose_log_files_stay_are_named_for_hudis_next_schedule(slices, left):
    """Otherwise its incremental scheduling would look only where something is written again."""
    assert left == request(*slices)["missingSchedulePartitions"]


def test_plans_of_version_6_name_no_partitions():
    assert "missingSchedulePartitions" not in request(G, version=6)


@pytest.mark.parametrize(("order", "ids"), [("logBytes", "gfh"), ("oldest", "fgh")])
def test_operations_are_in_the_declared_order(order, ids):
    plan = request(F, H, G, order=order)

    assert [*ids] == [one["fileId"] for one in plan["operations"]]
