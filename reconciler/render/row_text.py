"""Turn rows into the texts that Spark's expressions of ``reader.sql_text`` make of them.

Times are ISO 8601 with microseconds, timestamps with the offset of a zone; binary is Base64.
Decimals and floating numbers are spelled as Java spells them, the latter with the fewest digits
that give the same number. Sources: JacksonGenerator, Cast, java.lang.Double.toString.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any, Final
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from reconciler.arrays import Integers

Texts = Sequence[str | None]

_NULL: Final = "null"
#: Java spells numbers from here on, and up to here, without an exponent
_LEAST_PLAIN, _MOST_PLAIN = 1e-3, 1e7
_SPECIAL: Final = {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}
#: what JSON texts must not hold as it is, as a pattern, and what they hold instead
_SPECIAL_SIGN: Final = '["\\\\\\x00-\\x1f]'
_ESCAPES: Final = {
    **{code: f"\\u{code:04X}" for code in range(0x20)},
    **{ord(sign): f"\\{letter}" for sign, letter in zip('"\\\b\f\n\r\t', '"\\bfnrt', strict=True)},
}
#: half a surrogate pair, for which Java has one sign and Python three
_SURROGATE: Final = re.compile(rb"\xed[\xa0-\xbf][\x80-\xbf]?")
_YEAR: Final = re.compile(r"[+-]?\d+")
_LAST_PLAIN_YEAR: Final = 9999
_DAY: Final = 86_400
#: days since 1970 in years of four digits: the first of year 0, and the first after year 9999
_LEAST_DAY, _MOST_DAY = -719_528, 2_932_897
_SECOND: Final = 1_000_000
#: the last year whose changes of a zone Arrow knows ends here
_FIRST_LATE: Final = int(np.datetime64("2037-01-01", "us").astype(np.int64))
#: rules of zones repeat from here on at the latest (Morocco's table ends in 2087), and each time
#: after so many seconds: those of 400 years, after which weekdays and leap years repeat
_FIRST_REPEATED: Final = int(np.datetime64("2100-01-01", "s").astype(np.int64))
_PERIOD: Final = 146_097 * _DAY


def find_unprintable_column(schema: pa.Schema) -> str | None:
    """Return the first column with a type that only Spark turns into text.

    >>> find_unprintable_column(pa.schema([("m", pa.map_(pa.int32(), pa.int32()))]))
    'm'
    """
    return next((field.name for field in schema if not _is_printable(field.type)), None)


def _is_printable(kind: pa.DataType) -> bool:
    types = pa.types
    if types.is_map(kind):
        return types.is_string(kind.key_type) and _is_printable(kind.item_type)
    if types.is_nested(kind):
        is_known = types.is_struct(kind) or types.is_list(kind) or types.is_large_list(kind)
        return is_known and all(_is_printable(kind.field(n).type) for n in range(kind.num_fields))
    if types.is_timestamp(kind):
        return bool(kind.unit == "us")
    tests = (types.is_null, types.is_boolean, types.is_signed_integer, types.is_floating,
             types.is_decimal128, types.is_string, types.is_large_string, types.is_binary,
             types.is_large_binary, types.is_date32)  # fmt: skip
    return any(is_kind(kind) for is_kind in tests)


def make_cells(rows: pa.RecordBatch, zone: str) -> Iterator[tuple[str | None, ...]]:
    """Yield each row's values as text, None for null; ``zone``: that of timestamps."""
    return zip(*(_make_texts(column, zone) for column in rows.columns), strict=True)


def make_json_lines(rows: pa.RecordBatch, zone: str) -> Iterator[str]:
    r"""Yield each row as a JSON object with every column, null ones too.

    >>> rows = pa.record_batch({"a": [1, None], "b": ["\n", "x"], "c": [[0.5], []]})
    >>> list(make_json_lines(rows, "UTC"))
    ['{"a":1,"b":"\\n","c":[0.5]}', '{"a":null,"b":"x","c":[]}']
    """
    columns = [_make_json(column, zone) for column in rows.columns]
    return _join_objects(rows.schema.names, columns, len(rows))


def _join_objects(
    names: Sequence[str], columns: Sequence[Sequence[str]], count: int
) -> Iterator[str]:
    heads = [_quote(name).replace("%", "%%") for name in names]
    template = "{" + ",".join(f"{head}:%s" for head in heads) + "}"
    if not columns:
        return iter(["{}"] * count)
    return (template % values for values in zip(*columns, strict=True))


