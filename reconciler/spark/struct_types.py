"""Make PySpark's types from the JSON that describes them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def make_struct_type(described: Mapping[str, Any]) -> Any:
    """Return the StructType that a JSON document of Spark describes."""
    from pyspark.sql.types import StructType  # noqa: PLC0415 (heavy)

    return StructType.fromJson(dict(described))
