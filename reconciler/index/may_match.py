"""Which files may hold a row that a predicate is true for.

A file is left out only where it is proven that the predicate is true for none of its rows; what is
not understood, not indexed or not known keeps it. Negations are pushed to the leaves, and each leaf
becomes the set of values for which it is true, or false: null is neither. A leaf that is negated is
so never a negated statement about statistics.
Source: the rules of Spark's Catalyst for three-valued logic; Iceberg's InclusiveMetricsEvaluator.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Final, assert_never

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from reconciler.index.bounds import Bounds
from reconciler.index.coerce import (
    Family,
    Place,
    Seen,
    UnsureError,
    cast,
    place,
    places,
    seen,
    widened,
)
from reconciler.index.model import FileIndex, kept_type
from reconciler.index.temporal import Zone
from reconciler.index.values import (
    HIGHEST,
    LOWEST,
    NOTHING,
    NULL,
    SOME,
    Values,
    after,
    before,
    spans,
    unsummed,
)
from reconciler.predicates.arithmetic import is_tame
from reconciler.predicates.syntax import (
    And,
    Cast,
    Column,
    Compare,
    In,
    IsNull,
    Kind,
    Like,
    Literal,
    Not,
    Operand,
    Or,
    Predicate,
    Sign,
    Strict,
    Sum,
    Unknown,
    columns_in,
)

Mask = NDArray[np.bool_]

_LAST_BYTE: Final = 0xFF
#: of a day, as Spark keeps it
_DAY_BITS: Final = 32
_BROKEN: Final = "�"  # what Java makes of bytes that are no text


@dataclass(frozen=True, slots=True, kw_only=True)
class _Leaf:
    """True for rows whose value of an indexed column is in a set."""

    column: str
    values: Values


@dataclass(frozen=True, slots=True, kw_only=True)
class _All:
    parts: tuple[_Test, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Any:
    parts: tuple[_Test, ...]


_Test = _Leaf | _All | _Any | bool
_Plain = Compare | In | IsNull | Like | Column | Cast | Sum | Strict | Unknown


def may_match(predicate: Predicate, index: FileIndex, *, schema: Any, zone: Zone) -> Mask:
    """For every file of the index, whether a row may make the predicate true.

    ``schema``: the table's columns as Spark reads them, in Arrow's types; leave out what Spark
    compares in another way than by bytes, as CHAR columns. ``zone``: of the session.
    Raises nothing for a predicate: what is wrong in it, Spark reports.
    """
    test = _Compiler(index=index, schema=schema, zone=zone).test(predicate, wanted=True)
    bounds: dict[str, Bounds] = {}
    return _evaluated(test, index, bounds)


def asked_columns(
    predicate: Predicate, index: FileIndex, *, schema: Any, zone: Zone
) -> frozenset[str]:
    """The columns of the index whose statistics ``may_match`` looks at, as it understands it."""
    test = _Compiler(index=index, schema=schema, zone=zone).test(predicate, wanted=True)
    return frozenset(_columns_in(test))


def _columns_in(test: _Test) -> Iterator[str]:
    if isinstance(test, _Leaf):
        yield test.column
    elif not isinstance(test, bool):
        for part in test.parts:
            yield from _columns_in(part)


def _evaluated(test: _Test, index: FileIndex, bounds: dict[str, Bounds]) -> Mask:
    match test:
        case bool():
            return np.full(len(index), test)
        case _Leaf(column=column, values=values):
            if column not in bounds:
                bounds[column] = Bounds(index.columns[column])
            return bounds[column].may_hold(values)
        case _All(parts=parts):
            found = [_evaluated(part, index, bounds) for part in parts]
            return np.asarray(np.logical_and.reduce(found))
        case _Any(parts=parts):
            found = [_evaluated(part, index, bounds) for part in parts]
            return np.asarray(np.logical_or.reduce(found))
        case _:
            assert_never(test)


def _joined(parts: Sequence[_Test], *, is_all: bool) -> _Test:
    """Parts of which all, or any, must hold; sets of one column become one set."""
    by_column: dict[str, list[Values]] = {}
    rest: list[_Test] = []
    for part in parts:
        if isinstance(part, bool):
            if part is not is_all:
                return part
        elif isinstance(part, _Leaf):
            by_column.setdefault(part.column, []).append(part.values)
        else:
            rest.append(part)
    join = Values.common if is_all else Values.union
    leaves = [_Leaf(column=name, values=_folded(join, of)) for name, of in by_column.items()]
    found: tuple[_Test, ...] = (*leaves, *rest)
    if len(found) <= 1:
        return found[0] if found else is_all
    return _All(parts=found) if is_all else _Any(parts=found)


def _folded(join: Callable[[Values, Values], Values], found: list[Values]) -> Values:
    """Neighbours first, so that what has grown is not gone through once for every other set."""
    while len(found) > 1:
        last = [found[-1]] if len(found) % 2 else []
        found = [join(*pair) for pair in zip(found[::2], found[1::2], strict=False)] + last
    return found[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Subject:
    """An indexed column, how it is seen, and the sum that is made of it, if any."""

    column: str
    kind: Seen
    sum: Sum | None = None
    bits: int = 0

    def values(self, of_sum: Values) -> Values:
        """The column's values for which the sum is in a set."""
        if self.sum is None:
            return of_sum
        return unsummed(of_sum, times=self.sum.times, plus=self.sum.plus, bits=self.bits)