def _make_texts(values: Any, zone: str) -> Texts:  # noqa: PLR0911 (a case for each kind of type)
    """Return values as text; nested ones as JSON."""
    kind, types = values.type, pa.types
    if types.is_nested(kind):
        is_null = values.is_null().to_pylist()
        shown = _make_json(values, zone)
        return [None if null else text for null, text in zip(is_null, shown, strict=True)]
    if types.is_floating(kind):
        return _map(_spell_float(kind), values.to_pylist())
    if types.is_decimal(kind):
        return _map(str, values.to_pylist())
    if types.is_binary(kind) or types.is_large_binary(kind):
        return _map(lambda data: base64.b64encode(data).decode("ascii"), values.to_pylist())
    if types.is_timestamp(kind):
        return _spell_times(values, zone)
    if types.is_date32(kind):
        return _spell_days(values)
    return _list_texts(values.cast(pa.string()))


def _list_texts(values: Any) -> list[Any]:
    """Return the values of a column of texts; what is not UTF-8 in them is replaced."""
    try:
        texts: list[Any] = values.to_pylist()
    except UnicodeDecodeError:
        texts = [
            None if data is None else _SURROGATE.sub(b"\xff", data).decode("utf-8", "replace")
            for data in values.cast(pa.binary()).to_pylist()
        ]
    return texts


def _make_json(values: Any, zone: str) -> Sequence[str]:
    """Return values as JSON, null ones too."""
    kind, types = values.type, pa.types
    if types.is_struct(kind):
        parts = [_make_json(part, zone) for part in values.flatten()]
        names = [kind.field(at).name for at in range(kind.num_fields)]
        return _hide_nulls(values, list(_join_objects(names, parts, len(values))))
    if types.is_list(kind) or types.is_large_list(kind):
        items = _make_json(values.values, zone)
        return _hide_nulls(values, [f"[{','.join(part)}]" for part in _split(values, items)])
    if types.is_map(kind):
        keys = [_quote(key) for key in _list_texts(values.keys)]
        pairs = [
            f"{key}:{item}" for key, item in zip(keys, _make_json(values.items, zone), strict=True)
        ]
        return _hide_nulls(values, [f"{{{','.join(part)}}}" for part in _split(values, pairs)])
    return _make_flat_json(values, zone)


def _make_flat_json(values: Any, zone: str) -> list[str]:
    """Return values that are not nested as JSON; most of them in one step of Arrow."""
    kind, types, made = values.type, pa.types, None
    if types.is_boolean(kind) or types.is_integer(kind):
        made = values.cast(pa.string())
    elif types.is_string(kind) and not _has_special_sign(values):
        made = pc.binary_join_element_wise('"', values, '"', "")
    if made is not None:
        return _list_texts(made.fill_null(_NULL))
    cells = _make_texts(values, zone)
    if types.is_decimal(kind):
        return [_NULL if text is None else text for text in cells]
    if types.is_floating(kind):
        special = {text: _quote(text) for text in _SPECIAL.values()}
        return [_NULL if text is None else special.get(text, text) for text in cells]
    return [_NULL if text is None else _quote(text) for text in cells]


def _has_special_sign(values: Any) -> bool:
    return bool(pc.any(pc.match_substring_regex(values, _SPECIAL_SIGN)).as_py())


def _hide_nulls(values: Any, texts: list[str]) -> list[str]:
    if values.null_count:
        for row in np.flatnonzero(values.is_null().to_numpy(zero_copy_only=False)).tolist():
            texts[row] = _NULL
    return texts


def _split(values: Any, items: Sequence[str]) -> Iterator[Sequence[str]]:
    """Yield the items of each list or map; ``items``: those of its whole child array."""
    offsets = values.offsets.to_pylist()
    return (items[begin:end] for begin, end in pairwise(offsets))


def _map(spell: Callable[[Any], str], values: Sequence[Any]) -> Texts:
    return [None if value is None else spell(value) for value in values]


def _quote(text: str) -> str:
    return f'"{text.translate(_ESCAPES)}"'


def _spell_float(kind: pa.DataType) -> Callable[[float], str]:
    """Return how Java spells floating numbers of a type.

    >>> spell = _spell_float(pa.float64())
    >>> [spell(n) for n in (0.1, 1e7, 1234567.0, -0.0009, 5e-324)]
    ['0.1', '1.0E7', '1234567.0', '-9.0E-4', '4.9E-324']
    """
    make = np.float32 if pa.types.is_float32(kind) else np.float64

    def spell(value: float) -> str:
        if special := _SPECIAL.get(str(value)):
            return special
        if value == 0 or _LEAST_PLAIN <= abs(value) < _MOST_PLAIN:
            return np.format_float_positional(make(value), unique=True, trim="0")
        digits = np.format_float_scientific(make(value), unique=True, trim="0", exp_digits=1)
        short, _, exponent = digits.partition("e")
        if short.endswith(".0"):  # of one digit: Java takes two if they are closer
            two, _, other = f"{value:.1e}".partition("e")
            if make(f"{two}e{other}") == make(value):
                short, exponent = two, str(int(other))
        return f"{short}E{exponent.removeprefix('+')}"

    return spell


