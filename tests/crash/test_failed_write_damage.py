"""Damaged files of a failed write: the right plan, or a message that names the file."""

from __future__ import annotations

import random

import pytest

from reconciler.errors import FormatError
from reconciler.hudi.timeline.instant import Instant
from reconciler.hudi.timeline.rollback import (
    RollbackMetadata,
    RollbackPlan,
    RollbackRequest,
    RolledBackPartition,
)
from reconciler.plans.model import RollbackStep
from reconciler.state.marker_folder import read_markers
from reconciler.storage.open import open_storage
from tests.crash.drill import Killed
from tests.crash.failed_write_drill import get_step, list_named, make_failed
from tests.crash.write_drill import die_at
from tests.selection import examples
from tests.timeline_payloads import decode_instant_file

#: in whole plans, and of bytes alone
PLANS, BYTES = examples(2, many=170), examples(40, many=1000)


def damage(data, rng):
    """Return bytes cut, with a bit flipped, or empty."""
    how = rng.choice(("cut", "flip", "flip", "empty"))
    if not data or how == "empty":
        return b""
    at = rng.randrange(len(data))
    if how == "cut":
        return data[:at]
    return data[:at] + bytes([data[at] ^ 1 << rng.randrange(8)]) + data[at + 1 :]


def list_slices(step):
    return [(one.partition, one.file_id, one.base_instant) for one in step.appends or ()]


def list_left_files(it, instant):
    """Return the files that say how an instant failed."""
    hoodie = it.table / ".hoodie"
    folders = (hoodie / ".temp" / instant, hoodie / ".heartbeat", hoodie, hoodie / "timeline")
    found = [path for folder in folders if folder.is_dir() for path in folder.glob("*")]
    return sorted(
        path
        for path in found
        if path.is_file() and (instant in path.name or path.parent.name == instant)
    )


@pytest.mark.parametrize("name", ["v6_lazy_mor_tls", "v8_mor_part"])
def test_with_one_damaged_file_a_failed_write_is_planned_as_before_or_its_file_is_named(
    tmp_path, name
):
    it = make_failed(name, tmp_path)
    whole = get_step(it.plan())
    left = list_left_files(it, whole.instant)
    assert len(left) >= 4
    rng = random.Random(20)
    for _ in range(PLANS * 3):
        path = rng.choice(left)
        data, status = path.read_bytes(), path.stat()
        path.write_bytes(damage(data, rng))
        (table,) = it.plan().tables
        steps = [step for step in table.steps if isinstance(step, RollbackStep)]
        said = " ".join([table.error or "", *(note.because for note in table.warnings)])
        if steps:
            (step,) = steps
            assert list_named(whole) == list_named(step), path
            assert list_slices(whole) == list_slices(step), path
        else:
            assert path.name in said, path
        path.write_bytes(data)
        assert status.st_size == path.stat().st_size


def test_a_damaged_plan_of_a_pending_rollback_is_named_or_removes_nothing_else(tmp_path):
    it = make_failed("v6_lazy_mor_tls", tmp_path)
    whole = get_step(it.plan())
    with pytest.raises(Killed):
        it.apply(it.plan(), around=die_at(r"\.rollback\.inflight$"))
    (requested,) = it.table.rglob("*.rollback.requested")
    data, rng = requested.read_bytes(), random.Random(21)
    for _ in range(PLANS):
        requested.write_bytes(damage(data, rng))
        (table,) = it.plan().tables
        steps = [step for step in table.steps if isinstance(step, RollbackStep)]
        named = {name for step in steps for name in list_named(step)}
        assert named <= set(list_named(whole))
        slices = {one for step in steps for one in list_slices(step)}
        assert slices <= set(list_slices(whole))
        said = " ".join([table.error or "", *(note.because for note in table.warnings)])
        assert whole.instant in {step.instant for step in steps} or requested.name in said


PLAN = RollbackPlan(
    target="20260101000000001",
    action="deltacommit",
    requests=(
        RollbackRequest(
            partition="p=1", file_id="f", base_instant="20260101000000001", files=("a.parquet",)
        ),
        RollbackRequest(
            partition="", file_id="g", base_instant="20260101000000000", log_blocks={".g.log": 7}
        ),
    ),
)


@pytest.mark.parametrize("location", ["/lake/t", "s3://lake/t"])
def test_a_rollback_plan_is_read_as_it_was_written(location):
    data = PLAN.encode(location)

    assert PLAN == RollbackPlan.parse(data, "x.rollback.requested")
    assert f"{location}/p=1/a.parquet".encode() in data


def test_a_completed_rollback_names_what_it_did():
    data = RollbackMetadata(
        started="3",
        duration_ms=5,
        target="2",
        action="commit",
        partitions={
            "p=1": RolledBackPartition(
                deleted=("a.parquet",), command_logs={".l": 9}, failed_logs={".m": 8}
            )
        },
    ).encode("/lake/t")
    record = decode_instant_file(Instant.parse("3.rollback"), data, "3.rollback")

    assert (1, ["2"]) == (record["totalFilesDeleted"], record["commitsRollback"])
    assert {
        "partitionPath": "p=1",
        "successDeleteFiles": ["/lake/t/p=1/a.parquet"],
        "failedDeleteFiles": [],
        "rollbackLogFiles": {"file:/lake/t/p=1/.l": 9},
        "logFilesFromFailedCommit": {".m": 8},
    } == record["partitionMetadata"]["p=1"]


def parse_error(data):
    """Return the error of a plan's bytes, None if they are one."""
    try:
        RollbackPlan.parse(data, "7.rollback.requested")
    except FormatError as error:
        return str(error)
    return None


def test_damaged_bytes_of_a_rollback_plan_give_an_error_that_names_the_file():
    data, rng = PLAN.encode("/lake/t"), random.Random(22)
    errors = [parse_error(damage(data, rng)) for _ in range(BYTES)]
    given = [error for error in errors if error is not None]

    assert len(given) > BYTES // 3
    assert [] == [error for error in given if "7.rollback.requested" not in error]


def test_damaged_lists_of_markers_lose_only_what_is_damaged(tmp_path):
    storage, rng = open_storage(str(tmp_path)), random.Random(23)
    folder = tmp_path / ".hoodie/.temp/7"
    folder.mkdir(parents=True)
    lines = [f"p={n}/f{n}-0_0-0-0_7.parquet.marker.CREATE" for n in range(6)]
    data = "".join(f"{line}\n" for line in lines).encode()
    for _ in range(BYTES):
        (folder / "MARKERS0").write_bytes(damage(data, rng))
        (folder / "MARKERS.type").write_bytes(damage(b"TIMELINE_SERVER_BASED", rng))
        found = read_markers(storage, "7")
        assert all(".hoodie/.temp/7/MARKERS0" in problem for problem in found.damage)
        assert len(found.markers) <= len(lines)
        assert found.modified_ms > 0
