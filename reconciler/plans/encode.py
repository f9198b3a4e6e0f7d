"""Encode a plan as canonical JSON text in chunks. Field names are those of the plan format."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, assert_never

import numpy as np

from reconciler import canonical_json
from reconciler.plans import columns, file_rows, groups
from reconciler.plans.model import (
    CleanStep,
    ClusterStep,
    Impact,
    IndexStep,
    KeptFiles,
    LayoutChange,
    LayoutFigures,
    NamedFiles,
    Note,
    Observed,
    RemovedFiles,
    ResumeStep,
    RollbackStep,
    Sampled,
    Selection,
    Step,
    TablePlan,
)

Chunk = bytes | memoryview


def encode_body(tables: Sequence[TablePlan], selection: Selection | None) -> Iterator[Chunk]:
    """Yield the part of a document that its digest covers, without the outer braces."""
    yield b'"format":1'
    for key, value in encode_selection(selection).items():
        yield b"," + canonical_json.to_bytes({key: value})[1:-1]
    yield b',"tables":['
    for number, table in enumerate(tables):
        if number:
            yield b","
        yield from _encode_table(table)
    yield b"]"


def encode_selection(selection: Selection | None) -> Mapping[str, Any]:
    """Return the ``selection`` of a document; empty if no selector was used."""
    if selection is None:
        return {}
    return {
        "selection": {
            "tables": selection.tables,
            "of": selection.total,
            "by": list(selection.by),
            "removed": list(selection.removed),
        }
    }


def encode_steps(table: TablePlan) -> Iterator[Chunk]:
    """Yield the table's ``steps`` with their brackets."""
    yield b"["
    for number, step in enumerate(table.steps):
        if number:
            yield b","
        yield from _encode_step(step)
    yield b"]"


def _encode_table(table: TablePlan) -> Iterator[Chunk]:
    first = {
        "drift": [
            {"field": f.field, "desired": f.desired, "actual": f.actual, "because": f.because}
            for f in table.drift
        ],
        "error": table.error,
        **_encode_file_sizes(table),
        "impact": _encode_impact(table.impact),
    }
    second = {
        "name": table.name,
        "observed": _encode_observed(table.observed),
        "path": table.path,
        "predictions": [dict(prediction) for prediction in table.predictions],
        "refusals": _encode_notes(table.refusals),
        "spec": dict(table.spec),
        "specDigest": table.spec_digest,
    }
    yield canonical_json.to_bytes(first)[:-1] + b',"kept":['
    if table.kept is not None:
        yield from _encode_kept(table.kept)
    yield (
        b"]," + canonical_json.to_bytes(_encode_layout(table.layout) | second)[1:-1] + b',"steps":'
    )
    sha = hashlib.sha256()
    for chunk in encode_steps(table):
        sha.update(chunk)
        yield chunk
    third = {
        "stepsDigest": f"sha256:{sha.hexdigest()}",
        "warnings": _encode_notes(table.warnings),
    }
    yield b"," + canonical_json.to_bytes(third)[1:]


def _encode_file_sizes(table: TablePlan) -> dict[str, Any]:
    """Return the ``fileSizes`` of a table; empty if they were not measured."""
    if table.file_sizes is None:
        return {}
    from reconciler.plans.file_sizes import encode_file_sizes  # noqa: PLC0415 - few specs declare file sizes

    return {"fileSizes": encode_file_sizes(table.file_sizes)}


def _encode_layout(layout: LayoutChange | None) -> dict[str, Any]:
    """Return the ``layout`` of a table; empty if no step changes it."""
    if layout is None:
        return {}
    return {
        "layout": {
            "below": list(layout.below),
            "before": _encode_figures(layout.before),
            "after": _encode_figures(layout.after),
            "untouched": [
                {"rule": each.rule, "slices": _to_int(each.slices), "because": each.because}
                for each in layout.untouched
            ],
        }
        | _encode_sampled(layout.sampled)
    }


def _encode_sampled(sampled: Sampled | None) -> dict[str, Any]:
    """Return the ``sampled`` of a layout; empty if nothing was sampled."""
    if sampled is None:
        return {}
    groups, rows = _to_int(sampled.row_groups), _to_int(sampled.rows)
    return {"sampled": {"rowGroups": groups, "of": _to_int(sampled.total_row_groups), "rows": rows}}


