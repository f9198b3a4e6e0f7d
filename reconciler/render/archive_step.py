"""The archival of a plan for people."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Final

from reconciler.plans.archive_step import ArchivedInstant, ArchiveStep
from reconciler.render import words
from reconciler.render.terminal import Terminal

_MAX_LEFTOVERS: Final = 3


def step_lines(
    step: ArchiveStep, terminal: Terminal, refused_by: str, *, full: bool
) -> Iterator[str]:
    """An archive step with its reason; ``full`` lists every instant and leftover."""
    yield from terminal.step("~ archive", terminal.warn, _describe_step(step), refused_by)
    yield from terminal.detail(step.because)
    if step.metadata_table:
        amount = words.format_count(len(step.metadata_table), "instant")
        yield from terminal.detail(f"and {amount} of the metadata table's own timeline")
    if full:
        yield from _instant_lines(step.instants, "")
        yield from _instant_lines(step.metadata_table, "metadata table: ")
    sentences = [f"removes {one.path}: {one.because}" for one in step.leftovers]
    limit = len(sentences) if full else _MAX_LEFTOVERS
    yield from terminal.details(sentences, limit, "leftover")


def _describe_step(step: ArchiveStep) -> str:
    if not step.instants:
        return "no instants of the table"
    first, last = step.instants[0].instant, step.instants[-1].instant
    since = words.format_instant(first)
    span = since if first == last else f"{since} to {words.format_instant(last)}"
    return f"{_count_instants(step.instants)}, {span}; timeline.keep is {step.keep}"


def _count_instants(instants: Iterable[ArchivedInstant]) -> str:
    """Return how many instants there are of each action, commits first."""
    counts = Counter(one.action for one in instants)
    order = ("commit", "deltacommit", "replacecommit", "clean", "rollback")
    return ", ".join(words.format_count(counts[name], name) for name in order if counts[name])


def _instant_lines(instants: Iterable[ArchivedInstant], prefix: str) -> Iterator[str]:
    for one in instants:
        yield f"      - {prefix}{one.instant}  {one.action}"
