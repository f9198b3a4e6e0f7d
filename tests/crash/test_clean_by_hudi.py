"""A clean that another one executes for us is complete, exact, or said not to be."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from reconciler.errors import ReconcilerError
from reconciler.executor.clean.payloads import make_clean_metadata
from reconciler.hudi.timeline.clean import CleanerPlan
from reconciler.runtime import open_storage
from tests.crash.drill import CASES, list_data_files, list_newest_files, make_drill


@dataclass
class StandIn:
    """In Hudi's place on a table of version 6. ``also``: a file to remove unasked."""

    also: str = ""
    keeps: int = 0
    fails: bool = False

    def has_class(self, _name):
        return True

    def read_spark_version(self):
        return 3, 5

    def read_version(self):
        return "0.15.0"

    def cluster(self, ref, instant, options, *, outputs):
        raise NotImplementedError

    def tally_groups(self, ref, work, groups):
        raise NotImplementedError

    def clean(self, ref, instant, options):
        assert "NEVER" == options["hoodie.clean.failed.writes.policy"]
        storage = open_storage(ref)
        asked = storage.read(f".hoodie/{instant}.clean.requested")
        plan = CleanerPlan.parse(asked, "requested")
        storage.create(f".hoodie/{instant}.clean.inflight", asked)
        paths = [
            f"{part}/{name}".lstrip("/") for part, names in plan.files.items() for name in names
        ]
        for path in [*sorted(paths)[self.keeps :], *([self.also] if self.also else [])]:
            storage.delete(path)
        if self.fails:
            raise ReconcilerError("Hudi stopped executing a clean: no space")
        done = make_clean_metadata(
            plan,
            instant=instant,
            earliest=plan.earliest_instant,
            removed=plan.files,
            removed_partitions=(),
            took_ms=1,
        )
        storage.create(f".hoodie/{instant}.clean", done.encode())


@pytest.fixture
def it(tmp_path):
    return make_drill(
        CASES / "cow_basic__0.15.0" / "table.zip", tmp_path / "t", retention="commits: 1"
    )


def names_of(plan):
    [step] = plan.tables[0].steps
    return {
        f"{partition}/{name}".lstrip("/")
        for partition, name in zip(
            step.files.partition.to_pylist(), step.files.name.to_pylist(), strict=True
        )
    }


def test_what_was_reviewed_is_gone_and_nothing_else(it):
    plan, before = it.plan(), list_data_files(it.table)
    result = it.apply(plan, hudi=StandIn())
    [outcome] = result.tables[0].outcomes

    assert (0, "completed") == (result.exit_code, outcome.how)
    assert names_of(plan) == before - list_data_files(it.table)
    assert len(names_of(plan)) == outcome.removed
    assert outcome.bytes > 0
    assert () == it.plan().tables[0].steps


def test_a_file_too_many_is_told_of_loudly(it):
    also = min(list_newest_files(it.state()))
    result = it.apply(it.plan(), hudi=StandIn(also=also))
    [outcome] = result.tables[0].outcomes
    partition, _, name = also.rpartition("/")

    assert 5 == result.exit_code
    assert f"Hudi removed 1 files of partition {partition!r} that no plan names: {name}" in {
        note.because for note in outcome.differences
    }


def test_a_file_too_few_is_a_failure(it):
    plan = it.plan()
    result = it.apply(plan, hudi=StandIn(keeps=1))
    [outcome] = result.tables[0].outcomes

    assert 5 == result.exit_code
    assert [min(names_of(plan)).rpartition("/")[2]] == outcome.failed.name.to_pylist()


def test_what_hudi_left_half_done_is_finished_by_the_next_apply(it):
    plan, before = it.plan(), list_data_files(it.table)
    stopped = it.apply(plan, hudi=StandIn(keeps=2, fails=True))
    again = it.apply(it.plan())

    assert 5 == stopped.exit_code
    assert "no space; clean 20" in str(stopped.tables[0].error)
    assert 0 == again.exit_code
    assert names_of(plan) == before - list_data_files(it.table)
