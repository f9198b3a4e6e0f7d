"""Find the Spark session that this process has already."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def find_running_session() -> SparkSession | None:
    """Return the session of this thread, or else of this process; None if there is none.

    After Ctrl-C a thread of Python gets another one of Java, which has no active session, while
    that of the process runs on.
    """
    if "pyspark" not in sys.modules:
        return None
    from pyspark.errors import PySparkRuntimeError  # noqa: PLC0415 (slow to import)
    from pyspark.sql import SparkSession  # noqa: PLC0415

    try:
        return SparkSession.active()
    except PySparkRuntimeError:
        return None
