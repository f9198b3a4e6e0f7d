"""The instants that we choose to archive are those that real Hudi archived of the same timelines.

Each table has the choice of the Hudi that wrote it, for several limits and retentions.
"""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from reconciler.planners.archive.planner import plan_archival
from reconciler.spec.active_timeline import ActiveTimeline
from reconciler.spec.model import Policy, Retention, TableSpec
from reconciler.state.archival_facts import NewestClean
from reconciler.state.observe import observe
from reconciler.storage.open import open_storage
from tests.archival_choice import list_kept_cleans, select_as_hudi
from tests.selection import long
from tests.trees import unpack

TABLES = Path(__file__).parent / "archival"
CLEANS = Path(__file__).parents[1] / "cases" / "clean"
USUAL = ("0.15.0_cow", "1.0.2_mor", "1.2.0_cow")
OTHERS = ("0.15.0_mor", "1.0.2_cow", "1.2.0_mor")


def observe_here(folder):
    spec = TableSpec(
        name="t", path=str(folder), timezone="UTC", timeline=ActiveTimeline(keep="2..3")
    )
    return observe(open_storage(str(folder)), spec, observed_ms=0)


@cache
def read_state(name, folder):
    unpack(TABLES / f"{name}.zip", folder)
    return observe_here(folder)


@pytest.fixture(scope="module", params=[*USUAL, *map(long, OTHERS)])
def table(request, tmp_path_factory):
    state = read_state(request.param, tmp_path_factory.mktemp(request.param) / "t")
    return state, json.loads((TABLES / f"{request.param}.json").read_text())["archived"]


def list_cases(expected):
    for key, archived in expected.items():
        keep, commits = key.split()
        least, most = map(int, keep.split(".."))
        yield least, most, Retention(policy=Policy.COMMITS, keep=int(commits)), set(archived)


def test_hudi_archives_the_same_instants(table):
    state, expected = table
    kept = list_kept_cleans(state)

    for least, most, retention, archived in list_cases(expected):
        assert archived - kept == select_as_hudi(state, least, most, retention)


def test_a_plan_archives_no_more(table):
    state, expected = table

    for least, most, retention, archived in list_cases(expected):
        decision = plan_archival(ActiveTimeline(keep=f"{least}..{most}"), retention, state)
        planned = decision.step.instants if decision.step else ()
        assert {f"{one.instant}.{one.action}" for one in planned} <= archived


def test_hudi_archived_something_of_every_table():
    for name in (*USUAL, *OTHERS):
        assert any(json.loads((TABLES / f"{name}.json").read_text())["archived"].values()), name


@pytest.mark.parametrize("has_files", [True, False])
def test_a_replacement_stays_while_files_are_there_that_a_clean_of_file_versions_left(
    tmp_path, has_files
):
    unpack(CLEANS / "cow_completed_clustering__0.15.0" / "table.zip", tmp_path / "t")
    (replacing,) = (tmp_path / "t" / ".hoodie").glob("*.replacecommit")
    time = replacing.name.partition(".")[0]
    state = observe_here(tmp_path / "t")
    if not has_files:
        for partition, file_id in state.replaced:
            for path in (tmp_path / "t" / partition).glob(f"*{file_id}*"):
                path.unlink()
        state = observe_here(tmp_path / "t")
    clean = NewestClean(instant=state.timeline.instants[-1].requested)
    state = state.with_facts(archival=replace(state.archival, clean=clean))
    decision = plan_archival(ActiveTimeline(keep="1..2"), None, state)

    assert has_files == (time not in {one.instant for one in decision.step.instants})
