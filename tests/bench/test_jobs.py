"""Tests of the list of jobs and of their runs."""

from __future__ import annotations

import argparse
from pathlib import Path

import pytest

from tests.bench import __main__ as command
from tests.bench.figures import CPU, UNITS, Figure
from tests.bench.jobs import MODULES, Job, Run, load_job
from tests.bench.machine import Machine, read_machine
from tests.bench.versions import OURS

MACHINE = Machine(
    processor="p", cores=2, memory_gib=1, disk="d", system="s", versions={"reconciler": "commit 0"}
)


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


def test_the_machine_is_described(tmp_path):
    machine = read_machine(tmp_path / "missing")

    assert machine.processor
    assert machine.cores
    assert {"reconciler", "pyspark", "Hudi", "Delta", "Iceberg"} <= set(machine.versions)