def _summed(of: _Subject, said: Sum) -> _Subject:
    """A sum that goes round where it overflows; where Spark raises instead, there is no answer."""
    kind = of.kind
    if kind.family is Family.DATE and kind.stored is Family.DATE:
        if said.times < 0 or not 0 < said.bits <= _DAY_BITS:
            raise UnsureError
        return replace(of, sum=said, bits=_DAY_BITS)
    if kind.family is not Family.INTEGER:
        raise UnsureError
    bits = max(kind.bits, said.bits)
    return replace(of, kind=widened(kind, bits), sum=said, bits=bits)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Compiler:
    index: FileIndex
    schema: Any
    zone: Zone

    def test(self, predicate: Predicate, *, wanted: bool) -> _Test:
        """What must hold in a file for rows for which the predicate is ``wanted``."""
        if isinstance(predicate, And | Or):
            is_all = isinstance(predicate, And) is wanted
            parts = [self.test(part, wanted=wanted) for part in predicate.parts]
            return _joined(parts, is_all=is_all)
        if isinstance(predicate, Not):
            return self.test(predicate.of, wanted=not wanted)
        if isinstance(predicate, Literal):
            is_truth = predicate.kind in (Kind.NULL, Kind.BOOLEAN)
            return predicate.value is wanted if is_truth else True
        try:
            return self._leaf(predicate, wanted=wanted)
        except UnsureError:
            return self._strict(predicate)

    def _strict(self, predicate: _Plain) -> _Test:
        """What is neither true nor false for a row with a null in one of its columns."""
        match predicate:
            case Strict():
                is_strict = True
            case Compare(sign=sign, right=right):
                is_strict = sign is not Sign.SAME and is_tame(right)
            case In(values=values):
                is_strict = all(map(is_tame, values))
            case _:
                is_strict = isinstance(predicate, Like)
        leaves: list[_Test] = []
        for column in columns_in(predicate) if is_strict else ():
            with suppress(UnsureError):
                leaves.append(_Leaf(column=self._resolved(column).column, values=SOME))
        return _joined(leaves, is_all=True)

    def _leaf(self, predicate: _Plain, *, wanted: bool) -> _Leaf:
        """Raises UnsureError where the values are not known for which it is ``wanted``."""
        match predicate:
            case Compare(left=left, sign=sign, right=right):
                of = self._resolved(left)
                values = self._compared(of.kind, sign, right, wanted=wanted)
            case In(of=operand, values=literals):
                of = self._resolved(operand)
                values = self._listed(of.kind, literals, wanted=wanted)
            case IsNull(of=operand):
                of = self._resolved(operand)
                values = NULL if wanted else SOME
            case Like(of=operand, pattern=pattern, escape=escape):
                of = self._resolved(operand)
                values = self._like(of.kind, pattern, escape, wanted=wanted)
            case Column() | Cast():
                of = self._resolved(predicate)
                values = _truth(of.kind, wanted=wanted)
            case Sum() | Strict() | Unknown():
                raise UnsureError
            case _:
                assert_never(predicate)
        return _Leaf(column=of.column, values=of.values(values))

    def _resolved(self, operand: Operand) -> _Subject:
        """The indexed column that is meant, and how it is seen."""
        if isinstance(operand, Sum):
            return _summed(self._resolved(operand.of), operand)
        if isinstance(operand, Cast):
            of = self._resolved(operand.of)
            return replace(of, kind=cast(of.kind, operand.to))
        names, fields = [], list(self.schema)
        type_: Any = None
        for part in operand.parts:
            found = [field for field in fields if field.name.lower() == part.lower()]
            if len(found) != 1 or "." in found[0].name:
                raise UnsureError
            names.append(found[0].name)
            type_ = found[0].type
            fields = list(type_) if pa.types.is_struct(type_) else []
        column = ".".join(names)
        stats = self.index.columns.get(column)
        is_twice = len(names) > 1 and column in self.schema.names
        if stats is None or is_twice or stats.type != kept_type(type_):
            raise UnsureError
        return _Subject(column=column, kind=seen(stats.type))

    def _check_text(self, literal: Literal) -> None:
        """That it is not a column's name for a session that reads double quotes so."""
        if not literal.is_double_quoted:
            return
        if str(literal.value).lower() in {name.lower() for name in self.schema.names}:
            raise UnsureError

    def _compared(self, kind: Seen, sign: Sign, right: Literal, *, wanted: bool) -> Values:
        self._check_text(right)
        if right.kind is Kind.NULL:
            if sign is Sign.SAME:
                return NULL if wanted else SOME
            return NOTHING
        values = _signed(sign, place(kind, right, self.zone))
        if wanted:
            return values
        inverse = values.inverse
        return inverse.union(NULL) if sign is Sign.SAME else inverse

    def _listed(self, kind: Seen, literals: Sequence[Literal], *, wanted: bool) -> Values:
        """A null in the list makes null of every other answer than true."""
        for literal in literals:
            self._check_text(literal)
        known = [literal for literal in literals if literal.kind is not Kind.NULL]
        if not wanted and len(known) < len(literals):
            return NOTHING
        found, is_all = places(kind, known, self.zone)
        values = spans(one.at for one in found if one.at is not None)
        values = values.union(Values(nan=any(one.at is None for one in found)))
        if wanted:
            return values
        if not is_all:
            return SOME
        if kind.stored in (Family.FLOAT, Family.DOUBLE) and len(literals) > 1:
            # a long list of Spark's tells 0.0 from -0.0
            return values.inverse.union(spans([(before(0.0), after(0.0))]))
        return values.inverse

    def _like(self, kind: Seen, pattern: Literal, escape: str, *, wanted: bool) -> Values:
        self._check_text(pattern)
        if kind.family is not Family.TEXT:
            raise UnsureError
        if pattern.kind is Kind.NULL:
            return NOTHING
        if pattern.kind is not Kind.STRING:
            raise UnsureError
        begin, rest = _prefix(str(pattern.value), escape)
        if not rest:
            values = _signed(Sign.EQUAL, place(kind, Literal(kind=Kind.STRING, value=begin), ""))
        else:
            values = _beginning(begin.encode())
        if wanted:
            return values
        return values.inverse if not rest or set(rest) == {"%"} else SOME


