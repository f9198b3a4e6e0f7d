"""A cluster step for a terminal: which files it rewrites, the layout afterwards, and why.

What comes after is predicted. The lines are those of ``plan_text``, of one table.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final

from reconciler.plans.layout_change import LayoutChange, LayoutFigures, PartitionGain
from reconciler.plans.model import ClusterStep
from reconciler.plans.rewrites import Rewrites
from reconciler.render import words
from reconciler.render.reasons import Reason, join_reasons
from reconciler.render.terminal import Terminal, draw_bars, limit_rows, name_rows

_MAX_PARTITIONS: Final = 8
_MAX_REASONS: Final = 3
#: how the reason of a group begins: with what becomes of it, which the partitions show
_GROUP_AMOUNT: Final = re.compile(r"^[^:]*\bbecomes? [^:]*: ")


#: how a prediction begins that holds only if a refused clustering is let through
CONDITIONAL: Final = "with the refused clustering: "


def step_lines(
    step: ClusterStep, terminal: Terminal, refused_by: str, *, full: bool
) -> Iterator[str]:
    """The step with its partitions and its reasons; ``full`` lists every group and file slice.

    ``refused_by``: the rules that refuse the step, empty if it is applied.
    """
    amount = f"{format_amount(step.groups)}, {_describe_order(step)}"
    yield from terminal.step("~ cluster", terminal.warn, amount, refused_by)
    yield from _partition_lines(step.groups, terminal)
    if full:
        yield from group_lines(step.groups, terminal)
    else:
        yield from reason_lines(step.groups, terminal)


def layout_lines(
    layout: LayoutChange, terminal: Terminal, *, is_refused: bool = False
) -> Iterator[str]:
    """The layout of the table before and after, and what stays unchanged.

    ``is_refused``: the clustering that would make it is not applied.
    """
    sizes = f"{CONDITIONAL if is_refused else ''}{_format_files(layout.before, layout.after)}"
    yield from terminal.item(terminal.good("= layout"), sizes)
    yield from _size_lines(layout, terminal)
    if layout.before.overlap is not None:
        after = layout.after.overlap
        now = f"{layout.before.overlap:.1f}"
        then = "" if after is None else f" → {after:.1f} (predicted)"
        yield from terminal.detail(f"files that cover a row on average: {now}{then}")
    if layout.gains:
        yield from _gain_lines(layout.gains, terminal)
    if layout.untouched:
        count = sum(rule.slices for rule in layout.untouched)
        slices = words.format_count(count, "file slice")
        stay = "stays as it is" if count == 1 else "stay as they are"
        yield from terminal.item(terminal.good("= untouched"), f"{slices} {stay}")
        for rule in layout.untouched:
            slices = words.format_count(rule.slices, "file slice")
            yield from terminal.detail(f"{rule.rule}: {slices}: {rule.because}")


def _gain_lines(gains: Sequence[PartitionGain], terminal: Terminal) -> Iterator[str]:
    """What a query reads of the partitions that are rewritten for it, those with most bytes."""
    yield from terminal.detail("files that a query reads, and reads that pay the rewrite back:")
    order = sorted(range(len(gains)), key=lambda at: (-gains[at].bytes, gains[at].partition))
    limit = limit_rows(len(order), _MAX_PARTITIONS)
    shown = sorted((gains[at] for at in order[:limit]), key=lambda gain: gain.partition)
    figures = (
        f"{gain.files_before:>7.1f} → {gain.files_after:.1f} ({_format_fall(gain)}), "
        f"{words.format_size(gain.bytes)} {_format_payback(gain)}"
        for gain in shown
    )
    yield from name_rows((gain.partition for gain in shown), figures)
    if rest := len(order) - limit:
        yield from terminal.detail(f"… and {words.format_count(rest, 'more partition')}")


def _format_fall(gain: PartitionGain) -> str:
    return f"-{100 * (1 - gain.files_after / max(gain.files_before, 0.01)):.0f} %"


def _format_payback(gain: PartitionGain) -> str:
    if gain.bytes_saved <= 0:
        return "saves no bytes"
    reads = max(round(gain.bytes / gain.bytes_saved), 1)
    return f"after {words.format_count(reads, 'read')}"


def format_amount(groups: Rewrites) -> str:
    """Return input and output: ``74 file slices, 3.1 GiB in 3 partitions become 26 files``."""
    count = len(groups.file_id)
    slices, size = words.format_count(count, "file slice"), int(groups.bytes.sum())
    paths = groups.partition.unique().to_pylist()
    where = "" if paths == [""] else f" in {words.format_count(len(paths), 'partition')}"
    become = "becomes" if count == 1 else "become"
    files = words.format_count(int(groups.outputs.sum()), "file")
    return f"{slices}, {words.format_size(size)}{where} {become} {files}"


def _describe_order(step: ClusterStep) -> str:
    if not step.columns:
        return "row order unchanged" + (" (file sizes)" if step.purpose == "sizes" else "")
    mapping = ", Hudi's byte mapping" if step.mapping == "direct" else ""
    return f"ordered by {', '.join(step.columns)} ({step.curve}{mapping})"


def _format_files(before: LayoutFigures, after: LayoutFigures) -> str:
    """Files, how many are small and how big they are, before and after."""
    number = words.format_number
    files = f"{number(before.files)} → {words.format_count(after.files, 'base file')}"
    small = f"{number(before.small)} → {number(after.small)} small"
    return f"{files}, {small}, {_format_mean_size(before)} → {_format_mean_size(after)} on average"


def _format_mean_size(figures: LayoutFigures) -> str:
    return words.format_size(figures.bytes // figures.files) if figures.files else "nothing"


# --- partitions and groups -----------------------------------------------------------------------


def _partition_lines(groups: Rewrites, terminal: Terminal) -> Iterator[str]:
    """The partitions with most bytes, in the order of their paths."""
    from reconciler.planners.cluster.layout_figures import (  # noqa: PLC0415 - few plans cluster
        sum_by_partition,
    )

    sums = sum_by_partition(groups)
    names = sums.partition.to_pylist()
    if names == [""]:
        return
    order = sorted(range(len(names)), key=lambda at: (-sums.bytes[at], names[at]))
    limit = limit_rows(len(order), _MAX_PARTITIONS)
    shown = sorted(order[:limit], key=lambda at: names[at])
    figures = (
        f"{_format_rewrite(int(sums.slices[at]), int(sums.outputs[at])):>16}  "
        f"{words.format_size(int(sums.bytes[at])):>10}  "
        f"{words.format_count(int(sums.groups[at]), 'group'):>9}"
        for at in shown
    )
    yield from name_rows((names[at] for at in shown), figures)
    if rest := order[limit:]:
        files = _format_rewrite(int(sums.slices[rest].sum()), int(sums.outputs[rest].sum()))
        size = words.format_size(int(sums.bytes[rest].sum()))
        partitions = words.format_count(len(rest), "more partition")
        yield from terminal.detail(f"… and {partitions} ({files}, {size}); show --full lists all")


def _format_rewrite(slices: int, outputs: int) -> str:
    return f"{words.format_number(slices)} → {words.format_count(outputs, 'file')}"


def reason_lines(groups: Rewrites, terminal: Terminal) -> Iterator[str]:
    """Every reason once, with the number of groups that it is for."""
    texts = (_GROUP_AMOUNT.sub("", text) for text in groups.because.to_pylist())
    reasons = join_reasons(Reason(text, 1) for text in texts)
    if len(reasons) == 1:
        yield from terminal.detail(reasons[0].text)
        return
    sentences = [f"{words.format_count(r.count, 'group')}: {r.text}" for r in reasons]
    yield from terminal.details(sentences, _MAX_REASONS, "reason", hint="; show --full lists all")


def group_lines(groups: Rewrites, terminal: Terminal) -> Iterator[str]:
    """All groups in the plan's order, with their reasons and files."""
    paths, starts = groups.partition, groups.starts.tolist()
    for group in range(len(groups)):
        path = words.escape_text(paths[group].as_py()) or "(root)"
        number = f"group {words.format_number(group + 1)} of {words.format_number(len(groups))}"
        yield from terminal.detail(f"{number}, {path}: {groups.because[group].as_py()}")
        yield from _slice_lines(groups, starts[group], starts[group + 1])


def _slice_lines(groups: Rewrites, start: int, end: int) -> Iterator[str]:
    """Every slice with its files."""
    rows = zip(
        groups.file_id[start:end].to_pylist(),
        groups.base[start:end].to_pylist(),
        groups.logs[start:end].to_pylist(),
        strict=True,
    )
    for file_id, base, logs in rows:
        yield f"        ~ {words.escape_text(base or f'{file_id}, log files alone')}"
        yield from (f"          + {words.escape_text(name)}" for name in logs)


# --- sizes ---------------------------------------------------------------------------------------


def _size_lines(layout: LayoutChange, terminal: Terminal) -> Iterator[str]:
    """The size classes that have files, with bars, before and after."""
    before, after = layout.before.sizes, layout.after.sizes
    classes = pairwise((0, *layout.below, None))
    names = (words.format_size_class(least or 0, end) for least, end in classes)
    rows = zip(names, before, after, strict=False)
    yield from draw_bars([row for row in rows if any(row[1:])], terminal)
