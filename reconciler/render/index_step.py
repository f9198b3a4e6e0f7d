"""An index step for a terminal: which index, of which columns, what is read for it, and why."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from reconciler.plans.model import IndexStep
from reconciler.render import words
from reconciler.render.paint import Paint
from reconciler.render.wrapping import wrap_detail, wrap_item

_TARGET_NAMES: Final = {"zindex": "the index", "column_stats": "Hudi's column_stats"}


def step_lines(step: IndexStep, paint: Paint) -> Iterator[str]:
    """The step with its columns and the footers that it reads."""
    names = " and ".join(_TARGET_NAMES[target] for target in step.targets)
    of = f"{names} of {', '.join(step.columns)}" if step.columns else names
    reads = f"reads the footers of {words.format_count(step.files, 'base file')}"
    yield from wrap_item(
        paint.warn("~ index"), f"{of}; {reads if step.files else 'reads no footers'}"
    )
    if step.add:
        yield from wrap_detail(f"adds {', '.join(step.add)}")
    if step.drop:
        yield from wrap_detail(f"drops {', '.join(step.drop)}")
    yield from wrap_detail(step.because)
