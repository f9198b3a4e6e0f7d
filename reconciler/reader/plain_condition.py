"""Evaluate conditions whose meaning in Spark is certain without a Spark session; pure.

Such a condition compares columns with literals of their kind. For everything else Spark is asked:
other functions, casts, times with a zone, fields of structs, names that are not columns.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from datetime import date
from decimal import Decimal
from functools import reduce
from typing import Any, Final, assert_never

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from reconciler.arrays import Mask, to_numpy
from reconciler.index.predicates.grammar import find_condition_problem
from reconciler.index.predicates.parse import parse
from reconciler.index.predicates.syntax import (
    And,
    Cast,
    Column,
    ColumnSum,
    Compare,
    In,
    IsNull,
    Like,
    Literal,
    LiteralKind,
    Not,
    Or,
    Predicate,
    Sign,
    Strict,
    Unknown,
)
from reconciler.reader.model import ReadCondition, Scan
from reconciler.reader.pruning import PrunedScan, keep_all, prune_by_index, widen_to_scan
from reconciler.reader.skipping import SkipDecision
from reconciler.storage.api import Storage

#: Spark looks for the part about partitions in no more expressions than some of these have
_MAX_LEAVES: Final = 20
#: Spark looks for a value in a set if a list is longer than this
_MAX_ELEMENTS: Final = 10
#: whole numbers below are the same in every type of Spark that a column of them is compared in
_INTEGERS: Final = 1 << 63
_FLOAT_INTEGERS: Final = 1 << 24
_DAY: Final = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)
#: before, calendars differ
_FIRST_YEAR: Final = 1583
_NUMBERS: Final = (LiteralKind.INTEGER, LiteralKind.DECIMAL, LiteralKind.DOUBLE)
_COMPARISONS: Final = {
    Sign.BELOW: pc.less,
    Sign.AT_MOST: pc.less_equal,
    Sign.EQUAL: pc.equal,
    Sign.AT_LEAST: pc.greater_equal,
    Sign.ABOVE: pc.greater,
}


def parse_plain_condition(where: str, scan: Scan) -> Predicate | None:
    """Return a condition on a scan's columns if its meaning is certain; None if Spark must say it.

    The column names of the result are spelled as in the scan.
    """
    if find_condition_problem(where) is not None or "unknown" in where.lower():
        return None
    predicate = _spell_columns(parse(where), scan.table_schema)
    if predicate is None:
        return None
    leaves = list(_list_leaves(predicate))
    is_certain = len(leaves) <= _MAX_LEAVES and all(_is_certain(leaf, scan) for leaf in leaves)
    return predicate if is_certain else None


def prune_plainly(scan: Scan, predicate: Predicate, index: Storage | None) -> PrunedScan:
    """Prune a scan by a plain condition, as ``reader.spark.prune_by_condition`` does with Spark."""
    partition = scan.get_numbers("partition")
    mask = _find_matching_partitions(scan, predicate)[partition]
    matching = scan.select_slices(mask)
    if index is None:
        return widen_to_scan(scan, mask, keep_all(matching, SkipDecision.SWITCHED_OFF))
    condition = ReadCondition(predicate=predicate, zone="")
    return widen_to_scan(scan, mask, prune_by_index(replace(matching, condition=condition), index))


def _spell_columns(predicate: Predicate, schema: pa.Schema) -> Predicate | None:
    """Return a predicate with the schema's own column names; None if one is not certain."""
    match predicate:
        case And(parts=parts) | Or(parts=parts):
            spelled = [_spell_columns(part, schema) for part in parts]
            known = tuple(part for part in spelled if part is not None)
            return replace(predicate, parts=known) if len(known) == len(parts) else None
        case Not(operand=operand):
            inner = _spell_columns(operand, schema)
            return None if inner is None else Not(operand=inner)
        case Compare(left=Column() as column):
            found = _find_column(column, schema)
            return None if found is None else replace(predicate, left=found)
        case (
            In(operand=Column() as column)
            | Like(operand=Column() as column)
            | IsNull(operand=Column() as column)
        ):
            found = _find_column(column, schema)
            return None if found is None else replace(predicate, operand=found)
        case _:
            return None


def _find_column(column: Column, schema: pa.Schema) -> Column | None:
    if len(column.parts) > 1 or not column.parts[0].isascii():
        return None
    same = [name for name in schema.names if name.lower() == column.parts[0].lower()]
    return Column(parts=(same[0],)) if len(same) == 1 else None


