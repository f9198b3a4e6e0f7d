"""Load a plan document in any JSON layout and explain what is wrong with it.

A tool may have re-indented the file. This loader makes a Python object per file, so it is slow;
a plan that ``reconciler plan`` wrote and nobody changed does not need it.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn

from reconciler import canonical_json
from reconciler.errors import EditedPlanError, PlanError
from reconciler.plans import decode, file_rows, groups, other_formats, validation
from reconciler.plans.encode import compute_spec_digest
from reconciler.plans.plan import Plan

_FORMAT = 1
_OUTSIDE_THE_DIGEST = ("digest", "createdAt", "tool")


def load_any_layout(data: bytes) -> Plan:
    """Return the plan of a document in any JSON layout; raises PlanError."""
    document = _parse_document(data)
    number = document.get("format")
    if type(number) is int and number != _FORMAT:
        raise PlanError(
            f"is a plan of format {number}; this version reads format {_FORMAT}: "
            "use the version that made it, or make the plan again"
        )
    validation.validate_document(document)
    _check_digests(document)
    for table in document["tables"]:
        _check_order(table)
    plan = decode.decode_plan(
        document, [decode.take_lists(table, _read_list) for table in document["tables"]]
    )
    plan.keep_digest(document["digest"])
    return plan


def _parse_document(data: bytes) -> dict[str, Any]:
    other_format = other_formats.describe_bytes(data)
    if other_format:
        raise PlanError(other_format)
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
    other_format = other_formats.describe_value(value)
    if other_format:
        raise PlanError(other_format)
    document: dict[str, Any] = value
    return document


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) < len(pairs):
        keys = sorted(key for key, _ in pairs)
        repeated = next(a for a, b in itertools.pairwise(keys) if a == b)
        raise PlanError(f'is damaged: an object has the key "{repeated}" twice')
    return members


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
        if step["kind"] == "metadata":
            _check_rising(step["partitions"], "metadata partition", table)
            continue
        partitions = step.get("partitions", ())
        _check_rising([p["path"] for p in partitions], "partition", table)
        for partition in () if step["kind"] == "deletePartition" else partitions:
            _check_rising([f["name"] for f in partition["files"]], "file", table)
            if not partition["files"] and not partition.get("deletePartition"):
                raise PlanError(
                    f"lists partition {partition['path']!r} of table {table['name']} without files "
                    "and does not delete it"
                )
        if step["kind"] == "rollback":
            _check_rising([(f["partition"], f["name"]) for f in step["files"]], "file", table)
        attempt = [(f["partition"], f["name"]) for f in step.get("attempt", ())]
        _check_rising(attempt, "file", table)
    _check_rising([(k["partition"], k["name"]) for k in table["kept"]], "kept file", table)


def _check_rising(values: Sequence[Any], what: str, table: Mapping[str, Any]) -> None:
    for before, after in itertools.pairwise(values):
        if before == after:
            raise PlanError(f"lists {what} {after!r} of table {table['name']} twice")
        if before > after:
            raise PlanError(f"lists {what} {after!r} of table {table['name']} out of order")


def _read_list(holder: Mapping[str, Any], key: str) -> Any:
    if key == "partitions" and holder["kind"] == "orphans":
        return file_rows.orphans_from_json(holder[key])
    return _LIST_READERS[key](holder[key])


_LIST_READERS: Mapping[str, Callable[[list[Any]], Any]] = {
    "kept": file_rows.kept_from_json,
    "partitions": file_rows.removed_from_json,
    "groups": groups.rewrites_from_json,
    "files": file_rows.named_from_json,
    "attempt": file_rows.named_from_json,
}
