"""Filtering by the index never skips a file with a matching row, and skips many others."""

from __future__ import annotations

import math
import re
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from random import Random
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from reconciler.index.may_match import may_match
from reconciler.index.model import ColumnStats, FileIndex
from reconciler.index.predicates.parse import parse
from tests.selection import examples

LAW = settings(max_examples=examples(20, many=100), deadline=None)
NAN, INF = float("nan"), float("inf")
ZONES = ("UTC", "Europe/Prague", "America/New_York", "Africa/Cairo", "+05:30")
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
WILD = "\U0001f600"
LONG = "q" * 5000

WHOLE = ("0", "1", "-1", "2", "7", "100", "127", "128", "-129", "16777217", "2147483648")
BIG = ("9007199254740993", "-9007199254740993", "9223372036854775807", "-9223372036854775808L")
FRACTIONS = ("0.5", "1.0", "1.005", "-1.50", "0.1", "99999999999.5BD", "7.00", "1.10")
DOUBLES = ("1e0", "0.1D", "1.5D", "-0.0D", "9007199254740992D", "-1e300", "2.5e-1", "1e10", "1.1D")
FLOATS = ("0.1F", "1F", "-1.5F")
NUMBERS = WHOLE + BIG + FRACTIONS + DOUBLES + FLOATS + ("'1'", "'7'", "'0.5'", "'-1'", "'1.1'")
NUMBERS += ("cast('NaN' as double)", "cast(1 as bigint)")
TEXTS = ("", "a", "ab", "abc", "abd", "b", "\uffff", "\ue000", WILD, "a" + WILD, "it's", LONG)
TEXTS += ("a%b",)
FEW_FLOATS = (0.0, -0.0, 1.0, 0.5, float(np.float32(0.1)), -1.5, INF, NAN, NAN, NAN)
DAYS = ("1970-01-01", "2024-03-31", "2024-02-29", "1969-12-31", "2024-04-26", "2023-11-05")
CLOCKS = ("2024-03-31 02:30:00", "2024-10-27 02:30:00", "2024-03-31", "2024-04-26 00:30:00",
          "2024-03-31 00:00:00", "2024-03-30 23:00:00", "1970-01-01 00:00:00.000001",
          "1969-12-31 23:59:59.999999")  # fmt: skip
INSTANTS = ("2024-03-31 01:00:00Z", "2024-10-27 02:30:00 +02:00", "2024-04-26 00:00:00 UTC")


def micros(text):
    return pa.scalar(text).cast(pa.timestamp("us")).value


#: an Arrow type, values of it, and the literals that it is compared with; by column
COLUMNS = {
    "b": (pa.int8(), (0, 1, -1, 7, 127, -128), NUMBERS),
    "i": (pa.int32(), (0, 1, 2, 7, 100, 16777217, 16777216, -(2**31)), NUMBERS),
    "l": (pa.int64(), (0, 1, 7, 2**53 + 1, 2**53, 2**63 - 1, -(2**63)), NUMBERS),
    "f": (pa.float32(), FEW_FLOATS, NUMBERS),
    "d": (pa.float64(), (0.0, -0.0, 1.0, 0.1, 1.5, 1.1, -INF, INF, NAN, NAN, NAN, 1e300), NUMBERS),
    "m": (pa.decimal128(9, 2), ("0.00", "1.00", "1.10", "-1.50", "7.00", "1.01"), NUMBERS),
    "w": (pa.decimal128(28, 10), ("0E-10", "1.1000000000", "7.0000000000", "0.1000000000",
          "999999999999999999.0000000001", "-1.5000000000"), NUMBERS),
    "S": (pa.string(), TEXTS, (*("'" + t.replace("'", "\\'") + "'" for t in TEXTS), '"ab"')),
    "x": (pa.binary(), (b"", b"a", b"ab", b"\xff", b"\xff\xff", b"\x00"),
          ("X''", "X'61'", "x'ff'", "X'FFFF'", "X'6162'", "X'00'")),
    "dt": (pa.date32(), DAYS, tuple(f"DATE '{t}'" for t in DAYS) + tuple(f"'{t}'" for t in DAYS)
           + tuple(f"TIMESTAMP '{t}'" for t in CLOCKS + INSTANTS)
           + tuple(f"TIMESTAMP_NTZ '{t}'" for t in CLOCKS)),
    "ts": (pa.timestamp("us", "UTC"), CLOCKS, tuple(f"TIMESTAMP '{t}'" for t in CLOCKS + INSTANTS)
           + tuple(f"DATE '{t}'" for t in DAYS) + tuple(f"'{t}'" for t in CLOCKS)),
    "n": (pa.timestamp("us"), CLOCKS, tuple(f"TIMESTAMP_NTZ '{t}'" for t in CLOCKS)
          + tuple(f"DATE '{t}'" for t in DAYS) + tuple(f"'{t}'" for t in CLOCKS)),
    "o": (pa.bool_(), (False, True), ("true", "FALSE")),
    "p.q": (pa.int32(), (0, 1, 2), WHOLE),
}  # fmt: skip
SCHEMA = pa.schema(
    [(name, kind) for name, (kind, _, _) in COLUMNS.items() if "." not in name]
    + [("p", pa.struct([("q", pa.int32())]))]
)
PATTERNS = ("ab%", "a%", "%", "abc", "", "a_", "%b", "a%b", "ab%%", r"a\\%b", r"a\%b%", "\uffff%",
            WILD + "%", "a" + WILD + "%", LONG[:40] + "%")  # fmt: skip


