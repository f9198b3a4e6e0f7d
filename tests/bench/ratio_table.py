"""Print what jobs measured in a terminal: one table of ratios with the goals beside them."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table

from tests.bench.figures import CPU, WALL, Comparison, Figure, Goal, compare, unmeasured
from tests.bench.jobs import Job, Run
from tests.bench.wording import (
    describe_baseline,
    describe_goal,
    describe_ratio,
    describe_verdict,
    describe_worst,
    format_figure,
)

HEADINGS = (
    "job",
    "work",
    "measured",
    "system",
    "value",
    "beside",
    "ratio",
    "worst",
    "goal",
    "verdict",
)


def shown_rows(rows: Sequence[Comparison]) -> list[Comparison]:
    """Leave out what neither has a goal, nor is time, nor is in a peer's favour."""
    return [
        row
        for row in rows
        if row.goal is not None or row.figure.unit in (WALL, CPU) or row.is_slower
    ]


def table_cells(job: Job, row: Comparison) -> tuple[str, ...]:
    """Return the cells of a row, as ``HEADINGS`` names them."""
    return (
        job.name,
        row.figure.what,
        row.figure.unit,
        row.figure.system,
        format_figure(row.figure),
        describe_baseline(row),
        describe_ratio(row),
        describe_worst(row),
        "" if row.goal is None else describe_goal(row.goal),
        describe_verdict(row),
    )


def unmeasured_cells(job: Job, goal: Goal) -> tuple[str, ...]:
    """Return the cells of a goal that nothing was measured for."""
    what = (goal.what, goal.unit, goal.system)
    return (job.name, *what, "", "", "", "", describe_goal(goal), "not measured")


def print_table(measured: Sequence[tuple[Job, Run, Sequence[Figure]]]) -> bool:
    """Print the table of some jobs; return whether no goal is missed."""
    table = Table(*HEADINGS, title="Ratios and goals", title_justify="left")
    is_met = True
    for job, run, figures in measured:
        goals = job.goals(run)
        table.add_section()
        for row in shown_rows(compare(figures, goals)):
            is_met &= row.is_met is not False
            style = "red" if row.is_met is False else "yellow" if row.is_slower else ""
            table.add_row(*table_cells(job, row), style=style)
        for goal in unmeasured(figures, goals):
            table.add_row(*unmeasured_cells(job, goal), style="yellow")
    Console(width=None if Console().is_terminal else 200).print(table)
    return is_met


def print_job(job: Job, run: Run, figures: Sequence[Figure]) -> bool:
    """Print one job's table and notes; return whether no goal is missed."""
    is_met = print_table([(job, run, figures)])
    for note in run.log.notes:
        print(note)
    return is_met
