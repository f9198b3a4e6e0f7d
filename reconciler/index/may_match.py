"""Find the files that may hold a row for which a predicate is true.

A file is skipped only if statistics prove that the predicate is true for none of its rows. Any part
that is unknown, not indexed or not parsed keeps the file. Negations are pushed down to the leaves.
Each leaf becomes the set of values for which it is true, or false; null is in neither set. So a
statement about statistics is never negated.
Source: the rules of Spark's Catalyst for three-valued logic; Iceberg's InclusiveMetricsEvaluator.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, Final, assert_never

import numpy as np

from reconciler.arrays import Mask
from reconciler.index.coerce import LiteralCuts, locate_literal, match_literals
from reconciler.index.column_bounds import ColumnBounds
from reconciler.index.compared_types import (
    ComparedType,
    TypeFamily,
    UnsureError,
    cast_type,
    read_type,
    widen_integer,
)
from reconciler.index.model import FileIndex, indexed_type
from reconciler.index.predicate_columns import resolve_name
from reconciler.index.predicates.arithmetic import fits_long
from reconciler.index.predicates.syntax import (
    And,
    Cast,
    Column,
    ColumnSum,
    Compare,
    In,
    IsNull,
    Leaf,
    Like,
    Literal,
    LiteralKind,
    Not,
    Operand,
    Or,
    Predicate,
    Sign,
    Strict,
    Unknown,
    find_columns,
)
from reconciler.index.temporal import SessionZone
from reconciler.index.value_sets import (
    ANY_VALUE,
    HIGHEST,
    LOWEST,
    NO_VALUES,
    ONLY_NULL,
    ValueSet,
    cut_after,
    cut_before,
    make_value_set,
    undo_sum,
)
from reconciler.lazy_dataclass import dataclass

#: bits in which Spark keeps a day
_DAY_BITS: Final = 32
_LAST_BYTE: Final = 0xFF
_REPLACEMENT: Final = "�"  # Java decodes invalid bytes to this character


@dataclass(frozen=True, slots=True, kw_only=True)
class _ColumnTest:
    """True for rows whose value in an indexed column is in a set."""

    column: str
    values: ValueSet


@dataclass(frozen=True, slots=True, kw_only=True)
class _JoinedTest:
    """True for rows for which all parts are true, or any of them unless ``is_all``."""

    parts: tuple[_Test, ...]
    is_all: bool


_Test = _ColumnTest | _JoinedTest | bool


def may_match(predicate: Predicate, index: FileIndex, *, schema: Any, zone: SessionZone) -> Mask:
    """Return a mask of the files of the index in which the predicate may be true for some row.

    ``schema``: the table's columns as Spark reads them, as an Arrow schema without columns that
    Spark does not compare by bytes (CHAR). ``zone``: the session's. An invalid predicate raises
    nothing here, because Spark reports it.
    """
    test = _Compiler(index=index, schema=schema, zone=zone).compile_test(predicate, wanted=True)
    return _evaluate(test, index, {})


def find_used_columns(
    predicate: Predicate, index: FileIndex, *, schema: Any, zone: SessionZone
) -> frozenset[str]:
    """Return the columns of the index whose statistics ``may_match`` uses for a predicate."""
    test = _Compiler(index=index, schema=schema, zone=zone).compile_test(predicate, wanted=True)
    return frozenset(_find_columns(test))


def _find_columns(test: _Test) -> Iterator[str]:
    if isinstance(test, _ColumnTest):
        yield test.column
    elif not isinstance(test, bool):
        for part in test.parts:
            yield from _find_columns(part)


def _evaluate(test: _Test, index: FileIndex, bounds: dict[str, ColumnBounds]) -> Mask:
    match test:
        case bool():
            return np.full(len(index), test)
        case _ColumnTest(column=column, values=values):
            if column not in bounds:
                bounds[column] = ColumnBounds(index.columns[column])
            return bounds[column].may_hold(values)
        case _JoinedTest(parts=parts, is_all=is_all):
            masks = [_evaluate(part, index, bounds) for part in parts]
            return np.asarray((np.logical_and if is_all else np.logical_or).reduce(masks))
        case _:
            assert_never(test)


def _join_tests(parts: Sequence[_Test], *, is_all: bool) -> _Test:
    """Join tests of which all, or any, must hold; sets of one column become one set."""
    by_column: dict[str, list[ValueSet]] = {}
    rest: list[_Test] = []
    for part in parts:
        if isinstance(part, bool):
            if part is not is_all:
                return part
        elif isinstance(part, _ColumnTest):
            by_column.setdefault(part.column, []).append(part.values)
        else:
            rest.append(part)
    join = ValueSet.intersection if is_all else ValueSet.union
    leaves = [
        _ColumnTest(column=name, values=_fold_pairwise(join, sets))
        for name, sets in by_column.items()
    ]
    tests: tuple[_Test, ...] = (*leaves, *rest)
    if len(tests) <= 1:
        return tests[0] if tests else is_all
    return _JoinedTest(parts=tests, is_all=is_all)


def _fold_pairwise(
    join: Callable[[ValueSet, ValueSet], ValueSet], sets: list[ValueSet]
) -> ValueSet:
    """Join the sets pairwise, so that a growing set is not copied once per further set."""
    while len(sets) > 1:
        last = [sets[-1]] if len(sets) % 2 else []
        sets = [join(*pair) for pair in zip(sets[::2], sets[1::2], strict=False)] + last
    return sets[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class _ComparedColumn:
    """An indexed column, its compared type, and the sum that the predicate computes of it."""

    column: str
    kind: ComparedType
    sum: ColumnSum | None = None
    bits: int = 0

    def values(self, of_sum: ValueSet) -> ValueSet:
        """Return the column's values for which the sum is in a set."""
        if self.sum is None:
            return of_sum
        return undo_sum(of_sum, times=self.sum.times, plus=self.sum.plus, bits=self.bits)