def values_of(name):
    kind, values, _ = COLUMNS[name]
    if pa.types.is_decimal(kind):
        return [Decimal(value) for value in values]
    if pa.types.is_date(kind):
        return [date.fromisoformat(value) for value in values]
    if pa.types.is_timestamp(kind):
        return [micros(value) for value in values]
    return list(values)


# what Spark makes of a literal beside a column


def parse_literal(sql, name, zone):
    """Return a function from column values to the common type, and the literal's value in it."""
    kind = COLUMNS[name][0]
    same = lambda value: value  # noqa: E731
    if sql.startswith("cast('NaN'"):
        return float, NAN
    if sql == "cast(1 as bigint)":
        sql = "1L"
    if pa.types.is_string(kind):
        return str.encode, sql[1:-1].replace("\\'", "'").encode()
    if pa.types.is_binary(kind):
        return same, bytes.fromhex(sql[2:-1])
    if pa.types.is_boolean(kind):
        return same, sql == "true"
    if pa.types.is_temporal(kind):
        return time_literal(sql, kind, zone)
    return number_literal(sql, kind)


def number_literal(sql, kind):
    text = sql.strip("'").rstrip("LDFB")
    number = Fraction(text)
    if sql.endswith("F"):
        number = Fraction(float(np.float32(float(number))))
    is_double = "e" in sql or (sql.endswith("D") and not sql.endswith("BD"))
    is_whole = sql[0] != "'" and re.fullmatch(r"-?\d+L?", sql)
    if pa.types.is_integer(kind) and not is_double:
        if sql[0] == "'" and not re.fullmatch(r"-?\d+", text):
            number = Fraction(math.trunc(number))  # Spark's cast of a text to a whole number
        return (np.float32 if sql.endswith("F") else Fraction), number
    if pa.types.is_decimal(kind) and not is_double and sql[0] != "'" and not sql.endswith("F"):
        return Fraction, number
    as_double = float(Decimal(text)) if text[-1] != "e" else float(text)
    if sql.endswith("F"):
        as_double = float(number)
    if text.startswith("-") and not number:
        as_double = -0.0
    if pa.types.is_float32(kind) and (is_whole or sql[0] == "'"):
        as_double = float(np.float32(as_double))
    return float, as_double


def instant(text, zone):
    """Return the instant of a local time in a zone."""
    local = EPOCH.replace(tzinfo=None) + timedelta(microseconds=micros(text))
    place = UTC if zone == "UTC" else None
    if place is None:
        place = ZoneInfo(zone) if "/" in zone else datetime.strptime(zone, "%z").tzinfo
    return (local.replace(tzinfo=place) - EPOCH) // timedelta(microseconds=1)


def time_literal(sql, kind, zone):
    word, text = sql.partition("'")[0].strip(), sql.partition("'")[2][:-1]
    if pa.types.is_date(kind):
        if word in ("DATE", ""):
            return (lambda day: day), date.fromisoformat(text)
        if word == "TIMESTAMP_NTZ":
            return (lambda day: micros(day.isoformat())), micros(text)
        return (lambda day: instant(day.isoformat(), zone)), in_zone(text, zone)
    if kind.tz is None:
        return (lambda value: value), micros(text)
    return (lambda value: value), in_zone(text, zone)


