"""Decide which Hudi bundle can execute plans on which table.

A bundle older than the table cannot read it. One that cannot write the table's version would
upgrade it. Source: HoodieTableVersion, hoodie.write.table.version.
"""

from __future__ import annotations

import re
from typing import Final

from reconciler.errors import UnsupportedError

#: first release of a line -> the table versions that it writes; newest first
_TABLE_VERSIONS: Final = (
    ((1, 1), (6, 8, 9)),
    ((1, 0, 1), (6, 8)),
    ((0, 14), (6,)),
)
#: table version -> the bundle to use on Spark 3.5
_RECOMMENDED: Final = {6: "0.15.0", 8: "1.0.2", 9: "1.2.0"}
#: a release of Spark, its first two numbers
SparkRelease = tuple[int, int]
_SPARK_4: Final = (4, 0)
#: the bundle to use on Spark 4, which has none of older releases; it writes every table version
_ON_SPARK_4: Final = "1.2.0"
#: from this release on a writer upgrades a table unless an option forbids it
NO_UPGRADE_FROM: Final = (1, 0)


def parse_release(version: str) -> tuple[int, ...]:
    """Return the numbers of a release name; a vendor's suffix is ignored.

    >>> parse_release("1.0.2-amzn-1"), parse_release("0.15.0")
    ((1, 0, 2), (0, 15, 0))
    """
    match = re.match(r"\d+(\.\d+)*", version)
    return tuple(map(int, match[0].split("."))) if match else ()


def check_bundle(version: str, table_version: int, spark: SparkRelease) -> None:
    """Raise UnsupportedError if a bundle cannot keep the table at its version."""
    numbers = parse_release(version)
    known = next((tables for since, tables in _TABLE_VERSIONS if numbers >= since), ())
    if table_version not in known:
        writable = (
            f"tables of version {', '.join(map(str, known))}" if known else "no known table version"
        )
        raise UnsupportedError(
            f"the table has version {table_version}, but Hudi {version} on Spark's class path "
            f"writes {writable}: {explain_how_to_add(spark, table_version)}, or use --executor "
            "native"
        )


def explain_how_to_add(spark: SparkRelease, table_version: int | None = None) -> str:
    """Say how to put a bundle for a release of Spark on its class path."""
    is_spark_4 = spark >= _SPARK_4
    recommended = _ON_SPARK_4 if is_spark_4 else _RECOMMENDED.get(table_version or 0)
    version = "VERSION" if table_version is None else recommended
    scala = "2.13" if is_spark_4 else "2.12"
    jar = f"hudi-spark{spark[0]}.{spark[1]}-bundle_{scala}-{version}.jar"
    return (
        f"add --spark-conf spark.driver.extraClassPath=/path/to/{jar} and the same for "
        "spark.executor.extraClassPath"
    )
