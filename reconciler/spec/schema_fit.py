"""Tell quickly that a value fits a JSON Schema; what may not fit is for jsonschema to say.

Nearly every spec fits. Only for the others is jsonschema imported, which explains the problems.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from reconciler.spec.schema import Schema

Fits = Callable[[Any], bool]
#: returns what a format has against a text
FormatCheck = Callable[[str, str], str | None]
#: returns whether a text has a match for a pattern
PatternCheck = Callable[[str, str], bool]

_TYPES: Final[Mapping[str, tuple[type, ...]]] = {
    "array": (list,),
    "boolean": (bool,),
    "integer": (int,),
    "null": (type(None),),
    "number": (int, float),
    "object": (dict,),
    "string": (str,),
}
#: keywords that say nothing of a value. What ``allOf`` finds is left to our own rules.
_SILENT: Final = frozenset({
    "$comment", "allOf", "default", "description", "patternErrorMessage", "title",
})  # fmt: skip


class FitChecker:
    """Checks values against schemas, which are compiled to functions once.

    A keyword that is unknown here, and any doubt, counts as not fitting.
    """

    def __init__(self, find_problem: FormatCheck, has_match: PatternCheck) -> None:
        self._find_problem, self._has_match = find_problem, has_match
        self._compiled: dict[int, tuple[Schema, Fits]] = {}  # it holds the schemas: ids stay theirs

    def fits(self, value: Any, schema: Schema) -> bool:
        """Return whether a value certainly fits a schema."""
        return self._compile(schema)(value)

    def _compile(self, schema: Schema) -> Fits:
        known = self._compiled.get(id(schema))
        if known is not None:
            return known[1]
        checks: list[Fits] = []
        for keyword, limit in schema.items():
            if keyword in _SILENT or keyword.startswith("x-"):
                continue
            build = getattr(self, f"_build_{_spell(keyword)}", None)
            checks.append(_never if build is None else build(limit, schema))
        compiled = _join(checks)
        self._compiled[id(schema)] = (schema, compiled)
        return compiled

    def _build_type(self, names: str | list[str], _: Schema) -> Fits:
        listed = [names] if isinstance(names, str) else names
        allowed = frozenset(kind for name in listed for kind in _TYPES[name])
        return lambda value: type(value) in allowed  # a subclass, as bool of int, is another type

    def _build_const(self, constant: Any, _: Schema) -> Fits:
        return lambda value: type(value) is type(constant) and value == constant

    def _build_enum(self, constants: list[Any], _: Schema) -> Fits:
        allowed = {(type(constant), constant) for constant in constants}
        return lambda value: isinstance(value, str | int) and (type(value), value) in allowed

    def _build_any_of(self, schemas: list[Schema], _: Schema) -> Fits:
        alternatives = [self._compile(schema) for schema in schemas]
        return lambda value: any(fits(value) for fits in alternatives)

    def _build_pattern(self, pattern: str, _: Schema) -> Fits:
        return lambda value: not isinstance(value, str) or self._has_match(pattern, value)

    def _build_format(self, name: str, _: Schema) -> Fits:
        return lambda value: not isinstance(value, str) or self._find_problem(name, value) is None

    def _build_minimum(self, least: float, _: Schema) -> Fits:
        return lambda value: not isinstance(value, int | float) or value >= least

    def _build_maximum(self, most: float, _: Schema) -> Fits:
        return lambda value: not isinstance(value, int | float) or value <= most

    def _build_min_items(self, least: int, _: Schema) -> Fits:
        return lambda value: not isinstance(value, list) or len(value) >= least

    def _build_min_properties(self, least: int, _: Schema) -> Fits:
        return lambda value: not isinstance(value, dict) or len(value) >= least

    def _build_unique_items(self, is_wanted: bool, _: Schema) -> Fits:  # noqa: FBT001 (a keyword)
        if not is_wanted:
            return _always
        return lambda value: not isinstance(value, list) or _are_distinct_texts(value)

    def _build_items(self, schema: Schema, _: Schema) -> Fits:
        fits = self._compile(schema)
        return lambda value: not isinstance(value, list) or all(map(fits, value))

    def _build_required(self, names: list[str], _: Schema) -> Fits:
        wanted = frozenset(names)
        return lambda value: not isinstance(value, dict) or wanted <= value.keys()

    def _build_property_names(self, schema: Schema, _: Schema) -> Fits:
        fits = self._compile(schema)
        return lambda value: not isinstance(value, dict) or all(map(fits, value))

    def _build_properties(self, properties: Mapping[str, Schema], _: Schema) -> Fits:
        fields = {name: self._compile(schema) for name, schema in properties.items()}

        def fits(value: Any) -> bool:
            return not isinstance(value, dict) or all(
                fields[name](inner) for name, inner in value.items() if name in fields
            )

        return fits

    def _build_additional_properties(self, others: bool | Schema, schema: Schema) -> Fits:  # noqa: FBT001 (a keyword)
        known = frozenset(schema.get("properties", ()))
        if others is True:
            return _always
        if others is False:
            return lambda value: not isinstance(value, dict) or value.keys() <= known
        fits_one = self._compile(others)

        def fits(value: Any) -> bool:
            return not isinstance(value, dict) or all(
                fits_one(inner) for name, inner in value.items() if name not in known
            )

        return fits


def _spell(keyword: str) -> str:
    """Return a keyword in the spelling of a method.

    >>> _spell("minItems")
    'min_items'
    """
    return "".join(f"_{sign.lower()}" if sign.isupper() else sign for sign in keyword)


def _join(checks: list[Fits]) -> Fits:
    if len(checks) == 1:
        return checks[0]
    return lambda value: all(fits(value) for fits in checks)


def _never(_: Any) -> bool:
    return False


def _always(_: Any) -> bool:
    return True


def _are_distinct_texts(values: list[Any]) -> bool:
    """Return whether all values are different texts; others may be equal though they look not."""
    return all(isinstance(value, str) for value in values) and len(set(values)) == len(values)