def in_zone(text, zone):
    for ending, own in (("Z", "UTC"), (" +02:00", "+02:00"), (" UTC", "UTC")):
        if text.endswith(ending):
            return instant(text.removesuffix(ending), own)
    return instant(text, zone)


def order(left, right):
    """Compare two values: -1, 0 or 1; NaN is the greatest and equals itself."""
    is_nan = [isinstance(v, float) and math.isnan(v) for v in (left, right)]
    if any(is_nan):
        return is_nan[0] - is_nan[1]
    return (left > right) - (left < right)


COMPARES = {
    "=": lambda sign: sign == 0,
    "==": lambda sign: sign == 0,
    "!=": lambda sign: sign != 0,
    "<>": lambda sign: sign != 0,
    "<": lambda sign: sign < 0,
    "<=": lambda sign: sign <= 0,
    ">": lambda sign: sign > 0,
    ">=": lambda sign: sign >= 0,
}
FLIPPED = {"<": ">", ">": "<", "<=": ">=", ">=": "<="}


def compare_values(sign, name, sql, row, zone):
    """Compare with null (None) as in SQL."""
    value = row[name]
    if sql == "NULL":
        return (value is None) if sign == "<=>" else None
    if value is None:
        return False if sign == "<=>" else None
    made, right = parse_literal(sql, name, zone)
    return COMPARES["=" if sign == "<=>" else sign](order(made(value), right))


def both(*parts):
    return False if False in parts else None if None in parts else True


def either(*parts):
    return True if True in parts else None if None in parts else False


def negation(part):
    return None if part is None else not part


def like(value, pattern):
    if value is None:
        return None
    pattern = pattern.replace("\\\\", "\\")  # as SQL spells it
    parts = re.findall(r"\\.|.", pattern, re.DOTALL)
    found = "".join({"%": ".*", "_": "."}.get(p, re.escape(p[-1])) for p in parts)
    return re.fullmatch(found, value, re.DOTALL) is not None


SEARCHES = {
    "startswith": lambda value, sought: value.encode().startswith(sought.encode()),
    "endswith": lambda value, sought: value.encode().endswith(sought.encode()),
    "contains": lambda value, sought: sought.encode() in value.encode(),
}


def search_text(function, value, sought):
    return None if value is None else SEARCHES[function](value, sought)


# random predicates: their text, and what they are for a row


@st.composite
def leaves(draw):
    """Draw a predicate on one column: text, function of a row and a zone, column."""
    name = draw(st.sampled_from([*sorted(COLUMNS), "d", "f"]))
    literals = st.sampled_from((*COLUMNS[name][2], "NULL"))
    typed = draw(st.sampled_from([name, name.upper(), name if "." in name else f"`{name}`"]))
    form = draw(st.sampled_from(["compare", "compare", "flip", "in", "null", "between", "like",
                                 "function"]))  # fmt: skip
    not_ = draw(st.sampled_from(["", "NOT "]))
    flip = negation if not_ else (lambda part: part)
    one, two = draw(literals), draw(literals)
    if form in ("compare", "flip"):
        sign = draw(st.sampled_from((*COMPARES, "<=>")))
        flipped = FLIPPED.get(sign, sign)
        text = f"{typed} {sign} {one}" if form == "compare" else f"{one} {flipped} {typed}"
        return text, lambda row, zone: compare_values(sign, name, one, row, zone), name
    if form == "null":
        text = f"{typed} IS {not_}NULL"
        return text, lambda row, _: flip(row[name] is None), name
    if form == "between":
        text = f"{typed} {not_}BETWEEN {one} AND {two}"
        return (
            text,
            lambda row, zone: flip(
                both(
                    compare_values(">=", name, one, row, zone),
                    compare_values("<=", name, two, row, zone),
                )
            ),
            name,
        )
    if form == "like" and name == "S":
        pattern = draw(st.sampled_from(PATTERNS))
        text = f"{typed} {not_}LIKE '{pattern}'"
        return text, lambda row, _: flip(like(row[name], pattern)), name
    if form == "function" and name == "S":
        function = draw(st.sampled_from(sorted(SEARCHES)))
        sought = draw(st.sampled_from(TEXTS))
        quoted = sought.replace("'", "\\'")
        text = f"{not_}{function}({typed}, '{quoted}')"
        return text, lambda row, _: flip(search_text(function, row[name], sought)), name
    return draw_list(typed, name, not_, (one, two))


