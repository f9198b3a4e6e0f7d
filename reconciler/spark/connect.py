"""Recognise what belongs to Spark Connect, which has neither Java's side of a session nor RDDs."""

from __future__ import annotations

from typing import Any, Final

from reconciler.errors import UnsupportedError

_PACKAGE: Final = "pyspark.sql.connect."
#: what to do where Spark Connect does not suffice
CLASSIC_SESSION: Final = (
    "pass a session of the cluster itself, as SparkSession.builder.master(...) or spark-submit "
    "gives"
)


def is_of_connect(thing: Any) -> bool:
    """True for a session or a DataFrame of Spark Connect."""
    return any(kind.__module__.startswith(_PACKAGE) for kind in type(thing).__mro__)


def refuse_connect(thing: Any, what: str) -> None:
    """Raise UnsupportedError for a session or DataFrame of Spark Connect; ``what`` needs more."""
    if is_of_connect(thing):
        raise UnsupportedError(
            f"{what} needs Spark's RDDs, and a session of Spark Connect has none; {CLASSIC_SESSION}"
        )