def _add_sum(column: _ComparedColumn, total: ColumnSum) -> _ComparedColumn:
    """Return the column with a sum that wraps around on overflow, unless Spark raises instead."""
    kind = column.kind
    if kind.family is TypeFamily.DATE and kind.stored is TypeFamily.DATE:
        if total.times < 0 or not 0 < total.bits <= _DAY_BITS:
            raise UnsureError
        return replace(column, sum=total, bits=_DAY_BITS)
    if kind.family is not TypeFamily.INTEGER:
        raise UnsureError
    bits = max(kind.bits, total.bits)
    return replace(column, kind=widen_integer(kind, bits), sum=total, bits=bits)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Compiler:
    index: FileIndex
    schema: Any
    zone: SessionZone

    def compile_test(self, predicate: Predicate, *, wanted: bool) -> _Test:
        """Return the test that rows pass for which the predicate has the value ``wanted``."""
        if isinstance(predicate, And | Or):
            is_all = isinstance(predicate, And) is wanted
            parts = [self.compile_test(part, wanted=wanted) for part in predicate.parts]
            return _join_tests(parts, is_all=is_all)
        if isinstance(predicate, Not):
            return self.compile_test(predicate.operand, wanted=not wanted)
        if isinstance(predicate, Literal):
            is_truth = predicate.kind in (LiteralKind.NULL, LiteralKind.BOOLEAN)
            return predicate.value is wanted if is_truth else True
        try:
            return self._column_test(predicate, wanted=wanted)
        except UnsureError:
            return self._null_test(predicate)

    def _null_test(self, predicate: Leaf) -> _Test:
        """Return the test that no column is null, if the predicate is null when a column is."""
        match predicate:
            case Strict():
                is_strict = True
            case Compare(sign=sign, right=right):
                is_strict = sign is not Sign.SAME and fits_long(right)
            case In(values=values):
                is_strict = all(map(fits_long, values))
            case _:
                is_strict = isinstance(predicate, Like)
        leaves: list[_Test] = []
        for column in find_columns(predicate) if is_strict else ():
            with suppress(UnsureError):
                leaves.append(
                    _ColumnTest(column=self._resolve_operand(column).column, values=ANY_VALUE)
                )
        return _join_tests(leaves, is_all=True)

    def _column_test(self, predicate: Leaf, *, wanted: bool) -> _ColumnTest:
        """Return the set of values for which a leaf is ``wanted``; raises UnsureError."""
        match predicate:
            case Compare(left=left, sign=sign, right=right):
                column = self._resolve_operand(left)
                values = self._comparison_values(column.kind, sign, right, wanted=wanted)
            case In(operand=operand, values=literals):
                column = self._resolve_operand(operand)
                values = self._list_values(column.kind, literals, wanted=wanted)
            case IsNull(operand=operand):
                column = self._resolve_operand(operand)
                values = ONLY_NULL if wanted else ANY_VALUE
            case Like(operand=operand, pattern=pattern, escape=escape):
                column = self._resolve_operand(operand)
                values = self._like_values(column.kind, pattern, escape, wanted=wanted)
            case Column() | Cast():
                column = self._resolve_operand(predicate)
                values = _truth_values(column.kind, wanted=wanted)
            case ColumnSum() | Strict() | Unknown():
                raise UnsureError
            case _:
                assert_never(predicate)
        return _ColumnTest(column=column.column, values=column.values(values))

    def _resolve_operand(self, operand: Operand) -> _ComparedColumn:
        """Return the indexed column that an operand names, with its compared type."""
        if isinstance(operand, ColumnSum):
            return _add_sum(self._resolve_operand(operand.operand), operand)
        if isinstance(operand, Cast):
            inner = self._resolve_operand(operand.operand)
            return replace(inner, kind=cast_type(inner.kind, operand.to))
        resolved = resolve_name(operand.parts, self.schema)
        if resolved is None:
            raise UnsureError
        column, kind = resolved
        stats = self.index.columns.get(column)
        # a name with a dot may be that of a column, or of a field of a struct
        is_unclear = column.count(".") >= len(operand.parts) or (
            len(operand.parts) > 1 and column in self.schema.names
        )
        if stats is None or is_unclear or stats.type != indexed_type(kind):
            raise UnsureError
        return _ComparedColumn(column=column, kind=read_type(stats.type))

    def _check_text(self, literal: Literal) -> None:
        """Raise UnsureError for a double-quoted text that a session may read as a column name."""
        if not literal.is_double_quoted:
            return
        if str(literal.value).lower() in {name.lower() for name in self.schema.names}:
            raise UnsureError

    def _comparison_values(
        self, kind: ComparedType, sign: Sign, right: Literal, *, wanted: bool
    ) -> ValueSet:
        self._check_text(right)
        if right.kind is LiteralKind.NULL:
            if sign is Sign.SAME:
                return ONLY_NULL if wanted else ANY_VALUE
            return NO_VALUES
        values = _values_for_sign(sign, locate_literal(kind, right, self.zone))
        if wanted:
            return values
        inverse = values.inverse
        return inverse.union(ONLY_NULL) if sign is Sign.SAME else inverse

    def _list_values(
        self, kind: ComparedType, literals: Sequence[Literal], *, wanted: bool
    ) -> ValueSet:
        """Return the values that are in the list, or not in it.

        If the list has a null, the result is null for every value that does not match.
        """
        for literal in literals:
            self._check_text(literal)
        known = [literal for literal in literals if literal.kind is not LiteralKind.NULL]
        if not wanted and len(known) < len(literals):
            return NO_VALUES
        certain, possible = match_literals(kind, known, self.zone)
        return possible if wanted else certain.inverse

    def _like_values(
        self, kind: ComparedType, pattern: Literal, escape: str, *, wanted: bool
    ) -> ValueSet:
        self._check_text(pattern)
        if kind.family is not TypeFamily.TEXT:
            raise UnsureError
        if pattern.kind is LiteralKind.NULL:
            return NO_VALUES
        if pattern.kind is not LiteralKind.STRING:
            raise UnsureError
        begin, rest = _split_like_prefix(str(pattern.value), escape)
        if rest:
            values = _prefix_values(begin.encode())
        else:
            values = make_value_set([(cut_before(begin.encode()), cut_after(begin.encode()))])
        if wanted:
            return values
        return values.inverse if not rest or set(rest) == {"%"} else ANY_VALUE