#: kinds of literals that are equal to a value in a list if they are beside it
TIMES = {"DATE ", "TIMESTAMP ", "TIMESTAMP_NTZ "}


def draw_list(typed, name, not_, literals):
    """Draw a list of literals with one type, such as two doubles, or of days and times."""
    types = {kind_of(sql) for sql in literals} - {"NULL"}
    is_simple = (len(types) < 2 or types <= TIMES) and not types & {"F", "text"}
    literals = literals if is_simple else literals[:1]
    flip = negation if not_ else (lambda part: part)
    text = f"{typed} {not_}IN ({', '.join(literals)})"
    return text, lambda row, zone: flip(
        either(*(compare_values("=", name, sql, row, zone) for sql in literals))), name  # fmt: skip


def kind_of(sql):
    if sql == "NULL":
        return sql
    if sql[0].isalpha():
        return sql.partition("'")[0]
    if sql[0] in "'\"":
        return "text"
    is_double = "e" in sql or (sql.endswith("D") and not sql.endswith("BD"))
    return "D" if is_double else "F" if sql.endswith("F") else "exact"


def join_predicates(children):
    def text(word, parts):
        where = f" {word} ".join(f"({part[0]})" for part in parts)
        joins = both if word == "AND" else either
        names = [name for part in parts for name in part[2:]]
        return where, lambda row, zone: joins(*(p[1](row, zone) for p in parts)), *names

    def negated(part):
        return f"NOT ({part[0]})", lambda row, zone: negation(part[1](row, zone)), *part[2:]

    several = st.lists(children, min_size=2, max_size=3)
    return st.builds(text, st.sampled_from(["AND", "OR"]), several) | st.builds(negated, children)


UNKNOWN = st.sampled_from(
    [
        ("length(S) > 1", lambda row, _: None if row["S"] is None else len(row["S"]) > 1, "S"),
        ("coalesce(S, 'ab') = 'ab'", lambda row, _: row["S"] in (None, "ab"), "S"),
        ("startswith(upper(S), 'A')",
         lambda row, _: None if row["S"] is None else row["S"].upper().startswith("A"), "S"),
    ]
)  # fmt: skip
PREDICATES = leaves() | st.recursive(
    leaves() | leaves() | leaves() | UNKNOWN, join_predicates, max_leaves=6
)


# statistics of random files


def arrow(kind, values):
    if pa.types.is_timestamp(kind):
        return pa.array(values, pa.int64()).cast(kind)
    return pa.array(values, kind)


def bounds_of(kind, values):
    plain = [v for v in values if v is not None and not (isinstance(v, float) and math.isnan(v))]
    if not plain:
        return None, None
    key = str.encode if pa.types.is_string(kind) else lambda v: v
    return min(plain, key=key), max(plain, key=key)


def make_statistics(kind, files, worths):
    """Return statistics of files; ``worths``: how complete each footer is."""
    is_text = pa.types.is_string(kind) or pa.types.is_binary(kind)
    bounds, nulls, counts, exact, free = [], [], [], [], []
    for values, worth in zip(files, worths, strict=True):
        low, high = bounds_of(kind, values)
        if worth in {"no bounds", "nothing"}:
            low = high = None
        if worth == "cut" and is_text and low is not None:
            low, high = low[:1], text_above(high)
        has_nan = any(isinstance(v, float) and math.isnan(v) for v in values)
        bounds.append((low, high))
        nulls.append(-1 if worth in ("nothing", "no counts") else values.count(None))
        counts.append(-1 if worth == "nothing" else len(values))
        exact.append(worth == "all")
        free.append(not has_nan and worth in ("all", "cut"))
    return ColumnStats(
        least=arrow(kind, [low for low, _ in bounds]),
        greatest=arrow(kind, [high for _, high in bounds]),
        nulls=np.array(nulls, np.int64),
        values=np.array(counts, np.int64),
        is_exact_least=np.array(exact),
        is_exact_greatest=np.array(exact),
        is_nan_free=np.array(free) | (not pa.types.is_floating(kind)),
    )


