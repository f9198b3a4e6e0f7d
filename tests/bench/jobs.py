"""Jobs of ``python -m tests.bench``: what each measures, and how its systems take turns.

A bench becomes a job by a constant of its module:

    JOB = Job(
        name="upserts",
        title="Upserts of 5 % of the rows, at random",
        does="Each system upserts the same Parquet file into its own table of the same rows.",
        measure=measure,           # (run: Run) -> figures
        goals=goals,               # (run: Run) -> goals, whose ``what`` figures have
    )

and by its line in ``MODULES``. ``run_alone(JOB)`` is a ``main`` for such a module.
"""

from __future__ import annotations

import argparse
import importlib
import os
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, TypeVar

import psutil

from tests.bench.figures import Figure, Goal, Measure, collect_figures, is_ours
from tests.bench.kept_comparisons import Comparison, KeptComparisons
from tests.bench.machine import use_this_tree
from tests.bench.run_log import RunLog

ROOT: Final = Path(__file__).parents[2]
#: module of every job, in the order of a run: short ones first
MODULES: Final[Mapping[str, str]] = {
    "planning": "tests.bench.planning_job",
    "small-work": "tests.bench.small_work",
    "index": "tests.bench.index_speed",
    "reads": "tests.bench.read_speed",
    "metadata": "tests.bench.metadata_rebuild_speed",
    "merge-on-read": "tests.bench.merge_on_read_speed",
    "inserts": "tests.bench.insert_speed",
    "upserts": "tests.bench.upsert_speed",
    "layouts": "tests.bench.layout_real",
    "clustering": "tests.bench.rewrite_side_by_side",
    "clustering-memory": "tests.bench.clustering_memory",
}
#: seconds that other processes are watched before a turn
_WATCHED_S: Final = 1.0

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """What a job is given: its turns, whether a quick look is enough, and its folder."""

    turns: int = 3
    is_quick: bool = False
    folder: Path = ROOT / ".bench"
    log: RunLog = field(default_factory=RunLog)
    kept: KeptComparisons = field(default_factory=KeptComparisons)

    def pick(self, full: T, quick: T) -> T:
        """Return a size for this run."""
        return quick if self.is_quick else full

    def begin_turn(self, turn: int, system: str) -> None:
        """Note how busy the machine is; call it when no process of the bench runs."""
        self.log.busy.append(psutil.cpu_percent(_WATCHED_S) / 100)
        self.log.load.append(os.getloadavg()[0] / (os.cpu_count() or 1))
        print(f"  turn {turn + 1} of {self.turns}: {system}", file=sys.stderr, flush=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One bench: ``does`` says in a sentence or two what each system does."""

    name: str
    title: str
    does: str
    measure: Callable[[Run], Iterable[Figure]]
    goals: Callable[[Run], Sequence[Goal]] = lambda _: ()


def load_job(name: str) -> Job:
    """Import a bench and return its job."""
    job = importlib.import_module(MODULES[name]).JOB
    assert isinstance(job, Job)
    return job


def take_turns(
    run: Run, systems: Mapping[str, Callable[[], Iterable[Measure]]], turns: int | None = None
) -> tuple[Figure, ...]:
    """Measure the systems one after the other, by default as many times as the run has turns.

    A peer that fails is left out from then on, with a note; a failure of ours ends the job. What a
    stopped run has measured of all systems is not measured again.
    """
    many = turns or run.turns
    if (kept := run.kept.take_next([*systems], many)) is not None:
        print(f"  kept from a stopped run: {', '.join(systems)}", file=sys.stderr, flush=True)
        run.log.add(kept.log)
        return kept.figures
    # the log of this comparison alone is kept with it
    own_run = replace(run, log=RunLog())
    date, begun = datetime.now(UTC).isoformat(), time.monotonic()
    try:
        figures, failed = _measure_turns(own_run, systems, many)
    finally:
        run.log.add(own_run.log)
    run.kept.keep(
        Comparison(
            systems=tuple(systems),
            turns=many,
            date=date,
            seconds=time.monotonic() - begun,
            log=own_run.log,
            figures=figures,
            failed=failed,
        )
    )
    return figures


def _measure_turns(
    run: Run, systems: Mapping[str, Callable[[], Iterable[Measure]]], turns: int
) -> tuple[tuple[Figure, ...], tuple[str, ...]]:
    """Return the figures, and the peers that failed."""
    taken: list[tuple[str, Measure]] = []
    failed: set[str] = set()
    for turn in range(turns):
        for system, measure in systems.items():
            if system in failed:
                continue
            run.begin_turn(turn, system)
            try:
                measures = list(measure())
            except (SystemExit, Exception) as error:
                if is_ours(system):
                    raise
                print(error, file=sys.stderr, flush=True)
                failed.add(system)
                run.log.notes.append(f"{system} failed in turn {turn + 1}: {first_line(error)}")
                continue
            taken += [(system, one) for one in measures]
            _print_measures(measures)
    return collect_figures(taken), tuple(sorted(failed))


def first_line(error: BaseException) -> str:
    """Return the first line of an error, which the page has room for."""
    return str(error).partition("\n")[0][:300]


def _print_measures(measures: Iterable[Measure]) -> None:
    by_what: dict[str, list[str]] = {}
    for one in measures:
        by_what.setdefault(one.what, []).append(f"{one.value:.6g} {one.unit}")
    for what, values in by_what.items():
        print(f"    {what}: {', '.join(values)}", file=sys.stderr, flush=True)


def run_alone(job: Job) -> int:
    """Run one job for its module's ``main``, and print its table; return 1 for a missed goal."""
    from tests.bench.ratio_table import print_job  # noqa: PLC0415

    parser = argparse.ArgumentParser(description=job.title)
    parser.add_argument("--quick", action="store_true", help="small sizes and one turn")
    parser.add_argument("--turns", type=int, help="3, or 1 with --quick")
    arguments = parser.parse_args()
    use_this_tree()
    run = Run(turns=arguments.turns or (1 if arguments.quick else 3), is_quick=arguments.quick)
    return int(not print_job(job, run, tuple(job.measure(run))))
