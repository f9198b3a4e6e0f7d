"""The job of planning: a million files, a second plan of them, many small tables, and the start.

python -m tests.bench.planning_job             1 000 000 files in 10 000 partitions, three turns
python -m tests.bench.planning_job --quick     10 000 files, 20 tables, one turn

Ours are whole processes. The folder of caches is a new one for each first plan, so that it finds
nothing of an earlier run. Real Hudi schedules a clean of the same table in a JVM that has done it
before, without Spark's start.
"""

from __future__ import annotations

import compileall
import json
import shutil
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

from tests.bench.figures import (
    CPU,
    MEMORY,
    WALL,
    Baseline,
    Figure,
    Goal,
    Measure,
    collect_figures,
    cost_measures,
)
from tests.bench.jobs import ROOT, Job, Run, run_alone, take_turns
from tests.bench.make_table import Shape, make_table
from tests.bench.many_tables import make_tables
from tests.bench.plan_speed import KEEP, hudi_plan
from tests.bench.process_cost import measure_command
from tests.bench.versions import HUDI, LOOP, OURS
from tests.bench.wording import format_value

SECOND, HELP = "second plan of them", "--help"
PROGRAM: Final = Path(sys.executable).parent / "reconciler"
#: a spec as people commit it
_SPEC: Final = """\
apiVersion: reconciler/v1
kind: HudiTable
metadata:
  name: sales.orders_{number}
  labels: {{team: sales, tier: "{tier}"}}
spec:
  path: s3://lake/sales/orders_{number}
  timezone: Europe/Berlin
  retention:
    commits: {commits}       # reads as of these commits work
    failedWrites: LAZY
  files:
    target: 120MiB
    small: 100MiB
    assign: steady
  clustering:
    columns: [customer_id, ordered_at]
    curve: hilbert
    when: {{smallFileShareAbove: 0.3, gainAbove: 0.2}}
    budget: {{rewrite: 50GiB}}
  index:
    columns: [customer_id, ordered_at, status]
  queries:
    - {{name: one customer, where: "customer_id = 42"}}
    - {{name: a day, where: "ordered_at between 1 and 2 and status = 'paid'"}}
  concurrency:
    lock:
      provider: storage
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """How much is planned, and the names of the work."""

    partitions: int
    tables: int

    @classmethod
    def of(cls, run: Run) -> Self:
        return cls(partitions=run.pick(10_000, 100), tables=run.pick(500, 20))

    @property
    def shape(self) -> Shape:
        return Shape(partitions=self.partitions, groups=10, versions=10)

    @property
    def first(self) -> str:
        return f"plan of {format_value(self.shape.files)} files"

    @property
    def many(self) -> str:
        return f"plan of {self.tables} tables"

    @property
    def command(self) -> str:
        return f"{self.many}, by the command"

    @property
    def lint(self) -> str:
        return f"lint of {self.tables} specs"


class Planning:
    """The tables and specs that are planned, below a folder."""

    def __init__(self, run: Run) -> None:
        self.folder = run.folder / "planning"
        self.folder.mkdir(parents=True, exist_ok=True)
        self.sizes = Sizes.of(run)
        self.table = run.folder / f"{self.sizes.partitions}x10x10"
        if not (self.table / ".hoodie" / "timeline").is_dir():
            make_table(self.table, self.sizes.shape)
        tables = self.sizes.tables
        self.tables = make_tables(run.folder / f"many-{tables}", tables)
        self.specs = write_specs(self.folder / f"specs-{tables}", tables)
        self.spec = self.folder / "spec.yaml"
        self.spec.write_text(
            "apiVersion: reconciler/v1\nkind: HudiTable\nmetadata: {name: bench}\n"
            f"spec: {{path: {self.table}, retention: {{commits: {KEEP}}}}}\n"
        )
        compileall.compile_dir(ROOT / "reconciler", quiet=1)  # as pip leaves an installed package

    def measure_ours(self) -> Iterable[Measure]:
        """Run every command in a process of its own."""
        shutil.rmtree(self.folder / "caches", ignore_errors=True)
        plan = ["plan", str(self.spec), "-o", str(self.folder / "plan.json")]
        first = self._run(self.sizes.first, *plan)
        before = self.removed()
        second = self._run(SECOND, *plan)
        if self.removed() != before:
            raise SystemExit(f"the second plan removes {self.removed()} files, not {before}")
        module = (sys.executable, "-m", "tests.bench.many_tables", "--child")
        return [
            *first,
            *second,
            *self._measure(self.sizes.many, [*module, str(self.tables), "--at-once", "1"]),
            *self._run(
                self.sizes.command, "plan", str(self.tables), "-o", str(self.folder / "many.json")
            ),
            *self._run(self.sizes.lint, "lint", str(self.specs)),
            *self._run(HELP, "--help"),
        ]

    def measure_loop(self) -> Iterable[Measure]:
        """List the same files without planning anything."""
        loop = str(Path(__file__).with_name("listing_loop.py"))
        return self._measure(self.sizes.first, [sys.executable, "-I", loop, str(self.table)])

    def _run(self, what: str, *arguments: str) -> list[Measure]:
        return self._measure(what, [str(PROGRAM), *arguments])

    def _measure(self, what: str, command: Sequence[str]) -> list[Measure]:
        caches = {"XDG_CACHE_HOME": str(self.folder / "caches")}
        return cost_measures(what, measure_command(command, cwd=ROOT, environment=caches))

    def removed(self) -> int:
        plan = json.loads((self.folder / "plan.json").read_bytes())
        removed: int = plan["tables"][0]["impact"]["filesRemoved"]
        return removed

    def measure_hudi(self, turns: int) -> tuple[Figure, ...]:
        """Let real Hudi plan the same table; SystemExit if it plans other files."""
        costs = hudi_plan(self.table, turns)
        if {cost.files for cost in costs} != {self.removed()}:
            raise SystemExit(f"Hudi plans {costs[0].files} files, and we {self.removed()}")
        return collect_figures(
            (HUDI, Measure(what=self.sizes.first, unit=unit, value=value))
            for cost in costs
            for unit, value in ((WALL, cost.wall), (CPU, cost.cpu))
        )


def write_specs(folder: Path, many: int) -> Path:
    """Write specs of thirty lines each; return their folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for number in range(many):
        text = _SPEC.format(number=number, tier=number % 3, commits=number % 20 + 5)
        (folder / f"orders-{number:04}.yaml").write_text(text)
    return folder


