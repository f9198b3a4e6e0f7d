"""Build a Plan from a validated document and the columns of its file lists."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from reconciler import arrays
from reconciler.plans import columns, groups
from reconciler.plans.model import (
    CleanStep,
    ClusterStep,
    Finding,
    Impact,
    IndexStep,
    KeptFiles,
    LayoutChange,
    LayoutFigures,
    NamedFiles,
    Note,
    Observed,
    PendingInstant,
    RemovedFiles,
    ResumeStep,
    Rewrites,
    RollbackStep,
    Sampled,
    Selection,
    Step,
    TablePlan,
    Untouched,
)
from reconciler.plans.plan import Plan

if TYPE_CHECKING:
    from reconciler.plans.file_sizes import FileSizeReport


@dataclass(frozen=True, slots=True)
class StepLists:
    """The file lists of one step: ``partitions``, ``groups``, and ``files`` of a rollback."""

    files: RemovedFiles
    delete_partitions: tuple[str, ...]
    groups: Rewrites | None
    rollback_files: NamedFiles | None = None


@dataclass(frozen=True, slots=True)
class TableLists:
    """The file lists of one table: ``kept`` and those of every step."""

    kept: KeptFiles | None
    steps: Sequence[StepLists]


def empty_removed_files() -> RemovedFiles:
    """Return the columns of a step that removes no file."""
    return RemovedFiles(
        partition=columns.build_dictionary(np.empty(0, np.int32), []),
        name=arrays.to_arrow([]),
        bytes=np.empty(0, np.int64),
        kind=np.empty(0, np.int8),
        rule=np.empty(0, np.int8),
        because=columns.build_dictionary(np.empty(0, np.int32), []),
    )


def empty_named_files() -> NamedFiles:
    """Return the columns of a rollback of a write that wrote no file."""
    nowhere = columns.build_dictionary(np.empty(0, np.int32), [])
    return NamedFiles(partition=nowhere, name=arrays.to_arrow([]))


def decode_plan(document: Mapping[str, Any], lists: Sequence[TableLists]) -> Plan:
    """Return the plan of a valid document. File lists come from ``lists``, not the document."""
    return Plan(
        created_at=document["createdAt"],
        tool=document["tool"],
        tables=tuple(
            _decode_table(table, files)
            for table, files in zip(document["tables"], lists, strict=True)
        ),
        selection=_decode_selection(document.get("selection")),
    )


def _decode_selection(selection: Mapping[str, Any] | None) -> Selection | None:
    if selection is None:
        return None
    return Selection(
        tables=selection["tables"],
        total=selection["of"],
        by=tuple(selection["by"]),
        removed=tuple(selection["removed"]),
    )


def _decode_table(table: Mapping[str, Any], lists: TableLists) -> TablePlan:
    return TablePlan(
        name=table["name"],
        path=table["path"],
        spec=table["spec"],
        spec_digest=table["specDigest"],
        error=table["error"],
        observed=_decode_observed(table["observed"]),
        drift=tuple(Finding(**finding) for finding in table["drift"]),
        steps=tuple(
            _decode_step(step, files)
            for step, files in zip(table["steps"], lists.steps, strict=True)
        ),
        kept=lists.kept,
        predictions=tuple(table["predictions"]),
        impact=_decode_impact(table["impact"]),
        layout=_decode_layout(table.get("layout")),
        file_sizes=_decode_file_sizes(table.get("fileSizes")),
        refusals=tuple(Note(**note) for note in table["refusals"]),
        warnings=tuple(Note(**note) for note in table["warnings"]),
    )


def _decode_file_sizes(found: Mapping[str, Any] | None) -> FileSizeReport | None:
    if found is None:
        return None
    from reconciler.plans.file_sizes import decode_file_sizes  # noqa: PLC0415 - few specs declare file sizes

    return decode_file_sizes(found)


def _decode_layout(layout: Mapping[str, Any] | None) -> LayoutChange | None:
    if layout is None:
        return None
    return LayoutChange(
        below=tuple(layout["below"]),
        before=_decode_figures(layout["before"]),
        after=_decode_figures(layout["after"]),
        untouched=tuple(Untouched(**each) for each in layout["untouched"]),
        sampled=_decode_sampled(layout.get("sampled")),
    )


def _decode_sampled(found: Mapping[str, Any] | None) -> Sampled | None:
    if found is None:
        return None
    return Sampled(row_groups=found["rowGroups"], total_row_groups=found["of"], rows=found["rows"])


def _decode_figures(figures: Mapping[str, Any]) -> LayoutFigures:
    return LayoutFigures(**{**figures, "sizes": tuple(figures["sizes"])})


def _decode_step(step: Mapping[str, Any], parts: StepLists) -> Step:
    if step["kind"] == "cluster":
        return ClusterStep(
            columns=tuple(step["columns"]),
            curve=step["curve"],
            mapping=step["mapping"],
            groups=parts.groups or groups.empty_rewrites(),
        )
    if step["kind"] == "index":
        return IndexStep(
            targets=tuple(step["targets"]),
            columns=tuple(step["columns"]),
            add=tuple(step["add"]),
            drop=tuple(step["drop"]),
            files=step["files"],
            because=step["because"],
        )
    if step["kind"] == "rollback":
        return RollbackStep(
            instant=step["instant"],
            action=step["action"],
            files=parts.rollback_files or empty_named_files(),
            because=step["because"],
        )
    if step["kind"] == "resume":
        return ResumeStep(
            instant=step["instant"],
            action=step["action"],
            files=parts.files,
            delete_partitions=parts.delete_partitions,
            groups=parts.groups,
            because=step["because"],
        )
    return CleanStep(
        policy=step["policy"],
        earliest_instant_to_retain=step["earliestInstantToRetain"],
        files=parts.files,
        delete_partitions=parts.delete_partitions,
    )


def _decode_observed(observed: Mapping[str, Any] | None) -> Observed | None:
    if observed is None:
        return None
    return Observed(
        table_version=observed["tableVersion"],
        table_type=observed["tableType"],
        last_completed=observed["lastCompleted"],
        pending=tuple(PendingInstant(**instant) for instant in observed["pending"]),
        savepoints=tuple(observed["savepoints"]),
        files=observed["files"],
        bytes=observed["bytes"],
        small_files=observed["smallFiles"],
    )


def _decode_impact(impact: Mapping[str, Any]) -> Impact:
    return Impact(
        files_removed=impact["filesRemoved"],
        bytes_removed=impact["bytesRemoved"],
        bytes_rewritten=impact["bytesRewritten"],
        earliest_readable_before=impact["earliestReadable"]["before"],
        earliest_readable_after=impact["earliestReadable"]["after"],
    )
