"""The Arrow schema of a DataFrame's columns."""

from __future__ import annotations

from types import SimpleNamespace

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
        UnknownType(),
    ],
)
def test_types_that_no_table_can_have_are_refused_by_name(kind):
    with pytest.raises(UnsupportedError) as refused:
        make_arrow_schema(make_frame(kind))

    assert str(refused.value) == (
        f"column v: rows of type {kind.simpleString()} cannot be written; cast it"
    )


def test_a_type_keeps_its_parts():
    kind = StructType([StructField("variant", ArrayType(LongType()))])
    schema = make_arrow_schema(make_frame(kind))

    assert "struct<variant: list<element: int64>>" == str(schema.field("v").type)
    assert not schema.field("v").nullable
