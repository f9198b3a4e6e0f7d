"""A plan's tables as canonical JSON text in chunks; the names and meanings are the format's."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, assert_never

import numpy as np

from reconciler import canonical
from reconciler.plan import columns, groups, rows
from reconciler.plan.model import (
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
    Plan,
    RemovedFiles,
    ResumeStep,
    RollbackStep,
    Sampled,
    Selection,
    Step,
    TablePlan,
)

Chunk = bytes | memoryview


def body(plan: Plan) -> Iterator[Chunk]:
    """What the digest covers, without its outer braces."""
    yield b'"format":1'
    for key, value in selected(plan.selection).items():
        yield b"," + canonical.dumps({key: value})[1:-1]
    yield b',"tables":['
    for number, table in enumerate(plan.tables):
        if number:
            yield b","
        yield from _table(table)
    yield b"]"


def selected(selection: Selection | None) -> Mapping[str, Any]:
    """The ``selection`` of a document; nothing where no selector was used."""
    if selection is None:
        return {}
    return {
        "selection": {
            "tables": selection.tables,
            "of": selection.of,
            "by": list(selection.by),
            "removed": list(selection.removed),
        }
    }


def steps(table: TablePlan) -> Iterator[Chunk]:
    """The table's ``steps``, brackets and all."""
    yield b"["
    for number, step in enumerate(table.steps):
        if number:
            yield b","
        yield from _step(step)
    yield b"]"


def _table(table: TablePlan) -> Iterator[Chunk]:
    first = {
        "drift": [
            {"field": f.field, "desired": f.desired, "actual": f.actual, "because": f.because}
            for f in table.drift
        ],
        "error": table.error,
        **_file_sizes(table),
        "impact": _impact(table.impact),
    }
    second = {
        "name": table.name,
        "observed": _observed(table.observed),
        "path": table.path,
        "predictions": [dict(prediction) for prediction in table.predictions],
        "refusals": _notes(table.refusals),
        "spec": dict(table.spec),
        "specDigest": table.spec_digest,
    }
    yield canonical.dumps(first)[:-1] + b',"kept":['
    if table.kept is not None:
        yield from _kept(table.kept)
    yield b"]," + canonical.dumps(_layout(table.layout) | second)[1:-1] + b',"steps":'
    sha = hashlib.sha256()
    for chunk in steps(table):
        sha.update(chunk)
        yield chunk
    third = {
        "stepsDigest": f"sha256:{sha.hexdigest()}",
        "warnings": _notes(table.warnings),
    }
    yield b"," + canonical.dumps(third)[1:]


def _file_sizes(table: TablePlan) -> dict[str, Any]:
    """The ``fileSizes`` of a table; nothing where none were looked at."""
    if table.file_sizes is None:
        return {}
    from reconciler.plan.sizes import encoded  # noqa: PLC0415 - few specs declare file sizes

    return {"fileSizes": encoded(table.file_sizes)}


def _layout(layout: LayoutChange | None) -> dict[str, Any]:
    """The ``layout`` of a table; nothing where no step changes it."""
    if layout is None:
        return {}
    return {
        "layout": {
            "below": list(layout.below),
            "before": _figures(layout.before),
            "after": _figures(layout.after),
            "untouched": [
                {"rule": each.rule, "slices": _int(each.slices), "because": each.because}
                for each in layout.untouched
            ],
        }
        | _sampled(layout.sampled)
    }


def _sampled(sampled: Sampled | None) -> dict[str, Any]:
    """Nothing where nothing was sampled."""
    if sampled is None:
        return {}
    groups, rows = _int(sampled.row_groups), _int(sampled.rows)
    return {"sampled": {"rowGroups": groups, "of": _int(sampled.of), "rows": rows}}


def _figures(figures: LayoutFigures) -> Mapping[str, Any]:
    return {
        "files": _int(figures.files),
        "small": _int(figures.small),
        "bytes": _int(figures.bytes),
        "overlap": figures.overlap,
        "sizes": list(figures.sizes),
    }


def _step(step: Step) -> Iterator[Chunk]:
    match step:
        case ResumeStep():
            before: dict[str, Any] = {"action": step.action, "because": step.because}
            yield canonical.dumps(before)[:-1] + b',"groups":['
            yield from groups.groups_text(step.groups)
            after = {"instant": step.instant, "kind": step.kind}
            yield b"]," + canonical.dumps(after)[1:-1] + b',"partitions":['
            yield from _partitions(step.files, step.delete_partitions)
            yield b"]}"
        case RollbackStep():
            yield from _rollback(step)
        case ClusterStep():
            before = {"columns": list(step.columns), "curve": step.curve}
            yield canonical.dumps(before)[:-1] + b',"groups":['
            yield from groups.groups_text(step.groups)
            yield b"]," + canonical.dumps({"kind": step.kind, "mapping": step.mapping})[1:]
        case IndexStep():
            yield canonical.dumps(_index(step))
        case CleanStep():
            before = {
                "earliestInstantToRetain": step.earliest_instant_to_retain,
                "kind": step.kind,
            }
            yield canonical.dumps(before)[:-1] + b',"partitions":['
            yield from _partitions(step.files, step.delete_partitions)
            yield b"]," + canonical.dumps({"policy": step.policy})[1:]
        case _:
            assert_never(step)


def _index(step: IndexStep) -> Mapping[str, Any]:
    return {
        "kind": step.kind,
        "targets": list(step.targets),
        "columns": list(step.columns),
        "add": list(step.add),
        "drop": list(step.drop),
        "files": _int(step.files),
        "because": step.because,
    }


def _partitions(files: RemovedFiles, deleted: tuple[str, ...]) -> Iterator[Chunk]:
    _must_be_sorted(files)
    yield from rows.partitions_text(files, deleted)


def _rollback(step: RollbackStep) -> Iterator[Chunk]:
    before = {"action": step.action, "because": step.because}
    yield canonical.dumps(before)[:-1] + b',"files":['
    _must_be_sorted(step.files)
    yield from rows.named_text(step.files)
    yield b"]," + canonical.dumps({"instant": step.instant, "kind": step.kind})[1:]


def _kept(kept: KeptFiles) -> Iterator[Chunk]:
    _must_be_sorted(kept)
    yield from rows.kept_text(kept)


def _must_be_sorted(files: RemovedFiles | KeptFiles | NamedFiles) -> None:
    """The order is part of the format; a planner that breaks it has a bug worth stopping for."""
    if not columns.is_increasing(columns.ranked(files.partition)[1], files.name):
        raise ValueError("the files of a plan must be sorted by (partition, name), each once")


def _observed(observed: Observed | None) -> Mapping[str, Any] | None:
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
        "files": _int(observed.files),
        "bytes": _int(observed.bytes),
        "smallFiles": _int(observed.small_files),
    }


def _impact(impact: Impact) -> Mapping[str, Any]:
    return {
        "filesRemoved": _int(impact.files_removed),
        "bytesRemoved": _int(impact.bytes_removed),
        "bytesRewritten": _int(impact.bytes_rewritten),
        "earliestReadable": {
            "before": impact.earliest_readable_before,
            "after": impact.earliest_readable_after,
        },
    }


def _int(value: int | np.integer[Any]) -> int:
    """A sum over a numpy column is no int to json."""
    return int(value)


def _notes(notes: Iterable[Note]) -> list[Mapping[str, str]]:
    return [{"rule": note.rule, "because": note.because} for note in notes]


def spec_digest(document: Mapping[str, Any]) -> str:
    """The digest of an effective spec without its ``path``: the same wherever the table lies."""
    return canonical.digest({key: value for key, value in document.items() if key != "path"})
