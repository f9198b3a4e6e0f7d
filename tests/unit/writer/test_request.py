"""Contradicting options of a write are refused with a way out."""

from __future__ import annotations

import pytest

from reconciler.errors import UsageError
from reconciler.writer.request import WriteMode, check_request


def test_a_write_without_rows_is_told_where_rows_come_from() -> None:
    with pytest.raises(UsageError) as refused:
        check_request(WriteMode.UPSERT, has_rows=False, dedupes=False, partitions=None)

    assert str(refused.value) == "upsert needs rows: name the source files"


def test_a_deletion_of_partitions_without_any_is_told_how_to_name_them() -> None:
    with pytest.raises(UsageError) as refused:
        check_request(WriteMode.DELETE_PARTITION, has_rows=False, dedupes=False, partitions=())

    assert str(refused.value) == (
        "delete-partition needs partition paths, for example --partition day=2026-01-31"
    )
