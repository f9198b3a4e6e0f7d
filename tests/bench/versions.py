"""The peers that the benches install, and their versions: here and nowhere else.

Spark brings Delta and Iceberg by ``spark.jars.packages``; ``tests.oracle.bundles`` brings Hudi.
"""

from __future__ import annotations

from typing import Final

HUDI_VERSION: Final = "1.2.0"
DELTA_VERSION: Final = "3.3.2"
ICEBERG_VERSION: Final = "1.10.0"

DELTA_PACKAGE: Final = f"io.delta:delta-spark_2.12:{DELTA_VERSION}"
ICEBERG_PACKAGE: Final = f"org.apache.iceberg:iceberg-spark-runtime-3.5_2.12:{ICEBERG_VERSION}"

#: names of systems in figures; what follows a comma is a variant of the system
OURS: Final = "reconciler"
HUDI: Final = f"Hudi {HUDI_VERSION}"
DELTA: Final = f"Delta {DELTA_VERSION}"
ICEBERG: Final = f"Iceberg {ICEBERG_VERSION}"
SPARK: Final = "Spark alone"
#: a loop in Python that lists folders and asks the system for the size of every file
LOOP: Final = "a bare loop"
#: what does a part of the work only: what nobody can be faster than, and no peer
FLOORS: Final = frozenset({SPARK, LOOP})
