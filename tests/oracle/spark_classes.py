"""An archive of the Java classes that Spark loads, with which its processes start in half the time.

``python -m tests.oracle.spark_classes`` makes it in the environment of this Python; ``./ci/test``
does that while other steps run. Where there is one, every Spark that the tests start uses it. Java
ignores an archive of other jars or of another Java.
Source: https://docs.oracle.com/en/java/javase/17/vm/class-data-sharing.html
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ARCHIVE: Final = Path(sys.prefix) / ".spark-classes.jsa"
#: without it Java warns on its standard output of an archive that does not fit
_SILENT: Final = "-Xlog:disable"
#: what a short life of Java takes less time with
_SHORT: Final = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"


def use_archive() -> None:
    """Let every Spark that this process and its children start use the archive, if there is one."""
    if ARCHIVE.exists():
        # Spark adds this to the options of its driver without a word
        os.environ.setdefault("SPARK_SUBMIT_OPTS", f"-XX:SharedArchiveFile={ARCHIVE} {_SILENT}")


def make_archive() -> None:
    """Run a little of everything with Spark, and archive the classes that it has loaded."""
    from pyspark.sql import SparkSession  # noqa: PLC0415 (few need it)

    made = ARCHIVE.with_suffix(".new")
    options = f"{_SHORT} -XX:ArchiveClassesAtExit={made} {_SILENT}"
    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    session = builder.config("spark.driver.extraJavaOptions", options).getOrCreate()
    java = session.sparkContext._gateway.proc
    with tempfile.TemporaryDirectory() as folder:
        _work(session, f"{folder}/rows")
    session.stop()
    java.stdin.close()  # that ends it
    java.wait()
    made.replace(ARCHIVE)


def _work(session: SparkSession, folder: str) -> None:
    rows = session.range(100).selectExpr("id", "id % 7 as k", "cast(id as string) as s")
    rows.write.parquet(folder)
    session.read.parquet(folder).groupBy("k").count().collect()


if __name__ == "__main__":
    make_archive()
