"""The Arrow schema of a DataFrame's columns."""

from __future__ import annotations

from types import SimpleNamespace

import pyarrow as pa
import pytest
from pyspark.sql.types import (
    ArrayType,
    DataType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
)

from reconciler.errors import UnsupportedError
from reconciler.writer.spark import make_arrow_schema


class VariantType(DataType):
    """A type of Spark 4."""

    def simpleString(self):  # noqa: N802 (Spark's)
        return "variant"


class UnknownType(DataType):
    """A type that Arrow does not have."""


def make_frame(kind):
    return SimpleNamespace(schema=StructType([StructField("v", kind, nullable=False)]))


@pytest.mark.parametrize(
    "kind",
    [
        VariantType(),
        ArrayType(VariantType()),
        MapType(StringType(), VariantType()),
        StructType([StructField("a", ArrayType(VariantType()))]),
        StructType([StructField("v", MapType(VariantType(), StringType()))]),
    ],
)
def test_types_that_arrow_has_only_as_structs_are_refused_by_name(kind, monkeypatch):
    monkeypatch.setattr("pyspark.sql.pandas.types.to_arrow_type", lambda _: pa.struct([]))
    with pytest.raises(UnsupportedError) as refused:
        make_arrow_schema(make_frame(kind))

    assert str(refused.value) == (
        f"column v: rows of type {kind.simpleString()} cannot be written; cast it"
    )


def test_a_type_that_arrow_does_not_have_is_refused_by_name():
    with pytest.raises(UnsupportedError, match=r"^column v: rows of type unknown cannot be writ"):
        make_arrow_schema(make_frame(UnknownType()))


def test_a_type_keeps_its_parts():
    kind = StructType([StructField("variant", ArrayType(LongType()))])
    schema = make_arrow_schema(make_frame(kind))

    assert "struct<variant: list<element: int64>>" == str(schema.field("v").type)
    assert not schema.field("v").nullable
