"""Follow the SQL queries of one application through the events of its log; pure.

Events: SparkListenerEnvironmentUpdate, SparkListenerSQLExecutionStart,
SparkListenerSQLAdaptiveExecutionUpdate, SparkListenerDriverAccumUpdates and
SparkListenerSQLExecutionEnd of Spark, as JsonProtocol writes them. Other lines are not parsed.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from typing import Any, Final
from zoneinfo import ZoneInfo

from reconciler.event_logs.conditions import (
    ConditionContext,
    UnknownConditionError,
    parse_condition,
    parse_condition_list,
)
from reconciler.event_logs.normal_form import simplify
from reconciler.event_logs.scans import TableScan, find_scans
from reconciler.event_logs.workload import ScanRun
from reconciler.index.predicates.syntax import Predicate
from reconciler.lazy_dataclass import dataclass

_SQL: Final = "org.apache.spark.sql.execution.ui.SparkListener"
_BEGINS: Final = tuple(
    f'{{"Event":"{name}"'.encode()
    for name in (
        "SparkListenerEnvironmentUpdate",
        f"{_SQL}SQLExecutionStart",
        f"{_SQL}SQLAdaptiveExecutionUpdate",
        f"{_SQL}SQLExecutionEnd",
        f"{_SQL}DriverAccumUpdates",
    )
)
#: how every line of a log begins
EVENT: Final = b'{"Event":"'
#: metrics that are remembered for plans that run again
_MAX_METRICS: Final = 50_000
#: the year 2200
_LAST_MS: Final = 7_258_118_400_000
_ZONE: Final = "spark.sql.session.timeZone"


class DamagedEventError(Exception):
    """A line is not the JSON of an event."""


@dataclass(slots=True)
class _Query:
    """A running query. ``scans``: of the last plan that the log has."""

    time_ms: int | None
    zone: ZoneInfo | None
    scans: tuple[TableScan, ...] = ()
    metrics: dict[int, int] = field(default_factory=dict)


@dataclass(slots=True)
class ApplicationEvents:
    """The queries of one application.

    ``on_query`` gets the scans of a query and when it began, in milliseconds, once the query ends.
    """

    on_query: Callable[[list[ScanRun], int | None], None]
    _zone: ZoneInfo | None = None
    _running: dict[int, _Query] = field(default_factory=dict)
    _cached: set[int] = field(default_factory=set)
    _metrics: dict[int, int] = field(default_factory=dict)

    def read_line(self, line: bytes) -> None:
        """Read one event. Raises DamagedEventError if it is no JSON."""
        if not line.startswith(_BEGINS):
            return
        try:
            event = json.loads(line)
        except (ValueError, RecursionError):
            raise DamagedEventError from None
        if not isinstance(event, dict):
            raise DamagedEventError
        name = str(event.get("Event")).removeprefix(_SQL)
        if name == "SparkListenerEnvironmentUpdate":
            self._zone = _find_zone(event)
            return
        number = event.get("executionId")
        if not isinstance(number, int):
            raise DamagedEventError
        self._read_query_event(name, number, event)

    def finish(self) -> None:
        """Count the queries that have not ended in the log."""
        for number in list(self._running):
            self._end(number)

    def _read_query_event(self, name: str, number: int, event: Mapping[str, Any]) -> None:
        match name:
            case "SQLExecutionStart":
                changed = event.get("modifiedConfigs")
                zone = self._zone
                if isinstance(changed, dict) and isinstance(changed.get(_ZONE), str):
                    zone = _load_zone(changed[_ZONE])
                query = _Query(_read_time(event.get("time")), zone)
                self._running[number] = query
                query.scans = _find_event_scans(event)
            case "SQLAdaptiveExecutionUpdate":
                query = self._running.setdefault(number, _Query(None, self._zone))
                query.scans = _find_event_scans(event) or query.scans
            case "DriverAccumUpdates":
                running = self._running.get(number)
                if running is not None:
                    running.metrics |= _read_updates(event.get("accumUpdates"))
            case _:
                self._end(number)

    def _end(self, number: int) -> None:
        query = self._running.pop(number, None)
        if query is None:
            return
        scans = [scan for scan in query.scans if not self._was_cached(scan)]
        if scans:
            self._fill_metrics(query, scans)
            self.on_query([_make_run(scan, query) for scan in scans], query.time_ms)

    def _fill_metrics(self, query: _Query, scans: Sequence[TableScan]) -> None:
        """Add what an earlier query read with the same plan, which Spark tells only once."""
        for scan in scans:
            for number in (scan.files_metric, scan.bytes_metric):
                if number is None:
                    continue
                known = query.metrics.get(number, self._metrics.get(number))
                if known is not None:
                    query.metrics[number] = self._metrics[number] = known
        while len(self._metrics) > _MAX_METRICS:
            del self._metrics[next(iter(self._metrics))]

    def _was_cached(self, scan: TableScan) -> bool:
        """Return whether an earlier query has read the rows that the scan takes from a cache."""
        if not scan.is_cached:
            return False
        if scan.identity in self._cached:
            return True
        self._cached.add(scan.identity)
        return False


def _read_time(time: Any) -> int | None:
    """Return a time in milliseconds; None for one that no clock has."""
    return time if isinstance(time, int) and 0 < time < _LAST_MS else None


def _find_event_scans(event: Mapping[str, Any]) -> tuple[TableScan, ...]:
    description = event.get("physicalPlanDescription")
    text = description if isinstance(description, str) else ""
    return find_scans(event.get("sparkPlanInfo"), text)


def _make_run(scan: TableScan, query: _Query) -> ScanRun:
    is_unknown, predicate = False, None
    try:
        predicate = simplify(parse_scan_conditions(scan, query.zone))
    except UnknownConditionError:
        is_unknown = True
    return ScanRun(
        location=scan.location,
        name=scan.name,
        kind=scan.kind,
        columns=scan.columns,
        predicate=predicate,
        is_unknown=is_unknown,
        files=_find_metric(query, scan.files_metric),
        bytes=_find_metric(query, scan.bytes_metric),
    )


def parse_scan_conditions(scan: TableScan, zone: ZoneInfo | None) -> tuple[Predicate, ...]:
    """Return what was asked of a scan: conditions that all hold. Raises UnknownConditionError."""
    context = ConditionContext(types=scan.types, zone=zone)
    partitions = _parse_list(scan.partition_filters, context)
    if scan.filters:
        try:
            return (*partitions, *(parse_condition(text, context) for text in scan.filters))
        except UnknownConditionError:
            if not scan.data_filters:
                raise
    return (*partitions, *_parse_list(scan.data_filters, context))


def _parse_list(text: str, context: ConditionContext) -> tuple[Predicate, ...]:
    return parse_condition_list(text, context) if text else ()


def _find_metric(query: _Query, number: int | None) -> int | None:
    return None if number is None else query.metrics.get(number)


def _read_updates(updates: Any) -> dict[int, int]:
    """Return metrics by their accumulators, from pairs of both."""
    if not isinstance(updates, list):
        return {}
    pairs = [pair for pair in updates if isinstance(pair, list) and len(pair) == 2]  # noqa: PLR2004
    return {
        number: value
        for number, value in pairs
        if isinstance(number, int) and isinstance(value, int) and value >= 0
    }


def _find_zone(event: Mapping[str, Any]) -> ZoneInfo | None:
    """Return the zone of an application's sessions: that of Spark's settings, or of its JVM."""
    for section, name in (("Spark Properties", _ZONE), ("System Properties", "user.timezone")):
        settings = event.get(section)
        if isinstance(settings, dict) and isinstance(settings.get(name), str):
            return _load_zone(settings[name])
    return None


def _load_zone(name: str) -> ZoneInfo | None:
    """Return a zone by its name; None if Java knows others by it than the zone database."""
    try:
        return ZoneInfo({"Z": "UTC", "GMT": "UTC", "+00:00": "UTC"}.get(name, name))
    except (ValueError, OSError):  # also ZoneInfoNotFoundError, a KeyError
        return None
    except KeyError:
        return None
