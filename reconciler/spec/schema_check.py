"""Find what in a spec does not fit the published JSON Schema, with jsonschema."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from reconciler import units
from reconciler.lazy_dataclass import dataclass
from reconciler.spec.moments import find_moment_problem
from reconciler.spec.partition_dates import find_date_pattern_problem
from reconciler.spec.schema import Schema
from reconciler.spec.schema_fit import FitChecker
from reconciler.spec.text_rules import (
    find_day_problem,
    find_filter_problem,
    find_folder_problem,
    find_location_problem,
    find_pattern_problem,
)
from reconciler.spec.zones import find_zone_problem

if TYPE_CHECKING:
    from jsonschema import ValidationError

Location = tuple[str | int, ...]
"""The keys and indices that lead to a value."""

UNIT_PARSERS: Final[Mapping[str, Callable[[str], Any]]] = {
    "byte-size": units.parse_size,
    "time-span": units.parse_duration,
    "percentage": units.parse_percent,
}
"""Formats of text that stands for a number; what parses them raises ValueError."""


def _find_condition_problem(text: str) -> str | None:
    # few specs have queries, and few queries more than plain comparisons
    from reconciler.index.predicates import plain_comparisons  # noqa: PLC0415

    if plain_comparisons.has_plain_comparisons(text):
        return None
    from reconciler.index.predicates.where_rules import find_where_problem  # noqa: PLC0415

    return find_where_problem(text)


_PROBLEM_FINDERS: Final[Mapping[str, Callable[[str], str | None]]] = {
    "date": find_day_problem,
    "date-or-time": find_moment_problem,
    "location-pattern": find_pattern_problem,
    "lock-folder": find_folder_problem,
    "partition-date": find_date_pattern_problem,
    "partition-pattern": find_filter_problem,
    "sql-condition": _find_condition_problem,
    "table-location": find_location_problem,
    "time-zone": find_zone_problem,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Mismatch:
    """A value that breaks a keyword of the schema.

    ``keyword`` is ``propertyNames`` for whatever is wrong with a key, which is then the ``value``;
    ``rule`` is the keyword of the schema itself, and ``limit`` what stands behind it. ``words`` may
    be written instead of the value. ``problem`` is what a format has against a text.
    """

    location: Location
    keyword: str
    rule: str
    limit: Any
    schema: Schema
    value: Any
    words: tuple[str, ...] = ()
    problem: str = ""


def find_mismatches(value: Any, schema: Schema) -> Iterator[Mismatch]:
    """Yield what does not fit: of alternatives what keeps the one that was meant from fitting.

    What ``allOf`` finds is left to our own rules, whose messages say more.
    """
    if _CHECKER.fits(value, schema):
        return iter(())
    return map(_to_mismatch, _select_errors(_load_validator()(schema).iter_errors(value)))


def _select_errors(errors: Iterable[ValidationError]) -> Iterator[ValidationError]:
    for error in errors:
        if "allOf" in error.relative_schema_path:
            continue
        chosen = _choose_alternative(error) if error.validator == "anyOf" else None
        if chosen is None:
            yield error
        else:
            inner = (case for case in error.context or () if case.relative_schema_path[0] == chosen)
            yield from _select_errors(inner)


def _choose_alternative(error: Any) -> int | None:
    """Return the index of the alternative whose errors explain the problem; None for neither."""
    for index, alternative in enumerate(error.validator_value):
        is_block = "properties" in alternative
        if is_block if isinstance(error.instance, dict) else alternative.get("type") == "string":
            return index
    return None


def _to_mismatch(error: Any) -> Mismatch:
    is_name = "propertyNames" in error.relative_schema_path
    alternatives = error.parent.validator_value if error.parent is not None else ()
    return Mismatch(
        location=tuple(error.absolute_path),
        keyword="propertyNames" if is_name else error.validator,
        rule=error.validator,
        limit=error.validator_value,
        schema=error.schema,
        value=error.instance,
        words=tuple(word["const"] for word in alternatives if "const" in word),
        problem=error.message if error.validator == "format" else "",
    )


@cache
def _load_validator() -> Any:
    """Build the validator of the schema's dialect, with our formats, and stricter in two things.

    A whole number has no point (10.0 is none), and ``$`` in a pattern is the end of the text.
    """
    from jsonschema import Draft202012Validator, validators  # noqa: PLC0415 (45 ms)

    extend: Any = validators.extend
    return extend(
        Draft202012Validator,
        validators={"format": _check_format, "pattern": _check_pattern},
        type_checker=Draft202012Validator.TYPE_CHECKER.redefine("integer", _is_whole_number),
    )


def _is_whole_number(_: object, value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _check_format(_: object, name: str, value: Any, __: object) -> Iterator[ValidationError]:
    from jsonschema import ValidationError  # noqa: PLC0415

    if isinstance(value, str) and (problem := _find_problem(name, value)):
        yield ValidationError(problem)


def _find_problem(name: str, text: str) -> str | None:
    if find_problem := _PROBLEM_FINDERS.get(name):
        return find_problem(text) if text.strip() else None  # the pattern says that it is empty
    try:
        UNIT_PARSERS.get(name, str)(text)
    except ValueError as error:
        return str(error)
    return None


def _check_pattern(_: object, pattern: str, value: Any, __: object) -> Iterator[ValidationError]:
    from jsonschema import ValidationError  # noqa: PLC0415

    if isinstance(value, str) and not _has_match(pattern, value):
        yield ValidationError(f"does not match {pattern}")


def _has_match(pattern: str, text: str) -> bool:
    return _compile_pattern(pattern).search(text) is not None


@cache
def _compile_pattern(pattern: str) -> re.Pattern[str]:
    return re.compile(re.sub(r"\$$", r"\\Z", pattern))


_CHECKER: Final = FitChecker(_find_problem, _has_match)