def _encode_figures(figures: LayoutFigures) -> Mapping[str, Any]:
    return {
        "files": _to_int(figures.files),
        "small": _to_int(figures.small),
        "bytes": _to_int(figures.bytes),
        "overlap": figures.overlap,
        "sizes": list(figures.sizes),
    }


def _encode_step(step: Step) -> Iterator[Chunk]:
    match step:
        case ResumeStep():
            before: dict[str, Any] = {"action": step.action, "because": step.because}
            yield canonical_json.to_bytes(before)[:-1] + b',"groups":['
            yield from groups.encode_groups(step.groups)
            after = {"instant": step.instant, "kind": step.kind}
            yield b"]," + canonical_json.to_bytes(after)[1:-1] + b',"partitions":['
            yield from _encode_partitions(step.files, step.delete_partitions)
            yield b"]}"
        case RollbackStep():
            yield from _encode_rollback(step)
        case ClusterStep():
            before = {"columns": list(step.columns), "curve": step.curve}
            yield canonical_json.to_bytes(before)[:-1] + b',"groups":['
            yield from groups.encode_groups(step.groups)
            yield (
                b"]," + canonical_json.to_bytes({"kind": step.kind, "mapping": step.mapping})[1:]
            )
        case IndexStep():
            yield canonical_json.to_bytes(_encode_index(step))
        case CleanStep():
            before = {
                "earliestInstantToRetain": step.earliest_instant_to_retain,
                "kind": step.kind,
            }
            yield canonical_json.to_bytes(before)[:-1] + b',"partitions":['
            yield from _encode_partitions(step.files, step.delete_partitions)
            yield b"]," + canonical_json.to_bytes({"policy": step.policy})[1:]
        case _:
            assert_never(step)


def _encode_index(step: IndexStep) -> Mapping[str, Any]:
    return {
        "kind": step.kind,
        "targets": list(step.targets),
        "columns": list(step.columns),
        "add": list(step.add),
        "drop": list(step.drop),
        "files": _to_int(step.files),
        "because": step.because,
    }


def _encode_partitions(files: RemovedFiles, deleted: tuple[str, ...]) -> Iterator[Chunk]:
    _check_sorted(files)
    yield from file_rows.encode_partitions(files, deleted)


def _encode_rollback(step: RollbackStep) -> Iterator[Chunk]:
    before = {"action": step.action, "because": step.because}
    yield canonical_json.to_bytes(before)[:-1] + b',"files":['
    _check_sorted(step.files)
    yield from file_rows.encode_named(step.files)
    yield (b"]," + canonical_json.to_bytes({"instant": step.instant, "kind": step.kind})[1:])


def _encode_kept(kept: KeptFiles) -> Iterator[Chunk]:
    _check_sorted(kept)
    yield from file_rows.encode_kept(kept)


def _check_sorted(files: RemovedFiles | KeptFiles | NamedFiles) -> None:
    """Raise ValueError for files out of order: the order is part of the format."""
    if not columns.is_increasing(columns.rank_values(files.partition)[1], files.name):
        raise ValueError("the files of a plan must be sorted by (partition, name), each once")


def _encode_observed(observed: Observed | None) -> Mapping[str, Any] | None:
    if observed is None:
        return None
    return {
        "tableVersion": observed.table_version,
        "tableType": observed.table_type,
        "lastCompleted": observed.last_completed,
        "pending": [
            {"instant": p.instant, "action": p.action, "state": p.state} for p in observed.pending
        ],
        "savepoints": list(observed.savepoints),
        "files": _to_int(observed.files),
        "bytes": _to_int(observed.bytes),
        "smallFiles": _to_int(observed.small_files),
    }


def _encode_impact(impact: Impact) -> Mapping[str, Any]:
    return {
        "filesRemoved": _to_int(impact.files_removed),
        "bytesRemoved": _to_int(impact.bytes_removed),
        "bytesRewritten": _to_int(impact.bytes_rewritten),
        "earliestReadable": {
            "before": impact.earliest_readable_before,
            "after": impact.earliest_readable_after,
        },
    }


def _to_int(value: int | np.integer[Any]) -> int:
    """Convert a numpy integer, which json cannot write."""
    return int(value)


def _encode_notes(notes: Iterable[Note]) -> list[Mapping[str, str]]:
    return [{"rule": note.rule, "because": note.because} for note in notes]


def compute_spec_digest(document: Mapping[str, Any]) -> str:
    """Return the digest of an effective spec without its ``path``, so that it ignores location."""
    return canonical_json.digest_document(
        {key: value for key, value in document.items() if key != "path"}
    )
