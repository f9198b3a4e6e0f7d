"""Report Parquet files that Arrow cannot read."""

from __future__ import annotations

import pyarrow as pa
import pytest

from reconciler.errors import FormatError
from reconciler.file_slices.merge.range_file import reading_parquet


@pytest.mark.parametrize(
    "problem", [pa.ArrowInvalid("no magic bytes"), OSError("Corrupt snappy compressed data.")]
)
def test_every_arrow_error_is_a_format_error_of_the_file(problem):
    message = f"^a/b.parquet: cannot be read as parquet: {problem}"
    with pytest.raises(FormatError, match=message), reading_parquet("a/b.parquet"):
        raise problem


def test_an_arrow_message_of_several_lines_becomes_one_line():
    with pytest.raises(FormatError) as raised, reading_parquet("a/b.parquet"):
        raise OSError("Couldn't deserialize thrift:\n  no more data\n")

    assert str(raised.value) == (
        "a/b.parquet: cannot be read as parquet: Couldn't deserialize thrift: no more data; the "
        "file is damaged; restore it from a copy"
    )
