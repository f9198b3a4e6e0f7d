"""Encode records of the metadata table's indexes for new base files.

A cell is (key, value) as an HFile holds it. The value is an Avro record of the table's own schema
with an empty key. Hudi's versions store a column's bounds in different ways per type, so the way is
learned from existing records and never guessed. Source: HoodieMetadataPayload,
HoodieTableMetadataUtil (convertMetadataToColumnStatsRecords, …ToBloomFilterRecords,
…ToRecordIndexRecords), HoodieAvroWrapperUtils.
"""

from __future__ import annotations

import io
import math
import struct
import uuid
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Any, Final, Self

from reconciler.errors import UnsupportedError
from reconciler.hudi.codecs.avro_binary import decoding, encode_record, parse_schema
from reconciler.hudi.files.names import BaseName
from reconciler.hudi.metadata.index_keys import build_bloom_keys, build_stats_keys, hash_name
from reconciler.lazy_dataclass import dataclass

Cell = tuple[bytes, bytes]
#: a bound as the file stores it: dates in days, times in the column's own unit
Bound = bool | int | float | str | bytes | Decimal

_COLUMN_STATS: Final = 3
_BLOOM_FILTERS: Final = 4
_RECORD_INDEX: Final = 5
_PARTITION_STATS: Final = 6
_NULL: Final = "null"
_INTS: Final = frozenset({"IntWrapper", "DateWrapper"})
_INT_LIMIT: Final = 1 << 31
#: digits after the point in the older wrapper of decimals
_DIGITS: Final = 15
#: Python types that each wrapper holds; bool is not accepted as int
_HOLDS: Final[Mapping[str, tuple[type, ...]]] = {
    "BooleanWrapper": (bool,),
    "IntWrapper": (int,),
    "LongWrapper": (int,),
    "FloatWrapper": (float,),
    "DoubleWrapper": (float,),
    "StringWrapper": (str,),
    "BytesWrapper": (bytes, Decimal),
    "DecimalWrapper": (Decimal,),
    "DateWrapper": (int,),
    "TimestampMicrosWrapper": (int,),
    "TimeMicrosWrapper": (int,),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnRange:
    """The range of one column in a base file; ``values`` counts nulls too.

    ``least`` and ``greatest`` are None if all values are null. NaN is the greatest number, as in
    Spark. ``size`` and ``plain_size``: compressed and uncompressed bytes of the column in the file.
    """

    column: str
    least: Bound | None = None
    greatest: Bound | None = None
    values: int = 0
    nulls: int = 0
    size: int = 0
    plain_size: int = 0

    def merge(self, other: Self) -> Self:
        """Return the range of both files together."""
        bounded = [column_range for column_range in (self, other) if column_range.least is not None]
        return type(self)(
            column=self.column,
            least=min((r.least for r in bounded), key=_sort_key, default=None),
            greatest=max((r.greatest for r in bounded), key=_sort_key, default=None),
            values=self.values + other.values,
            nulls=self.nulls + other.nulls,
            size=self.size + other.size,
            plain_size=self.plain_size + other.plain_size,
        )


def _sort_key(bound: Any) -> tuple[bool, Any]:
    """Return a sort key: NaN last, text by its bytes, as Parquet and Spark compare."""
    if isinstance(bound, float) and math.isnan(bound):
        return (True, 0.0)
    return (False, bound.encode() if isinstance(bound, str) else bound)


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundWrapper:
    """The form in which the index stores a column's bounds. ``wrapper``: its record's full name.

    ``value_type``: a type description of Hudi 1.1 and later, None before.
    """

    wrapper: str
    value_type: Any = None

    @classmethod
    def learn(
        cls, values: Iterable[bytes], schema: str, path: str, columns: Iterable[str]
    ) -> dict[str, Self]:
        """Return the wrappers of those columns that records of the index show.

        ``values``: records of column_stats or partition_stats with one schema; only as many are
        read as needed. Raises FormatError naming ``path``.
        """
        missing, wrappers, remaining = set(columns), {}, iter(values)
        while missing and (value := next(remaining, None)) is not None:
            stats = decode_stats(value, schema, path)
            column, bound = stats["columnName"], stats.get("minValue")
            if bound is not None and column in missing:
                missing.remove(column)
                wrappers[column] = cls(wrapper=bound[0], value_type=stats.get("valueType"))
        return wrappers

    @staticmethod
    def read_column(value: bytes, schema: str, path: str) -> str:
        """Return the column of a column_stats record; raises FormatError naming ``path``."""
        with decoding(path, "an Avro record"):
            return str(decode_stats(value, schema, path)["columnName"])

    def wrap(self, bound: Bound | None, where: str) -> Any:
        """Return a bound as a branch of the schema's union; UnsupportedError if it does not fit."""
        if bound is None:
            return None
        kind = self.wrapper.rpartition(".")[2]
        if type(bound) not in _HOLDS.get(kind, ()):
            raise UnsupportedError(
                f"{where}: the index keeps its bounds in a {kind}, which a "
                f"{type(bound).__name__} does not fit; drop the index column_stats"
            )
        if not _fits_wrapper(bound, kind):
            raise UnsupportedError(
                f"{where}: the index keeps its bounds in a {kind}, which cannot hold "
                f"{bound!r}; drop the index column_stats"
            )
        if isinstance(bound, Decimal):
            bound = _rescale(bound, self._read_scale(kind, where), where)
            bound = _encode_unscaled(bound) if kind == "BytesWrapper" else bound
        return (self.wrapper, {"value": bound})

    def _read_scale(self, kind: str, where: str) -> int:
        """Return how many digits after the point the index keeps of decimals."""
        if kind != "BytesWrapper":
            return _DIGITS
        value_type = self.value_type[1] if self.value_type else {}
        scale = str(value_type.get("additionalInfo")).partition(",")[2]
        if not scale.isdecimal():
            raise UnsupportedError(
                f"{where}: the index does not record its number of decimal digits; drop the index "
                "column_stats"
            )
        return int(scale)


def _fits_wrapper(bound: Bound, kind: str) -> bool:
    """Return whether a 32-bit wrapper holds the bound exactly: its column may have been widened.

    >>> _fits_wrapper(0.1, "FloatWrapper"), _fits_wrapper(0.5, "FloatWrapper")
    (False, True)
    >>> _fits_wrapper(1 << 31, "IntWrapper")
    False
    """
    if kind in _INTS and isinstance(bound, int):
        return -_INT_LIMIT <= bound < _INT_LIMIT
    if kind == "FloatWrapper" and isinstance(bound, float) and math.isfinite(bound):
        try:
            return struct.unpack("<f", struct.pack("<f", bound)) == (bound,)
        except OverflowError:
            return False
    return True


def decode_stats(value: bytes, schema: str, path: str) -> dict[str, Any]:
    """Decode a record's statistics; union values keep their branch name. Raises FormatError."""
    import fastavro  # noqa: PLC0415

    with decoding(path, "an Avro record"):
        parsed = parse_schema(schema, path)
        record: Any = fastavro.schemaless_reader(
            io.BytesIO(value), parsed, None, return_record_name=True
        )
        _name, stats = record["ColumnStatsMetadata"] or (_NULL, {})
        return dict(stats)


def _encode_unscaled(bound: Decimal) -> bytes:
    """Encode the digits as Java's BigInteger.toByteArray.

    >>> [_encode_unscaled(Decimal(digits)).hex() for digits in ("3.25", "-3.125", "1.28", "-1.28")]
    ['0145', 'f3cb', '0080', '80']
    """
    number = _unscaled_integer(bound)
    length = (number + (number < 0)).bit_length() // 8 + 1
    return number.to_bytes(length, "big", signed=True)


def _unscaled_integer(bound: Decimal) -> int:
    sign, digits, _exponent = bound.as_tuple()
    number = int("".join(map(str, digits)) or "0")
    return -number if sign else number


def _rescale(bound: Decimal, scale: int, where: str) -> Decimal:
    """Return the same number with ``scale`` digits after the point."""
    number, exponent = _unscaled_integer(bound), bound.as_tuple().exponent
    more = scale + exponent if isinstance(exponent, int) else -1
    if more < 0 and number % 10**-more:
        raise UnsupportedError(
            f"{where}: {bound} has more than the {scale} decimal digits that the index keeps; drop "
            "the index column_stats"
        )
    number = number * 10**more if more >= 0 else number // 10**-more
    # scaleb would round to 28 digits
    return Decimal(f"{number}E-{scale}")


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordEncoder:
    """Encodes cells with one schema: the one of the table's newest records."""

    schema: str
    path: str

    def encode_column_stats(
        self,
        partition: str,
        name: str,
        ranges: Sequence[ColumnRange],
        wrappers: Mapping[str, BoundWrapper],
    ) -> list[Cell]:
        """Return a cell for each range of a base file.

        ``partition`` is "." if the table has none. Raises UnsupportedError for a column without
        a wrapper: without its range, a reader that skips by this column would lose the file's rows.
        """
        keys = build_stats_keys([part.column for part in ranges], partition, [name])
        return self._encode_ranges(_COLUMN_STATS, name, keys, ranges, wrappers)

    def encode_partition_stats(
        self, partition: str, ranges: Sequence[ColumnRange], wrappers: Mapping[str, BoundWrapper]
    ) -> list[Cell]:
        """Return a cell for each range of a partition, marked as tight."""
        tail = hash_name(partition)
        keys = [hash_name(part.column) + tail for part in ranges]
        return self._encode_ranges(_PARTITION_STATS, partition, keys, ranges, wrappers)

    def encode_bloom_filter(
        self, partition: str, name: str, instant: str, code: str, text: str
    ) -> Cell:
        """Return the cell of a base file's filter, from code and text of its footer."""
        (key,) = build_bloom_keys(partition, [name])
        values = {
            "type": code,
            "timestamp": instant,
            "bloomFilter": text.encode(),
            "isDeleted": False,
        }
        return key.encode(), self._encode_record(_BLOOM_FILTERS, "BloomFilterMetadata", values)

    def encode_record_location(self, partition: str, name: str, instant_ms: int) -> bytes:
        """Return the record index's value for every record of a base file.

        ``partition`` is "" if the table has none. ``instant_ms``: the instant in milliseconds
        since 1970, read in the timeline's zone. Raises UnsupportedError when the file id is not a
        UUID with a number.
        """
        parsed = BaseName.parse(name)
        uid, _, index = (parsed.file_id if parsed else name).rpartition("-")
        try:
            high, low = _split_uuid(uuid.UUID(uid)), int(index)
        except ValueError:
            raise UnsupportedError(
                f"{name}: its file id is not a UUID with a number, as the record index needs; drop "
                "the index record_index"
            ) from None
        values = {
            "partitionName": partition,
            "fileIdHighBits": high[0],
            "fileIdLowBits": high[1],
            "fileIndex": low,
            "fileId": "",
            "instantTime": instant_ms,
            "fileIdEncoding": 0,
        }
        return self._encode_record(_RECORD_INDEX, "recordIndexMetadata", values)

    def _encode_ranges(
        self,
        kind: int,
        name: str,
        keys: Iterable[str],
        ranges: Iterable[ColumnRange],
        wrappers: Mapping[str, BoundWrapper],
    ) -> list[Cell]:
        return [
            (key.encode(), self._encode_stats(kind, name, column_range, wrappers))
            for key, column_range in zip(keys, ranges, strict=True)
        ]

    def _encode_stats(
        self, kind: int, name: str, column_range: ColumnRange, wrappers: Mapping[str, BoundWrapper]
    ) -> bytes:
        where = f"{name}, column {column_range.column}"
        wrapper = wrappers.get(column_range.column)
        if wrapper is None:
            raise UnsupportedError(
                f"{where}: the index has no entry that shows how it stores this column; drop the "
                "index column_stats"
            )
        least, greatest = _replace_nan(column_range)
        values = {
            "fileName": name,
            "columnName": column_range.column,
            "minValue": wrapper.wrap(least, where),
            "maxValue": wrapper.wrap(greatest, where),
            "valueCount": column_range.values,
            "nullCount": column_range.nulls,
            "totalSize": column_range.size,
            "totalUncompressedSize": column_range.plain_size,
            "isDeleted": False,
            "isTightBound": kind == _PARTITION_STATS,
            "valueType": wrapper.value_type,
        }
        return self._encode_record(kind, "ColumnStatsMetadata", values)

    def _encode_record(self, kind: int, field: str, values: Mapping[str, Any]) -> bytes:
        parsed = parse_schema(self.schema, self.path)
        fields = {part["name"]: part["type"] for part in parsed["fields"]}
        if field not in fields:
            raise UnsupportedError(f"{self.path}: its records have no field {field!r}")
        record = {"key": "", "type": kind, field: fill_record(fields[field], values, self.path)}
        return encode_record(fill_record(parsed, record, self.path), parsed)


def fill_record(schema: Any, values: Mapping[str, Any], path: str) -> dict[str, Any]:
    """Return a record with null for missing values, limited to the schema's fields.

    Raises UnsupportedError for a missing value that may not be null: the schema is of an unknown
    Hudi.
    """
    branches = schema if isinstance(schema, list) else [schema]
    (record,) = [branch for branch in branches if branch != _NULL]
    for field in record["fields"]:
        if field["name"] not in values and _NULL not in field["type"]:
            raise UnsupportedError(
                f"{path}: its records have a field {field['name']!r} that this version of "
                "reconciler cannot fill"
            )
    return {field["name"]: values.get(field["name"]) for field in record["fields"]}


def decode_decimal(value: bytes, kind: Mapping[str, Any]) -> Decimal:
    """Return a decimal of its unscaled bytes and its ``valueType``, which has the scale."""
    _precision, scale = kind["additionalInfo"].split(",")
    # scaleb would round to 28 digits
    return Decimal(f"{int.from_bytes(value, 'big', signed=True)}E-{int(scale)}")


def _replace_nan(column_range: ColumnRange) -> tuple[Bound | None, Bound | None]:
    """Return the bounds with infinity for NaN.

    Hudi 1.2 skips a file whose range ends in NaN when a query asks for greater numbers, and loses
    rows. A query for NaN itself finds nothing in an index either way.
    """
    least, greatest = column_range.least, column_range.greatest
    if isinstance(least, float) and math.isnan(least):
        least = -math.inf
    if isinstance(greatest, float) and math.isnan(greatest):
        greatest = math.inf
    return least, greatest


def _split_uuid(number: uuid.UUID) -> tuple[int, int]:
    """Return the two longs of Java's UUID."""
    data = number.bytes
    return (
        int.from_bytes(data[:8], "big", signed=True),
        int.from_bytes(data[8:], "big", signed=True),
    )
