"""Floating-point numbers as Java's Float.toString and Double.toString spell them; by column.

Java before 19 spells some numbers with more digits than are needed (JDK-4511638): floats from 1e7
on, large doubles, and numbers nearer to zero than 0.001. There a key would depend on the Java that
wrote it, so that those (of doubles: from 1e15 on) are refused; of the others all make the same.
"""

from __future__ import annotations

from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from reconciler.errors import RowsError

_SMALLEST: Final = 1e-3
_LARGEST_PLAIN: Final = 1e7
_LARGEST: Final = 1e15
_SPECIAL: Final = {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}


def spell_java_floats(column: Any, path: str) -> Any:
    """The text of every value of a float32 or float64 array, null where it is null.

    Raises RowsError naming ``path`` and a value that versions of Java spell differently.

    >>> spell_java_floats(pa.array([0.0, -1.5, 12345678.0, None]), "x").to_pylist()
    ['0.0', '-1.5', '1.2345678E7', None]
    """
    size = pc.abs(column.cast(pa.float64()))
    end = _LARGEST_PLAIN if pa.types.is_float32(column.type) else _LARGEST
    small = pc.and_(pc.less(size, _SMALLEST), pc.not_equal(size, 0.0))
    large = pc.and_(pc.greater_equal(size, end), pc.is_finite(size))
    refused = pc.or_(small, large)
    if pc.any(refused).as_py():
        value = column.filter(refused)[0].as_py()
        raise RowsError(
            f"column {path}: {value!r} in row {pc.index(refused, True).as_py()} cannot be part of "
            "a key, because versions of Java spell it differently; use decimals or text"
        )
    arrows = column.cast(pa.string())  # 1, 0.5, 12345678, 1.2e+15, nan
    found = pc.replace_substring_regex(arrows, r"^(-?\d+)$", r"\1.0")
    if pc.any(pc.greater_equal(size, _LARGEST_PLAIN)).as_py():
        found = pc.if_else(pc.greater_equal(size, _LARGEST_PLAIN), _spell_scientific(found), found)
    for spelled, javas in _SPECIAL.items():
        found = pc.if_else(pc.equal(arrows, spelled), javas, found)
    return found


def _spell_scientific(plain: Any) -> Any:
    """``1234567890.5`` as ``1.2345678905E9``, with at least one digit after the point."""
    pattern = r"^(?P<sign>-?)(?P<first>\d)(?P<whole>\d*)\.(?P<part>\d*)$"
    found = pc.extract_regex(plain, pattern)
    whole = pc.struct_field(found, "whole")
    digits = pc.binary_join_element_wise(whole, pc.struct_field(found, "part"), "")
    digits = pc.utf8_rtrim(digits, "0")
    digits = pc.if_else(pc.equal(digits, ""), "0", digits)
    head = pc.binary_join_element_wise(
        pc.struct_field(found, "sign"), pc.struct_field(found, "first"), ""
    )
    power = pc.utf8_length(whole).cast(pa.string())
    spelled = pc.binary_join_element_wise(
        pc.binary_join_element_wise(head, digits, "."), power, "E"
    )
    arrows = pc.replace_substring_regex(plain, r"e\+0*", "E")
    arrows = pc.replace_substring_regex(arrows, r"^(-?\d)E", r"\1.0E")
    return pc.coalesce(spelled, arrows)
