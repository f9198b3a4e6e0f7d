"""What holds a partition of a table, and what leaves it; pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np
import pyarrow.compute as pc

from reconciler.arrays import Integers, Mask, to_arrow
from reconciler.planners.answers.model import Answer, Fact, Verdict
from reconciler.planners.answers.planned_table import PlannedTable, count_within
from reconciler.planners.protection import find_saved_slices
from reconciler.planners.reasons import pluralize
from reconciler.plans.columns import dictionary_codes
from reconciler.plans.model import KEEP_RULES, CleanStep, ResumeStep, Step
from reconciler.plans.partition_deletion import deleted_partitions
from reconciler.units import format_rounded_size

#: files of a partition that are named
_MAX_NAMED: Final = 10


def explain_partition(table: PlannedTable, path: str) -> Answer:
    """Return what holds a partition and what the plan does in it."""
    rows = _find_rows(table, path)
    going = [
        step
        for step in table.plan.steps
        if (isinstance(step, CleanStep | ResumeStep) and path in step.delete_partitions)
        or any(deleted.path == path for deleted in deleted_partitions([step]))
    ]
    applied = [step.kind for step in going if table.find_refusal(step) is None]
    facts = (
        *_describe_files(table, rows),
        *_describe_holders(table, path, rows),
        *(Fact(step.kind, _explain_going(step, path)) for step in going),
        *_list_steps(table, path),
        *_describe_refusals(table, path, going),
        *table.find_mentions(path),
    )
    verdict, summary = _decide(table, rows, applied)
    name = path or "."
    return Answer(kind="partition", name=name, verdict=verdict, summary=summary, facts=facts)


def _explain_going(step: Step, path: str) -> str:
    reasons = (deleted.because for deleted in deleted_partitions([step]) if deleted.path == path)
    return next(reasons, "its folder is removed with its last file")


def _describe_refusals(table: PlannedTable, path: str, going: Sequence[Step]) -> Iterator[Fact]:
    """Yield why steps that would do something in the partition are not applied."""
    for step, items in table.step_items:
        is_file_step = items.noun in ("file", "file slice")
        if any(step is one for one in going) or (is_file_step and count_within(items, path)[0]):
            yield from table.describe_refusal(step)


def _decide(table: PlannedTable, rows: Integers, applied: Sequence[str]) -> tuple[Verdict, str]:
    """Return the verdict and its sentence. ``applied``: kinds of the steps by which it goes."""
    view = table.view
    if "deletePartition" in applied:
        return "goes", "goes: step deletePartition of the plan deletes it"
    if applied:
        return "goes", f"goes: step {applied[0]} of the plan removes its last files and its folder"
    current = int(view.is_current[view.row_slice[rows]].sum())
    if current:
        return "stays", f"stays: readers see {pluralize(current, 'file')} of it"
    if len(rows):
        return "stays", "stays: it has files, though readers see none of them"
    return "stays", "has no files"


def _find_rows(table: PlannedTable, path: str) -> Integers:
    files = table.state.files
    code = files.partitions.index(path) if path in files.partitions else -1
    return np.flatnonzero(files.partition == code)


def _describe_files(table: PlannedTable, rows: Integers) -> Iterator[Fact]:
    files, view = table.state.files, table.view
    if not len(rows):
        yield Fact("files", "no file")
        return
    is_current = view.is_current[view.row_slice[rows]]
    yield Fact("files", f"{_sum(table, rows)} in {_count_groups(table, rows)}")
    yield Fact("files", f"{_sum(table, rows[is_current])} of slices that readers see now")
    if not is_current.all():
        yield Fact("files", f"{_sum(table, rows[~is_current])} of other slices:")
        yield from _name_files(table, rows[~is_current])
    newest = files.instants[int(files.instant[rows].max())]
    yield Fact("write", f"the newest instant in the names of its files is {newest}")


def _name_files(table: PlannedTable, rows: Integers) -> Iterator[Fact]:
    """Yield the names of files, oldest first, at most ten of them."""
    files = table.state.files
    ordered = sorted(rows.tolist(), key=lambda row: files.instants[files.instant[row]])
    for row in ordered[:_MAX_NAMED]:
        yield Fact("files", files.name[row].as_py())
    if len(rows) > _MAX_NAMED:
        yield Fact("files", f"and {pluralize(len(rows) - _MAX_NAMED, 'more file')}")


def _sum(table: PlannedTable, rows: Integers) -> str:
    size = format_rounded_size(int(table.state.files.size[rows].sum()))
    return f"{pluralize(len(rows), 'file')} ({size})"


def _count_groups(table: PlannedTable, rows: Integers) -> str:
    return pluralize(len(np.unique(table.state.files.group[rows])), "file group")


def _describe_holders(table: PlannedTable, path: str, rows: Integers) -> Iterator[Fact]:
    """Yield what pins slices of the partition, and which files past retention that keeps."""
    view, protection = table.view, table.protection
    for savepoint in table.future.savepoints:
        saved: Mask = find_saved_slices(view, savepoint)[view.row_slice[rows]]
        if saved.any():
            pinned = _sum(table, rows[saved])
            yield Fact("savepoint", f"savepoint {savepoint.instant} pins {pinned}")
    for rule, (where, _, _) in protection.reasons.items():
        held = where[view.row_slice[rows]]
        if rule != "savepoint" and held.any():
            yield Fact(rule, f"protects {_sum(table, rows[held])}")
    kept = table.plan.kept
    if kept is None or path not in (paths := kept.partition.dictionary.to_pylist()):
        return
    inside = dictionary_codes(kept.partition) == paths.index(path)
    for code, rule in enumerate(KEEP_RULES):
        chosen = np.flatnonzero(inside & (kept.rule == code))
        if len(chosen):
            texts = pc.unique(kept.because.take(to_arrow(chosen))).to_pylist()
            more = f" and {len(texts) - 1} more reasons" if len(texts) > 1 else ""
            count = pluralize(len(chosen), "file")
            yield Fact("kept", f"{count} past retention stay [{rule}]: {texts[0]}{more}")


def _list_steps(table: PlannedTable, path: str) -> Iterator[Fact]:
    for step, items in table.step_items:
        if items.noun not in ("file", "file slice"):
            continue
        count, size = count_within(items, path)
        if count:
            sizes = f" ({format_rounded_size(size)})" if size else ""
            verb = "takes" if items.noun == "file" else "rewrites"
            yield Fact(step.kind, f"{verb} {pluralize(count, items.noun)}{sizes}")
