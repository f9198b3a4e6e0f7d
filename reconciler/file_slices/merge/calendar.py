"""Find and convert the calendar of a base file's dates, as its footer tells Spark.

Java's old classes use the hybrid calendar (Julian before 15 October 1582), Spark 3 the proleptic
Gregorian one. Before that date they give the same number to different days. Timestamps differ until
1900, because of old local times. A file of Hudi's row writer names its calendar, a file of its Avro
writer does not; for those, Spark refuses old values unless its settings decide. Source: Spark's
DataSourceUtils.datetimeRebaseSpec, RebaseDateTime.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from reconciler.arrays import Integers
from reconciler.errors import UnsupportedError
from reconciler.lazy_dataclass import dataclass

_VERSION: Final = b"org.apache.spark.version"
_LEGACY: Final = b"org.apache.spark.legacyDateTime"
_ZONE: Final = b"org.apache.spark.timeZone"
#: any version from 3.0.0 on means the proleptic calendar
_SPARK: Final = b"3.5.0"
_FIRST_DATE: Final = -141_427  # 1582-10-15 in days since 1970
_FIRST_TIME: Final = -2_208_988_800_000_000  # 1900-01-01 in microseconds since 1970
_DAY: Final = 86_400_000_000
_UNITS: Final = {"s": 1_000_000, "ms": 1_000, "us": 1}


@dataclass(frozen=True, slots=True)
class Calendar:
    """A calendar; ``zone``: the time zone of hybrid timestamps, "" if unknown."""

    kind: Literal["unspecified", "proleptic", "hybrid"] = "unspecified"
    zone: str = ""

    @classmethod
    def from_footer(cls, footer: Mapping[bytes, bytes] | None) -> Self:
        """Return the calendar that the key-value pairs of a Parquet footer name.

        >>> Calendar.from_footer({b"org.apache.spark.version": b"3.5.9"})
        Calendar(kind='proleptic', zone='')
        """
        metadata = footer or {}
        version = metadata.get(_VERSION)
        if version is None:
            return cls()
        if version >= b"3.0.0" and _LEGACY not in metadata:  # compared as text, as Spark does
            return cls("proleptic")
        return cls("hybrid", metadata.get(_ZONE, b"").decode(errors="replace"))

    @property
    def footer_metadata(self) -> dict[str, str]:
        """The footer's key-value pairs that name this calendar."""
        metadata = {} if self.kind == "unspecified" else {_VERSION: _SPARK}
        if self.kind == "hybrid":
            metadata[_LEGACY] = b""
            if self.zone:
                metadata[_ZONE] = self.zone.encode()
        return {key.decode(): value.decode() for key, value in metadata.items()}


UNSPECIFIED: Final = Calendar()
PROLEPTIC: Final = Calendar("proleptic")


def convert_calendar(batch: Any, have: Calendar, wanted: Calendar, path: str) -> Any:
    """Convert rows from one calendar to another; rows without old dates are unchanged.

    Raises UnsupportedError naming ``path`` and the column when the calendar of an old value is
    unknown, or the wanted calendar is not the proleptic one.
    """
    if have == wanted:
        return batch
    columns = list(batch.columns)
    for at, field in enumerate(batch.schema):
        if _has_old_dates(columns[at]):
            where = f"{path}, column {field.name}"
            if (have.kind, wanted) != ("hybrid", PROLEPTIC):
                raise UnsupportedError(
                    f"{where}: dates before 1582 or times before 1900 in the {have.kind} calendar "
                    f"cannot be written in the {wanted.kind} one; rewrite the table with Spark "
                    "and spark.sql.parquet.datetimeRebaseModeInRead set"
                )
            columns[at] = _rebase_column(columns[at], have.zone, where)
    return pa.RecordBatch.from_arrays(columns, schema=batch.schema)


def _has_old_dates(column: Any) -> bool:
    """Return whether any value of a column depends on the calendar, at any depth."""
    kind, types = column.type, pa.types
    if types.is_struct(kind):
        return any(map(_has_old_dates, column.flatten()))
    if types.is_list(kind):
        return _has_old_dates(column.flatten())
    if types.is_map(kind):
        return _has_old_dates(column.items)
    if types.is_date32(kind):
        first = _FIRST_DATE
    elif types.is_timestamp(kind) and kind.unit in _UNITS:
        first = _FIRST_TIME // _UNITS[kind.unit]
    else:
        return False
    least = pc.min(column).value if len(column) else None
    return least is not None and least < first


def _rebase_column(column: Any, zone: str, where: str) -> Any:
    kind, types = column.type, pa.types
    if types.is_date32(kind):
        return _replace_values(
            column, rebase_to_gregorian(_read_numbers(column, np.int32).astype(np.int64)), np.int32
        )
    if types.is_timestamp(kind) and zone == "UTC":
        day = _DAY // _UNITS[kind.unit]
        moments = _read_numbers(column, np.int64)
        days = moments // day
        return _replace_values(column, moments + (rebase_to_gregorian(days) - days) * day, np.int64)
    raise UnsupportedError(
        f"{where}: old values of type {kind} in the hybrid calendar (zone {zone or 'unknown'}) "
        "cannot be rebased; rewrite the table with Spark"
    )


def _read_numbers(column: Any, kind: type) -> NDArray[Any]:
    whole: NDArray[Any] = np.frombuffer(column.buffers()[1], kind)
    return whole[column.offset : column.offset + len(column)]


def _replace_values(column: Any, values: Integers, kind: type) -> Any:
    data = pa.py_buffer(np.ascontiguousarray(values.astype(kind)))
    replaced = pa.Array.from_buffers(column.type, len(column), [None, data])
    return pc.if_else(column.is_valid(), replaced, pa.scalar(None, column.type))


def rebase_to_gregorian(days: Integers) -> Integers:
    """Convert days since 1970 from the hybrid calendar to the proleptic one.

    Year, month and day stay the same; a leap day that the Gregorian calendar lacks becomes 1 March
    (RebaseDateTime.rebaseJulianToGregorianDays).

    >>> rebase_to_gregorian(np.array([-719164, -141428, -141427])).tolist()
    [-719162, -141438, -141427]
    """
    # years from 1 March, so that the leap day comes last; the count starts on 1 March of year 0
    count = days + 719_470
    years = (4 * count + 3) // 1461
    day_of_year = count - (1461 * years) // 4
    moved = 365 * years + years // 4 - years // 100 + years // 400 + day_of_year - 719_468
    return np.where(days < _FIRST_DATE, moved, days)
