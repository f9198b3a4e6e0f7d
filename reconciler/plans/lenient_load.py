"""Load a plan document in any JSON layout and explain what is wrong with it.

A tool may have re-indented the file. This loader makes a Python object per file, so it is slow;
a plan that ``reconciler plan`` wrote and nobody changed does not need it.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NoReturn

import numpy as np

from reconciler import arrays, canonical_json
from reconciler.errors import EditedPlanError, PlanError
from reconciler.plans import columns, decode, groups, other_formats, validation
from reconciler.plans.decode import StepLists, TableLists
from reconciler.plans.encode import compute_spec_digest
from reconciler.plans.model import (
    FILE_KINDS,
    KEEP_RULES,
    REMOVAL_RULES,
    KeptFiles,
    NamedFiles,
    RemovedFiles,
)
from reconciler.plans.plan import Plan

_FORMAT = 1
_OUTSIDE_THE_DIGEST = ("digest", "createdAt", "tool")


def load_any_layout(data: bytes) -> Plan:
    """Return the plan of a document in any JSON layout; raises PlanError."""
    document = _parse_document(data)
    made_by = document.get("format")
    if type(made_by) is int and made_by != _FORMAT:
        raise PlanError(
            f"is a plan of format {made_by}; this version reads format {_FORMAT}: "
            "use the version that made it, or make the plan again"
        )
    validation.validate_document(document)
    _check_digests(document)
    for table in document["tables"]:
        _check_order(table)
    plan = decode.decode_plan(document, [_table_lists(table) for table in document["tables"]])
    plan.keep_digest(document["digest"])
    return plan


def _parse_document(data: bytes) -> dict[str, Any]:
    instead = other_formats.describe_bytes(data)
    if instead:
        raise PlanError(instead)
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        is_cut = error.reason == "unexpected end of data" and data.startswith(b"{")
        problem = f"is not UTF-8 at byte {error.start}, so it is not a plan"
        raise PlanError(other_formats.TRUNCATED if is_cut else problem) from None
    try:
        value = json.loads(text, object_pairs_hook=_unique_keys, parse_constant=_refuse_constant)
    except json.JSONDecodeError as error:
        raise PlanError(other_formats.describe_text(text, error)) from None
    except RecursionError:
        raise PlanError("is nested too deeply to be a plan") from None
    except ValueError as error:
        raise PlanError(f"is damaged: {error}") from None
    instead = other_formats.describe_value(value)
    if instead:
        raise PlanError(instead)
    document: dict[str, Any] = value
    return document


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        keys = sorted(key for key, _ in pairs)
        twice = next(a for a, b in itertools.pairwise(keys) if a == b)
        raise PlanError(f'is damaged: an object has the key "{twice}" twice')
    return found


def _refuse_constant(name: str) -> NoReturn:
    raise PlanError(f"is damaged: {name} is not a JSON number")


def _check_digests(document: Mapping[str, Any]) -> None:
    try:
        rest = {k: v for k, v in document.items() if k not in _OUTSIDE_THE_DIGEST}
        canonical_json.to_bytes(document["tool"])
        if canonical_json.digest_document(rest) != document["digest"]:
            raise EditedPlanError(
                "was edited after it was made (its digest does not match). Nothing was applied. "
                "Edit the spec and plan again"
            )
        for table in document["tables"]:
            if canonical_json.digest_document(table["steps"]) != table["stepsDigest"]:
                raise PlanError(f"has steps of table {table['name']} that do not match stepsDigest")
            if compute_spec_digest(table["spec"]) != table["specDigest"]:
                raise PlanError(
                    f"has a spec of table {table['name']} that does not match specDigest"
                )
    except UnicodeEncodeError:
        raise PlanError("is damaged: it contains half of a surrogate pair") from None
    except ValueError as error:
        raise PlanError(f"is damaged: {error}") from None


def _check_order(table: Mapping[str, Any]) -> None:
    """Check that files and partitions are sorted and unique and that each partition is used."""
    for step in table["steps"]:
        partitions = step.get("partitions", ())
        _check_rising([p["path"] for p in partitions], "partition", table)
        for partition in partitions:
            _check_rising([f["name"] for f in partition["files"]], "file", table)
            if not partition["files"] and not partition["deletePartition"]:
                raise PlanError(
                    f"lists partition {partition['path']!r} of table {table['name']} without files "
                    "and does not delete it"
                )
        if step["kind"] == "rollback":
            _check_rising([(f["partition"], f["name"]) for f in step["files"]], "file", table)
    _check_rising([(k["partition"], k["name"]) for k in table["kept"]], "kept file", table)


def _check_rising(values: Sequence[Any], what: str, table: Mapping[str, Any]) -> None:
    for before, after in itertools.pairwise(values):
        if before == after:
            raise PlanError(f"lists {what} {after!r} of table {table['name']} twice")
        if before > after:
            raise PlanError(f"lists {what} {after!r} of table {table['name']} out of order")


def _table_lists(table: Mapping[str, Any]) -> TableLists:
    return TableLists(
        kept=_kept_files(table["kept"]) if table["kept"] else None,
        steps=[_step_lists(step) for step in table["steps"]],
    )


def _step_lists(step: Mapping[str, Any]) -> StepLists:
    partitions = step.get("partitions", ())
    files = [(p["path"], f) for p in partitions for f in p["files"]]
    return StepLists(
        files=RemovedFiles(
            partition=_encode_dictionary(path for path, _ in files),
            name=arrays.to_arrow([f["name"] for _, f in files]),
            bytes=np.array([f["bytes"] for _, f in files], np.int64),
            kind=np.array([FILE_KINDS.index(f["kind"]) for _, f in files], np.int8),
            rule=np.array([REMOVAL_RULES.index(f["rule"]) for _, f in files], np.int8),
            because=_encode_dictionary(f["because"] for _, f in files),
        ),
        delete_partitions=tuple(p["path"] for p in partitions if p["deletePartition"]),
        groups=groups.rewrites_from_json(step.get("groups", ())),
        rollback_files=_named_files(step["files"]) if step["kind"] == "rollback" else None,
    )


def _named_files(files: Sequence[Mapping[str, Any]]) -> NamedFiles:
    return NamedFiles(
        partition=_encode_dictionary(f["partition"] for f in files),
        name=arrays.to_arrow([f["name"] for f in files]),
    )


def _kept_files(kept: Sequence[Mapping[str, Any]]) -> KeptFiles:
    return KeptFiles(
        partition=_encode_dictionary(k["partition"] for k in kept),
        name=arrays.to_arrow([k["name"] for k in kept]),
        rule=np.array([KEEP_RULES.index(k["rule"]) for k in kept], np.int8),
        because=_encode_dictionary(k["because"] for k in kept),
    )


def _encode_dictionary(values: Iterable[str]) -> Any:
    code: dict[str, int] = {}
    found = np.array([code.setdefault(value, len(code)) for value in values], np.int32)
    return columns.build_dictionary(found, list(code))