def measure(run: Run) -> list[Figure]:
    planning = Planning(run)
    ours = take_turns(run, {OURS: planning.measure_ours, LOOP: planning.measure_loop})
    run.begin_turn(run.turns - 1, f"{HUDI}, all turns in one JVM")
    return [*ours, *planning.measure_hudi(run.turns)]


def goals(run: Run) -> list[Goal]:
    sizes = Sizes.of(run)
    return [
        Goal(what=sizes.first, unit=CPU, limit=5),
        Goal(what=sizes.first, unit=MEMORY, limit=700),
        Goal(what=SECOND, unit=CPU, limit=0.3, baseline=Baseline(what=sizes.first)),
        Goal(what=sizes.many, unit=CPU, limit=3),
        Goal(what=sizes.lint, unit=WALL, limit=1),
        Goal(what=HELP, unit=WALL, limit=0.15),
    ]


JOB = Job(
    name="planning",
    title="Planning",
    does="""\
A clean of a table of 1 000 000 files in 10 000 partitions on a local disk is planned, and planned
again when nothing has changed. Ours is `reconciler plan` from its start to its end; Hudi schedules
the clean of the same files in a JVM that has done it before, and Spark's start does not count. A
bare loop in Python that lists the folders and asks the system for the size of every file plans
nothing: it says how much of the work is the system's, which differs between machines. Then
500 small tables of all kinds are planned, by the API in one process and by the command, which also
prints what it found; 500 specs of thirty lines are checked; and `reconciler --help` is printed.

How fast Python is differs as much: on a slower machine, where the bare loop took 4.4 CPU seconds,
an earlier version took twice as long for all of these, and missed three of the goals.""",
    measure=measure,
    goals=goals,
)


if __name__ == "__main__":
    sys.exit(run_alone(JOB))