def _truth_values(kind: ComparedType, *, wanted: bool) -> ValueSet:
    if kind.family is not TypeFamily.BOOLEAN:
        raise UnsureError
    return make_value_set([(cut_before(int(wanted)), cut_after(int(wanted)))])


def _values_for_sign(sign: Sign, cuts: LiteralCuts) -> ValueSet:
    """Return the values for which a comparison is true; NaN equals NaN and is the greatest."""
    if cuts is None:
        return {
            Sign.BELOW: ValueSet(spans=ANY_VALUE.spans),
            Sign.AT_MOST: ANY_VALUE,
            Sign.ABOVE: NO_VALUES,
        }.get(sign, ValueSet(nan=True))
    begin, end = cuts
    span = {
        Sign.BELOW: (LOWEST, begin),
        Sign.AT_MOST: (LOWEST, end),
        Sign.AT_LEAST: (begin, HIGHEST),
        Sign.ABOVE: (end, HIGHEST),
    }.get(sign, (begin, end))
    is_above = sign in (Sign.AT_LEAST, Sign.ABOVE)
    return make_value_set([span]).union(ValueSet(nan=is_above))


def _split_like_prefix(pattern: str, escape: str) -> tuple[str, str]:
    """Split a pattern at its first wildcard; raises UnsureError for an invalid escape."""
    special = f"{re.escape(escape)}[%_{re.escape(escape)}]" if escape not in "%_" else "(?!)"
    match = re.match(rf"(?:[^%_{re.escape(escape)}]|{special})*", pattern, re.DOTALL)
    begin = match[0] if match else ""
    rest = pattern[len(begin) :]
    if rest.startswith(escape) or _REPLACEMENT in pattern or escape in "%_":
        raise UnsureError
    return re.sub(f"{re.escape(escape)}(.)", r"\1", begin, flags=re.DOTALL), rest


def _prefix_values(prefix: bytes) -> ValueSet:
    """Return the set of all texts with a prefix."""
    kept = prefix.rstrip(bytes([_LAST_BYTE]))
    if not kept:
        return ValueSet(spans=ANY_VALUE.spans)
    return make_value_set([(cut_before(prefix), cut_before(kept[:-1] + bytes([kept[-1] + 1])))])
