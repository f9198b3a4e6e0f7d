"""Encode a plan as canonical JSON text in chunks. Field names are those of the plan format."""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from typing import Any, assert_never

from reconciler import canonical_json
from reconciler.canonical_json import to_document
from reconciler.plans import columns, encode_files, groups
from reconciler.plans.archive_step import ArchiveStep
from reconciler.plans.compact_step import CompactStep
from reconciler.plans.model import (
    CleanStep,
    ClusterStep,
    Impact,
    IndexStep,
    KeptFiles,
    MetadataStep,
    NamedFiles,
    OrphansStep,
    ResumeStep,
    RollbackStep,
    Selection,
    Step,
    TablePlan,
)
from reconciler.plans.partition_deletion import DeletePartitionStep
from reconciler.plans.rewrites import Rewrites
from reconciler.plans.savepoint_step import SavepointStep

Chunk = bytes | memoryview


def encode_body(tables: Sequence[TablePlan], selection: Selection | None) -> Iterator[Chunk]:
    """Yield the part of a document that its digest covers, without the outer braces."""
    listed = _encode_list(map(_encode_table, tables))
    return _encode_fields({"format": 1, "tables": listed, **encode_selection(selection)})


def encode_selection(selection: Selection | None) -> Mapping[str, Any]:
    """Return the ``selection`` of a document; empty if no selector was used."""
    return {} if selection is None else {"selection": to_document(selection)}


def encode_steps(table: TablePlan) -> Iterator[Chunk]:
    """Yield the table's ``steps`` with their brackets."""
    return _encode_list(map(_encode_step, table.steps))


def digest_chunks(chunks: Iterable[Chunk]) -> str:
    """Return the digest of canonical bytes in chunks."""
    sha = hashlib.sha256()
    for chunk in chunks:
        sha.update(chunk)
    return f"sha256:{sha.hexdigest()}"


def _encode_fields(fields: Mapping[str, Any]) -> Iterator[Chunk]:
    """Yield the fields of an object without its braces.

    A value is JSON data, an iterator of chunks of JSON text, or a function that returns JSON data
    and is called after the fields before it.
    """
    for number, (key, value) in enumerate(sorted(fields.items())):
        yield b"," * (number > 0) + canonical_json.to_bytes(key) + b":"
        if isinstance(value, Generator):
            yield from value
        else:
            yield canonical_json.to_bytes(value() if callable(value) else value)


def _encode_object(fields: Mapping[str, Any]) -> Iterator[Chunk]:
    yield b"{"
    yield from _encode_fields(fields)
    yield b"}"


def _encode_list(items: Iterable[Iterable[Chunk]]) -> Iterator[Chunk]:
    yield b"["
    for number, item in enumerate(items):
        yield b"," * (number > 0)
        yield from item
    yield b"]"


def _encode_table(table: TablePlan) -> Iterator[Chunk]:
    sha = hashlib.sha256()

    def hash_steps() -> Iterator[Chunk]:
        for chunk in encode_steps(table):
            sha.update(chunk)
            yield chunk

    return _encode_object(
        to_document(table)
        | _encode_file_sizes(table)
        | {
            "impact": _encode_impact(table.impact),
            "kept": _encode_kept(table.kept),
            "steps": hash_steps(),
            "stepsDigest": lambda: f"sha256:{sha.hexdigest()}",
        }
    )


def _encode_file_sizes(table: TablePlan) -> dict[str, Any]:
    """Return the ``fileSizes`` of a table; empty if they were not measured."""
    if table.file_sizes is None:
        return {}
    from reconciler.plans.file_sizes import encode_file_sizes  # noqa: PLC0415 - few specs declare file sizes

    return {"fileSizes": encode_file_sizes(table.file_sizes)}


def _encode_impact(impact: Impact) -> Mapping[str, Any]:
    before, after = impact.earliest_readable_before, impact.earliest_readable_after
    return {**to_document(impact), "earliestReadable": {"before": before, "after": after}}


def _encode_step(step: Step) -> Iterator[Chunk]:
    return _encode_object({**to_document(step), **_encode_step_lists(step)})


def _encode_step_lists(step: Step) -> Mapping[str, Iterator[Chunk]]:
    """Return the long lists of a step by their keys."""
    match step:
        case ResumeStep():
            lists = _encode_groups(step.groups) | {"partitions": _encode_partitions(step)}
            return lists if step.attempt is None else lists | _encode_named("attempt", step.attempt)
        case RollbackStep():
            return _encode_named("files", step.files)
        case ClusterStep() | CompactStep():
            return _encode_groups(step.groups)
        case CleanStep():
            return {"partitions": _encode_partitions(step)}
        case OrphansStep():
            _check_sorted(step.files)
            return {"partitions": _encode_list([encode_files.encode_orphans(step.files)])}
        case DeletePartitionStep():
            _check_partitions_sorted([partition.path for partition in step.partitions])
        case IndexStep() | MetadataStep() | SavepointStep() | ArchiveStep():
            pass
        case _:
            assert_never(step)
    return {}


def _encode_named(key: str, files: NamedFiles) -> dict[str, Iterator[Chunk]]:
    _check_sorted(files)
    return {key: _encode_list([encode_files.encode_named(files)])}


def _encode_groups(rewrites: Rewrites | None) -> dict[str, Iterator[Chunk]]:
    return {"groups": _encode_list([groups.encode_groups(rewrites)])}


def _encode_partitions(step: ResumeStep | CleanStep) -> Iterator[Chunk]:
    _check_sorted(step.files)
    return _encode_list([encode_files.encode_partitions(step.files, step.delete_partitions)])


def _encode_kept(kept: KeptFiles | None) -> Iterator[Chunk]:
    if kept is None:
        return _encode_list([])
    _check_sorted(kept)
    return _encode_list([encode_files.encode_kept(kept)])


def _check_sorted(files: NamedFiles) -> None:
    """Raise ValueError for files out of order: the order is part of the format."""
    if not columns.is_increasing(columns.rank_values(files.partition)[1], files.name):
        raise ValueError("the files of a plan must be sorted by (partition, name), each once")


def _check_partitions_sorted(paths: Sequence[str]) -> None:
    """Raise ValueError for partitions out of order."""
    if any(before >= after for before, after in itertools.pairwise(paths)):
        raise ValueError("the partitions of a step must be sorted by path, each once")


def compute_spec_digest(document: Mapping[str, Any]) -> str:
    """Return the digest of an effective spec without its ``path``, so that it ignores location."""
    return canonical_json.digest_document(
        {key: value for key, value in document.items() if key != "path"}
    )
