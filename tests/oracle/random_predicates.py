"""Random predicates as text, from a seed: every operator, matching and other literals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa

NAN, INF = float("nan"), float("inf")
WILD, LONG = "\U0001f600", "q" * 3000
ZONES = (
    "UTC",
    "Asia/Tehran",
    "PST",
    "Europe/Prague",
    "America/New_York",
    "Africa/Cairo",
    "+05:30",
    "Asia/Kolkata",
)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

WHOLE = ("0", "1", "-1", "2", "7", "100", "127", "128", "-129", "32768", "16777217", "2147483648")
BIG = ("9007199254740993", "-9007199254740993", "9223372036854775807", "-9223372036854775808L",
       "9223372036854775808", "12345678901234567890123BD")  # fmt: skip
FRACTIONS = ("0.5", "1.0", "1.005", "-1.50", "0.1", "99999999999.5BD", "7.00", "1.10", "0.001",
             "1.0000000000000000001")  # fmt: skip
DOUBLES = (
           "1e0", "0.1D", "1.5D", "-0.0D", "9007199254740992D", "-1e300", "2.5e-1", "1e10", "1.1D",
    "cast('NaN' as double)", "double('Infinity')", "cast('-Infinity' as double)",
)  # fmt: skip
FLOATS = ("0.1F", "1F", "-1.5F", "cast('NaN' as float)", "float('Infinity')")
TYPED_NULLS = ("cast(NULL as double)", "cast(NULL as string)", "cast(NULL as decimal(38,18))")
SPELLED_CASTS = (
    "'\uff11'",
    "'1'",
    "'7'",
    "'0.5'",
    "'-1'",
    "'1.1'",
    "' 1 '",
    "'1e0'",
    "'x'",
    "''",
    "'NaN'",
    "'1.0'",
)
NUMBERS = (*WHOLE, *BIG, *FRACTIONS, *DOUBLES, *FLOATS, *SPELLED_CASTS, *TYPED_NULLS,
           "cast(1 as bigint)", "1Y", "7S")  # fmt: skip
TEXTS = ("", "a", "ab", "abc", "abd", "b", "\uffff", "\ue000", WILD, "a" + WILD, "it's", LONG,
         "a%b", "a_", "é", "7", "0.5", "1", "2024-03-31", "true", " ", "Ab", "\\",
         "a\\b")  # fmt: skip
DAYS = (
    "1970-01-01",
    "2024-03-31",
    "2024-02-29",
    "1969-12-31",
    "2024-04-26",
    "2023-11-05",
    "1582-10-04",
    "1582-10-15",
    "1200-02-29",
    "0001-01-01",
    "9999-12-31",
    "1900-01-01",
)
CLOCKS = ("2024-03-31 02:30:00", "2024-10-27 02:30:00", "2024-03-31 00:00:00",
          "2024-04-26 00:30:00", "2024-03-30 23:00:00", "1970-01-01 00:00:00.000001",
          "1969-12-31 23:59:59.999999", "1899-12-31 23:59:59", "1582-10-10 00:00:00",
          "1000-01-01 12:00:00", "1941-06-01 00:00:00", "2024-03-31 01:00:00.5")  # fmt: skip
INSTANTS = ("2024-03-31 01:00:00Z", "2024-10-27 02:30:00 +02:00", "2024-04-26 00:00:00 UTC")
ODD_TIMES = ("\uff12024-03-31", "2024-3-31", "2024-03", "2024", "2024-03-31T02:30:00",
             " 2024-03-31 ", "10:00",
             "2024-03-31 2:3:4", "2024-02-30", "now", "epoch")  # fmt: skip


def quoted(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def typed(word: str, texts: Sequence[str]) -> tuple[str, ...]:
    return tuple(f"{word} '{text}'".lstrip() for text in texts)


TEXT_LITERALS = (*map(quoted, TEXTS), r"r'a\b'", r"R'\'", r"'\141\u0062'")
BYTES = ("X''", "X'61'", "x'ff'", "X'FFFF'", "X'6162'", "X'00'", "X'6100'")
TIMES = (*typed("TIMESTAMP", CLOCKS + INSTANTS), *typed("", CLOCKS + INSTANTS + ODD_TIMES),
         *typed("DATE", DAYS), *typed("TIMESTAMP_NTZ", CLOCKS), *typed("", DAYS))  # fmt: skip
TRUTHS = ("true", "FALSE", "'true'", "'t'", "1", "0", "'yes'", "1.0")
EVERY = NUMBERS + TEXT_LITERALS + BYTES + TIMES + TRUTHS + ("NULL",)


def micros(text: str) -> int:
    return (datetime.fromisoformat(text).replace(tzinfo=UTC) - EPOCH) // timedelta(microseconds=1)


_DAYS = tuple(date.fromisoformat(day) for day in DAYS)
_MICROS = tuple(map(micros, CLOCKS))
#: instants with the same local time in Prague, which is among the clocks
_REPEATED = (micros("2024-10-27 00:30:00"), micros("2024-10-27 01:30:00"))
_FLOATS = (0.0, -0.0, 1.0, 0.5, float(np.float32(0.1)), -1.5, 7.0)
_WIDE = ("0E-10", "1.1000000000", "7.0000000000", "0.1000000000", "-1.5000000000",
         "999999999999999999.0000000001")  # fmt: skip
_WIDEST = ("0", "1.000000000000000001", "-99999999999999999999.5", "7", "0.1")

#: a column's Arrow type, values, rare values, and matching literals
COLUMNS: dict[str, tuple[Any, tuple[Any, ...], tuple[Any, ...], tuple[str, ...]]] = {
    "b": (pa.int8(), (0, 1, -1, 7), (127, -128), NUMBERS),
    "h": (pa.int16(), (0, 1, -1, 7, 100, 128), (32767, -32768), NUMBERS),
    "i": (pa.int32(), (0, 1, 2, 7, 100, 16777217, 16777216), (2**31 - 1, -(2**31)), NUMBERS),
    "l": (pa.int64(), (0, 1, 7, 2**53 + 1, 2**53), (2**63 - 1, -(2**63)), NUMBERS),
    "f": (pa.float32(), _FLOATS, (INF, -INF, NAN, NAN, NAN), NUMBERS),
    "d": (pa.float64(), (*_FLOATS, 0.1, 1.1), (INF, -INF, 1e300, NAN, NAN, NAN), NUMBERS),
    "m": (pa.decimal128(9, 2), tuple(map(Decimal, ("0.00", "1.00", "1.10", "-1.50", "7.00"))),
          tuple(map(Decimal, ("1.01", "9999999.99", "-9999999.99"))), NUMBERS),
    "w": (pa.decimal128(28, 10), tuple(map(Decimal, _WIDE)), (), NUMBERS),
    "k": (pa.decimal128(38, 18), tuple(map(Decimal, _WIDEST)), (), NUMBERS),
    "S": (pa.string(), TEXTS, (), TEXT_LITERALS),
    "x": (pa.binary(), (b"", b"a", b"ab", b"\xff", b"\xff\xff", b"\x00", b"a\x00"), (), BYTES),
    "dt": (pa.date32(), _DAYS[:6], _DAYS[6:], TIMES),
    "ts": (pa.timestamp("us", "UTC"), _MICROS[:7], (*_MICROS[7:], *_REPEATED), TIMES),
    "n": (pa.timestamp("us"), _MICROS[:7], _MICROS[7:], TIMES),
    "o": (pa.bool_(), (False, True), (), TRUTHS),
    "p.q": (pa.int32(), (0, 1, 2), (), NUMBERS),
    "p.r.t": (pa.float64(), (0.0, 1.0), (NAN,), NUMBERS),
}  # fmt: skip
STRUCT = pa.struct([("q", pa.int32()), ("r", pa.struct([("t", pa.float64())]))])
SCHEMA = pa.schema([(n, c[0]) for n, c in COLUMNS.items() if "." not in n] + [("p", STRUCT)])
FILES = 24


# predicates

SIGNS = ("=", "=", "==", "!=", "<>", "<", "<=", ">", ">=", "<=>")
PATTERNS = ("ab%", "a%", "%", "abc", "", "a_", "%b", "a%b", "ab%%", r"a\\%b", r"a\%b%", "\uffff%",
            WILD + "%", "a" + WILD + "%", LONG[:40] + "%", r"a\_%", r"\\%", "A%", "_%")  # fmt: skip
ESCAPED = (("a/%b", "/"), ("a/_%", "/"), ("ab%", "b"), ("a//%", "/"), ("%%", "%"), ("é%", "é"))
TYPES = ("tinyint", "smallint", "int", "bigint", "float", "double", "decimal(9,2)",
         "decimal(38,18)",
         "decimal(10,0)", "decimal(5,3)", "string", "binary", "date", "timestamp", "timestamp_ntz",
         "boolean")  # fmt: skip
FUNCTIONS = ("{c} + 1", "{c} - 1", "1 - {c}", "-{c}", "{c} * -1", "{c} / 2", "{c} % 2", "abs({c})",
             "length({c})", "upper({c})", "lower({c})", "coalesce({c}, 1)", "date_add({c}, 1)",
             "date_sub({c}, 1)", "year({c})", "trim({c})", "{c} | 1", "substring({c}, 1, 2)",
             "to_date({c})", "concat({c}, 'a')", "round({c}, 1)", "nullif({c}, 1)", "hash({c})",
             "{c} + {c}", "date_trunc('MONTH', {c})", "{c} + interval 1 day", "bigint({c})",
             "string({c})", "floor({c})")  # fmt: skip
SUMS = ("{c} + 1", "{c} - 1", "1 - {c}", "-{c}", "{c} + 1Y", "{c} + 100L", "7S - {c}", "2 + {c}",
        "({c} + 1)", "{c} + 2147483647", "{c} - 128", "cast({c} as bigint) + 1")  # fmt: skip
CALENDAR = ("cast({c} as date)", "cast({c} as timestamp)", "cast({c} as timestamp_ntz)", "{c} + 1",
            "{c} - 30", "1Y + {c}", "cast({c} as date) + 1")  # fmt: skip


@dataclass(frozen=True, slots=True)
class Predicates:
    """Makes predicates on the columns of a table; plain ones seldom raise in ANSI mode."""

    chance: Random
    columns: tuple[str, ...]
    is_plain: bool = False

    def make(self, count: int) -> list[str]:
        return [self.make_one(self.chance.choice((0, 0, 0, 1, 1, 2, 3))) for _ in range(count)]

    def make_one(self, depth: int) -> str:
        if not depth:
            return self.leaf()
        kind = self.chance.choice(("AND", "OR", "NOT", "AND", "OR"))
        if kind == "NOT":
            return f"NOT ({self.make_one(depth - 1)})"
        parts = [self.make_one(depth - 1) for _ in range(self.chance.choice((2, 2, 3)))]
        return f" {kind} ".join(f"({part})" for part in parts)

    def leaf(self) -> str:
        forms = (*[self.compared] * 7, *[self.listed] * 2, self.null, *[self.between] * 2,
                 *[self.like] * 2, self.bare, self.two, *[self.computed] * 2)  # fmt: skip
        forms = forms[:-3] if self.is_plain else forms
        return self.chance.choice(forms)(self.chance.choice(self.columns))

    def name(self, column: str) -> str:
        quoted_parts = ".".join(f"`{part}`" for part in column.split("."))
        name = self.chance.choice((column, column, column.upper(), quoted_parts))
        if self.is_plain or self.chance.randrange(8):
            return name
        return f"cast({name} as {self.chance.choice(TYPES)})"

    def literal(self, column: str) -> str:
        if self.is_plain:
            return self.chance.choice(SAFE[COLUMNS[column][3]])
        said = self.chance.choice(COLUMNS[column][3] if self.chance.randrange(5) else EVERY)
        if not self.chance.randrange(25):
            return "NULL"
        if not self.chance.randrange(25):
            return f"cast({said} as {self.chance.choice(TYPES)})"
        return said

    def compared(self, column: str) -> str:
        sides = [self.name(column), self.literal(column)]
        if not self.chance.randrange(4):
            sides.reverse()
        if not self.chance.randrange(30):
            return f"{sides[0]} IS {self.no()}DISTINCT FROM {sides[1]}"
        return f"{sides[0]} {self.chance.choice(SIGNS)} {sides[1]}"

    def no(self) -> str:
        return self.chance.choice(("", "NOT "))

    def listed(self, column: str) -> str:
        count = self.chance.choice((1, 2, 2, 3, 4, 14))
        if self.chance.randrange(2):
            values = [self.literal(column) for _ in range(count)]
        else:  # of one type
            pools = POOLS[COLUMNS[column][3]][: 1 if self.is_plain else None]
            values = self.chance.choices(self.chance.choice(pools), k=count)
        values += ["NULL"] if not self.chance.randrange(6) else []
        return f"{self.name(column)} {self.no()}IN ({', '.join(values)})"

    def null(self, column: str) -> str:
        what = self.chance.choice(("NULL", "NULL", "NULL", "TRUE", "FALSE", "UNKNOWN"))
        if what != "NULL" and COLUMNS[column][0] != pa.bool_():
            return f"({self.compared(column)}) IS {self.no()}{what}"
        return f"{self.name(column)} IS {self.no()}{what}"

    def between(self, column: str) -> str:
        low, high = self.literal(column), self.literal(column)
        of = self.name(column)
        if not self.is_plain and not self.chance.randrange(8):
            of, low = low, of
        return f"{of} {self.no()}BETWEEN {low} AND {high}"

    def like(self, column: str) -> str:
        column = "S" if self.is_plain or self.chance.randrange(6) else column
        if not self.chance.randrange(4):
            pattern, escape = self.chance.choice(ESCAPED)
            return f"{self.name(column)} {self.no()}LIKE '{pattern}' ESCAPE '{escape}'"
        word = self.chance.choice(("LIKE",) * 8 + ("ILIKE", "RLIKE"))
        found = f"{self.name(column)} {self.no()}{word} '{self.chance.choice(PATTERNS)}'"
        if not self.chance.randrange(10):
            word = self.chance.choice(("startswith", "endswith", "contains"))
            return f"{self.no()}{word}({column}, {self.chance.choice(TEXT_LITERALS)})"
        return found

    def computed(self, column: str) -> str:
        functions = CALENDAR if column in {"dt", "ts", "n"} else SUMS
        functions = functions if self.chance.randrange(2) else FUNCTIONS
        made = self.chance.choice(functions).format(c=self.name(column))
        if not self.chance.randrange(8):
            return f"{made} IS {self.no()}NULL"
        if not self.chance.randrange(8):
            return f"{made} {self.no()}IN ({self.literal(column)}, {self.literal(column)})"
        return f"{made} {self.chance.choice(SIGNS)} {self.literal(column)}"

    def bare(self, column: str) -> str:
        if not self.chance.randrange(4):
            return self.chance.choice(("true", "FALSE", "NULL", "1 = 1", "cast(NULL as boolean)"))
        name = self.name("o" if self.chance.randrange(4) else column)
        return f"{self.chance.choice(('', 'NOT ', '!'))}{name}"

    def two(self, column: str) -> str:
        other = self.chance.choice(self.columns)
        return f"{self.name(column)} {self.chance.choice(SIGNS)} {self.name(other)}"


#: literals of one type each
POOLS = {
    NUMBERS: (WHOLE, FRACTIONS, DOUBLES, FLOATS, SPELLED_CASTS),
    TEXT_LITERALS: (TEXT_LITERALS,),
    BYTES: (BYTES,),
    TIMES: (typed("TIMESTAMP", CLOCKS), typed("DATE", DAYS), typed("", DAYS), typed("", CLOCKS),
            typed("TIMESTAMP_NTZ", CLOCKS)),
    TRUTHS: (("true", "false"),),
}  # fmt: skip
#: literals that ANSI mode compares with values of a column
SAFE = {
    NUMBERS: (*WHOLE, *BIG[:4], *FRACTIONS, *DOUBLES, *FLOATS, "'1'", "'7'", "1Y"),
    TEXT_LITERALS: TEXT_LITERALS,
    BYTES: BYTES,
    TIMES: (*typed("TIMESTAMP", CLOCKS + INSTANTS), *typed("DATE", DAYS), *typed("", DAYS)),
    TRUTHS: ("true", "FALSE", "'true'"),
}
