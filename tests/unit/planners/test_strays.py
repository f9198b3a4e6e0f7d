"""Partitions that hold something which is none of Hudi's."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from reconciler.planners.clean.planner import plan_clean
from reconciler.spec.model import Policy, Retention
from reconciler.state.observe import observe
from reconciler.storage.open import open_storage
from tests.trees import unpack

TABLE = Path(__file__).parents[2] / "cases" / "clean" / "cow_delete_partition__1.2.0" / "table.zip"
KEEP_ONE = Retention(policy=Policy.FILE_VERSIONS, keep=1)


def deleted_partitions(root):
    state = observe(open_storage(str(root)), None, observed_ms=0)
    step = plan_clean(KEEP_ONE, state).step
    return step.delete_partitions if step else ()


@pytest.fixture
def table(tmp_path):
    return unpack(TABLE, tmp_path, hollow=True)


def test_an_emptied_partition_goes(table):
    assert deleted_partitions(table) != ()


@pytest.mark.parametrize("stray", ["_SUCCESS", "notes/readme.txt", "part-0001.csv"])
def test_an_emptied_partition_with_a_stray_stays(table, stray):
    (partition,) = deleted_partitions(table)
    path = table / partition / stray
    path.parent.mkdir(exist_ok=True)
    path.write_text("mine")

    assert () == deleted_partitions(table)


def test_strays_are_told_from_files_of_the_table(table):
    before = observe(open_storage(str(table)), None, observed_ms=0)
    (table / "a" / "_SUCCESS").write_text("")

    after = observe(open_storage(str(table)), None, observed_ms=0)

    assert (frozenset(), frozenset({"a"})) == (before.stray_partitions, after.stray_partitions)
    assert before.files.name.equals(replace(after).files.name)
