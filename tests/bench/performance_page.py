"""Write ``docs/performance.md`` from the results of jobs: a pure function of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Final

from tests.bench.figures import (
    CPU,
    UNITS,
    WALL,
    Comparison,
    Figure,
    Goal,
    best_peer,
    compare,
    is_ours,
    unmeasured,
)
from tests.bench.jobs import Job, Run
from tests.bench.machine import Machine
from tests.bench.ratio_table import HEADINGS, shown_rows, table_cells, unmeasured_cells
from tests.bench.saved_results import JobResult
from tests.bench.wording import (
    describe_baseline,
    describe_goal,
    describe_ratio,
    describe_verdict,
    format_figure,
)

#: share of a processor that others may use before a turn on a quiet machine
QUIET: Final = 0.5
_INTRODUCTION: Final = """\
# Performance

How much time, memory and disk work takes here, and with Hudi, Delta, Iceberg and Spark alone:
the same rows, the same machine, the same run. `python -m tests.bench` measures it and writes this
page. Smaller is better everywhere. **slower** and **more** mark what a peer does better, **MISSED**
a goal that is not reached. Nothing that was measured is left out.
"""
_READING: Final = """\
- Values are medians of the turns, with the least and the greatest turn in parentheses. Memory is
  that of the greatest turn.
- CPU seconds are those of user and system, of all processes of a system: its JVM, Python and
  workers. Memory is theirs together at the peak, with shared pages counted once.
- *ratio* is our value divided by that of the best peer, or of what the goal names. *worst* is our
  greatest turn divided by the least turn of the other.
- Spark alone and a bare loop are floors and no peers: the one keeps no timeline, index, statistics
  or meta columns, and the other plans nothing.
- Systems take turns, and all have two cores. Unless a job says otherwise, every turn is a fresh
  process, and where Spark is used its start does not count.
