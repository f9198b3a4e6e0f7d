"""Which Hudi bundle can execute plans on which table.

A bundle that is older than the table cannot read it, and one that does not know how to write the
table's version would upgrade it. Source: HoodieTableVersion, hoodie.write.table.version.
"""

from __future__ import annotations

import re
from typing import Final

from reconciler.errors import UnsupportedError

#: the releases from which on table versions are written, newest first
_WRITTEN: Final = (
    ((1, 1), (6, 8, 9)),
    ((1, 0, 1), (6, 8)),
    ((0, 14), (6,)),
)
#: the bundle to take for a table of each version
_TAKE: Final = {6: "0.15.0", 8: "1.0.2", 9: "1.2.0"}
#: from this release on a writer must be told not to upgrade a table
NO_UPGRADE_FROM: Final = (1, 0)


def parse_release(version: str) -> tuple[int, ...]:
    """The numbers of a release's name; a vendor's name for its own build may follow.

    >>> parse_release("1.0.2-amzn-1"), parse_release("0.15.0")
    ((1, 0, 2), (0, 15, 0))
    """
    found = re.match(r"\d+(\.\d+)*", version)
    return tuple(map(int, found[0].split("."))) if found else ()


def check_bundle(version: str, table_version: int) -> None:
    """Raises UnsupportedError where a bundle can't leave a table at the version it has."""
    numbers = parse_release(version)
    known = next((tables for since, tables in _WRITTEN if numbers >= since), ())
    if table_version not in known:
        can = f"tables of version {', '.join(map(str, known))}" if known else "none that we know"
        raise UnsupportedError(
            f"the table has version {table_version}, and the Hudi {version} on Spark's class path "
            f"writes {can}: {explain_how_to_add(table_version)}, or apply with --executor native"
        )


def explain_how_to_add(table_version: int | None = None) -> str:
    """How a person puts a bundle on Spark's class path."""
    version = "VERSION" if table_version is None else _TAKE[table_version]
    jar = f"hudi-spark3.5-bundle_2.12-{version}.jar"
    return (
        f"add --spark-conf spark.driver.extraClassPath=/path/to/{jar} and the same for "
        "spark.executor.extraClassPath"
    )