def _list_leaves(predicate: Predicate) -> Iterator[Predicate]:
    match predicate:
        case And(parts=parts) | Or(parts=parts):
            for part in parts:
                yield from _list_leaves(part)
        case Not(operand=operand):
            yield from _list_leaves(operand)
        case _:
            yield predicate


def _get_name(leaf: Predicate) -> str:
    match leaf:
        case Compare(left=Column(parts=(name,))):
            return name
        case In(operand=Column(parts=(name,))) | Like(operand=Column(parts=(name,))):
            return name
        case IsNull(operand=Column(parts=(name,))):
            return name
        case _:
            raise AssertionError(leaf)


def _is_certain(leaf: Predicate, scan: Scan) -> bool:
    """True if Spark compares a column with the literals as they are, without an error."""
    name = _get_name(leaf)
    kind = scan.table_schema.field(name).type
    is_partition = name in scan.partition_schema.names
    match leaf:
        case IsNull():
            return _is_comparable(kind)
        case Compare(right=literal):
            return _is_of_type(kind, literal, is_partition=is_partition)
        case In(values=literals):
            kinds = {literal.kind for literal in literals}
            same = (_is_of_type(kind, literal, is_partition=is_partition) for literal in literals)
            return len(kinds) == 1 and all(same)
        case Like(pattern=pattern, escape=escape):
            is_plain = escape == "\\" and "\\" not in str(pattern.value)
            is_text = pa.types.is_string(kind) and not is_partition
            return is_text and is_plain and _is_of_type(kind, pattern, is_partition=False)
        case _:
            return False


def _is_comparable(kind: pa.DataType) -> bool:
    types = pa.types
    tests = (types.is_integer, types.is_string, types.is_date32, types.is_floating,
             types.is_decimal)  # fmt: skip
    return any(is_kind(kind) for is_kind in tests)


def _is_of_type(kind: pa.DataType, literal: Literal, *, is_partition: bool) -> bool:
    """True if Spark compares values of a type with a literal without a cast that may differ."""
    types = pa.types
    if types.is_string(kind):
        return literal.kind is LiteralKind.STRING and not literal.is_double_quoted
    if types.is_date32(kind):
        is_text = literal.kind is LiteralKind.STRING and not literal.is_double_quoted
        is_day = literal.kind is LiteralKind.DATE or is_text
        return is_day and _parse_day(str(literal.value)) is not None
    if types.is_integer(kind):
        return literal.kind is LiteralKind.INTEGER
    is_number = types.is_floating(kind) or types.is_decimal(kind)
    return is_number and not is_partition and literal.kind in _NUMBERS


def _parse_day(text: str) -> date | None:
    if _DAY.fullmatch(text):
        with suppress(ValueError):
            day = date.fromisoformat(text)
            return day if day.year >= _FIRST_YEAR else None
    return None


def _find_matching_partitions(scan: Scan, predicate: Predicate) -> Mask:
    """Return a mask of the partitions for which what a condition implies for them is true."""
    names = scan.partition_schema.names
    implied = _derive_for_partitions(predicate, names) if names else None
    if implied is None:
        return np.ones(len(scan.partitions), np.bool_)
    matches = _evaluate(implied, scan.partitions)
    return to_numpy(pc.fill_null(matches, fill_value=False)).astype(np.bool_)


def _derive_for_partitions(predicate: Predicate, names: list[str]) -> Predicate | None:
    """Return what a predicate implies for the partition columns alone; None for nothing."""
    if all(_get_name(leaf) in names for leaf in _list_leaves(predicate)):
        return predicate
    if not isinstance(predicate, And | Or):
        return None
    parts = [_derive_for_partitions(part, names) for part in predicate.parts]
    known = tuple(part for part in parts if part is not None)
    if not known or (isinstance(predicate, Or) and len(known) < len(parts)):
        return None
    return replace(predicate, parts=known)


def can_filter_rows(predicate: Predicate, scan: Scan) -> bool:
    """True if ``filter_rows`` gives the rows for which Spark finds a plain condition true."""
    return all(
        _has_exact_literals(leaf, scan.table_schema.field(_get_name(leaf)).type)
        for leaf in _list_leaves(predicate)
    )


def _has_exact_literals(leaf: Predicate, kind: pa.DataType) -> bool:
    literals = _list_literals(leaf)
    if pa.types.is_floating(kind) and len(literals) > _MAX_ELEMENTS and _has_zero(literals):
        return False  # in a set of Spark 0.0 is not -0.0 (OptimizeIn, InSet)
    return all(_is_exact(literal, kind) for literal in literals)


