"""Analyse a condition with a Spark session: its columns, partitions that match, its meaning.

Spark parses, resolves and evaluates. Here the part of a ``where`` is found that depends on
partitions alone; in doubt all partitions stay. Some settings of a session change what a condition
means.

Java's objects are passed in as arguments. Sources: SQLConf (settings have defaults),
AbstractSqlParser and Cast (both use the session active on their thread), DateTimeUtils.getZoneId,
java.time.zone.ZoneRules.
"""

# ruff: noqa: SLF001 (Java's side of a session has no public name)

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

from reconciler.errors import UsageError
from reconciler.index.temporal import SessionZone
from reconciler.index.zone_rules import YearlyRule, ZoneRules
from reconciler.lazy_dataclass import dataclass
from reconciler.reader.skipping import find_unusual_keys
from reconciler.spark.failures import is_spark_error, read_condition_message
from reconciler.spark.java_api import to_java_column

#: before any place had a time zone
_DISTANT_PAST: Final = -(1 << 40)
_DAY: Final = 86_400
#: Java package of Spark's own functions
_SPARK_PACKAGE: Final = "org.apache.spark.sql.catalyst.expressions."
#: maximum number of expressions of a ``where`` to analyse; a longer one may prune less
_MAX_EXPRESSIONS: Final = 100
_PATTERNS: Final = ("CURRENT_LIKE", "PLAN_EXPRESSION")


@contextmanager
def activate_session(session: Any) -> Iterator[None]:
    """Make a session the active one during the block.

    Spark parses and casts text by the settings of the active session.
    """
    sessions = session._jvm.org.apache.spark.sql.SparkSession
    before = sessions.getActiveSession()
    sessions.setActiveSession(session._jsparkSession)
    try:
        yield
    finally:
        if before.isDefined():
            sessions.setActiveSession(before.get())
        else:
            sessions.clearActiveSession()


def find_unusual_settings(session: Any) -> list[str]:
    """Return the names of settings under which a condition is left to Spark, sorted."""
    defaults = session._jvm.org.apache.spark.sql.internal.SQLConf()
    keys = session._jsparkSession.conf().getAll().keys().mkString("\n").split("\n")
    return [
        key for key in find_unusual_keys(sorted(keys)) if not _is_default(session, key, defaults)
    ]


def _is_default(session: Any, key: str, defaults: Any) -> bool:
    try:
        return bool(defaults.getConfString(key) == session.conf.get(key))
    except Exception as error:
        if not is_spark_error(error):
            raise
        return False  # Spark does not know the setting


def find_replaced_functions(session: Any, names: Sequence[str]) -> list[str]:
    """Return the given functions of Spark that the session has replaced or lacks.

    Source: FunctionRegistry, where a session's function replaces Spark's of the same name.
    """
    if not names:
        return []
    identifier = session._jvm.org.apache.spark.sql.catalyst.FunctionIdentifier
    registry = session._jsparkSession.sessionState().functionRegistry()
    functions = {name: registry.lookupFunction(identifier(name)) for name in names}
    return [name for name, function in functions.items() if not _is_spark_function(function)]


def _is_spark_function(function: Any) -> bool:
    return function.isDefined() and str(function.get().getClassName()).startswith(_SPARK_PACKAGE)


def read_session_zone(session: Any) -> SessionZone:
    """Return the rules of the session's time zone; its name alone if Java knows no rules."""
    name = session.conf.get("spark.sql.session.timeZone") or ""
    java, dates = session._jvm.java, session._jvm.org.apache.spark.sql.catalyst.util.DateTimeUtils
    try:
        rules = dates.getZoneId(name).getRules()
        first = rules.getOffset(java.time.Instant.ofEpochSecond(_DISTANT_PAST)).getTotalSeconds()
        yearly = [_read_yearly_rule(rule) for rule in rules.getTransitionRules()]
        return ZoneRules.from_java(first, rules.getTransitions().toString(), yearly)
    except Exception as error:
        if not isinstance(error, ValueError) and not is_spark_error(error):
            raise
        return ""


def _read_yearly_rule(rule: Any) -> YearlyRule:
    """Convert a ZoneOffsetTransitionRule."""
    weekday = rule.getDayOfWeek()
    return YearlyRule(
        month=rule.getMonth().getValue(),
        day=rule.getDayOfMonthIndicator(),
        weekday=0 if weekday is None else weekday.getValue(),
        second=_DAY if rule.isMidnightEndOfDay() else rule.getLocalTime().toSecondOfDay(),
        counts=rule.getTimeDefinition().name(),
        standard=rule.getStandardOffset().getTotalSeconds(),
        before=rule.getOffsetBefore().getTotalSeconds(),
        after=rule.getOffsetAfter().getTotalSeconds(),
    )


def check_where(frame: Any, where: str) -> tuple[str, ...]:
    """Return the top-level columns that an expression names.

    Raises UsageError if it is no condition on the frame's columns.
    """
    try:
        refs = _find_condition(frame._jdf.filter(where)).references().toSeq()
    except Exception as error:
        if (message := read_condition_message(error)) is None:
            raise
        raise UsageError(f"where {where!r}: {message}") from None
    named = [refs.apply(at).name() for at in range(refs.size())]
    spelled = {column.lower(): column for column in frame.columns}  # names as they were typed
    return tuple(name if name in frame.columns else spelled[name.lower()] for name in named)


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
    condition = _PartitionCondition(
        session=partitions.sparkSession,
        partitions=partitions._jdf,
        left=iter(range(_MAX_EXPRESSIONS)),
    )
    derived = condition.derive(parsed)
    return None if derived is None else to_java_column(partitions.sparkSession, derived)


@dataclass(frozen=True, slots=True)
class _PartitionCondition:
    session: Any
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
            expressions = self.session._jvm.org.apache.spark.sql.catalyst.expressions
            whole = getattr(expressions, kind)
            return whole(*sides)
        return known[0] if known and kind == "And" else None

    def _uses_only_partitions(self, expression: Any) -> bool:
        """True if an expression names only partition columns and is deterministic."""
        try:
            filtered = self.partitions.filter(to_java_column(self.session, expression))
            condition = _find_condition(filtered)
        except Exception as error:
            if read_condition_message(error) is None:
                raise
            return False
        patterns = self.session._jvm.org.apache.spark.sql.catalyst.trees.TreePattern
        return bool(condition.deterministic()) and not any(
            condition.containsPattern(getattr(patterns, name)()) for name in _PATTERNS
        )
