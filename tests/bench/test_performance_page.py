"""Tests of the page of the benches and of their saved results."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.bench.__main__ import PAGE as WRITTEN_PAGE
from tests.bench.__main__ import make_page
from tests.bench.figures import BEST_PEER, CPU, FILES, WALL, Baseline, Figure, Goal
from tests.bench.jobs import MODULES, Job, Run, load_job
from tests.bench.machine import Machine
from tests.bench.performance_page import render_page
from tests.bench.ratio_table import print_table
from tests.bench.run_log import RunLog
from tests.bench.saved_results import JobResult, load_result, save_result
from tests.bench.versions import OURS, SPARK

PAGE = Path(__file__).parent / "performance_page.md"
MACHINE = Machine(
    processor="Example 3000",
    cores=2,
    memory_gib=24,
    disk="ext4 on a virtual disk",
    system="Linux 6.1",
    versions={"reconciler": "commit 0123456789", "Hudi": "1.2.0"},
)


def figure(what: str, system: str, unit: str, *turns: float) -> Figure:
    return Figure(what=what, system=system, unit=unit, turns=turns)


FIGURES = (
    figure("upserts", OURS, WALL, 40, 30, 35),
    figure("upserts", OURS, CPU, 60, 50, 55),
    figure("upserts", OURS, FILES, 11, 11, 11),
    figure("upserts", "Delta 3.3.2", WALL, 50, 45, 47),
    figure("upserts", "Delta 3.3.2", CPU, 101, 99, 100),
    figure("upserts", "Delta 3.3.2", FILES, 10, 10, 10),
    figure("upserts", SPARK, WALL, 20, 20, 20),
    figure("upserts", SPARK, CPU, 31, 30, 30),
    figure("second upsert", OURS, CPU, 5, 5, 5),
)
GOALS = (
    Goal(what="upserts", unit=CPU, limit=0.5, baseline=BEST_PEER),
    Goal(what="upserts", unit=WALL, limit=2, baseline=Baseline(systems=(SPARK,))),
    Goal(what="second upsert", unit=CPU, limit=0.3, baseline=Baseline(what="upserts")),
    Goal(what="third upsert", unit=CPU, limit=1),
)
WRITES = Job(
    name="writes",
    title="Writing",
    does="Each system writes the same rows.",
    measure=lambda _: FIGURES,
    goals=lambda _: GOALS,
)
READS = replace(WRITES, name="reads", title="Reading", does="Each system reads the table.")
PLANS = replace(WRITES, name="plans", title="Planning")
RESULT = JobResult(
    job="writes",
    date="2026-11-27T12:00:00+00:00",
    seconds=300,
    turns=3,
    load=(0.1, 1.9),
    machine=MACHINE,
    log=RunLog(busy=[0.01, 0.8], load=[0.2, 1.0], notes=["Iceberg failed in turn 1: no network"]),
    figures=FIGURES,
)
FAILED = replace(RESULT, job="reads", figures=(), log=RunLog(busy=[0.0]), failure="no Java found")


def test_the_page_is_as_reviewed(golden):
    found = render_page([WRITES, READS, PLANS], [RESULT, FAILED])

    assert golden.expected(PAGE, found) == found


def test_a_quiet_machine_is_said_to_be_quiet():
    quiet = replace(RESULT, log=RunLog(busy=[0.1, 0.2]))

    assert "The machine was quiet before each of the 2 turns." in render_page([WRITES], [quiet])


def test_each_machine_has_the_names_of_its_jobs():
    other = replace(RESULT, job="plans", machine=replace(MACHINE, processor="Another"))
    own_commit = {**MACHINE.versions, "reconciler": "commit 9876543210"}
    later = replace(RESULT, job="reads", machine=replace(MACHINE, versions=own_commit))
    lines = render_page([WRITES, READS, PLANS], [RESULT, later, other]).splitlines()
    told = [line for line in lines if line.startswith(("| processor", "| jobs"))]

    assert told == [
        f"| processor | {MACHINE.processor}, 2 cores |",
        "| jobs | writes, reads |",
        "| processor | Another, 2 cores |",
        "| jobs | plans |",
    ]


def test_the_terminal_has_every_goal_with_its_verdict(capsys):
    is_met = print_table([(WRITES, Run(), FIGURES)])
    lines = capsys.readouterr().out.splitlines()
    verdicts = [line.split("│")[-2].strip() for line in lines if "at most" in line]

    assert (False, ["met", "MISSED", "met", "not measured"]) == (is_met, verdicts)


def test_a_result_is_read_as_it_was_saved(tmp_path):
    save_result(tmp_path, RESULT)

    assert RESULT == load_result(tmp_path, "writes")
    assert load_result(tmp_path, "reads") is None


def test_a_file_that_is_no_result_is_refused_by_name(tmp_path):
    (tmp_path / "writes.json").write_text('{"job": "writes"}')

    with pytest.raises(SystemExit, match=r"writes\.json is not a job's result"):
        load_result(tmp_path, "writes")


def test_a_goal_whose_baseline_failed_is_not_said_to_be_met():
    alone = replace(RESULT, figures=tuple(one for one in FIGURES if one.system == OURS))
    page = render_page([replace(WRITES, goals=lambda _: GOALS[:1])], [alone])

    assert "| at most 0.5 times the best peer | **not measured** |" in page


def test_the_page_is_made_of_the_saved_results():
    """Nobody writes a figure by hand; ``python -m tests.bench JOB`` changes both."""
    jobs = [load_job(name) for name in MODULES]

    assert WRITTEN_PAGE.read_text() == make_page(jobs)
