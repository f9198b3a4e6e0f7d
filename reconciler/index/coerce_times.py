"""Locate literals among days and times as Spark compares them.

Spark compares days and times as timestamps if one side is a timestamp, else as times without zone
if one side is, else as dates. A text takes the type of the others. Only a list with a text is
compared as text, column included, unless the session is in ANSI mode.
Sources: Spark's TypeCoercion and AnsiTypeCoercion (findWiderDateTimeType, InConversion).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from reconciler.index.compared_types import ComparedType, TypeFamily, UnsureError
from reconciler.index.predicates.syntax import Literal, LiteralKind
from reconciler.index.temporal import (
    MICROS_A_DAY,
    SessionZone,
    day_start,
    find_days_around,
    find_instants,
    find_local_micros,
    parse_days,
    parse_local_micros,
    parse_micros,
    unambiguous_day_start,
    write_day,
    write_local_micros,
)
from reconciler.index.value_sets import (
    Span,
    ValueSet,
    cut_after,
    cut_before,
    make_value_set,
    span_value,
)

_FAMILIES: Final = {
    LiteralKind.TIMESTAMP: TypeFamily.TIMESTAMP,
    LiteralKind.TIMESTAMP_NTZ: TypeFamily.LOCAL,
    LiteralKind.DATE: TypeFamily.DATE,
}
#: types of days and times; the common type of several is the first of them
TIMES: Final = tuple(_FAMILIES.values())


def locate_time(column: ComparedType, literal: Literal, zone: SessionZone) -> Span:
    """Return the span of a column's days or times that equal a literal; raises UnsureError.

    The span may be empty: it also says which days or times are less and which are greater.
    """
    return _locate(column, literal, _find_common_type(column, {literal.kind}), zone)


def match_times(
    column: ComparedType, literals: list[Literal], zone: SessionZone
) -> tuple[ValueSet, ValueSet]:
    """Return the days or times that a list matches with and without ANSI mode, and with either.

    No literal is null; raises UnsureError.
    """
    kinds = {literal.kind for literal in literals}
    common = _find_common_type(column, kinds)
    found = make_value_set(_locate(column, literal, common, zone) for literal in literals)
    if LiteralKind.STRING not in kinds:
        return found, found
    if column.stored is not column.family:
        raise UnsureError
    find = _find_days_of_text if column.stored is TypeFamily.DATE else _find_times_of_text
    same = [value for literal in literals for value in find(column, literal, zone)]
    as_text = make_value_set(map(span_value, same))
    return found.intersection(as_text), found.union(as_text)


def _find_common_type(column: ComparedType, kinds: set[LiteralKind]) -> TypeFamily:
    """Return the type in which Spark compares a column with literals of some kinds."""
    if kinds - _FAMILIES.keys() - {LiteralKind.STRING}:
        raise UnsureError
    families = {column.family} | {_FAMILIES[kind] for kind in kinds & _FAMILIES.keys()}
    return next(family for family in TIMES if family in families)


def _locate(column: ComparedType, literal: Literal, common: TypeFamily, zone: SessionZone) -> Span:
    """Return the span of a column's days or times that equal a literal in a common type."""
    if column.family is TypeFamily.LOCAL and common is not TypeFamily.LOCAL:
        raise UnsureError
    if TypeFamily.DATE not in (column.stored, column.family):
        return span_value(_require(_literal_micros(literal, common, zone)))
    days = _locate_day(literal, common, zone)
    if column.stored is TypeFamily.DATE:
        return days
    place = "UTC" if column.stored is TypeFamily.LOCAL else zone
    begin, end = (unambiguous_day_start(day + is_after, place) for _, day, is_after in days)
    return cut_before(_require(begin)), cut_before(_require(end))


def _locate_day(literal: Literal, common: TypeFamily, zone: SessionZone) -> Span:
    """Return the span of the days that equal a literal in a common type."""
    if common is TypeFamily.DATE:
        return span_value(_require(parse_days(str(literal.value))))
    micros = _require(_literal_micros(literal, common, zone))
    if common is TypeFamily.LOCAL:
        day, rest = divmod(micros, MICROS_A_DAY)
        return cut_after(day) if rest else cut_before(day), cut_after(day)
    days = find_days_around(micros, zone)
    if days is None:
        raise UnsureError
    return cut_before(days[0]), cut_before(days[1])


def _literal_micros(literal: Literal, common: TypeFamily, zone: SessionZone) -> int | None:
    """Return a literal as a time with or without zone, in microseconds."""
    text, is_local = str(literal.value), common is TypeFamily.LOCAL
    if literal.kind is LiteralKind.DATE:
        days = parse_days(text)
        return None if days is None else day_start(days, "UTC" if is_local else zone)
    if is_local:
        return parse_local_micros(text)
    if literal.kind is LiteralKind.TIMESTAMP_NTZ and parse_local_micros(text) is None:
        return None
    # a time without zone in a skipped or repeated hour is the same instant as its text
    return parse_micros(text, zone)


def _find_days_of_text(_: ComparedType, literal: Literal, __: SessionZone) -> Iterable[int]:
    """Return the days whose text is that of a literal; a time's text is that of no day."""
    if literal.kind not in (LiteralKind.DATE, LiteralKind.STRING):
        return ()
    day = _require(parse_days(str(literal.value)))
    is_same = literal.kind is LiteralKind.DATE or write_day(day) == literal.value
    return (day,) if is_same else ()


def _find_times_of_text(column: ComparedType, literal: Literal, zone: SessionZone) -> Iterable[int]:
    """Return the times whose text is that of a literal; a day's text is that of no time."""
    text = str(literal.value)
    local = parse_local_micros(text)
    match literal.kind:
        case LiteralKind.DATE:
            return ()
        case LiteralKind.STRING if local is None or write_local_micros(local) != text:
            return ()
        case LiteralKind.TIMESTAMP:
            local = find_local_micros(_require(parse_micros(text, zone)), zone)
        case _:
            pass
    if column.stored is TypeFamily.LOCAL:
        return (_require(local),)
    instants = find_instants(_require(local), zone)
    if instants is None:
        raise UnsureError
    return instants


def _require(value: int | None) -> int:
    if value is None:
        raise UnsureError
    return value
