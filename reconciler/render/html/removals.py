"""Show what a plan removes, by partition and reason; pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field
from typing import Final

import numpy as np

from reconciler.lazy_dataclass import dataclass
from reconciler.plans import columns
from reconciler.plans.model import (
    REMOVAL_RULES,
    OrphansStep,
    TablePlan,
    removal_steps,
)
from reconciler.plans.partition_deletion import deleted_partitions
from reconciler.plans.refused_steps import list_applied_steps
from reconciler.render import plan_summary, words
from reconciler.render.html.model import BarRow, BarTable, Column, Paint, Rows, Segment

_MAX_PARTITIONS: Final = 20
_MAX_REASONS: Final = 12
_MEANINGS: Final[dict[Paint, str]] = {
    "retention": "past retention",
    "replaced": "replaced",
    "orphan": "orphan files",
    "deleted": "deleted partitions, freed by a later clean",
}
_PAINTS: Final[dict[str, Paint]] = {"retention": "retention", "replaced": "replaced"}


@dataclass(slots=True)
class _PartitionSums:
    files: int = 0
    bytes: dict[Paint, int] = field(default_factory=dict)

    def add(self, paint: Paint, files: int, size: int) -> None:
        self.files += files
        self.bytes[paint] = self.bytes.get(paint, 0) + size

    @property
    def total(self) -> int:
        return sum(self.bytes.values())


def show_removals(plan: TablePlan) -> BarTable | None:
    """Return the partitions that lose most bytes, with a part of the bar for each rule."""
    sums: dict[str, _PartitionSums] = {}
    for partition, paint, files, size in _list_sums(plan):
        if files:
            sums.setdefault(partition, _PartitionSums()).add(paint, files, size)
    if not sums:
        return None
    ordered = sorted(sums.items(), key=lambda item: (-item[1].total, -item[1].files, item[0]))
    longest = max(one.total for one in sums.values()) or 1
    rows = [_make_row(name, one, longest) for name, one in ordered[:_MAX_PARTITIONS]]
    rest = ordered[_MAX_PARTITIONS:]
    note = ""
    if rest:
        count = words.format_count(sum(one.files for _, one in rest), "file")
        total = words.format_size(sum(one.total for _, one in rest))
        note = f"And {words.format_count(len(rest), 'more partition')}: {count}, {total}."
    used = {paint for one in sums.values() for paint in one.bytes}
    return BarTable(
        caption="Removed by partition",
        name="Partition",
        figures=("Files", "Size"),
        rows=tuple(rows),
        legend=tuple((paint, text) for paint, text in _MEANINGS.items() if paint in used),
        note=note,
    )


def _list_sums(plan: TablePlan) -> Iterator[tuple[str, Paint, int, int]]:
    """Yield partition, paint, files and bytes of what the steps that are applied remove."""
    steps = list_applied_steps(plan)
    for step in removal_steps(steps):
        paths, row = columns.rank_values(step.files.partition)
        for code, rule in enumerate(REMOVAL_RULES):
            is_rule = step.files.rule == code
            counts = np.bincount(row[is_rule], minlength=len(paths))
            sizes = np.bincount(row[is_rule], step.files.bytes[is_rule], len(paths))
            for path, files, size in zip(paths, counts.tolist(), sizes.tolist(), strict=True):
                yield path, _PAINTS[rule], files, round(size)
    for orphans in (one for one in steps if isinstance(one, OrphansStep)):
        for removal in plan_summary.removed_by_partition(orphans.files):
            yield removal.name, "orphan", removal.files, removal.bytes
    for partition in deleted_partitions(steps):
        yield partition.path, "deleted", partition.files, partition.bytes


def _make_row(name: str, one: _PartitionSums, longest: int) -> BarRow:
    segments, start = [], 0.0
    for paint in _MEANINGS:
        if size := one.bytes.get(paint, 0):
            width = 100 * size / longest
            segments.append(Segment(start=start, width=width, paint=paint))
            start += width
    return BarRow(
        name=name or "(root)",
        figures=(words.format_number(one.files), words.format_size(one.total)),
        bars=(tuple(segments),),
    )


def list_reasons(plan: TablePlan) -> tuple[Rows, ...]:
    """Return why files are removed, and why files past retention stay."""
    removed = [
        (rule.rule, reason.text, reason.count)
        for step in removal_steps(list_applied_steps(plan))
        for rule in plan_summary.removal_reasons(step.files)
        for reason in rule.reasons
    ]
    removed += [
        ("orphan", reason.text, reason.count)
        for step in list_applied_steps(plan)
        if isinstance(step, OrphansStep)
        for reason in plan_summary.orphan_reasons(step.files)
    ]
    kept = [
        (rule.rule, reason.text, reason.count)
        for rule in (plan_summary.keep_reasons(plan.kept) if plan.kept is not None else ())
        for reason in rule.reasons
    ]
    found = (
        _make_reasons("Why files are removed", removed),
        _make_reasons("Files past retention that stay", kept),
    )
    return tuple(rows for rows in found if rows.rows)


def _make_reasons(caption: str, reasons: list[tuple[str, str, int]]) -> Rows:
    ordered = sorted(reasons, key=lambda reason: (-reason[2], reason))
    rest = sum(count for _, _, count in ordered[_MAX_REASONS:])
    shown = ordered[:_MAX_REASONS]
    return Rows(
        caption=caption,
        columns=(
            Column(title="Rule"),
            Column(title="Reason"),
            Column(title="Files", is_number=True),
        ),
        rows=tuple((rule, text, words.format_number(count)) for rule, text, count in shown),
        note=f"Other reasons: {words.format_count(rest, 'file')}." if rest else "",
    )
