"""A cluster step for a terminal: what becomes of which files, how the table lies then, and why.

What comes after is predicted. The lines are those of ``render.text``, of one table.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final

import numpy as np

from reconciler.plan.model import ClusterStep, LayoutChange, LayoutFigures, Rewrites
from reconciler.render import words
from reconciler.render.lines import bar, item, more
from reconciler.render.paint import Paint

_TOP_PARTITIONS: Final = 8
_TOP_GROUPS: Final = 2
_TOP_SLICES: Final = 3


def step_lines(step: ClusterStep, paint: Paint, *, full: bool) -> Iterator[str]:
    """The step with its partitions and groups; ``full`` lists every file slice."""
    yield from item(paint.warn("~ cluster"), f"{amount(step.groups)}, {_order(step)}")
    yield from _partitions(step.groups)
    yield from _groups(step.groups, full=full)


def layout_lines(layout: LayoutChange, paint: Paint) -> Iterator[str]:
    """How the table lies before and after, and what stays as it is."""
    yield from item(paint.good("= layout"), _files(layout.before, layout.after))
    yield from _sizes(layout)
    if layout.before.overlap is not None:
        after = layout.after.overlap
        now = f"{layout.before.overlap:.1f}"
        then = "" if after is None else f" → {after:.1f} (predicted)"
        yield from more(f"files that cover a row on average: {now}{then}")
    if layout.untouched:
        many = sum(each.slices for each in layout.untouched)
        stay = "stays as it is" if many == 1 else "stay as they are"
        slices = words.count(many, "file slice")
        yield from item(paint.good("= untouched"), f"{slices} {stay}")
        for each in layout.untouched:
            count = words.count(each.slices, "file slice")
            yield from more(f"{each.rule}: {count}: {each.because}")


def amount(groups: Rewrites) -> str:
    """What goes in and comes out: ``74 file slices, 3.1 GiB in 3 partitions become 26 files``."""
    slices, size = len(groups.file_id), words.size(int(groups.bytes.sum()))
    paths = groups.partition.unique().to_pylist()
    where = "" if paths == [""] else f" in {words.count(len(paths), 'partition')}"
    become = "becomes" if slices == 1 else "become"
    files = words.count(int(groups.outputs.sum()), "file")
    return f"{words.count(slices, 'file slice')}, {size}{where} {become} {files}"


def _order(step: ClusterStep) -> str:
    if not step.columns:
        return "rows as they came"
    mapping = ", by Hudi's mapping of bytes" if step.mapping == "direct" else ""
    return f"rows by {', '.join(step.columns)} ({step.curve}{mapping})"


def _files(before: LayoutFigures, after: LayoutFigures) -> str:
    """Files, how many are small and how big they are, before and after."""
    files = f"{words.number(before.files)} → {words.count(after.files, 'base file')}"
    small = f"{words.number(before.small)} → {words.number(after.small)} small"
    return f"{files}, {small}, {_mean(before)} → {_mean(after)} on average"


def _mean(figures: LayoutFigures) -> str:
    return words.size(figures.bytes // figures.files) if figures.files else "nothing"


# --- partitions and groups -----------------------------------------------------------------------


def _partitions(groups: Rewrites) -> Iterator[str]:
    """A row a partition, most bytes first."""
    from reconciler.planners.outlook import rewritten  # noqa: PLC0415 - few plans cluster

    sums = rewritten(groups)
    names = sums.partition.to_pylist()
    if names == [""]:
        return
    order = sorted(range(len(names)), key=lambda at: (-sums.bytes[at], names[at]))
    shown = order if len(order) <= _TOP_PARTITIONS + 1 else order[:_TOP_PARTITIONS]
    labels = [words.plain(names[at]) or "(root)" for at in shown]
    width = min(max(map(len, labels), default=0), 40)
    for label, at in zip(labels, shown, strict=True):
        files = f"{words.number(int(sums.slices[at]))} → {_out(int(sums.outputs[at]))}"
        size, many = words.size(int(sums.bytes[at])), words.count(int(sums.groups[at]), "group")
        yield f"      {label:<{width}}  {files:>16}  {size:>10}  {many:>9}"
    rest = order[len(shown) :]
    if rest:
        slices, outputs = int(sums.slices[rest].sum()), int(sums.outputs[rest].sum())
        files = f"{words.number(slices)} → {_out(outputs)}"
        size = words.size(int(sums.bytes[rest].sum()))
        yield f"      … and {words.count(len(rest), 'more partition')} ({files}, {size})"


def _out(files: int) -> str:
    return words.count(files, "file")


def _groups(groups: Rewrites, *, full: bool) -> Iterator[str]:
    """The groups with their reasons: all of them in the plan's order, or the biggest."""
    order = np.arange(len(groups))
    if not full:
        order = np.lexsort((order, -groups.bytes))[:_TOP_GROUPS]
    paths, starts = groups.partition, groups.starts.tolist()
    for group in order.tolist():
        path = words.plain(paths[group].as_py()) or "(root)"
        number = f"group {words.number(group + 1)} of {words.number(len(groups))}"
        yield from more(f"{number}, {path}: {groups.because[group].as_py()}")
        yield from _slices(groups, starts[group], starts[group + 1], full=full)
    rest = len(groups) - len(order)
    if rest > 0:
        left = words.count(rest, "more group")
        yield from more(f"… and {left}; all in plan.json, or show --full")


def _slices(groups: Rewrites, start: int, end: int, *, full: bool) -> Iterator[str]:
    """Every slice with its files, or the names of the first few."""
    if not full:
        shown = groups.file_id[start : min(end, start + _TOP_SLICES)].to_pylist()
        rest = end - start - len(shown)
        names = ", ".join(words.plain(name) for name in shown)
        others = f" … and {words.number(rest)} more; all in plan.json" if rest else ""
        yield from more(f"{names}{others}", deeper=2)
        return
    bases, logs = groups.base[start:end].to_pylist(), groups.logs[start:end].to_pylist()
    for file_id, base, names in zip(
        groups.file_id[start:end].to_pylist(), bases, logs, strict=True
    ):
        yield f"        ~ {words.plain(base or f'{file_id}, log files alone')}"
        yield from (f"          + {words.plain(name)}" for name in names)


# --- sizes ---------------------------------------------------------------------------------------


def _sizes(layout: LayoutChange) -> Iterator[str]:
    """The classes of sizes that have files, with bars, before and after."""
    before, after = layout.before.sizes, layout.after.sizes
    most = max((*before, *after), default=0)
    rows = zip(_classes(layout.below), before, after, strict=False)
    found = [row for row in rows if row[1] or row[2]]
    width = max((len(name) for name, _, _ in found), default=0)
    for name, now, then in found:
        yield f"      {name:<{width}}  {bar(now, most)}  {bar(then, most)}".rstrip()


def _classes(below: Sequence[int]) -> Iterator[str]:
    """The names of classes of sizes.

    >>> list(_classes([1024, 2048]))
    ['below 1.0 KiB', '1.0 KiB to 2.0 KiB', '2.0 KiB and more']
    """
    ends = [words.size(end) for end in below]
    if not ends:
        yield "all"
        return
    yield f"below {ends[0]}"
    yield from (f"{low} to {high}" for low, high in pairwise(ends))
    yield f"{ends[-1]} and more"
