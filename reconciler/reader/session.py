"""Read the settings of a Spark session that change what a condition means.

Java's objects are passed in as arguments. Sources: SQLConf (settings have defaults),
AbstractSqlParser and Cast (both use the session active on their thread), DateTimeUtils.getZoneId,
java.time.zone.ZoneRules.
"""

# ruff: noqa: SLF001 (Java's side of a session has no public name)

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

from reconciler.index.temporal import SessionZone
from reconciler.index.zone_rules import YearlyRule, ZoneRules
from reconciler.reader.skipping import find_unusual_keys
from reconciler.reader.where import is_spark_error

#: before any place had a time zone
_DISTANT_PAST: Final = -(1 << 40)
_DAY: Final = 86_400
#: Java package of Spark's own functions
_SPARK_PACKAGE: Final = "org.apache.spark.sql.catalyst.expressions."


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