def text_above(value):
    """Return a short text that is not less; None if there is none."""
    if len(value) <= 1:
        return value
    if isinstance(value, bytes):
        return bytes([value[0] + 1]) if value[0] < 255 else None
    return chr(ord(value[0]) + 1) if ord(value[0]) < 0xD7FF else None


WORTHS = ("all", "all", "all", "no bounds", "nothing", "no counts", "cut")
FILES = 24


def tables(names, chance):
    """Draw the rows of each file, and the index of the indexed columns."""
    sizes = [chance.randrange(5) for _ in range(FILES)]
    columns, index = {}, {}
    for name in sorted(names):
        values = [*values_of(name), None, None]
        columns[name] = [
            [chance.choice(few) for _ in range(size)]
            for size in sizes
            for few in [chance.choices(values, k=2)]  # so that a file is all null, or one value
        ]
        worths = [chance.choice(WORTHS) for _ in sizes]
        if chance.randrange(10):
            index[name] = make_statistics(COLUMNS[name][0], columns[name], worths)
    rows = [
        [{name: columns[name][at][row] for name in columns} for row in range(size)]
        for at, size in enumerate(sizes)
    ]
    return rows, make_index(index, FILES)


def make_index(columns, count):
    return FileIndex(
        partition=pa.array([""] * count).dictionary_encode(),
        name=pa.array([f"{at}.parquet" for at in range(count)]),
        size=np.arange(count, dtype=np.int64),
        rows=np.full(count, -1, np.int64),
        columns=columns,
    )


@LAW
@given(data=st.data())
def test_no_file_with_a_matching_row_is_skipped(data):
    text, evaluate, *names = data.draw(PREDICATES)
    rows, index = tables(set(names), data.draw(st.builds(Random, st.integers(0, 1 << 32))))
    zone = data.draw(st.sampled_from(ZONES))

    kept = may_match(parse(text), index, schema=SCHEMA, zone=zone)

    needed = [any(evaluate(row, zone) is True for row in file) for file in rows]
    lost = [at for at, is_needed in enumerate(needed) if is_needed and not kept[at]]
    assert [] == lost, f"{text} in {zone} loses {[rows[at] for at in lost]}"


#: how Spark compares these is one thing in ANSI mode and another without
UNSURE = {name: {"'0.5'", "'1.1'"} for name in ("b", "i", "l", "p.q")} | {
    "f": {"'1.1'", "16777217", "9007199254740993", "-9007199254740993", "9223372036854775807"}
}
MISSES = {
    "=": lambda low, high: low > 0 or high < 0,
    "<=>": lambda low, high: low > 0 or high < 0,
    "!=": lambda low, high: low == high == 0,
    "<": lambda low, _: low >= 0,
    "<=": lambda low, _: low > 0,
    ">": lambda _, high: high <= 0,
    ">=": lambda _, high: high < 0,
}


@LAW
@given(data=st.data())
def test_comparison_skips_every_file_whose_bounds_exclude_it(data):
    name = data.draw(st.sampled_from(sorted(COLUMNS)))
    kind, _, literals = COLUMNS[name]
    sql = data.draw(st.sampled_from([one for one in literals if one not in UNSURE.get(name, ())]))
    sign = data.draw(st.sampled_from(sorted(MISSES)))
    plain = [v for v in values_of(name) if not (isinstance(v, float) and math.isnan(v))]
    file = st.lists(st.sampled_from(plain), min_size=1, max_size=2)
    files = data.draw(st.lists(file, min_size=1, max_size=4))
    index = make_index({name: make_statistics(kind, files, ["all"] * len(files))}, len(files))

    kept = may_match(parse(f"{name} {sign} {sql}"), index, schema=SCHEMA, zone="UTC")

    made, value = parse_literal(sql, name, "UTC")
    ends = [[order(made(end), value) for end in bounds_of(kind, file)] for file in files]
    proven = [MISSES[sign](*both_ends) for both_ends in ends]
    assert [] == np.flatnonzero(kept & proven).tolist(), f"{name} {sign} {sql} of {files}"
