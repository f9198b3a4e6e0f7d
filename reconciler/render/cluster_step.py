"""A cluster step for a terminal: what becomes of which files, how the table lies then, and why.

What comes after is predicted. The lines are those of ``render.text``, of one table.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final

import numpy as np

from reconciler.plans.model import ClusterStep, LayoutChange, LayoutFigures, Rewrites
from reconciler.render import words
from reconciler.render.paint import Paint
from reconciler.render.wrapping import draw_count_bar, wrap_detail, wrap_item

_MAX_PARTITIONS: Final = 8
_MAX_GROUPS: Final = 2
_MAX_SLICES: Final = 3


def step_lines(step: ClusterStep, paint: Paint, *, full: bool) -> Iterator[str]:
    """The step with its partitions and groups; ``full`` lists every file slice."""
    yield from wrap_item(
        paint.warn("~ cluster"), f"{format_amount(step.groups)}, {_describe_order(step)}"
    )
    yield from _partition_lines(step.groups)
    yield from _group_lines(step.groups, full=full)


def layout_lines(layout: LayoutChange, paint: Paint) -> Iterator[str]:
    """How the table lies before and after, and what stays as it is."""
    yield from wrap_item(paint.good("= layout"), _format_files(layout.before, layout.after))
    yield from _size_lines(layout)
    if layout.before.overlap is not None:
        after = layout.after.overlap
        now = f"{layout.before.overlap:.1f}"
        then = "" if after is None else f" → {after:.1f} (predicted)"
        yield from wrap_detail(f"files that cover a row on average: {now}{then}")
    if layout.untouched:
        many = sum(each.slices for each in layout.untouched)
        stay = "stays as it is" if many == 1 else "stay as they are"
        slices = words.format_count(many, "file slice")
        yield from wrap_item(paint.good("= untouched"), f"{slices} {stay}")
        for each in layout.untouched:
            count = words.format_count(each.slices, "file slice")
            yield from wrap_detail(f"{each.rule}: {count}: {each.because}")


def format_amount(groups: Rewrites) -> str:
    """What goes in and comes out: ``74 file slices, 3.1 GiB in 3 partitions become 26 files``."""
    slices, size = len(groups.file_id), words.format_size(int(groups.bytes.sum()))
    paths = groups.partition.unique().to_pylist()
    where = "" if paths == [""] else f" in {words.format_count(len(paths), 'partition')}"
    become = "becomes" if slices == 1 else "become"
    files = words.format_count(int(groups.outputs.sum()), "file")
    return f"{words.format_count(slices, 'file slice')}, {size}{where} {become} {files}"


def _describe_order(step: ClusterStep) -> str:
    if not step.columns:
        return "rows as they came"
    mapping = ", by Hudi's mapping of bytes" if step.mapping == "direct" else ""
    return f"rows by {', '.join(step.columns)} ({step.curve}{mapping})"


def _format_files(before: LayoutFigures, after: LayoutFigures) -> str:
    """Files, how many are small and how big they are, before and after."""
    files = f"{words.format_number(before.files)} → {words.format_count(after.files, 'base file')}"
    small = f"{words.format_number(before.small)} → {words.format_number(after.small)} small"
    return f"{files}, {small}, {_format_mean_size(before)} → {_format_mean_size(after)} on average"


def _format_mean_size(figures: LayoutFigures) -> str:
    return words.format_size(figures.bytes // figures.files) if figures.files else "nothing"


# --- partitions and groups -----------------------------------------------------------------------


def _partition_lines(groups: Rewrites) -> Iterator[str]:
    """A row a partition, most bytes first."""
    from reconciler.planners.cluster.layout_figures import sum_by_partition  # noqa: PLC0415 - few plans cluster

    sums = sum_by_partition(groups)
    names = sums.partition.to_pylist()
    if names == [""]:
        return
    order = sorted(range(len(names)), key=lambda at: (-sums.bytes[at], names[at]))
    shown = order if len(order) <= _MAX_PARTITIONS + 1 else order[:_MAX_PARTITIONS]
    labels = [words.escape_text(names[at]) or "(root)" for at in shown]
    width = min(max(map(len, labels), default=0), 40)
    for label, at in zip(labels, shown, strict=True):
        files = f"{words.format_number(int(sums.slices[at]))} → {_format_outputs(int(sums.outputs[at]))}"
        size, many = (
            words.format_size(int(sums.bytes[at])),
            words.format_count(int(sums.groups[at]), "group"),
        )
        yield f"      {label:<{width}}  {files:>16}  {size:>10}  {many:>9}"
    rest = order[len(shown) :]
    if rest:
        slices, outputs = int(sums.slices[rest].sum()), int(sums.outputs[rest].sum())
        files = f"{words.format_number(slices)} → {_format_outputs(outputs)}"
        size = words.format_size(int(sums.bytes[rest].sum()))
        yield f"      … and {words.format_count(len(rest), 'more partition')} ({files}, {size})"


def _format_outputs(files: int) -> str:
    return words.format_count(files, "file")


def _group_lines(groups: Rewrites, *, full: bool) -> Iterator[str]:
    """The groups with their reasons: all of them in the plan's order, or the biggest."""
    order = np.arange(len(groups))
    if not full:
        order = np.lexsort((order, -groups.bytes))[:_MAX_GROUPS]
    paths, starts = groups.partition, groups.starts.tolist()
    for group in order.tolist():
        path = words.escape_text(paths[group].as_py()) or "(root)"
        number = f"group {words.format_number(group + 1)} of {words.format_number(len(groups))}"
        yield from wrap_detail(f"{number}, {path}: {groups.because[group].as_py()}")
        yield from _slice_lines(groups, starts[group], starts[group + 1], full=full)
    rest = len(groups) - len(order)
    if rest > 0:
        left = words.format_count(rest, "more group")
        yield from wrap_detail(f"… and {left}; all in plan.json, or show --full")


