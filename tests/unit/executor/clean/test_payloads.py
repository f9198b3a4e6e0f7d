"""What a clean announces and what it says it did."""

from __future__ import annotations

import json
from types import SimpleNamespace

import pytest

from reconciler.executor.clean.payloads import (
    PLACEHOLDER,
    group_names,
    list_planned_partitions,
    make_clean_extra,
    make_clean_metadata,
    split_batches,
)
from reconciler.executor.deletion import DeletionBatch
from reconciler.executor.origin import Origin
from reconciler.executor.session import ApplySession
from reconciler.hudi.files.names import BaseName
from reconciler.hudi.timeline.clean import CleanedPartition, CleanerPlan, CleanMetadata
from reconciler.hudi.timeline.owner import Owner
from reconciler.state.model import PendingClean
from tests.unit.executor.rows import make_removed_files

PLAN = CleanerPlan(policy="KEEP_LATEST_COMMITS", earliest_instant="5", last_completed_commit="9")


def test_files_come_by_partition_in_order():
    files = make_removed_files("q/b", "p/2", "p/1")

    assert group_names(files) == {"p": ("1", "2"), "q": ("b",)}
    assert group_names(make_removed_files()) == {}


def test_batches_never_cross_a_partition_or_their_limit():
    files = make_removed_files("p/1", "p/2", "p/3", "q/1")

    assert split_batches(files, 2) == [
        DeletionBatch("p", ("1", "2")),
        DeletionBatch("p", ("3",)),
        DeletionBatch("q", ("1",)),
    ]
    assert split_batches(make_removed_files(), 2) == []


def test_a_completed_clean_lists_what_is_absent_and_which_folders_went():
    done = make_clean_metadata(
        PLAN,
        instant="10",
        earliest="4",
        removed={"p": ["1"], "q": []},
        removed_partitions=("q",),
        took_ms=7,
    )

    assert (done.started, done.earliest_instant, done.last_completed_commit) == ("10", "4", "9")
    assert done.partitions == {
        "p": CleanedPartition(policy=PLAN.policy, planned=("1",), deleted=("1",)),
        "q": CleanedPartition(policy=PLAN.policy, planned=(), deleted=(), is_folder_deleted=True),
    }
    assert CleanMetadata.parse(done.encode(), "x") == done


def test_no_boundary_is_an_empty_text():
    done = make_clean_metadata(
        PLAN, instant="10", earliest=None, removed={}, removed_partitions=(), took_ms=0
    )

    assert done.earliest_instant == ""


@pytest.mark.parametrize(
    ("origin", "keys"),
    [
        (Origin(), {}),
        (
            Origin(actor="ann", spec_commit="abcdef1-dirty", environment="prod"),
            {"reconciler.actor": "ann", "reconciler.spec.commit": "abcdef1-dirty"},
        ),
    ],
)
def test_an_instant_says_who_had_it_made_and_from_which_specs(origin, keys):
    owner = Owner(who="u", host="h", pid=1, started="s", tool="t 1", token="x")
    session = SimpleNamespace(
        digest="sha256:1",
        plan=SimpleNamespace(spec_digest="sha256:2"),
        owner=owner,
        context=SimpleNamespace(origin=origin),
    )
    found = ApplySession.make_extra(session)
    found |= make_clean_extra(SimpleNamespace(savepoints=(), is_partitioned=True), ())

    assert found == keys | {
        "reconciler.plan.digest": "sha256:1",
        "reconciler.spec.digest": "sha256:2",
        "reconciler.owner": owner.encode().decode(),
        "reconciler.tool": "t 1",
    }


def make_pending_clean(**more) -> PendingClean:
    return PendingClean(instant="1", state="INFLIGHT", started_ms=0, **more)


def test_folders_of_a_pending_clean_come_from_hudis_field_and_from_ours():
    key = "reconciler.delete.partitions"

    assert list_planned_partitions(make_pending_clean(delete_partitions=("p", ""))) == {"p"}
    assert list_planned_partitions(make_pending_clean(extra={key: json.dumps(["q", 1])})) == {"q"}
    assert list_planned_partitions(make_pending_clean(extra={key: "not json"})) == set()
    assert list_planned_partitions(make_pending_clean(extra={key: "7"})) == set()


def test_the_placeholder_is_a_base_file_name_of_no_table():
    assert BaseName.parse(PLACEHOLDER).instant == "0" * 17
