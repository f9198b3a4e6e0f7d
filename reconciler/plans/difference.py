"""The difference of two plans: which tables, steps and files are new, gone or the same, and why."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, Literal

import numpy as np
import pyarrow.compute as pc

from reconciler import arrays
from reconciler.arrays import Integers
from reconciler.canonical_json import to_document
from reconciler.lazy_dataclass import dataclass
from reconciler.plans.columns import nullable_indices
from reconciler.plans.model import (
    CleanStep,
    ClusterStep,
    KeptFiles,
    Note,
    ResumeStep,
    RollbackStep,
    Step,
    TablePlan,
)
from reconciler.plans.plan import Plan
from reconciler.plans.savepoint_step import SavepointStep
from reconciler.plans.step_items import StepItems, list_items, list_named_files, repeat_empty

Status = Literal["new", "gone", "changed", "same"]

#: fields of steps that are compared as items, by the noun of the items
_ITEM_FIELDS: Final = {
    "column": ("columns", "because"),
    "file": (),
    "file slice": (),
    "instant": ("instants", "metadataTable", "because"),
    "metadata partition": ("partitions", "because"),
    "partition": ("partitions",),
    "savepoint": ("name", "instant", "because", "files", "bytes"),
}
#: fields that a step shows even if the other plan does not have the step
DELETED_FOLDERS: Final = "deletePartitions"


@dataclass(frozen=True, slots=True)
class FieldDifference:
    """A field by its dotted path, with its values in both plans; None: not there."""

    field: str
    old: Any
    new: Any


@dataclass(frozen=True, slots=True, eq=False)
class ItemDifference:
    """Items with the reason why they are listed.

    ``because``: the reason in the plan that has them. ``elsewhere``: what the other plan says of
    them, "" for nothing. Both are pyarrow strings, a row per item.
    """

    items: StepItems
    elsewhere: Any

    def __len__(self) -> int:
        return len(self.items)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class StepDifference:
    """One step, or the kept files (kind ``kept``), in two plans.

    ``label``: what tells steps of one kind apart, such as an instant. ``changed``: items of both
    plans with another reason, content or size; their ``elsewhere`` is the old reason. ``same``:
    number of items in both plans, ``same_bytes`` their bytes, with those that changed.
    """

    kind: str
    label: str
    status: Status
    new: ItemDifference
    gone: ItemDifference
    changed: ItemDifference
    same: int
    same_bytes: int
    fields: tuple[FieldDifference, ...]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TableDifference:
    """One table in two plans; ``steps`` has no steps that are the same.

    ``same_steps``: number of the steps that are the same. ``notes``: refusals and warnings.
    ``figures``: of the table and of the plan's effect.
    """

    name: str
    path: str
    status: Status
    spec: tuple[FieldDifference, ...] = ()
    figures: tuple[FieldDifference, ...] = ()
    steps: tuple[StepDifference, ...] = ()
    same_steps: int = 0
    new_notes: tuple[Note, ...] = ()
    gone_notes: tuple[Note, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PlanDifference:
    """Two plans and what tells them apart; tables in the order of the new plan, gone ones last."""

    old: Plan
    new: Plan
    tables: tuple[TableDifference, ...]

    @property
    def is_empty(self) -> bool:
        """Whether both plans decide the same about the same tables."""
        return all(table.status == "same" for table in self.tables)


def compare_plans(old: Plan, new: Plan) -> PlanDifference:
    """Return what tells two plans apart."""
    before = {table.name: table for table in old.tables}
    after = {table.name for table in new.tables}
    tables = [compare_tables(before.get(table.name), table) for table in new.tables]
    gone = [compare_tables(table, None) for table in old.tables if table.name not in after]
    return PlanDifference(old=old, new=new, tables=(*tables, *gone))


def compare_tables(old: TablePlan | None, new: TablePlan | None) -> TableDifference:
    """Return what tells the plans of one table apart; None: the table is not in that plan."""
    some = new or old
    assert some is not None
    steps = tuple(_compare_steps(old, new))
    differing = tuple(step for step in steps if step.status != "same")
    spec = _compare_fields(old.spec if old else None, new.spec if new else None)
    before, after = _list_notes(old), _list_notes(new)
    new_notes = tuple(note for note in after if note not in before)
    gone_notes = tuple(note for note in before if note not in after)
    is_same = not (differing or spec or new_notes or gone_notes)
    status: Status = "same" if is_same else "changed"
    if old is None or new is None:
        status = "new" if old is None else "gone"
    return TableDifference(
        name=some.name,
        path=some.path,
        status=status,
        spec=spec if status == "changed" else (),
        figures=_compare_fields(_list_figures(old), _list_figures(new)),
        steps=differing,
        same_steps=sum(step.kind != "kept" for step in steps)
        - sum(step.kind != "kept" for step in differing),
        new_notes=new_notes,
        gone_notes=gone_notes,
    )


def _list_notes(table: TablePlan | None) -> tuple[Note, ...]:
    """Return the refusals and warnings of a table, with its error as a note."""
    if table is None:
        return ()
    error = () if table.error is None else (Note("error", table.error),)
    return (*error, *table.refusals, *table.warnings)


def _list_figures(table: TablePlan | None) -> Mapping[str, Any]:
    if table is None:
        return {}
    observed, impact = table.observed, table.impact
    seen = (
        {}
        if observed is None
        else {
            "observed.lastCompleted": observed.last_completed,
            "observed.files": observed.files,
            "observed.bytes": observed.bytes,
        }
    )
    return {
        **seen,
        "impact.filesRemoved": impact.files_removed,
        "impact.bytesRemoved": impact.bytes_removed,
        "impact.bytesRewritten": impact.bytes_rewritten,
        "impact.earliestReadable": impact.earliest_readable_after,
    }


# --- steps ---------------------------------------------------------------------------------------

_Listed = Step | KeptFiles
_Key = tuple[str, str]


def _compare_steps(old: TablePlan | None, new: TablePlan | None) -> Iterator[StepDifference]:
    """Yield the difference of every step, in the order of the new plan, then those gone."""
    before, after = _index_steps(old), _index_steps(new)
    sides = _Side(before), _Side(after)
    for key in (*after, *(key for key in before if key not in after)):
        yield _compare_step(key, *sides)


def _index_steps(table: TablePlan | None) -> dict[_Key, _Listed]:
    """Return the steps by what identifies them: their kind, and their instant or name."""
    if table is None:
        return {}
    steps: dict[_Key, _Listed] = {}
    for step in table.steps:
        label = ""
        if isinstance(step, ResumeStep | RollbackStep):
            label = step.instant
        elif isinstance(step, SavepointStep):
            label = f"{step.change} {step.name}"
        elif isinstance(step, ClusterStep):
            label = step.purpose or ""
        start, number = label, 1
        while (step.kind, label) in steps:
            number += 1
            label = f"{start} ({number})".lstrip()
        steps[step.kind, label] = step
    if table.kept is not None and len(table.kept):
        steps["kept", ""] = table.kept
    return steps


class _Side:
    """The steps of a table in one plan, and what each names."""

    def __init__(self, steps: Mapping[_Key, _Listed]) -> None:
        self.steps = steps
        self.items = {key: list_items(step) for key, step in steps.items()}

    def list_items(self, key: _Key) -> StepItems:
        return self.items.get(key) or list_items(None)

    def list_fields(self, key: _Key) -> Mapping[str, Any]:
        step = self.steps.get(key)
        if step is None or isinstance(step, KeptFiles):
            return {}
        document = {**to_document(step), **_list_paths(step)}
        items = self.list_items(key)
        left_out = _ITEM_FIELDS[items.noun] if len(items) else ()
        return {name: document[name] for name in document if name not in ("kind", *left_out)}

    def find_elsewhere(self, items: StepItems, key: _Key) -> Any:
        """Return what other steps say of items: ``clean: reason``; "" for nothing."""
        texts = repeat_empty(len(items))
        for other, listed in self.items.items():
            if other == key or listed.noun != items.noun:
                continue
            places = find_rows(items.path, listed.path)
            reasons = listed.because.take(nullable_indices(places))
            start, end = arrays.to_arrow([other[0], ": "])
            found = pc.binary_join_element_wise(start, reasons, end)
            texts = pc.if_else(arrays.to_arrow(places >= 0), found, texts)
        return texts


def _list_paths(step: Step) -> Mapping[str, Any]:
    """Return the paths that a step names beside its items, by the field that shows them."""
    paths: dict[str, Any] = {}
    if isinstance(step, CleanStep | ResumeStep) and step.delete_partitions:
        paths[DELETED_FOLDERS] = list(step.delete_partitions)
    if isinstance(step, ResumeStep) and step.attempt is not None:
        paths["attempt"] = list_named_files(step.attempt).path.to_pylist()
    return paths


def _compare_step(key: _Key, old: _Side, new: _Side) -> StepDifference:
    before, after = old.list_items(key), new.list_items(key)
    places = find_rows(after.path, before.path)
    both, rows = after.select(places >= 0), arrays.to_arrow(places[places >= 0])
    earlier = before.because.take(rows)
    is_changed = arrays.to_numpy(
        pc.or_(
            pc.not_equal(both.because, earlier),
            pc.or_(
                pc.not_equal(both.content, before.content.take(rows)),
                pc.not_equal(both.figures, before.figures.take(rows)),
            ),
        )
    )
    added = after.select(places < 0)
    lost = before.select(find_rows(before.path, after.path) < 0)
    fields = _compare_fields(old.list_fields(key), new.list_fields(key))
    is_same = not (len(added) or len(lost) or is_changed.any() or fields)
    status: Status = "same" if is_same else "changed"
    if key not in old.steps or key not in new.steps:
        status = "new" if key not in old.steps else "gone"
    return StepDifference(
        kind=key[0],
        label=key[1],
        status=status,
        new=ItemDifference(added, old.find_elsewhere(added, key)),
        gone=ItemDifference(lost, new.find_elsewhere(lost, key)),
        changed=ItemDifference(
            both.select(is_changed), earlier.filter(arrays.to_arrow(is_changed))
        ),
        same=len(both),
        same_bytes=int(both.bytes.sum()),
        fields=tuple(one for one in fields if status == "changed" or one.field == DELETED_FOLDERS),
    )


def find_rows(paths: Any, known: Any) -> Integers:
    """Return the row of each path among the known ones, -1 for one that is not there."""
    rows = pc.fill_null(pc.index_in(paths, value_set=known), -1)
    return arrays.to_numpy(rows).astype(np.int64)


# --- fields --------------------------------------------------------------------------------------


def _compare_fields(
    old: Mapping[str, Any] | None, new: Mapping[str, Any] | None
) -> tuple[FieldDifference, ...]:
    """Return the fields whose values differ, by their dotted paths."""
    before, after = dict(_flatten(old or {})), dict(_flatten(new or {}))
    return tuple(
        FieldDifference(field, before.get(field), after.get(field))
        for field in sorted({*before, *after})
        if before.get(field) != after.get(field)
    )


def _flatten(values: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in values.items():
        if isinstance(value, Mapping) and value:
            yield from _flatten(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value
