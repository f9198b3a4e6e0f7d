"""The careful way to read a plan document: any JSON layout, and a sentence for what is wrong.

A tool may have re-indented the file. Here a file is a Python object for a moment; a plan as
``reconciler plan`` wrote it never comes this way.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NoReturn

import numpy as np

from reconciler import canonical
from reconciler.errors import EditedPlanError, PlanError
from reconciler.hudi import arrow
from reconciler.plan import columns, decode, foreign, groups, shape
from reconciler.plan.decode import Lists, Parts
from reconciler.plan.encode import spec_digest
from reconciler.plan.model import (
    FILE_KINDS,
    KEEP_RULES,
    REMOVAL_RULES,
    KeptFiles,
    NamedFiles,
    Plan,
    RemovedFiles,
)

_FORMAT = 1
_OUTSIDE_THE_DIGEST = ("digest", "createdAt", "tool")


def load(data: bytes) -> Plan:
    """The plan of a document in any layout; raises PlanError."""
    document = _parsed(data)
    made_by = document.get("format")
    if type(made_by) is int and made_by != _FORMAT:
        raise PlanError(
            f"is a plan of format {made_by}; this version reads format {_FORMAT}: "
            "use the version that made it, or make the plan again"
        )
    shape.check(document)
    _check_digests(document)
    for table in document["tables"]:
        _check_order(table)
    return decode.plan(document, [_lists(table) for table in document["tables"]])


def _parsed(data: bytes) -> dict[str, Any]:
    instead = foreign.of_bytes(data)
    if instead:
        raise PlanError(instead)
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        is_cut = error.reason == "unexpected end of data" and data.startswith(b"{")
        problem = f"is not UTF-8 at byte {error.start}, so it is no plan"
        raise PlanError(foreign.CUT_OFF if is_cut else problem) from None
    try:
        value = json.loads(text, object_pairs_hook=_each_once, parse_constant=_no_constant)
    except json.JSONDecodeError as error:
        raise PlanError(foreign.of_text(text, error)) from None
    except RecursionError:
        raise PlanError("is nested too deeply to be a plan") from None
    except ValueError as error:
        raise PlanError(f"is damaged: {error}") from None
    instead = foreign.of_value(value)
    if instead:
        raise PlanError(instead)
    document: dict[str, Any] = value
    return document


def _each_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        keys = sorted(key for key, _ in pairs)
        twice = next(a for a, b in itertools.pairwise(keys) if a == b)
        raise PlanError(f'is damaged: an object has the key "{twice}" twice')
    return found


def _no_constant(name: str) -> NoReturn:
    raise PlanError(f"is damaged: {name} is not a JSON number")


def _check_digests(document: Mapping[str, Any]) -> None:
    try:
        rest = {k: v for k, v in document.items() if k not in _OUTSIDE_THE_DIGEST}
        canonical.dumps(document["tool"])
        if canonical.digest(rest) != document["digest"]:
            raise EditedPlanError(
                "was edited after it was made (its digest doesn't match); nothing of it is done: "
                "change the spec instead, and make the plan again"
            )
        for table in document["tables"]:
            if canonical.digest(table["steps"]) != table["stepsDigest"]:
                raise PlanError(f"has steps of table {table['name']} that don't match stepsDigest")
            if spec_digest(table["spec"]) != table["specDigest"]:
                raise PlanError(
                    f"has a spec of table {table['name']} that doesn't match specDigest"
                )
    except UnicodeEncodeError:
        raise PlanError("is damaged: it has half of a surrogate pair") from None
    except ValueError as error:
        raise PlanError(f"is damaged: {error}") from None


def _check_order(table: Mapping[str, Any]) -> None:
    """Files and partitions are sorted, each once; a partition without files goes itself."""
    for step in table["steps"]:
        partitions = step.get("partitions", ())
        _rising([p["path"] for p in partitions], "partition", table)
        for partition in partitions:
            _rising([f["name"] for f in partition["files"]], "file", table)
            if not partition["files"] and not partition["deletePartition"]:
                raise PlanError(
                    f"lists partition {partition['path']!r} of table {table['name']} for nothing"
                )
        if step["kind"] == "rollback":
            _rising([(f["partition"], f["name"]) for f in step["files"]], "file", table)
    _rising([(k["partition"], k["name"]) for k in table["kept"]], "kept file", table)


def _rising(values: Sequence[Any], what: str, table: Mapping[str, Any]) -> None:
    for before, after in itertools.pairwise(values):
        if before == after:
            raise PlanError(f"lists {what} {after!r} of table {table['name']} twice")
        if before > after:
            raise PlanError(f"lists {what} {after!r} of table {table['name']} out of order")


def _lists(table: Mapping[str, Any]) -> Lists:
    return Lists(
        kept=_kept(table["kept"]) if table["kept"] else None,
        steps=[_parts(step) for step in table["steps"]],
    )


def _parts(step: Mapping[str, Any]) -> Parts:
    partitions = step.get("partitions", ())
    files = [(p["path"], f) for p in partitions for f in p["files"]]
    return Parts(
        files=RemovedFiles(
            partition=_encoded(path for path, _ in files),
            name=arrow.strings([f["name"] for _, f in files]),
            bytes=np.array([f["bytes"] for _, f in files], np.int64),
            kind=np.array([FILE_KINDS.index(f["kind"]) for _, f in files], np.int8),
            rule=np.array([REMOVAL_RULES.index(f["rule"]) for _, f in files], np.int8),
            because=_encoded(f["because"] for _, f in files),
        ),
        delete_partitions=tuple(p["path"] for p in partitions if p["deletePartition"]),
        groups=groups.from_values(step.get("groups", ())),
        named=_named(step["files"]) if step["kind"] == "rollback" else None,
    )


def _named(files: Sequence[Mapping[str, Any]]) -> NamedFiles:
    return NamedFiles(
        partition=_encoded(f["partition"] for f in files),
        name=arrow.strings([f["name"] for f in files]),
    )


def _kept(kept: Sequence[Mapping[str, Any]]) -> KeptFiles:
    return KeptFiles(
        partition=_encoded(k["partition"] for k in kept),
        name=arrow.strings([k["name"] for k in kept]),
        rule=np.array([KEEP_RULES.index(k["rule"]) for k in kept], np.int8),
        because=_encoded(k["because"] for k in kept),
    )


def _encoded(values: Iterable[str]) -> Any:
    code: dict[str, int] = {}
    found = np.array([code.setdefault(value, len(code)) for value in values], np.int32)
    return columns.dictionary(found, list(code))
