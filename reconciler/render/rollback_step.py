"""A rollback step for a terminal: whose write died, and what it has written."""

from __future__ import annotations

from collections.abc import Iterator

from reconciler.plan.model import RollbackStep
from reconciler.render import words
from reconciler.render.lines import item
from reconciler.render.paint import Paint


def step_lines(step: RollbackStep, paint: Paint, *, full: bool) -> Iterator[str]:
    """The step and why it is; ``full``: with the name of every file."""
    amount = words.count(len(step.files), "file") if len(step.files) else "no files"
    what = f"{words.plain(step.action)} {step.instant}, {amount}"
    yield from item(paint.warn("- rollback"), f"{what}: {step.because}")
    yield from _files(step) if full else ()


def _files(step: RollbackStep) -> Iterator[str]:
    above = None
    rows = zip(step.files.partition.to_pylist(), step.files.name.to_pylist(), strict=True)
    for partition, name in rows:
        if partition != above:
            above = partition
            yield f"      {words.plain(partition) or '(root)'}"
        yield f"        - {words.plain(name)}"
