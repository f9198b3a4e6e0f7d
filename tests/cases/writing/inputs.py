"""The rows that real Hudi was asked about; ``make.py`` gives them to it, the tests to us.

A column of ``texts`` for each type that a key or a partition can have, all of the same length.
"""

from __future__ import annotations

from datetime import date
from decimal import Decimal

import pyarrow as pa

_FLOATS = [0.0, -0.0, 1.0, -1.5, 0.1, 1e7, 9999999.0, 1e-3, 9.999e-4, 123456.79, 3.5e38, 1e-45]
_DOUBLES = [0.0, -0.0, 1.0, -1.5, 0.1, 1e7, 9999999.999, 1e-3, 9.999e-4, 1e21, 1234567.125, 1e-7]
_ODD = [float("nan"), float("inf"), float("-inf")]
_MOMENTS = [
    0, 1, 1_700_000_000_000_000, 1_700_000_000_123_000, 1_700_000_000_123_456, -1,
    -1_000_000, 253_402_300_799_999_999, -62_135_596_800_000_000, 1_700_000_000_100_000,
    1_700_000_040_000_000, 60_000_000, 3_600_000_000, 1_000, 999_999,
]  # fmt: skip
_DAYS = [0, 1, -1, 19_675, 11_016, 2_932_896, -719_162, -141_427, 59, 365, 366, 20_000, 7, 8, 9]


def texts() -> pa.Table:
    """A column a type, 15 rows of values that are spelled in odd ways."""
    whole = [0, 1, -1, 42, 7, 100, -100, 12, 13, 14, 15, 16, 17]
    days = [date.fromordinal(719_163 + day) for day in _DAYS]
    decimals = [Decimal(n).scaleb(-4) for n in (0, 1, -1, 10_000, 12_345, 10**15, -(10**15))]
    decimals += [Decimal(n).scaleb(-4) for n in (5, 50, 500, 5_000, 100_000, 99_999, 3, 4)]
    return pa.table(
        {
            "k_byte": pa.array([*whole, 127, -128], pa.int8()),
            "k_short": pa.array([*whole, 32_767, -32_768], pa.int16()),
            "k_int": pa.array([*whole, 2**31 - 1, -(2**31)], pa.int32()),
            "k_long": pa.array([*whole, 2**63 - 1, -(2**63)], pa.int64()),
            "k_bool": pa.array([True, False, *[True] * 13]),
            "k_float": pa.array([*_FLOATS, *_ODD], pa.float32()),
            "k_double": pa.array([*_DOUBLES, *_ODD], pa.float64()),
            "k_string": pa.array(
                [
                    "a",
                    "A",
                    " a ",
                    "a:b",
                    "a,b",
                    "é",
                    "日本",
                    "😀",
                    "\t",
                    "a/b",
                    "__null__",
                    "__empty__",
                    "x=y",
                    "%",
                    "null",
                ]
            ),
            "k_date": pa.array(days, pa.date32()),
            "k_ts": pa.array(_MOMENTS, pa.timestamp("us", "UTC")),
            "k_ntz": pa.array(_MOMENTS, pa.timestamp("us")),
            "k_dec": pa.array(decimals, pa.decimal128(20, 4)),
            "k_fine": pa.array(
                [
                    Decimal(n).scaleb(-10)
                    for n in (
                        0,
                        1,
                        10**10,
                        -1,
                        10,
                        10**4,
                        9 * 10**3,
                        123,
                        5 * 10**9,
                        7,
                        8,
                        9,
                        11,
                        12,
                        13,
                    )
                ],
                pa.decimal128(18, 10),
            ),
            "k_units": pa.array([Decimal(n) for n in range(15)], pa.decimal128(10, 0)),
            "k_bin": pa.array([b"a", b"", b"\x00\xff", *[b"abc"] * 12], pa.binary()),
            "k_in": pa.array([{"a": f"i{n}"} for n in range(15)], pa.struct([("a", pa.string())])),
        }
    )


def folders() -> pa.Table:
    """Two partition columns of text: every character that a path has trouble with, and none."""
    odd = [chr(n) for n in range(1, 128) if not chr(n).isalnum()]
    first = ["a", "a/b", "k=v", "100%", "a b", "é", "日本", "😀", "", None, "/x", "x/", ".", "..",
             "__HIVE_DEFAULT_PARTITION__", "__null__", "default", "%2F",
             *(f"x{char}y" for char in odd), "x\x80y", "\u0085", "\ud7ff"]  # fmt: skip
    second = [(None, "", "z", "u/v")[n % 4] for n in range(len(first))]
    return pa.table({"p": pa.array(first), "q": pa.array(second)})


def empties() -> pa.Table:
    """Key columns that are null or empty, one and both."""
    a = ["x", "x", "x", None, "", None, "", None, ""]
    b = ["y", None, "", "y", "y", None, "", "", None]
    return pa.table({"a": pa.array(a), "b": pa.array(b)})