"""


def render_page(jobs: Sequence[Job], results: Sequence[JobResult]) -> str:
    """Return the page; jobs without a result are named as not measured."""
    found = {result.job: result for result in results}
    measured = [(job, found[job.name]) for job in jobs if job.name in found]
    sections = [
        _INTRODUCTION,
        _render_conditions([result for _, result in measured]),
        *([_render_ratios(measured)] if measured else []),
        *(_render_job(job, result) for job, result in measured),
    ]
    absent = [job for job in jobs if job.name not in found]
    if absent:
        lines = "\n".join(f"- `{job.name}`: {job.title}" for job in absent)
        sections.append(f"## Not measured yet\n{lines}\n")
    return "\n".join(sections)


def _render_conditions(results: Sequence[JobResult]) -> str:
    lines = [
        "## How it was measured",
        "```sh",
        "python -m tests.bench            # all jobs; hours",
    ]
    lines += ["python -m tests.bench --quick    # small sizes, one turn; writes no page", "```", ""]
    machines = _group_by_machine(results)
    for machine, jobs in machines:
        named = f"| jobs | {', '.join(jobs)} |"
        lines += [*_describe_machine(machine), *([named] if len(machines) > 1 else []), ""]
    lines += [_READING, *_describe_quiet(results)]
    return "\n".join(lines) + "\n"


def _group_by_machine(results: Iterable[JobResult]) -> list[tuple[Machine, list[str]]]:
    """Return machines with their jobs. Our own commit does not tell two apart: each job says it."""
    found: list[tuple[Machine, list[str]]] = []
    for result in results:
        versions = result.machine.versions
        peers = {name: at for name, at in versions.items() if name != "reconciler"}
        machine = replace(result.machine, versions=peers)
        jobs = next((jobs for one, jobs in found if one == machine), None)
        if jobs is None:
            found.append((machine, [result.job]))
        else:
            jobs.append(result.job)
    return found


def _describe_machine(machine: Machine) -> list[str]:
    versions = ", ".join(f"{name} {version}" for name, version in machine.versions.items())
    return [
        "| | |",
        "|---|---|",
        f"| processor | {machine.processor}, {machine.cores} cores |",
        f"| memory | {machine.memory_gib} GiB |",
        f"| disk | {machine.disk} |",
        f"| system | {machine.system} |",
        f"| versions | {versions} |",
    ]


def _describe_quiet(results: Sequence[JobResult]) -> list[str]:
    """Say before which turns other processes used the machine."""
    total = sum(len(result.log.busy) for result in results)
    busy = [(result.job, share) for result in results for share in result.log.busy if share > QUIET]
    if not busy:
        return [f"The machine was quiet before each of the {total} turns."] if total else []
    jobs = ", ".join(sorted({job for job, _ in busy}))
    most = max(share for _, share in busy)
    text = (
        f"**The machine was not quiet**: before {len(busy)} of {total} turns other processes used "
        f"more than {QUIET:.0%} of its processors, up to {most:.0%} ({jobs}). "
        "Wall times are too long then; ratios of CPU seconds hold better."
    )
    return [text]


def _render_ratios(measured: Sequence[tuple[Job, JobResult]]) -> str:
    lines = ["## Ratios and goals", *_heading(HEADINGS)]
    slower: list[tuple[Job, Comparison]] = []
    for job, result in measured:
        goals = job.goals(Run())
        rows = shown_rows(compare(result.figures, goals))
        slower += [(job, row) for row in rows if row.is_slower]
        cells = [table_cells(job, row) for row in rows]
        cells += [unmeasured_cells(job, goal) for goal in unmeasured(result.figures, goals)]
        lines += [_row(_mark(one)) for one in cells]
    lines.append("")
    lines += _describe_slower(slower)
    return "\n".join(lines) + "\n"


def _describe_slower(rows: Sequence[tuple[Job, Comparison]]) -> list[str]:
    if not rows:
        return ["No peer does better in any row."]
    lines = ["### Where a peer does better", "The worst first:", ""]
    for job, row in sorted(rows, key=lambda one: one[1].ratio or float("inf"), reverse=True):
        times = f"{describe_ratio(row)} times " if row.ratio else ""
        lines.append(
            f"- `{job.name}`: {row.figure.what}, {row.figure.unit} ({row.figure.system}): "
            f"{format_figure(row.figure)}, {times}{describe_baseline(row)}"
        )
    return list(dict.fromkeys(lines))


def _render_job(job: Job, result: JobResult) -> str:
    head = f"## {job.title}\n{job.does}\n"
    at = result.machine.versions.get("reconciler", "")
    minutes = max(1, round(result.seconds / 60))
    when = (
        f"`python -m tests.bench {job.name}`, {result.date[:16].replace('T', ' ')} UTC, {at}, "
        f"{result.turns} turns, {minutes} minutes.\n"
    )
    if result.failure is not None:
        return f"{head}\n**Not measured**: {result.failure}\n\n{when}"
    whats = list(dict.fromkeys(one.what for one in result.figures))
    tables = [_render_work(what, result.figures) for what in whats]
    goals = job.goals(Run())
    rows = [row for row in compare(result.figures, goals) if row.goal is not None]
    notes = [f"- {note}" for note in result.log.notes]
    lists = [_list("Goals", _describe_goals(rows, unmeasured(result.figures, goals)))]
    lists += [_list("Notes", notes)] if notes else []
    return "\n".join([head, *tables, *lists, when])


def _render_work(what: str, figures: Sequence[Figure]) -> str:
    """Return the table of one piece of work: a line a system, a column a unit."""
    own = [one for one in figures if one.what == what]
    units = [unit for unit in UNITS if any(one.unit == unit for one in own)]
    units += sorted({one.unit for one in own} - set(UNITS))
    ratio_unit = next((unit for unit in (CPU, WALL) if unit in units), units[0])
    peer = best_peer(own, what, ratio_unit)
    headings = ["system", *units, *([f"{ratio_unit}, times the best peer"] if peer else [])]
    lines = [f"### {what[0].upper()}{what[1:]}", *_heading(headings)]
    for system in dict.fromkeys(one.system for one in own):
        at = {one.unit: one for one in own if one.system == system}
        cells = [f"**{system}**" if is_ours(system) else system]
        cells += [format_figure(at[unit]) if unit in at else "" for unit in units]
        if peer and peer.value:
            times = at[ratio_unit].value / peer.value if ratio_unit in at else None
            slower = is_ours(system) and times is not None and times > 1
            cells.append("" if times is None else f"{times:.2f}{' **slower**' * slower}")
        lines.append(_row(cells))
    return "\n".join(lines) + "\n"


def _describe_goals(rows: Sequence[Comparison], missing: Sequence[Goal]) -> list[str]:
    lines = []
    for row in rows:
        assert row.goal is not None
        value = describe_ratio(row) if row.goal.baseline else format_figure(row.figure)
        beside = f" of {describe_baseline(row)}" if row.baseline else ""
        verdict = _emphasise(describe_verdict(row))
        lines.append(f"- {_name_goal(row.goal)}: {value}{beside}: {verdict}")
    return lines + [f"- {_name_goal(goal)}: **not measured**" for goal in missing]


def _name_goal(goal: Goal) -> str:
    return f"{goal.what}, {goal.unit} of {goal.system}, {describe_goal(goal)}"


def _list(name: str, lines: Sequence[str]) -> str:
    return "\n".join([f"{name}:", "", *lines]) + "\n" if lines else ""


def _mark(cells: Sequence[str]) -> list[str]:
    return [*cells[:-1], _emphasise(cells[-1])]


def _emphasise(verdict: str) -> str:
    words = [word if word in ("", "met") else f"**{word}**" for word in verdict.split(", ")]
    return ", ".join(words)


def _heading(names: Sequence[str]) -> list[str]:
    return [_row(names), "|" + "---|" * len(names)]


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"
