"""A rollback step for a terminal: whose write died, and what it has written."""

from __future__ import annotations

from collections.abc import Iterator

from reconciler.plans.model import RollbackStep
from reconciler.render import words
from reconciler.render.paint import Paint
from reconciler.render.wrapping import wrap_item


def step_lines(step: RollbackStep, paint: Paint, *, full: bool) -> Iterator[str]:
    """The step and why it is; ``full``: with the name of every file."""
    amount = words.format_count(len(step.files), "file") if len(step.files) else "no files"
    what = f"{words.escape_text(step.action)} {step.instant}, {amount}"
    yield from wrap_item(paint.warn("- rollback"), f"{what}: {step.because}")
    yield from _file_lines(step) if full else ()


def _file_lines(step: RollbackStep) -> Iterator[str]:
    above = None
    rows = zip(step.files.partition.to_pylist(), step.files.name.to_pylist(), strict=True)
    for partition, name in rows:
        if partition != above:
            above = partition
            yield f"      {words.escape_text(partition) or '(root)'}"
        yield f"        - {words.escape_text(name)}"
