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


def _is_type(kind: type) -> Check:
    def is_of(value: Any, path: str) -> None:
        if type(value) is not kind:
            _refuse(path, f"must be {_TYPE_NAMES[kind]}, not {_TYPE_NAMES[type(value)]}")

    return is_of


def _matches(pattern: str, meaning: str) -> Check:
    compiled = re.compile(pattern)

    def matches(value: Any, path: str) -> None:
        _check_text(value, path)
        if not compiled.fullmatch(value):
            _refuse(path, f"must be {meaning}, not {_shorten(value)}")

    return matches


def _is_one_of(names: tuple[str, ...]) -> Check:
    return _matches("|".join(map(re.escape, names)), "one of " + ", ".join(names))


def _is_nullable(inner: Check) -> Check:
    def is_null_or(value: Any, path: str) -> None:
        if value is not None:
            inner(value, path)

    return is_null_or


def _is_list(inner: Check) -> Check:
    def each(value: Any, path: str) -> None:
        _check_array(value, path)
        for number, item in enumerate(value):
            inner(item, f"{path}[{number}]")

    return each


def _is_filled_list(inner: Check) -> Check:
    each = _is_list(inner)

    def some(value: Any, path: str) -> None:
        each(value, path)
        if not value:
            _refuse(path, "must name at least one file slice")

    return some


def _is_record(_optional: Mapping[str, Check] | None = None, /, **fields: Check) -> Check:
    known = {**(_optional or {}), **fields}

    def has_fields(value: Any, path: str) -> None:
        _check_object(value, path)
        for name in fields.keys() - value.keys():
            _refuse(path, f'has no "{name}"')
        for name in value.keys() - known.keys():
            _refuse(path, f"has a field that format 1 does not have: {_shorten(name)}")
        for name, inner in known.items():
            if name in value:
                inner(value[name], f"{path}.{name}" if path else name)

    return has_fields


def _check_count(value: Any, path: str) -> None:
    _is_type(int)(value, path)
    if not 0 <= value < 1 << 63:
        _refuse(path, f"must be between 0 and 2^63, not {value}")


def _check_positive(value: Any, path: str) -> None:
    _check_count(value, path)
    if not value:
        _refuse(path, "must be at least 1")


def _check_number(value: Any, path: str) -> None:
    if type(value) not in (int, float):
        _refuse(path, f"must be a number, not {_TYPE_NAMES[type(value)]}")


def _check_moment(value: Any, path: str) -> None:
    _check_text(value, path)
    try:
        moment = datetime.fromisoformat(value)
    except ValueError:
        moment = None
    if moment is None or moment.tzinfo is None:
        _refuse(path, f"must be an ISO-8601 time with an offset, not {_shorten(value)}")


def _check_targets(value: Any, path: str) -> None:
    _is_list(_is_one_of(INDEX_TARGETS))(value, path)
    if not value:
        _refuse(path, "must name at least one index")


def _check_location(value: Any, path: str) -> None:
    _check_text(value, path)
    if not value.startswith("/") and "://" not in value:
        _refuse(path, f"must be an absolute path or a URL, not {_shorten(value)}")


def _check_file_name(value: Any, path: str) -> None:
    _check_text(value, path)
    if not is_file_name(value):
        _refuse(path, f"must be the name of a file in its partition, not {_shorten(value)}")


def _check_partition(value: Any, path: str) -> None:
    _check_text(value, path)
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


def _check_step(value: Any, path: str) -> None:
    _check_object(value, path)
    kind = value.get("kind")
    _check_text(kind, f"{path}.kind")
    if kind not in _STEPS:
        _refuse(path, f"has kind {_shorten(kind)}; known are {', '.join(_STEPS)}")
    _STEPS[kind](value, path)


