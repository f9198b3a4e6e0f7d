"""Validate the structure of a plan document by its published schema.

``plan.v1.json`` beside this module is kept by hand; ``schemas/`` has the copy for other programs.
The first problem is one sentence with a path. jsonschema finds the same problems, as a test shows,
but takes 40 times as long, and 45 ms to import.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any, Final, NoReturn

from reconciler.errors import PlanError

Check = Callable[[Any, str], None]
Schema = Mapping[str, Any]

TEXT: Final = Path(__file__).with_name("plan.v1.json").read_text(encoding="utf-8")
"""The schema as it is published."""

_MAX_SHOWN: Final = 80
_TYPES: Final[Mapping[str, tuple[type, ...]]] = {
    "array": (list,),
    "boolean": (bool,),
    "integer": (int,),
    "null": (type(None),),
    "number": (int, float),
    "object": (dict,),
    "string": (str,),
}
_TYPE_NAMES: Final[Mapping[type, str]] = {
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
    _compile_document()(document, "")


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


def _is_moment(value: str) -> bool:
    try:
        return datetime.fromisoformat(value).tzinfo is not None
    except ValueError:
        return False


# --- from a schema to a check --------------------------------------------------------------------


@cache
def _load_schema() -> Schema:
    schema: Schema = json.loads(TEXT)
    return schema


@cache
def _compile_document() -> Check:
    return _compile(_load_schema())


@cache
def _compile_definition(name: str) -> Check:
    return _compile(_load_schema()["$defs"][name])


def _compile(schema: Schema) -> Check:
    """Return the check of a schema, which raises PlanError for a value that does not fit."""
    checks = [build(schema) for key, build in _KEYWORDS.items() if key in schema]

    def check(value: Any, path: str) -> None:
        for each in checks:
            each(value, path)

    return check


def _compile_reference(schema: Schema) -> Check:
    return _compile_definition(schema["$ref"].removeprefix("#/$defs/"))


def _compile_type(schema: Schema) -> Check:
    names = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
    allowed = [kind for name in names for kind in _TYPES[name]]
    expected = " or ".join(_TYPE_NAMES[kind] for kind in allowed)

    def check(value: Any, path: str) -> None:
        if type(value) not in allowed:
            _refuse(path, f"must be {expected}, not {_TYPE_NAMES[type(value)]}")

    return check


def _compile_choice(schema: Schema) -> Check:
    allowed = schema.get("enum", [schema.get("const")])
    expected = ("one of " if allowed[1:] else "") + ", ".join(str(v) for v in allowed if v)

    def check(value: Any, path: str) -> None:
        if isinstance(value, bool) or value not in allowed:
            _refuse(path, f"must be {expected}, not {_shorten(value)}")

    return check


def _compile_pattern(schema: Schema) -> Check:
    """Return the check of a text: by the function of its format, else by its pattern."""
    pattern = re.compile(schema["pattern"].replace("$", r"\Z"))
    fits = _FORMATS.get(schema.get("format", ""), pattern.search)

    def check(value: Any, path: str) -> None:
        if not fits(value):
            _refuse(path, f"must be {schema['patternErrorMessage']}, not {_shorten(value)}")

    return check


def _compile_range(schema: Schema) -> Check:
    least, most = schema["minimum"], schema.get("maximum")
    limits = f"at least {least}" if most is None else f"between {least} and 2^63"

    def check(value: Any, path: str) -> None:
        if value < least or (most is not None and value > most):
            _refuse(path, f"must be {limits}, not {value}")

    return check


def _compile_items(schema: Schema) -> Check:
    inner, least = _compile(schema["items"]), schema.get("minItems", 0)

    def check(value: Any, path: str) -> None:
        if len(value) < least:
            _refuse(path, f"must have at least {least} item")
        for number, item in enumerate(value):
            inner(item, f"{path}[{number}]")

    return check


def _compile_fields(schema: Schema) -> Check:
    fields = {name: _compile(inner) for name, inner in schema["properties"].items()}
    required = frozenset(schema["required"])

    def check(value: Any, path: str) -> None:
        for name in required - value.keys():
            _refuse(path, f'has no "{name}"')
        for name in value.keys() - fields.keys():
            _refuse(path, f"has a field that format 1 does not have: {_shorten(name)}")
        for name, inner in fields.items():
            if name in value:
                inner(value[name], f"{path}.{name}" if path else name)

    return check


def _compile_nullable(schema: Schema) -> Check:
    inner, null = schema["anyOf"]
    assert null == {"type": "null"}, "the only use of anyOf"
    check_inner = _compile(inner)

    def check(value: Any, path: str) -> None:
        if value is not None:
            check_inner(value, path)

    return check


def _compile_kinds(schema: Schema) -> Check:
    """Return the check of an object whose ``kind`` names its definition."""
    kinds = [kind["$ref"].rpartition("/")[2] for kind in schema["oneOf"]]
    check_object, check_text = (_compile_type({"type": name}) for name in ("object", "string"))

    def check(value: Any, path: str) -> None:
        check_object(value, path)
        kind = value.get("kind")
        check_text(kind, f"{path}.kind")
        if kind not in kinds:
            _refuse(path, f"has kind {_shorten(kind)}; known are {', '.join(kinds)}")
        _compile_definition(kind)(value, path)

    return check


_FORMATS: Final[Mapping[str, Callable[[str], object]]] = {
    "date-time": _is_moment,
    "file-name": is_file_name,
    "partition-path": is_partition,
}
_KEYWORDS: Final[Mapping[str, Callable[[Schema], Check]]] = {
    "$ref": _compile_reference,
    "type": _compile_type,
    "const": _compile_choice,
    "enum": _compile_choice,
    "pattern": _compile_pattern,
    "minimum": _compile_range,
    "items": _compile_items,
    "properties": _compile_fields,
    "anyOf": _compile_nullable,
    "oneOf": _compile_kinds,
}


def _refuse(path: str, problem: str) -> NoReturn:
    raise PlanError(f"{path or 'the document'} {problem}")


def _shorten(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= _MAX_SHOWN else text[: _MAX_SHOWN - 3] + "..."