def _truth(kind: Seen, *, wanted: bool) -> Values:
    if kind.family is not Family.BOOLEAN:
        raise UnsureError
    return spans([(before(int(wanted)), after(int(wanted)))])


def _signed(sign: Sign, where: Place) -> Values:
    """The values that compare so with a literal; NaN is greater than all others and equals NaN."""
    if where.at is None:
        return {
            Sign.BELOW: Values(spans=SOME.spans),
            Sign.AT_MOST: SOME,
            Sign.ABOVE: NOTHING,
        }.get(sign, Values(nan=True))
    begin, end = where.at
    match sign:
        case Sign.BELOW:
            return spans([(LOWEST, begin)])
        case Sign.AT_MOST:
            return spans([(LOWEST, end)])
        case Sign.EQUAL | Sign.SAME:
            return spans([(begin, end)])
        case Sign.AT_LEAST:
            return spans([(begin, HIGHEST)]).union(Values(nan=True))
        case Sign.ABOVE:
            return spans([(end, HIGHEST)]).union(Values(nan=True))
        case _:
            assert_never(sign)


def _prefix(pattern: str, escape: str) -> tuple[str, str]:
    """The text before the first wildcard, and the rest; raises UnsureError for a wrong escape."""
    special = f"{re.escape(escape)}[%_{re.escape(escape)}]" if escape not in "%_" else "(?!)"
    match = re.match(rf"(?:[^%_{re.escape(escape)}]|{special})*", pattern, re.DOTALL)
    begin = match[0] if match else ""
    rest = pattern[len(begin) :]
    if rest.startswith(escape) or _BROKEN in pattern or escape in "%_":
        raise UnsureError
    return re.sub(f"{re.escape(escape)}(.)", r"\1", begin, flags=re.DOTALL), rest


def _beginning(prefix: bytes) -> Values:
    """All text that begins with a prefix."""
    kept = prefix.rstrip(bytes([_LAST_BYTE]))
    if not kept:
        return Values(spans=SOME.spans)
    return spans([(before(prefix), before(kept[:-1] + bytes([kept[-1] + 1])))])
