"""A table with its plan and the decisions behind it, which answers quote; pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import datetime
from functools import cached_property
from typing import Final

import numpy as np
import pyarrow.compute as pc

from reconciler.arrays import to_arrow, to_numpy
from reconciler.hudi.files.view import FileView
from reconciler.lazy_dataclass import dataclass
from reconciler.planners.answers.model import Fact
from reconciler.planners.clean.boundary import find_cutoff
from reconciler.planners.clean.explanations import check_after_commits
from reconciler.planners.clean.planner import CleanDecision, plan_clean
from reconciler.planners.picture import TablePicture
from reconciler.planners.protection import Protection, find_protection
from reconciler.planners.readable_instants import find_readable_writes
from reconciler.planners.reader_window import ReaderWindow, find_reader_window
from reconciler.planners.recovery.resume_clean import plan_clean_resumes
from reconciler.planners.removed_files import find_removed_files
from reconciler.planners.savepoints.planner import plan_savepoints
from reconciler.plans.model import Step, TablePlan
from reconciler.plans.refusals import refuse_by_state
from reconciler.plans.refused_steps import find_refusals, list_applied_steps
from reconciler.plans.step_items import StepItems, list_items
from reconciler.spec.model import TableSpec
from reconciler.state.model import TableState

#: letters from which on a name in a sentence is taken for a mention
_SHORTEST_MENTION: Final = 4


@dataclass(frozen=True, eq=False)
class PlannedTable:
    """The spec, the state and the plan of a table. Decisions are made again when asked for."""

    spec: TableSpec
    state: TableState
    plan: TablePlan
    now: datetime

    @property
    def view(self) -> FileView:
        return self.state.view

    @cached_property
    def is_blocked(self) -> bool:
        """Whether the state of the table forbids all planning."""
        return bool(refuse_by_state(self.spec, self.state, self.now))

    @cached_property
    def window(self) -> ReaderWindow | None:
        return None if self.is_blocked else find_reader_window(self.spec, self.state, self.now)

    @cached_property
    def future(self) -> TableState:
        """Return the state with the savepoints that a clean finds."""
        if self.is_blocked:
            return self.state
        picture = TablePicture(self.spec, self.state, self.now)
        return self.state.with_savepoints(plan_savepoints(picture, self.now).savepoints)

    @cached_property
    def protection(self) -> Protection:
        """Return what protects file slices, whether they are past retention or not."""
        return find_protection(self.future, self.window)

    @cached_property
    def clean(self) -> CleanDecision | None:
        """Return what the retention decides; None without one, and for a blocked table."""
        spec, retention = self.spec, self.spec.retention
        if retention is None or self.is_blocked:
            return None
        resumes = plan_clean_resumes(self.state, spec.concurrency, self.now, self.window)
        cutoff = find_cutoff(spec, self.state, self.now)
        return plan_clean(
            retention, self.future, cutoff=cutoff, resumed=resumes.rows, window=self.window
        )

    @cached_property
    def clean_obstacle(self) -> str | None:
        """Return why no clean is planned whatever is past retention; None if one may be."""
        retention = self.spec.retention
        if retention is None or self.is_blocked:
            return None
        resumes = plan_clean_resumes(self.state, self.spec.concurrency, self.now, self.window)
        if resumes.is_blocked:
            return resumes.warnings[0].because
        gate = check_after_commits(retention, self.state)
        return None if gate is None else gate.because

    @cached_property
    def readable(self) -> Mapping[str, tuple[bool, bool]]:
        """Return per completed write whether reads as of it work, before and after the plan."""
        writes, before = find_readable_writes(self.state)
        _, after = find_readable_writes(self.state, find_removed_files(self.state, self.plan))
        pairs = zip(before.tolist(), after.tolist(), strict=True)
        return dict(zip(writes, pairs, strict=True))

    @cached_property
    def step_items(self) -> tuple[tuple[Step, StepItems], ...]:
        """Return the steps of the plan with what each names."""
        return tuple((step, list_items(step)) for step in self.plan.steps)

    def find_refusal(self, step: Step) -> str | None:
        """Return why a step of the plan is not applied; None if it is."""
        if any(each is step for each in list_applied_steps(self.plan)):
            return None
        whole = (note for note in self.plan.refusals if note.step is None)
        note = [*find_refusals(step, self.plan.refusals), *whole][0]
        return f"{note.because} [{note.rule}]"

    def describe_refusal(self, step: Step) -> Iterator[Fact]:
        """Yield why a step alone is not applied; what refuses the whole plan is a mention."""
        refusal = self.find_refusal(step)
        if refusal is not None and not self.plan.is_blocked:
            yield Fact("refusal", f"step {step.kind} is not applied: {refusal}")

    def find_kept(self, path: str) -> str | None:
        """Return why a file that is past retention stays; None if it is not among them."""
        kept = list_items(self.plan.kept)
        place = find_path(kept, path)
        return None if place < 0 else str(kept.because[place].as_py())

    def find_mentions(self, text: str) -> Iterator[Fact]:
        """Yield what refuses the whole plan, and the notes and differences that name a thing."""
        named = re.compile(rf"(?<![\w=.-]){re.escape(text)}(?![\w=-])") if text else None
        for note in self.plan.refusals:
            if note.step is None or (named is not None and named.search(note.because)):
                yield Fact("refusal", f"{note.because} [{note.rule}]")
        if named is None or len(text) < _SHORTEST_MENTION:
            return
        for note in self.plan.warnings:
            if named.search(note.because):
                yield Fact("note", f"{note.because} [{note.rule}]")
        for finding in self.plan.drift:
            if named.search(finding.because):
                yield Fact("drift", f"{finding.field}: {finding.because}")


def find_path(items: StepItems, path: str) -> int:
    """Return the row of an item, -1 if it is not there."""
    rows = np.flatnonzero(to_numpy(pc.equal(items.path, to_arrow([path])[0])))
    return int(rows[0]) if len(rows) else -1


def count_within(items: StepItems, partition: str) -> tuple[int, int]:
    """Return the number of files or slices of a partition, and their bytes."""
    start = f"{partition}/" if partition else ""
    is_inside = to_numpy(pc.starts_with(items.path, start))
    depth = to_numpy(pc.count_substring(items.path, "/"))
    is_direct = is_inside & (depth == start.count("/"))
    return int(is_direct.sum()), int(items.bytes[is_direct].sum())
