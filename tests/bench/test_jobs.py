"""Tests of the list of jobs and of their runs."""

from __future__ import annotations

import argparse
import os
import re
from collections.abc import Collection
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import pytest

from tests.bench import __main__ as command
from tests.bench import machine
from tests.bench.figures import CPU, UNITS, Figure, Measure
from tests.bench.jobs import MODULES, ROOT, Job, Run, load_job, take_turns
from tests.bench.machine import Machine, read_machine, use_this_tree
from tests.bench.saved_results import load_result
from tests.bench.versions import OURS

MACHINE = Machine(
    processor="p", cores=2, memory_gib=1, disk="d", system="s", versions={"reconciler": "commit 0"}
)
#: of code that differs from its commit
CHANGED = replace(MACHINE, versions={"reconciler": "commit 0 and changes"})


@pytest.fixture(autouse=True)
def code(monkeypatch) -> list[str]:
    """The commits that the work tree is said to have had; the last one is that of now."""
    commits = ["0"]
    for module in (command, machine):
        monkeypatch.setattr(module, "read_commit", lambda: commits[-1])
    return commits


@pytest.mark.parametrize("name", MODULES)
def test_a_job_has_the_name_of_its_line_and_goals_in_known_units(name):
    job = load_job(name)

    assert name == job.name
    assert set() == {goal.unit for goal in job.goals(Run())} - set(UNITS)


def arguments(folder: Path, *, fresh: bool = False, turns: int = 1) -> argparse.Namespace:
    return argparse.Namespace(keep=folder, quick=False, fresh=fresh, turns=turns)


def counting_job() -> tuple[Job, list[int]]:
    seen: list[int] = []

    def measure(run: Run) -> list[Figure]:
        seen.append(run.turns)
        if len(seen) == 1:
            raise SystemExit("no network")
        return [Figure(what="w", system=OURS, unit=CPU, turns=(len(seen),) * run.turns)]

    return Job(name="counts", title="Counting", does="It counts.", measure=measure), seen


def test_a_run_goes_on_with_jobs_that_failed_or_had_fewer_turns(tmp_path):
    job, seen = counting_job()
    first = command.saved_or_run(job, arguments(tmp_path), MACHINE)
    second = command.saved_or_run(job, arguments(tmp_path), MACHINE)
    third = command.saved_or_run(job, arguments(tmp_path), MACHINE)
    more = command.saved_or_run(job, arguments(tmp_path, turns=2), MACHINE)
    fresh = command.saved_or_run(job, arguments(tmp_path, fresh=True), MACHINE)

    assert ("SystemExit: no network", ()) == (first.failure, first.figures)
    assert [(2.0,), (2.0,), (3.0, 3.0), (4.0,)] == [
        result.figures[0].turns for result in (second, third, more, fresh)
    ]
    assert [1, 1, 2, 1] == seen


def comparing_job(stops_at: str, fails: Collection[str] = ()) -> tuple[Job, list[str]]:
    """Return a job of two comparisons, and what it measures; the first run stops at one of them.

    ``fails``: the peers that cannot be measured.
    """
    seen: list[str] = []

    def measure(run: Run) -> list[Figure]:
        def measure_one(what: str, system: str) -> list[Measure]:
            seen.append(f"{what} {system}")
            if seen.count(f"{what} {system}") == 1 and stops_at == what:
                raise KeyboardInterrupt
            if system in fails:
                raise SystemExit("no network")
            return [Measure(what=what, unit=CPU, value=len(seen))]

        return [
            figure
            for what, systems in (("small", (OURS, "Delta")), ("large", (OURS,)))
            for figure in take_turns(run, {one: partial(measure_one, what, one) for one in systems})
        ]

    return Job(name="compares", title="Comparing", does="It compares.", measure=measure), seen


@pytest.fixture
def quiet(monkeypatch) -> None:
    monkeypatch.setattr("tests.bench.jobs.psutil.cpu_percent", lambda _: 0.0)


