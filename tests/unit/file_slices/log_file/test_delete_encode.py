"""Delete blocks that are written, read back as deletions."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

from reconciler.errors import UnsupportedError
from reconciler.file_slices.log_file.delete_encode import encode_deletions
from reconciler.file_slices.merge.delete_blocks import decode_deletions
from reconciler.hudi.codecs.log_blocks import BlockType, LogBlock, encode_deletes

KEYS = pa.array(["a", "č", ""])


def write_and_read(*event_times, is_final=(False, True, False), version=9):
    content = encode_deletions(
        KEYS,
        "p=1",
        is_final=np.array(is_final),
        event_times=event_times,
        table_version=version,
    )
    block = LogBlock(type=BlockType.DELETE, header={}, content=content, path="a.log")
    return decode_deletions(block, [column.type for column in event_times])


@pytest.mark.parametrize(
    "column",
    [
        pa.array([5, None, -7], pa.int32()),
        pa.array([1 << 40, None, 0], pa.int64()),
        pa.array([0.5, None, -2.5], pa.float32()),
        pa.array([0.1, None, float("inf")], pa.float64()),
        pa.array(["x", None, ""], pa.string()),
        pa.array([True, None, False], pa.bool_()),
        pa.array([datetime(2024, 1, 1, 1, 1, 1, 1, tzinfo=UTC), None, datetime(1969, 1, 1)],  # noqa: DTZ001
                 pa.timestamp("us", "UTC")),
        pa.array([Decimal("1.50"), None, Decimal("-99999.99")], pa.decimal128(10, 2)),
    ],
    ids=lambda column: str(column.type),
)  # fmt: skip
def test_event_times_of_every_type_come_back(column):
    found = write_and_read(column)

    assert [False, True, False] == found.is_final.tolist()
    assert [column] == [*found.ordering]
    assert KEYS == found.keys


def test_dates_come_back_before_version_8_and_are_refused_later():
    days = pa.array([date(2024, 1, 1), None, date(1969, 12, 31)])

    assert [days] == [*write_and_read(days, version=6).ordering]
    with pytest.raises(UnsupportedError, match=r"date32.*delete operation"):
        write_and_read(days, version=8)


def test_event_times_of_several_columns_come_back_from_version_9_on():
    columns = (pa.array([1, None, 2]), pa.array(["x", None, "y"]))

    assert [*columns] == [*write_and_read(*columns).ordering]
    with pytest.raises(UnsupportedError, match="2 columns"):
        write_and_read(*columns, version=8)


def test_final_deletions_have_the_bytes_of_the_delete_operation():
    always = np.ones(len(KEYS), np.bool_)
    content = encode_deletions(KEYS, "p", is_final=always, event_times=(), table_version=6)

    assert encode_deletes(KEYS.to_pylist(), "p") == content
