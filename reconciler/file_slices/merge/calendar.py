"""Which calendar the dates of a base file are counted in, as its footer tells Spark.

Before 15 October 1582 the hybrid calendar of Java's old classes (Julian until then) and the
proleptic Gregorian one of Spark 3 give the same number to different days; timestamps differ until
1900, by the local times that zones had before. A file of Hudi's row writer says which one it means,
one of its Avro writer says nothing, and Spark then refuses old values unless its settings decide.
Source: Spark's DataSourceUtils.datetimeRebaseSpec, RebaseDateTime.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from reconciler.errors import UnsupportedError

_VERSION: Final = b"org.apache.spark.version"
_LEGACY: Final = b"org.apache.spark.legacyDateTime"
_ZONE: Final = b"org.apache.spark.timeZone"
#: any from 3.0.0 on means the proleptic calendar
_SPARK: Final = b"3.5.0"
_FIRST_DATE: Final = -141_427  # 1582-10-15 in days since 1970
_FIRST_TIME: Final = -2_208_988_800_000_000  # 1900-01-01 in microseconds since 1970
_DAY: Final = 86_400_000_000
_UNITS: Final = {"s": 1_000_000, "ms": 1_000, "us": 1}


@dataclass(frozen=True, slots=True)
class Calendar:
    """``zone``: the one that timestamps of the hybrid calendar were made in, "" where not said."""

    kind: Literal["unsaid", "proleptic", "hybrid"] = "unsaid"
    zone: str = ""

    @classmethod
    def from_footer(cls, footer: Mapping[bytes, bytes] | None) -> Self:
        """What the key-value pairs of a parquet footer say.

        >>> Calendar.of({b"org.apache.spark.version": b"3.5.9"})
        Calendar(kind='proleptic', zone='')
        """
        said = footer or {}
        version = said.get(_VERSION)
        if version is None:
            return cls()
        if version >= b"3.0.0" and _LEGACY not in said:  # compared as text, as Spark does
            return cls("proleptic")
        return cls("hybrid", said.get(_ZONE, b"").decode(errors="replace"))

    @property
    def footer_metadata(self) -> dict[str, str]:
        """The key-value pairs that say so."""
        said = {} if self.kind == "unsaid" else {_VERSION: _SPARK}
        if self.kind == "hybrid":
            said[_LEGACY] = b""
            if self.zone:
                said[_ZONE] = self.zone.encode()
        return {key.decode(): value.decode() for key, value in said.items()}


UNSPECIFIED: Final = Calendar()
PROLEPTIC: Final = Calendar("proleptic")


def choose_common_calendar(calendars: Iterable[Calendar]) -> Calendar:
    """The calendar for rows of several files: theirs, where they agree, else the proleptic one.

    >>> common_calendar([UNSAID, UNSAID]).kind
    'unsaid'
    >>> common_calendar([UNSAID, PROLEPTIC]).kind
    'proleptic'
    """
    found = {*calendars}
    return found.pop() if len(found) == 1 else PROLEPTIC if found else UNSPECIFIED


def convert_calendar(batch: Any, have: Calendar, wanted: Calendar, path: str) -> Any:
    """Rows of one calendar in another; those without old dates are the same in all of them.

    Raises UnsupportedError naming ``path`` and the column where it is not known which day a value
    means, or how it is counted in the wanted calendar.
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
                    f"cannot go into a file of the {wanted.kind} one; rewrite the table with Spark "
                    "and spark.sql.parquet.datetimeRebaseModeInRead set"
                )
            columns[at] = _rebase_column(columns[at], have.zone, where)
    return pa.RecordBatch.from_arrays(columns, schema=batch.schema)


def _has_old_dates(column: Any) -> bool:
    """Whether a calendar matters to any value of a column, at any depth."""
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
        f"{where}: old values of type {kind} in the hybrid calendar (zone {zone or 'not said'}) "
        "cannot be rebased; rewrite the table with Spark"
    )


def _read_numbers(column: Any, kind: type) -> NDArray[Any]:
    whole: NDArray[Any] = np.frombuffer(column.buffers()[1], kind)
    return whole[column.offset : column.offset + len(column)]


def _replace_values(column: Any, values: NDArray[np.int64], kind: type) -> Any:
    data = pa.py_buffer(np.ascontiguousarray(values.astype(kind)))
    made = pa.Array.from_buffers(column.type, len(column), [None, data])
    return pc.if_else(column.is_valid(), made, pa.scalar(None, column.type))


def rebase_to_gregorian(days: NDArray[np.int64]) -> NDArray[np.int64]:
    """Days since 1970 of the hybrid calendar as those of the proleptic one.

    The same year, month and day, a leap day that the Gregorian calendar lacks as 1 March
    (RebaseDateTime.rebaseJulianToGregorianDays).

    >>> gregorian(np.array([-719164, -141428, -141427])).tolist()
    [-719162, -141438, -141427]
    """
    # years from 1 March, so that the leap day comes last; the count starts on 1 March of year 0
    count = days + 719_470
    years = (4 * count + 3) // 1461
    of_year = count - (1461 * years) // 4
    moved = 365 * years + years // 4 - years // 100 + years // 400 + of_year - 719_468
    return np.where(days < _FIRST_DATE, moved, days)