def _shorten(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "..."  # noqa: PLR2004


_check_text, _check_array, _check_object, _check_flag = (
    _is_type(str),
    _is_type(list),
    _is_type(dict),
    _is_type(bool),
)
_check_instant = _matches(r"[0-9]{1,24}", "an instant (digits)")
_check_digest = _matches(r"sha256:[0-9a-f]{64}", "a digest (sha256:...)")
_check_note = _is_record(rule=_check_text, because=_check_text)


def _accept_anything(_value: Any, _path: str) -> None:
    """Accept any value: the format does not restrict values of the spec."""


_PARTITIONS = _is_list(
    _is_record(
        path=_check_partition,
        deletePartition=_check_flag,
        files=_is_list(
            _is_record(
                name=_check_file_name,
                bytes=_check_count,
                kind=_is_one_of(FILE_KINDS),
                rule=_is_one_of(REMOVAL_RULES),
                because=_check_text,
            )
        ),
    )
)
_GROUPS = _is_list(
    _is_record(
        partition=_check_partition,
        outputs=_check_positive,
        bytes=_check_count,
        because=_check_text,
        slices=_is_filled_list(
            _is_record(
                fileId=_check_file_name,
                base=_is_nullable(_check_file_name),
                logs=_is_list(_check_file_name),
            )
        ),
    )
)
_STEPS: Mapping[str, Check] = {
    "resume": _is_record(
        kind=_check_text,
        instant=_check_instant,
        action=_is_one_of(("clean", "clustering")),
        partitions=_PARTITIONS,
        groups=_GROUPS,
        because=_check_text,
    ),
    "rollback": _is_record(
        kind=_check_text,
        instant=_check_instant,
        action=_check_text,
        files=_is_list(_is_record(partition=_check_partition, name=_check_file_name)),
        because=_check_text,
    ),
    "cluster": _is_record(
        kind=_check_text,
        columns=_is_list(_check_text),
        curve=_is_nullable(_is_one_of(CURVES)),
        mapping=_is_nullable(_is_one_of(MAPPINGS)),
        groups=_GROUPS,
    ),
    "index": _is_record(
        kind=_check_text,
        targets=_check_targets,
        columns=_is_list(_check_text),
        add=_is_list(_check_text),
        drop=_is_list(_check_text),
        files=_check_count,
        because=_check_text,
    ),
    "clean": _is_record(
        kind=_check_text,
        policy=_check_text,
        earliestInstantToRetain=_is_nullable(_check_instant),
        partitions=_PARTITIONS,
    ),
}
_FIGURES = _is_record(
    files=_check_count,
    small=_check_count,
    bytes=_check_count,
    overlap=_is_nullable(_check_number),
    sizes=_is_list(_check_count),
)
_LAYOUT = _is_record(
    {"sampled": _is_record(rowGroups=_check_count, of=_check_count, rows=_check_count)},
    below=_is_list(_check_count),
    before=_FIGURES,
    after=_FIGURES,
    untouched=_is_list(_is_record(rule=_check_text, slices=_check_count, because=_check_text)),
)
_SPAN = _is_nullable(_is_record(least=_check_count, most=_check_count))
_OUTLOOK: Mapping[str, Check] = {
    "rows": _check_count,
    "filled": _check_count,
    "filledRows": _check_count,
    "filledTo": _SPAN,
    "rewritten": _check_count,
    "new": _check_count,
    "newOf": _SPAN,
    "small": _check_count,
}
_NEXT_INSERT = _is_record(
    rows=_check_count,
    because=_check_text,
    into=_check_count,
    total=_is_nullable(_is_record(**_OUTLOOK)),
    partitions=_is_list(_is_record(partition=_check_text, **_OUTLOOK)),
)
_FILE_SIZES = _is_record(
    {"nextInsert": _NEXT_INSERT},
    target=_check_count,
    smallBelow=_check_count,
    files=_check_count,
    bytes=_check_count,
    small=_check_count,
    logOnly=_check_count,
    histogram=_is_list(
        _is_record(
            least=_check_count,
            below=_is_nullable(_check_count),
            files=_check_count,
            bytes=_check_count,
        )
    ),
    smallPartitions=_check_count,
    partitions=_is_list(
        _is_record(
            partition=_check_text,
            files=_check_count,
            small=_check_count,
            pinned=_check_count,
            bytes=_check_count,
        )
    ),
    operations=_is_list(
        _is_record(
            operation=_check_text, files=_check_count, small=_check_count, bytes=_check_count
        )
    ),
)
_TABLE = _is_record(
    {"layout": _LAYOUT, "fileSizes": _FILE_SIZES},
    name=_check_text,
    path=_check_location,
    spec=_check_object,
    specDigest=_check_digest,
    stepsDigest=_check_digest,
    error=_is_nullable(_check_text),
    observed=_is_nullable(
        _is_record(
            tableVersion=_check_count,
            tableType=_is_one_of(("COPY_ON_WRITE", "MERGE_ON_READ")),
            lastCompleted=_is_nullable(_check_instant),
            pending=_is_list(
                _is_record(instant=_check_instant, action=_check_text, state=_check_text)
            ),
            savepoints=_is_list(_check_instant),
            files=_check_count,
            bytes=_check_count,
            smallFiles=_check_count,
        )
    ),
    drift=_is_list(
        _is_record(
            field=_check_text,
            desired=_accept_anything,
            actual=_accept_anything,
            because=_check_text,
        )
    ),
    steps=_is_list(_check_step),
    kept=_is_list(
        _is_record(
            partition=_check_partition,
            name=_check_file_name,
            rule=_is_one_of(KEEP_RULES),
            because=_check_text,
        )
    ),
    predictions=_is_list(
        _is_record(
            query=_check_text,
            filesBefore=_check_count,
            filesAfter=_check_count,
            bytesBefore=_check_count,
            bytesAfter=_check_count,
            error=_check_number,
        )
    ),
    impact=_is_record(
        filesRemoved=_check_count,
        bytesRemoved=_check_count,
        bytesRewritten=_check_count,
        earliestReadable=_is_record(
            before=_is_nullable(_check_instant), after=_is_nullable(_check_instant)
        ),
    ),
    refusals=_is_list(_check_note),
    warnings=_is_list(_check_note),
)
_SELECTION = _is_record(
    tables=_check_count, of=_check_count, by=_is_list(_check_text), removed=_is_list(_check_text)
)
_DOCUMENT = _is_record(
    {"selection": _SELECTION},
    format=_check_count,
    digest=_check_digest,
    createdAt=_check_moment,
    tool=_check_text,
    tables=_is_list(_TABLE),
)
