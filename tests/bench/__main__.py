"""Run the benches side by side with their peers, and write ``docs/performance.md``.

python -m tests.bench                     every job at full size, three turns each; hours
python -m tests.bench --quick             small sizes, one turn; prints and writes no page
python -m tests.bench inserts upserts     some jobs
python -m tests.bench --list              the names of the jobs

A job's figures are saved when it ends, in ``.bench/figures``, and before that each comparison that
it has made: a run that was stopped goes on with what is missing, and ``--fresh`` measures all of it
again. Those at full size are also in ``tests/bench/results``, from which the page is written: it
keeps jobs of earlier runs. Peers come from their registries: Delta and Iceberg by Spark's packages,
Hudi by Ivy.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
import traceback
from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path

from tests.bench.jobs import MODULES, ROOT, Job, Run, first_line, load_job
from tests.bench.kept_comparisons import KeptComparisons
from tests.bench.machine import Machine, read_commit, read_machine, use_this_tree
from tests.bench.performance_page import render_page
from tests.bench.ratio_table import print_table
from tests.bench.saved_results import JobResult, load_result, save_result

PAGE = ROOT / "docs" / "performance.md"
#: what the page shows, a file a job
RESULTS = Path(__file__).with_name("results")


def run_job(job: Job, run: Run, machine: Machine) -> JobResult:
    """Measure one job; a failure becomes part of the result."""
    print(f"{job.name}: {job.title}", file=sys.stderr, flush=True)
    date, begun, load = datetime.now(UTC).isoformat(), time.monotonic(), os.getloadavg()[0]
    failure = None
    figures = []
    try:
        figures += job.measure(run)
    except (SystemExit, Exception) as error:  # noqa: BLE001
        traceback.print_exc()
        failure = f"{type(error).__name__}: {first_line(error)}"
    if failure is None:
        run.kept.remove()
    if not machine.has_same_code():
        then, now = machine.versions["reconciler"], f"commit {read_commit()}"
        run.log.notes.append(f"the code changed while it ran: {then} became {now}")
    return JobResult(
        job=job.name,
        date=run.kept.first_date or date,
        seconds=time.monotonic() - begun + run.kept.earlier_seconds,
        turns=run.turns,
        load=(load, os.getloadavg()[0]),
        machine=machine,
        log=run.log,
        figures=tuple(figures),
        failure=failure,
    )


def saved_or_run(job: Job, arguments: argparse.Namespace, machine: Machine) -> JobResult:
    """Return the saved result of a job unless it failed or is not wanted; else run it."""
    results = result_folder(arguments)
    saved = None if arguments.fresh else load_result(results, job.name)
    turns = arguments.turns or (1 if arguments.quick else 3)
    if saved is not None and saved.failure is None and saved.turns >= turns:
        print(
            f"{job.name}: kept from {saved.date[:16]}, {saved.machine.versions['reconciler']} "
            "(--fresh measures it again)",
            file=sys.stderr,
        )
        return saved
    kept = results / f"{job.name}.kept"
    if arguments.fresh:
        kept.unlink(missing_ok=True)
    run = Run(
        turns=turns,
        is_quick=arguments.quick,
        folder=arguments.keep,
        kept=KeptComparisons(
            kept if machine.has_committed_code else None, asdict(machine), machine.has_same_code
        ),
    )
    result = run_job(job, run, machine)
    save_result(results, result)
    return result


def result_folder(arguments: argparse.Namespace) -> Path:
    """Return the folder of results: quick ones are apart."""
    folder: Path = arguments.keep / ("figures-quick" if arguments.quick else "figures")
    return folder


def make_page(jobs: Sequence[Job]) -> str:
    """Return the page of all results at full size, those of earlier runs too."""
    found = [load_result(RESULTS, job.name) for job in jobs]
    return render_page(jobs, [result for result in found if result is not None])


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tests.bench", description=__doc__.splitlines()[0]
    )
    parser.add_argument("jobs", nargs="*", metavar="JOB", help="names of jobs; all by default")
    parser.add_argument("--quick", action="store_true", help="small sizes, one turn, no page")
    parser.add_argument("--turns", type=int, help="3 by default, or 1 with --quick")
    parser.add_argument("--fresh", action="store_true", help="measure again what is saved")
    parser.add_argument(
        "--keep",
        type=Path,
        default=ROOT / ".bench",
        metavar="FOLDER",
        help="folder of tables and figures",
    )
    parser.add_argument("--list", action="store_true", help="list the jobs")
    arguments = parser.parse_args()
    arguments.keep = arguments.keep.resolve()
    if unknown := set(arguments.jobs) - set(MODULES):
        parser.error(
            f"no job is named {', '.join(sorted(unknown))}: there are {', '.join(MODULES)}"
        )
    return arguments


def main() -> int:
    arguments = parse_arguments()
    known = [load_job(name) for name in MODULES]  # all now: the tree may change in hours
    jobs = [job for job in known if not arguments.jobs or job.name in arguments.jobs]
    if arguments.list:
        print("\n".join(f"{job.name:18} {job.title}" for job in jobs))
        return 0
    use_this_tree()
    machine = read_machine(arguments.keep)
    results = [(job, saved_or_run(job, arguments, machine)) for job in jobs]
    run = Run(is_quick=arguments.quick)
    is_met = print_table([(job, run, result.figures) for job, result in results])
    for _, result in results:
        for line in filter(None, [result.failure, *result.log.notes]):
            print(f"{result.job}: {line}")
    if not arguments.quick:
        for _, result in results:
            if result.failure is None:  # the page keeps the figures of an earlier run
                save_result(RESULTS, result)
        PAGE.write_text(make_page(known))
        print(f"wrote {PAGE}")
    return int(not is_met or any(result.failure for _, result in results))


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit("stopped; the same command goes on with the job that was running")