def _has_zero(literals: Iterable[Literal]) -> bool:
    return any(Decimal(str(literal.value)) == 0 for literal in literals)


def _list_literals(leaf: Predicate) -> tuple[Literal, ...]:
    match leaf:
        case Compare(right=Literal() as literal):
            return (literal,)
        case In(values=literals):
            return literals
        case _:
            return ()


def _is_exact(literal: Literal, kind: pa.DataType) -> bool:
    """True if a literal has one value in every type that Spark may compare a column with it in."""
    types = pa.types
    if not (types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind)):
        return True
    value = Decimal(str(literal.value))
    if not value.is_finite():
        return False
    if types.is_integer(kind):
        return abs(value) < _INTEGERS
    if types.is_floating(kind):
        return literal.kind is not LiteralKind.INTEGER or abs(value) < _FLOAT_INTEGERS
    has_place = abs(value) < Decimal(10) ** (kind.precision - kind.scale)
    return (
        literal.kind is not LiteralKind.DOUBLE
        and has_place
        and _count_decimals(value) <= kind.scale
    )


def _count_decimals(value: Decimal) -> int:
    exponent = value.as_tuple().exponent
    return -exponent if isinstance(exponent, int) else 0


def filter_rows(rows: pa.RecordBatch, predicate: Predicate) -> pa.RecordBatch:
    """Return the rows for which a plain condition is true; see ``can_filter_rows``."""
    matches = _evaluate(predicate, rows)
    return rows.filter(pc.fill_null(matches, fill_value=False))


def list_columns(predicate: Predicate) -> tuple[str, ...]:
    """Return the columns that a plain condition names, in order, each once."""
    return tuple(dict.fromkeys(map(_get_name, _list_leaves(predicate))))


def _evaluate(  # noqa: PLR0911 (a case for each kind of predicate)
    predicate: Predicate, values: pa.Table | pa.RecordBatch
) -> Any:
    """Return the truth of a plain condition per row, with null for unknown, as SQL has it."""
    match predicate:
        case And(parts=parts):
            return reduce(pc.and_kleene, (_evaluate(part, values) for part in parts))
        case Or(parts=parts):
            return reduce(pc.or_kleene, (_evaluate(part, values) for part in parts))
        case Not(operand=operand):
            return pc.invert(_evaluate(operand, values))
        case Compare(left=Column(parts=(name,)), sign=sign, right=literal):
            return _compare(_get_values(values, name), sign, literal)
        case In(operand=Column(parts=(name,)), values=literals):
            column = _get_values(values, name)
            return reduce(
                pc.or_kleene, (_compare(column, Sign.EQUAL, literal) for literal in literals)
            )
        case IsNull(operand=Column(parts=(name,))):
            return pc.is_null(_get_values(values, name))
        case Like(operand=Column(parts=(name,)), pattern=pattern):
            return pc.match_like(_get_values(values, name), str(pattern.value))
        case (
            Compare() | In() | IsNull() | Like() | Column() | Cast() | ColumnSum() | Strict()
            | Unknown() | Literal()
        ):  # fmt: skip
            raise AssertionError(predicate)
        case _:
            assert_never(predicate)


def _get_values(values: pa.Table | pa.RecordBatch, name: str) -> Any:
    column = values.column(name)
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    if pa.types.is_floating(column.type):
        return column.cast(pa.float64())
    return column.cast(pa.int64()) if pa.types.is_integer(column.type) else column


def _compare(column: Any, sign: Sign, literal: Literal) -> Any:
    scalar = _make_scalar(literal, column.type)
    if sign is Sign.SAME:
        return pc.fill_null(pc.equal(column, scalar), fill_value=False)
    matches = _COMPARISONS[sign](column, scalar)
    if pa.types.is_floating(column.type) and sign in (Sign.AT_LEAST, Sign.ABOVE):
        return pc.or_(matches, pc.is_nan(column))  # to Spark it is the greatest number
    return matches


def _make_scalar(literal: Literal, kind: pa.DataType) -> Any:
    types = pa.types
    if types.is_date32(kind):
        return pa.scalar(_parse_day(str(literal.value)), kind)
    if types.is_decimal(kind):
        return pa.scalar(Decimal(str(literal.value)), kind)
    if types.is_floating(kind):
        return pa.scalar(float(str(literal.value)), kind)
    return pa.scalar(literal.value, kind)