@pytest.mark.usefixtures("quiet")
def test_a_stopped_job_goes_on_with_the_comparison_that_was_running(tmp_path):
    job, seen = comparing_job(stops_at="large")
    with pytest.raises(KeyboardInterrupt):
        command.saved_or_run(job, arguments(tmp_path), MACHINE)
    result = command.saved_or_run(job, arguments(tmp_path), MACHINE)

    assert [f"small {OURS}", "small Delta", f"large {OURS}", f"large {OURS}"] == seen
    assert [("small", (1,)), ("small", (2,)), ("large", (4,))] == [
        (figure.what, figure.turns) for figure in result.figures
    ]
    assert 3 == len(result.log.busy)
    assert ["compares.json"] == [file.name for file in (tmp_path / "figures").iterdir()]
    assert result == load_result(tmp_path / "figures", "compares")


@pytest.mark.usefixtures("quiet")
def test_a_peer_that_failed_in_a_stopped_run_is_tried_again(tmp_path):
    fails = {"Delta"}
    job, seen = comparing_job("large", fails)
    with pytest.raises(KeyboardInterrupt):
        command.saved_or_run(job, arguments(tmp_path), MACHINE)
    fails.clear()
    result = command.saved_or_run(job, arguments(tmp_path), MACHINE)

    assert 2 == seen.count("small Delta")
    assert [] == result.log.notes


@pytest.mark.usefixtures("quiet")
def test_figures_have_the_date_of_their_oldest_comparison(tmp_path):
    job, _ = comparing_job("large")
    with pytest.raises(KeyboardInterrupt):
        command.saved_or_run(job, arguments(tmp_path), MACHINE)
    before = datetime.now(UTC).isoformat()
    result = command.saved_or_run(job, arguments(tmp_path), MACHINE)

    assert result.date < before


@pytest.mark.usefixtures("quiet")
def test_what_other_code_compared_meanwhile_is_not_kept(tmp_path, code):
    job, seen = comparing_job("large")
    code.append("0 and changes")
    with pytest.raises(KeyboardInterrupt):
        command.saved_or_run(job, arguments(tmp_path), MACHINE)
    del code[1:]
    command.saved_or_run(job, arguments(tmp_path), MACHINE)

    assert 2 == seen.count(f"small {OURS}")


@pytest.mark.usefixtures("quiet")
def test_code_that_changes_while_a_job_runs_is_noted(tmp_path, code):
    job, _ = comparing_job("")
    code.append("1")
    result = command.saved_or_run(job, arguments(tmp_path), MACHINE)

    assert ["the code changed while it ran: commit 0 became commit 1"] == result.log.notes


def test_code_that_is_installed_elsewhere_is_not_measured(monkeypatch):
    monkeypatch.setattr("reconciler.__file__", "/elsewhere/reconciler/__init__.py")

    with pytest.raises(SystemExit, match="reconciler is imported from /elsewhere: set PYTHONPATH"):
        use_this_tree()


def test_programs_of_benches_import_the_code_beside_them(monkeypatch):
    monkeypatch.setenv("PYTHONPATH", "/elsewhere")
    use_this_tree()

    assert f"{ROOT}{os.pathsep}/elsewhere" == os.environ["PYTHONPATH"]


@pytest.mark.parametrize(
    ("first", "second", "more"),
    [
        (MACHINE, replace(MACHINE, versions={"reconciler": "commit 1"}), {}),
        (MACHINE, MACHINE, {"turns": 2}),
        (MACHINE, MACHINE, {"fresh": True}),
        (CHANGED, CHANGED, {}),
    ],
)
@pytest.mark.usefixtures("quiet")
def test_what_a_stopped_job_compared_otherwise_is_compared_again(tmp_path, first, second, more):
    job, seen = comparing_job(stops_at="large")
    with pytest.raises(KeyboardInterrupt):
        command.saved_or_run(job, arguments(tmp_path), first)
    command.saved_or_run(job, arguments(tmp_path, **more), second)

    assert seen.count(f"small {OURS}") == 1 + more.get("turns", 1)


@pytest.mark.usefixtures("quiet")
def test_a_file_without_comparisons_is_named(tmp_path):
    kept = tmp_path / "figures" / "compares.kept"
    kept.parent.mkdir()
    kept.write_text("{}")

    with pytest.raises(SystemExit, match=re.escape(f"{kept} has no comparisons")):
        command.saved_or_run(comparing_job("")[0], arguments(tmp_path), MACHINE)


def test_the_machine_is_described(tmp_path):
    machine = read_machine(tmp_path / "missing")

    assert machine.processor
    assert machine.cores
    assert {"reconciler", "pyspark", "Hudi", "Delta", "Iceberg"} <= set(machine.versions)