def _slice_lines(groups: Rewrites, start: int, end: int, *, full: bool) -> Iterator[str]:
    """Every slice with its files, or the names of the first few."""
    if not full:
        shown = groups.file_id[start : min(end, start + _MAX_SLICES)].to_pylist()
        rest = end - start - len(shown)
        names = ", ".join(words.escape_text(name) for name in shown)
        others = f" … and {words.format_number(rest)} more; all in plan.json" if rest else ""
        yield from wrap_detail(f"{names}{others}", extra_indent=2)
        return
    bases, logs = groups.base[start:end].to_pylist(), groups.logs[start:end].to_pylist()
    for file_id, base, names in zip(
        groups.file_id[start:end].to_pylist(), bases, logs, strict=True
    ):
        yield f"        ~ {words.escape_text(base or f'{file_id}, log files alone')}"
        yield from (f"          + {words.escape_text(name)}" for name in names)


# --- sizes ---------------------------------------------------------------------------------------


def _size_lines(layout: LayoutChange) -> Iterator[str]:
    """The classes of sizes that have files, with bars, before and after."""
    before, after = layout.before.sizes, layout.after.sizes
    most = max((*before, *after), default=0)
    rows = zip(_size_class_names(layout.below), before, after, strict=False)
    found = [row for row in rows if row[1] or row[2]]
    width = max((len(name) for name, _, _ in found), default=0)
    for name, now, then in found:
        yield f"      {name:<{width}}  {draw_count_bar(now, most)}  {draw_count_bar(then, most)}".rstrip()


def _size_class_names(below: Sequence[int]) -> Iterator[str]:
    """The names of classes of sizes.

    >>> list(_classes([1024, 2048]))
    ['below 1.0 KiB', '1.0 KiB to 2.0 KiB', '2.0 KiB and more']
    """
    ends = [words.format_size(end) for end in below]
    if not ends:
        yield "all"
        return
    yield f"below {ends[0]}"
    yield from (f"{low} to {high}" for low, high in pairwise(ends))
    yield f"{ends[-1]} and more"
