"""Histories in which real Hudi and reconciler take turns at one table.

Each of them writes, dies, rolls back, cleans and archives in a random order. After each history
real Hudi must read exactly the rows that were committed, by every lookup, and list every file.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any, Final

import reconciler
from reconciler import runtime
from reconciler.spec.model import TableSpec
from reconciler.storage.open import open_storage
from tests.applying import ImpatientClock, apply_here
from tests.crash.drill import Killed
from tests.oracle import failed_writes
from tests.oracle.hudi import HudiTable, RealHudi, keep_commits
from tests.oracle.live_drill import list_pending
from tests.oracle.prepared_tables import (
    RECORD_INDEX,
    SMALL_FILTERS,
    TableKind,
    assert_reads,
    find_wrongly_listed,
)
from tests.storage_wrappers import RecordingStorage

_SPEC: Final = """\
apiVersion: reconciler/v1
kind: HudiTable
metadata: {{name: shared}}
spec:
  path: "{path}"
  timezone: UTC
  retention: {{commits: {commits}, failedWrites: LAZY}}
  timeline: {{keep: {least}..{most}}}
  concurrency: {{lock: {{provider: filesystem}}, staleAfter: 1m}}
"""
#: what an apply ran as that has died
_ENDED: Final = replace(runtime.current_process(), pid=2**22 - 1, started="before")
#: what is done to the table, and how often of all
STEPS: Final[Mapping[str, int]] = {
    "write": 6,
    "delete": 1,
    "die before the metadata table": 2,
    "die after the metadata table": 1,
    "keep": 4,
    "keep and die": 2,
    "Hudi cleans": 2,
    "Hudi archives": 2,
    "Hudi compacts": 2,
}

Row = list[Any]


@dataclass(slots=True, kw_only=True)
class SharedTable:
    """A table that both work on. ``rows``: those that were committed, by key."""

    hudi: RealHudi
    table: HudiTable
    kind: TableKind
    random: Random
    rows: dict[str, Row] = field(default_factory=dict)
    count: int = 0
    log: list[str] = field(default_factory=list)

    def play(self, steps: int) -> None:
        """Write twice, then do so many random steps; check the table at the end."""
        self.do("write")
        self.do("write")
        chosen = self.random.choices([*STEPS], [*STEPS.values()], k=steps)
        for step in chosen:
            self.do(step)
        self.do("keep")
        self.check()

    def do(self, step: str) -> None:
        acts: dict[str, Callable[[], object]] = {
            "write": self._write,
            "delete": self._delete,
            "die before the metadata table": lambda: failed_writes.fail_write(
                self.hudi, self.table, self._make_rows()
            ),
            "die after the metadata table": lambda: failed_writes.break_off(
                self.hudi, self.table, self._make_rows(), with_markers=True
            ),
            "keep": self._keep,
            "keep and die": self._keep_and_die,
            "Hudi cleans": self._clean,
            "Hudi archives": lambda: self.hudi.archive(self.table, failed_writes.LAZY),
            "Hudi compacts": self._compact,
        }
        self.log.append(step)
        done = acts[step]()
        self.log[-1] += f": {done}" if done else ""

    def check(self) -> None:
        assert_reads(self.hudi, self.table, sorted(self.rows.values(), key=repr))
        wrong = find_wrongly_listed(self.hudi, self.table)
        # 0.15.0 lists the log files of every write that it rolls back with a size of 1
        assert {} == {path: both for path, both in wrong.items() if both[1] != 1}
        assert () == self._plan().tables[0].steps

    def _write(self) -> str:
        rows = self._make_rows()
        instant = self.hudi.write(self.table, rows, options=failed_writes.LAZY)
        self.rows |= {row[0]: row for row in rows}
        return instant

    def _delete(self) -> str:
        if len(self.rows) < 4:
            return ""
        key = self.random.choice(sorted(self.rows))
        gone = self.rows.pop(key)
        self.count += 1
        row = [*gone[:2], self.count, *gone[3:]]
        return self.hudi.write(self.table, [row], "delete", failed_writes.LAZY)

    def _make_rows(self) -> list[Row]:
        self.count += 1
        known = sorted(self.rows)
        keys = self.random.sample(known, min(len(known), self.random.randint(0, 3)))
        keys.append(f"{self.random.choice('abc')}{self.count}")
        return [[key, key[0], self.count, f"v{self.count}", float(self.count)] for key in keys]

    def _clean(self) -> str:
        made = self.hudi.clean(self.table, {**keep_commits(2), **failed_writes.LAZY})
        return "" if made is None else str(made.get("totalFilesDeleted", ""))

    def _compact(self) -> str:
        if not self.kind.merge_on_read or list_pending(self.table):
            return ""
        instant = self.hudi.schedule(self.table, "COMPACT")
        if instant:
            self.hudi.compact(self.table, instant)
        return instant or ""

    def _keep(self) -> str:
        """Plan and apply until nothing is left, as scheduled runs do."""
        for _ in range(4):
            plan = self._plan()
            steps = [step.kind for step in plan.tables[0].steps]
            if not steps:
                return "nothing more to do"
            result = apply_here(plan, clock=ImpatientClock())
            told = [(one.kind, one.how) for one in result.tables[0].outcomes]
            self.log.append(f"kept {steps}: {result.exit_code} {told}")
            assert result.exit_code in {0, 4}, (result.tables[0].error, self.log)
        raise AssertionError(f"plans do not become empty: {self.log}")

    def _keep_and_die(self) -> str:
        """Apply in a process that dies before one of its changes."""
        plan = self._plan()
        if not plan.tables[0].steps:
            return "nothing to do"
        left = self.random.randint(1, 25)

        class Dies(RecordingStorage):
            def _intercept(self, call: Any, what: Any, torn: Any = None) -> Any:
                nonlocal left
                left -= call.mutates
                if left <= 0:
                    raise Killed
                return super()._intercept(call, what, torn)

        try:
            result = apply_here(plan, storage=lambda ref: Dies(open_storage(ref)), process=_ENDED)
        except Killed:
            return f"{[step.kind for step in plan.tables[0].steps]} killed"
        return f"{[step.kind for step in plan.tables[0].steps]} {result.exit_code}"

    def _make_spec(self) -> TableSpec:
        file = self.table.path.parent / f"{self.table.path.name}.yaml"
        file.write_text(_SPEC.format(path=self.table.path, commits=2, least=4, most=6))
        (spec,) = reconciler.load_specs(file)
        return spec

    def _plan(self) -> Any:
        plan = reconciler.plan(self._make_spec())
        assert [(None, ())] == [(one.error, one.refusals) for one in plan.tables], self.log
        return plan


def play_history(hudi: RealHudi, kind: TableKind, folder: Any, seed: int, steps: int) -> None:
    """Play one random history; an error tells its steps."""
    table = hudi.table(
        folder / "t",
        merge_on_read=kind.merge_on_read,
        partitioned=kind.partitioned,
        options={**(RECORD_INDEX if kind.indexes else SMALL_FILTERS), **failed_writes.LAZY},
    )
    shared = SharedTable(hudi=hudi, table=table, kind=kind, random=Random(seed))
    try:
        shared.play(steps)
    except Exception as error:
        error.add_note("\n".join([f"seed {seed}, {kind}", *shared.log]))
        raise
