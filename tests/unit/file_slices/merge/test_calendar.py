"""Convert dates of the hybrid and the proleptic calendar."""

from __future__ import annotations

from datetime import UTC, date, datetime

import numpy as np
import pyarrow as pa
import pytest

from reconciler.errors import UnsupportedError
from reconciler.file_slices.merge.calendar import (
    PROLEPTIC,
    UNSPECIFIED,
    Calendar,
    convert_calendar,
    rebase_to_gregorian,
)

SPARK, LEGACY, ZONE = (
    f"org.apache.spark.{name}".encode() for name in ("version", "legacyDateTime", "timeZone")
)
HYBRID = Calendar("hybrid", "UTC")
#: RebaseDateTime's table: first day in the hybrid calendar -> days to add
STEPS = [
    (-719164, 2), (-682945, 1), (-646420, 0), (-609895, -1), (-536845, -2), (-500320, -3),
    (-463795, -4), (-390745, -5), (-354220, -6), (-317695, -7), (-244645, -8), (-208120, -9),
    (-171595, -10), (-141427, 0),
]  # fmt: skip


@pytest.mark.parametrize(
    ("footer", "expected"),
    [
        (None, UNSPECIFIED),
        ({b"writer.model.name": b"avro"}, UNSPECIFIED),
        ({SPARK: b"3.5.9"}, PROLEPTIC),
        ({SPARK: b"2.4.8"}, Calendar("hybrid")),
        ({SPARK: b"3.5.9", LEGACY: b"", ZONE: b"UTC"}, HYBRID),
    ],
)
def test_the_calendar_is_read_from_the_footer(footer, expected):
    assert expected == Calendar.from_footer(footer)


@pytest.mark.parametrize("calendar", [UNSPECIFIED, PROLEPTIC, HYBRID, Calendar("hybrid")])
def test_a_written_calendar_is_read_back(calendar):
    footer = {key.encode(): value.encode() for key, value in calendar.footer_metadata.items()}

    assert calendar == Calendar.from_footer(footer)


def test_days_move_as_in_sparks_table():
    days = np.arange(STEPS[0][0], STEPS[-1][0] + 100)
    starts, moves = np.array(STEPS).T
    expected = days + moves[np.searchsorted(starts, days, "right") - 1]

    assert expected.tolist() == rebase_to_gregorian(days).tolist()


def of(dates, times):
    moments = pa.array(times, pa.timestamp("us", "UTC"))
    return pa.RecordBatch.from_arrays([pa.array(dates, pa.date32()), moments], ["d", "t"])


NEW = of([date(1582, 10, 15), None], [datetime(1900, 1, 1, tzinfo=UTC), None])
#: 1000-02-20 in the hybrid calendar has the day number of 1000-02-25
OLD = of([date(1000, 2, 25), None], [datetime(1000, 2, 25, 13, tzinfo=UTC), None])


def test_old_dates_and_times_of_the_hybrid_calendar_keep_their_year_month_and_day():
    expected = of([date(1000, 2, 20), None], [datetime(1000, 2, 20, 13, tzinfo=UTC), None])

    assert expected.equals(convert_calendar(OLD.slice(0), HYBRID, PROLEPTIC, "f"))


@pytest.mark.parametrize("have", [UNSPECIFIED, PROLEPTIC, Calendar("hybrid", "Europe/Paris")])
@pytest.mark.parametrize("wanted", [UNSPECIFIED, PROLEPTIC, HYBRID])
def test_newer_dates_are_the_same_in_every_calendar(have, wanted):
    assert NEW is convert_calendar(NEW, have, have, "f")
    assert NEW.equals(convert_calendar(NEW, have, wanted, "f"))


@pytest.mark.parametrize(
    ("have", "wanted", "problem"),
    [
        (UNSPECIFIED, PROLEPTIC, "unspecified calendar cannot be written in the proleptic one"),
        (PROLEPTIC, HYBRID, "proleptic calendar cannot be written in the hybrid one"),
        (HYBRID, UNSPECIFIED, "hybrid calendar cannot be written in the unspecified one"),
    ],
)
def test_old_dates_in_an_unknown_calendar_are_refused(have, wanted, problem):
    with pytest.raises(UnsupportedError, match=rf"^p/f.parquet, column d: .*{problem}"):
        convert_calendar(OLD, have, wanted, "p/f.parquet")


def test_old_times_of_another_zone_are_refused():
    rows = OLD.select(["t"])

    with pytest.raises(UnsupportedError, match=r"column t: .*zone Europe/Paris"):
        convert_calendar(rows, Calendar("hybrid", "Europe/Paris"), PROLEPTIC, "f")


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (pa.struct([("d", pa.date32())]), {"d": date(1500, 1, 1)}),
        (pa.list_(pa.date32()), [date(1500, 1, 1)]),
        (pa.map_(pa.string(), pa.date32()), [("a", date(1500, 1, 1))]),
    ],
)
def test_old_dates_in_nested_columns_are_found(kind, value):
    rows = pa.RecordBatch.from_arrays([pa.array([value], kind)], ["c"])

    with pytest.raises(UnsupportedError, match="column c"):
        convert_calendar(rows, HYBRID, PROLEPTIC, "f")
