"""Validate the structure of a plan document; each problem has its own sentence.

``schemas/plan.v1.json`` has the same rules for other programs; a test compares the two. This check
is smaller and faster and has better messages.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from reconciler.errors import PlanError
from reconciler.plans.model import (
    CURVES,
    FILE_KINDS,
    INDEX_TARGETS,
    KEEP_RULES,
    MAPPINGS,
    REMOVAL_RULES,
)

Check = Callable[[Any, str], None]

_TYPE_NAMES: Mapping[type, str] = {
    bool: "true or false",
    int: "a whole number",
    float: "a number with a fraction",
    str: "a string",
    list: "a list",
    dict: "an object",
    type(None): "null",
}


def validate_document(document: Any) -> None:
    """Raise PlanError for the first violation of the format, with its path."""
    _DOCUMENT(document, "")


def _refuse(path: str, problem: str) -> None:
    raise PlanError(f"{path or 'the document'} {problem}")


def _type_of(kind: type) -> Check:
    def is_of(value: Any, path: str) -> None:
        if type(value) is not kind:
            _refuse(path, f"must be {_TYPE_NAMES[kind]}, not {_TYPE_NAMES[type(value)]}")

    return is_of


def _matches(pattern: str, meaning: str) -> Check:
    compiled = re.compile(pattern)

    def matches(value: Any, path: str) -> None:
        _text(value, path)
        if not compiled.fullmatch(value):
            _refuse(path, f"must be {meaning}, not {_shorten(value)}")

    return matches


def _one_of(names: tuple[str, ...]) -> Check:
    return _matches("|".join(map(re.escape, names)), "one of " + ", ".join(names))


def _nullable(inner: Check) -> Check:
    def is_null_or(value: Any, path: str) -> None:
        if value is not None:
            inner(value, path)

    return is_null_or


def _list_of(inner: Check) -> Check:
    def each(value: Any, path: str) -> None:
        _array(value, path)
        for number, item in enumerate(value):
            inner(item, f"{path}[{number}]")

    return each


def _filled_list_of(inner: Check) -> Check:
    each = _list_of(inner)

    def some(value: Any, path: str) -> None:
        each(value, path)
        if not value:
            _refuse(path, "must name at least one file slice")

    return some


def _record(_optional: Mapping[str, Check] | None = None, /, **fields: Check) -> Check:
    known = {**(_optional or {}), **fields}

    def has_fields(value: Any, path: str) -> None:
        _object(value, path)
        for name in fields.keys() - value.keys():
            _refuse(path, f'has no "{name}"')
        for name in value.keys() - known.keys():
            _refuse(path, f"has a field that format 1 does not have: {_shorten(name)}")
        for name, inner in known.items():
            if name in value:
                inner(value[name], f"{path}.{name}" if path else name)

    return has_fields


def _count(value: Any, path: str) -> None:
    _type_of(int)(value, path)
    if not 0 <= value < 1 << 63:
        _refuse(path, f"must be between 0 and 2^63, not {value}")


def _positive(value: Any, path: str) -> None:
    _count(value, path)
    if not value:
        _refuse(path, "must be at least 1")


def _number(value: Any, path: str) -> None:
    if type(value) not in (int, float):
        _refuse(path, f"must be a number, not {_TYPE_NAMES[type(value)]}")


def _moment(value: Any, path: str) -> None:
    _text(value, path)
    try:
        moment = datetime.fromisoformat(value)
    except ValueError:
        moment = None
    if moment is None or moment.tzinfo is None:
        _refuse(path, f"must be an ISO-8601 time with an offset, not {_shorten(value)}")


def _targets(value: Any, path: str) -> None:
    _list_of(_one_of(INDEX_TARGETS))(value, path)
    if not value:
        _refuse(path, "must name at least one index")


def _location(value: Any, path: str) -> None:
    _text(value, path)
    if not value.startswith("/") and "://" not in value:
        _refuse(path, f"must be an absolute path or a URL, not {_shorten(value)}")


def _file_name(value: Any, path: str) -> None:
    _text(value, path)
    if not is_file_name(value):
        _refuse(path, f"must be the name of a file in its partition, not {_shorten(value)}")


def _partition(value: Any, path: str) -> None:
    _text(value, path)
    if not is_partition(value):
        _refuse(path, f"must be the path of a partition inside the table, not {_shorten(value)}")


def is_file_name(value: str) -> bool:
    """Return whether the value is a plain file name: no separator, no NUL, not ``..``."""
    return value not in ("", ".", "..") and not set(value) & {"/", "\\", "\0"}


def is_partition(value: str) -> bool:
    """Return whether the value is a relative path inside the table and outside ``.hoodie``.

    >>> [is_partition(p) for p in ("", "dt=1/h=2", "/etc", "../other", "a//b", ".hoodie/timeline")]
    [True, True, False, False, False, False]
    """
    if value == "":
        return True
    parts = value.split("/")
    return (
        not {"", ".", ".."} & set(parts)
        and not set(value) & {"\\", "\0"}
        and parts[0] != ".hoodie"
        and "://" not in value
    )


def _step(value: Any, path: str) -> None:
    _object(value, path)
    kind = value.get("kind")
    _text(kind, f"{path}.kind")
    if kind not in _STEPS:
        _refuse(path, f"has kind {_shorten(kind)}; known are {', '.join(_STEPS)}")
    _STEPS[kind](value, path)


def _shorten(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "..."  # noqa: PLR2004


_text, _array, _object, _flag = (
    _type_of(str),
    _type_of(list),
    _type_of(dict),
    _type_of(bool),
)
_instant = _matches(r"[0-9]{1,24}", "an instant (digits)")
_digest = _matches(r"sha256:[0-9a-f]{64}", "a digest (sha256:...)")
_note = _record(rule=_text, because=_text)


def _accept_anything(_value: Any, _path: str) -> None:
    """Accept any value: the format does not restrict values of the spec."""


_PARTITIONS = _list_of(
    _record(
        path=_partition,
        deletePartition=_flag,
        files=_list_of(
            _record(
                name=_file_name,
                bytes=_count,
                kind=_one_of(FILE_KINDS),
                rule=_one_of(REMOVAL_RULES),
                because=_text,
            )
        ),
    )
)
_GROUPS = _list_of(
    _record(
        partition=_partition,
        outputs=_positive,
        bytes=_count,
        because=_text,
        slices=_filled_list_of(
            _record(fileId=_file_name, base=_nullable(_file_name), logs=_list_of(_file_name))
        ),
    )
)
_STEPS: Mapping[str, Check] = {
    "resume": _record(
        kind=_text,
        instant=_instant,
        action=_one_of(("clean", "clustering")),
        partitions=_PARTITIONS,
        groups=_GROUPS,
        because=_text,
    ),
    "rollback": _record(
        kind=_text,
        instant=_instant,
        action=_text,
        files=_list_of(_record(partition=_partition, name=_file_name)),
        because=_text,
    ),
    "cluster": _record(
        kind=_text,
        columns=_list_of(_text),
        curve=_nullable(_one_of(CURVES)),
        mapping=_nullable(_one_of(MAPPINGS)),
        groups=_GROUPS,
    ),
    "index": _record(
        kind=_text,
        targets=_targets,
        columns=_list_of(_text),
        add=_list_of(_text),
        drop=_list_of(_text),
        files=_count,
        because=_text,
    ),
    "clean": _record(
        kind=_text,
        policy=_text,
        earliestInstantToRetain=_nullable(_instant),
        partitions=_PARTITIONS,
    ),
}
_FIGURES = _record(
    files=_count, small=_count, bytes=_count, overlap=_nullable(_number), sizes=_list_of(_count)
)
_LAYOUT = _record(
    {"sampled": _record(rowGroups=_count, of=_count, rows=_count)},
    below=_list_of(_count),
    before=_FIGURES,
    after=_FIGURES,
    untouched=_list_of(_record(rule=_text, slices=_count, because=_text)),
)
_SPAN = _nullable(_record(least=_count, most=_count))
_OUTLOOK: Mapping[str, Check] = {
    "rows": _count,
    "filled": _count,
    "filledRows": _count,
    "filledTo": _SPAN,
    "rewritten": _count,
    "new": _count,
    "newOf": _SPAN,
    "small": _count,
}
_NEXT_INSERT = _record(
    rows=_count,
    because=_text,
    into=_count,
    total=_nullable(_record(**_OUTLOOK)),
    partitions=_list_of(_record(partition=_text, **_OUTLOOK)),
)
_FILE_SIZES = _record(
    {"nextInsert": _NEXT_INSERT},
    target=_count,
    smallBelow=_count,
    files=_count,
    bytes=_count,
    small=_count,
    logOnly=_count,
    histogram=_list_of(_record(least=_count, below=_nullable(_count), files=_count, bytes=_count)),
    smallPartitions=_count,
    partitions=_list_of(
        _record(partition=_text, files=_count, small=_count, pinned=_count, bytes=_count)
    ),
    operations=_list_of(_record(operation=_text, files=_count, small=_count, bytes=_count)),
)
_TABLE = _record(
    {"layout": _LAYOUT, "fileSizes": _FILE_SIZES},
    name=_text,
    path=_location,
    spec=_object,
    specDigest=_digest,
    stepsDigest=_digest,
    error=_nullable(_text),
    observed=_nullable(
        _record(
            tableVersion=_count,
            tableType=_one_of(("COPY_ON_WRITE", "MERGE_ON_READ")),
            lastCompleted=_nullable(_instant),
            pending=_list_of(_record(instant=_instant, action=_text, state=_text)),
            savepoints=_list_of(_instant),
            files=_count,
            bytes=_count,
            smallFiles=_count,
        )
    ),
    drift=_list_of(
        _record(field=_text, desired=_accept_anything, actual=_accept_anything, because=_text)
    ),
    steps=_list_of(_step),
    kept=_list_of(
        _record(partition=_partition, name=_file_name, rule=_one_of(KEEP_RULES), because=_text)
    ),
    predictions=_list_of(
        _record(
            query=_text,
            filesBefore=_count,
            filesAfter=_count,
            bytesBefore=_count,
            bytesAfter=_count,
            error=_number,
        )
    ),
    impact=_record(
        filesRemoved=_count,
        bytesRemoved=_count,
        bytesRewritten=_count,
        earliestReadable=_record(before=_nullable(_instant), after=_nullable(_instant)),
    ),
    refusals=_list_of(_note),
    warnings=_list_of(_note),
)
_SELECTION = _record(tables=_count, of=_count, by=_list_of(_text), removed=_list_of(_text))
_DOCUMENT = _record(
    {"selection": _SELECTION},
    format=_count,
    digest=_digest,
    createdAt=_moment,
    tool=_text,
    tables=_list_of(_TABLE),
)
