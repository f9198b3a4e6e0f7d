"""A ``where`` as Spark itself understands it: what it names, and which partitions can match.

Spark parses, resolves and evaluates; here is only decided which part of an expression speaks of
partitions alone. Where that is not sure, every partition stays. Java's objects come in as
arguments.
"""

# ruff: noqa: SLF001 (Java's side of a session has no public name)

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from reconciler.errors import UsageError

#: expressions within one ``where`` that are looked at; a longer one may prune less
_MAX_EXPRESSIONS: Final = 100
_PATTERNS: Final = ("CURRENT_LIKE", "PLAN_EXPRESSION")


def check_where(frame: Any, where: str) -> tuple[str, ...]:
    """The top-level columns of a frame that an expression names.

    Raises UsageError for what is no condition on its columns.
    """
    try:
        refs = _find_condition(frame._jdf.filter(where)).references().toSeq()
    except Exception as error:
        if (said := _read_message(error)) is None:
            raise
        raise UsageError(f"where {where!r}: {said}") from None
    named = [refs.apply(at).name() for at in range(refs.size())]
    spelled = {column.lower(): column for column in frame.columns}  # names are as they were typed
    return tuple(name if name in frame.columns else spelled[name.lower()] for name in named)


def _read_message(error: Exception) -> str | None:
    """What Spark says against an expression; None for an error of another kind."""
    if type(error).__name__ not in ("AnalysisException", "ParseException"):
        return None
    text = str(error).strip().splitlines()
    return next((line.strip() for line in text if line.strip()), "is no condition")


def is_spark_error(error: Exception) -> bool:
    """Whether Java said it, or PySpark in Java's name."""
    return any(kind.__name__ in ("PySparkException", "Py4JError") for kind in type(error).__mro__)


def _find_condition(jdf: Any) -> Any:
    """The resolved condition on top of a filtered frame."""
    plan = jdf.queryExecution().analyzed()
    while plan.nodeName() != "Filter":  # Spark may put a projection over it
        plan = plan.children().head()
    return plan.condition()


def derive_partition_condition(partitions: Any, where: str) -> Any | None:
    """The condition that ``where`` puts on partitions, as Java's Column; None where it puts none.

    ``partitions``: a frame of the columns that are the same for all rows of a partition. A row of
    data for which ``where`` is true lies in a partition for which the condition is true.
    """
    session = partitions.sparkSession._jsparkSession
    parsed = session.sessionState().sqlParser().parseExpression(where)
    jvm = partitions.sparkSession._jvm
    looking = _PartitionCondition(
        jvm=jvm, partitions=partitions._jdf, left=iter(range(_MAX_EXPRESSIONS))
    )
    found = looking.derive(parsed)
    return None if found is None else jvm.org.apache.spark.sql.Column(found)


@dataclass(frozen=True, slots=True)
class _PartitionCondition:
    jvm: Any
    partitions: Any
    left: Iterator[int]

    def derive(self, expression: Any) -> Any | None:
        """What follows from an expression for the partition columns alone; None: nothing."""
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
        """Whether it names nothing else, and says the same whenever it is asked."""
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
