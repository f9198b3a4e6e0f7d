"""Spell floating-point numbers as Java's Float.toString and Double.toString do; by column.

Java before 19 spells some numbers with more digits than needed (JDK-4511638): floats from 1e7 on,
large doubles, and numbers closer to zero than 0.001. There a key would depend on the Java version,
so those numbers (doubles: from 1e15 on) are refused. All versions spell the others alike.
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
    """Return the text of every float32 or float64 value, null for null.

    Raises RowsError naming ``path`` and a value that Java versions spell differently.

    >>> spell_java_floats(pa.array([0.0, -1.5, 12345678.0, None]), "x").to_pylist()
    ['0.0', '-1.5', '1.2345678E7', None]
    """
    magnitude = pc.abs(column.cast(pa.float64()))
    limit = _LARGEST_PLAIN if pa.types.is_float32(column.type) else _LARGEST
    small = pc.and_(pc.less(magnitude, _SMALLEST), pc.not_equal(magnitude, 0.0))
    large = pc.and_(pc.greater_equal(magnitude, limit), pc.is_finite(magnitude))
    refused = pc.or_(small, large)
    if pc.any(refused).as_py():
        value = column.filter(refused)[0].as_py()
        raise RowsError(
            f"column {path}: {value!r} in row {pc.index(refused, True).as_py()} cannot be part of "
            "a key, because versions of Java spell it differently; use decimals or text"
        )
    plain = column.cast(pa.string())  # 1, 0.5, 12345678, 1.2e+15, nan
    result = pc.replace_substring_regex(plain, r"^(-?\d+)$", r"\1.0")
    if pc.any(pc.greater_equal(magnitude, _LARGEST_PLAIN)).as_py():
        result = pc.if_else(
            pc.greater_equal(magnitude, _LARGEST_PLAIN), _spell_scientific(result), result
        )
    for text, java_text in _SPECIAL.items():
        result = pc.if_else(pc.equal(plain, text), java_text, result)
    return result


def _spell_scientific(plain: Any) -> Any:
    """Return ``1234567890.5`` as ``1.2345678905E9``, with at least one digit after the point."""
    pattern = r"^(?P<sign>-?)(?P<first>\d)(?P<whole>\d*)\.(?P<part>\d*)$"
    result = pc.extract_regex(plain, pattern)
    whole = pc.struct_field(result, "whole")
    digits = pc.binary_join_element_wise(whole, pc.struct_field(result, "part"), "")
    digits = pc.utf8_rtrim(digits, "0")
    digits = pc.if_else(pc.equal(digits, ""), "0", digits)
    head = pc.binary_join_element_wise(
        pc.struct_field(result, "sign"), pc.struct_field(result, "first"), ""
    )
    power = pc.utf8_length(whole).cast(pa.string())
    text = pc.binary_join_element_wise(pc.binary_join_element_wise(head, digits, "."), power, "E")
    exponential = pc.replace_substring_regex(plain, r"e\+0*", "E")
    exponential = pc.replace_substring_regex(exponential, r"^(-?\d)E", r"\1.0E")
    return pc.coalesce(text, exponential)
