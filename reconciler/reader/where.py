"""Analyse a ``where`` with Spark: the columns it names, and which partitions can match.

Spark parses, resolves and evaluates. This module finds the part of an expression that depends on
partitions alone; in doubt all partitions stay. Java's objects are passed in as arguments.
"""

# ruff: noqa: SLF001 (Java's side of a session has no public name)

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from reconciler.errors import UsageError

#: maximum number of expressions of a ``where`` to analyse; a longer one may prune less
_MAX_EXPRESSIONS: Final = 100
_PATTERNS: Final = ("CURRENT_LIKE", "PLAN_EXPRESSION")


def check_where(frame: Any, where: str) -> tuple[str, ...]:
    """Return the top-level columns that an expression names.

    Raises UsageError if it is no condition on the frame's columns.
    """
    try:
        refs = _find_condition(frame._jdf.filter(where)).references().toSeq()
    except Exception as error:
        if (message := _read_message(error)) is None:
            raise
        raise UsageError(f"where {where!r}: {message}") from None
    named = [refs.apply(at).name() for at in range(refs.size())]
    spelled = {column.lower(): column for column in frame.columns}  # names as they were typed
    return tuple(name if name in frame.columns else spelled[name.lower()] for name in named)


def _read_message(error: Exception) -> str | None:
    """Return Spark's message about an expression; None for other errors."""
    if type(error).__name__ not in ("AnalysisException", "ParseException"):
        return None
    lines = str(error).strip().splitlines()
    return next((line.strip() for line in lines if line.strip()), "is no condition")


def is_spark_error(error: Exception) -> bool:
    """True if the error comes from Java, directly or through PySpark."""
    return any(kind.__name__ in ("PySparkException", "Py4JError") for kind in type(error).__mro__)


def _find_condition(jdf: Any) -> Any:
    """Return the resolved condition of a filtered frame."""
    plan = jdf.queryExecution().analyzed()
    while plan.nodeName() != "Filter":  # Spark may add a projection on top
        plan = plan.children().head()
    return plan.condition()


def derive_partition_condition(partitions: Any, where: str) -> Any | None:
    """Return the condition that ``where`` implies for partitions, as Java's Column; None for none.

    ``partitions``: a frame of the columns that are constant in a partition. Where ``where`` is true
    for a row, the condition is true for its partition.
    """
    session = partitions.sparkSession._jsparkSession
    parsed = session.sessionState().sqlParser().parseExpression(where)
    jvm = partitions.sparkSession._jvm
    condition = _PartitionCondition(
        jvm=jvm, partitions=partitions._jdf, left=iter(range(_MAX_EXPRESSIONS))
    )
    derived = condition.derive(parsed)
    return None if derived is None else jvm.org.apache.spark.sql.Column(derived)


@dataclass(frozen=True, slots=True)
class _PartitionCondition:
    jvm: Any
    partitions: Any
    left: Iterator[int]

    def derive(self, expression: Any) -> Any | None:
        """Return what an expression implies for the partition columns alone; None for nothing."""
        if next(self.left, None) is None:
            return None
        if self._uses_only_partitions(expression):
            return expression
        kind = expression.getClass().getSimpleName()
        if kind not in ("And", "Or"):
            return None
        sides = [self.derive(expression.left()), self.derive(expression.right())]
        known = [side for side in sides if side is not None]
        if len(known) == len(sides):
            whole = getattr(self.jvm.org.apache.spark.sql.catalyst.expressions, kind)
            return whole(*sides)
        return known[0] if known and kind == "And" else None

    def _uses_only_partitions(self, expression: Any) -> bool:
        """True if an expression names only partition columns and is deterministic."""
        column = self.jvm.org.apache.spark.sql.Column(expression)
        try:
            filtered = self.partitions.filter(column)
            condition = _find_condition(filtered)
        except Exception as error:
            if _read_message(error) is None:
                raise
            return False
        patterns = self.jvm.org.apache.spark.sql.catalyst.trees.TreePattern
        return bool(condition.deterministic()) and not any(
            condition.containsPattern(getattr(patterns, name)()) for name in _PATTERNS
        )