def _spell_days(values: Any) -> Texts:
    days = values.cast(pa.int32()).fill_null(0).to_numpy(zero_copy_only=False)
    texts = np.datetime_as_string(days.astype("datetime64[D]"), "D").tolist()
    is_usual = days.min(initial=0) >= _LEAST_DAY and days.max(initial=0) < _MOST_DAY
    return _blank(values, texts if is_usual else list(map(_pad_year, texts)))


def _spell_times(values: Any, zone: str) -> Texts:
    times = values.cast(pa.int64()).fill_null(0).to_numpy(zero_copy_only=False)
    if values.type.tz is None:
        return _blank(values, _spell_moments(times, np.zeros(1, np.int64)))
    shifts = _find_shifts(times, zone)
    minutes, place = np.unique(np.trunc(shifts / 60).astype(np.int64), return_inverse=True)
    offsets = [_spell_offset(each) for each in minutes.tolist()]
    texts = _spell_moments(times, shifts)
    shown = [text + offsets[at] for text, at in zip(texts, place.tolist(), strict=True)]
    return _blank(values, shown)


def _spell_moments(times: Integers, shifts: Integers) -> list[str]:
    """Return times with microseconds, moved by seconds."""
    days = times // (_DAY * _SECOND)
    if days.min(initial=0) > _LEAST_DAY and days.max(initial=0) < _MOST_DAY - 1:
        moved = (times + shifts * _SECOND).view("datetime64[us]")
        texts: list[str] = np.datetime_as_string(moved, "us").tolist()
        return texts
    seconds, parts = np.divmod(times, _SECOND)
    whole = np.datetime_as_string((seconds + shifts).view("datetime64[s]"), "s").tolist()
    return [
        f"{_pad_year(text)}.{part:06d}" for text, part in zip(whole, parts.tolist(), strict=True)
    ]


def _find_shifts(times: Integers, zone: str) -> Integers:
    """Return how many seconds a zone is ahead of UTC at times, which are microseconds.

    Arrow knows the changes of a zone only up to 2037.
    """
    is_late = times >= _FIRST_LATE
    known = pa.array(np.where(is_late, 0, times)).cast(pa.timestamp("us", zone))
    local = pc.local_timestamp(known).cast(pa.int64()).to_numpy()
    shifts: Integers = (local - known.cast(pa.int64()).to_numpy()) // _SECOND
    if is_late.any():
        minutes, place = np.unique(times[is_late] // (60 * _SECOND), return_inverse=True)
        shifts[is_late] = np.array(_find_late_shifts(minutes, zone))[place]
    return shifts


def _find_late_shifts(minutes: Integers, zone: str) -> list[int]:
    """Return how many seconds a zone is ahead of UTC at minutes that Arrow does not know."""
    rules, seconds = ZoneInfo(zone), minutes * 60
    seconds -= np.maximum((seconds - _FIRST_REPEATED) // _PERIOD, 0) * _PERIOD
    moments = (datetime.fromtimestamp(second, rules) for second in seconds.tolist())
    return [int((moment.utcoffset() or timedelta()).total_seconds()) for moment in moments]


def _pad_year(text: str) -> str:
    """Return a time with the year as Java spells it.

    >>> [_pad_year(text) for text in ("10000-01-01T00", "0000-01-01T00", "-001-01-01T00")]
    ['+10000-01-01T00', '0000-01-01T00', '-0001-01-01T00']
    """
    found = _YEAR.match(text)
    assert found is not None, text
    year = int(found[0])
    sign = "-" if year < 0 else "+" if year > _LAST_PLAIN_YEAR else ""
    return f"{sign}{abs(year):04d}{text[found.end() :]}"


def _spell_offset(minutes: int) -> str:
    """Return a zone's offset.

    >>> [_spell_offset(minutes) for minutes in (0, 120, -210)]
    ['Z', '+02:00', '-03:30']
    """
    if not minutes:
        return "Z"
    hours, rest = divmod(abs(minutes), 60)
    return f"{'-' if minutes < 0 else '+'}{hours:02d}:{rest:02d}"


def _blank(values: Any, texts: Sequence[str]) -> Texts:
    """Return texts with None where values are null."""
    if not values.null_count:
        return texts
    is_null = values.is_null().to_pylist()
    return [None if null else text for null, text in zip(is_null, texts, strict=True)]
