"""What a status says of a declared compaction on tables that real Hudi wrote and compacted."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from reconciler.planners.compose import plan_table
from reconciler.render.prometheus import status_prometheus
from reconciler.render.status import status_text
from reconciler.render.terminal import Terminal
from reconciler.spec.compaction import Compaction, CompactionBudget
from reconciler.spec.model import Concurrency, Lock, TableSpec
from reconciler.state.observe import observe
from reconciler.status.table import table_status
from reconciler.storage.open import open_storage
from tests.scheduled_compactions import TESTS
from tests.trees import unpack

NOW = datetime(2026, 11, 27, tzinfo=UTC)
DECLARED = Compaction(after_delta_commits=1)


@pytest.fixture
def path(tmp_path):
    return unpack(TESTS / "tables/compacting/1.2.0.zip", tmp_path / "t") / "done"


def status_of(path, compaction):
    spec = TableSpec(name="t", path=str(path), timezone="UTC", compaction=compaction)
    spec = replace(spec, concurrency=Concurrency(lock=Lock(provider="filesystem")))
    state = observe(open_storage(str(path)), spec, observed_ms=int(NOW.timestamp() * 1000))
    return table_status(spec, state, plan_table(spec, state, NOW))


def text_of(status):
    return " ".join(status_text([status], Terminal()).split())


def metrics_of(status):
    lines = status_prometheus([status], observed_at=NOW).splitlines()
    named = (line for line in lines if line.startswith("reconciler_compaction_"))
    return [
        line.replace('{table="t"}', "").removeprefix("reconciler_compaction_") for line in named
    ]


def test_a_status_counts_what_the_plan_compacts(path):
    found = status_of(path, DECLARED)

    assert ["slices 2", "log_bytes 2020", "waiting_slices 0", "deltacommits 1"] == metrics_of(found)
    assert (
        "compaction 1 deltacommit since 20261126212442120; the plan compacts 2 file slices with 2 "
        "log files of 2.0 KiB"
    ) in text_of(found)


def test_a_status_counts_the_slices_that_wait_for_another_run(path):
    found = status_of(path, replace(DECLARED, budget=CompactionBudget(groups=1)))

    assert ["slices 1", "waiting_slices 1"] == metrics_of(found)[::2]
    assert "1 file slice with 1 log file of 1010 bytes; 1 file slice waits for" in text_of(found)


def test_before_a_compaction_is_due_only_deltacommits_are_counted(path):
    found = status_of(path, replace(DECLARED, after_delta_commits=2))

    assert ["slices 0", "log_bytes 0", "waiting_slices 0", "deltacommits 1"] == metrics_of(found)
    assert "compaction 1 deltacommit since 20261126212442120" in text_of(found)
    assert "the plan compacts" not in text_of(found)


def test_without_the_block_nothing_is_said(path):
    found = status_of(path, None)

    assert (None, []) == (found.compaction, metrics_of(found))
    assert "compaction" not in text_of(found)
