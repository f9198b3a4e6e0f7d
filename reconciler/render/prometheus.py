"""The status of tables in Prometheus' text exposition format 0.0.4.

A series is present only if its value is known. Dashboards and alerts rely on names, labels and
meanings: new ones may be added, and none changes. ADR 0006 says why this is no library.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from reconciler.render import words
from reconciler.status.conditions import TableCondition
from reconciler.status.index import IndexStatus
from reconciler.status.layout import LayoutStatus
from reconciler.status.model import TableStatus

Labels = Mapping[str, str]
#: the labels of a series besides those of its table, and its value
SeriesValue = tuple[Labels, float | None]

_SURROGATE: Final = re.compile("[\ud800-\udfff]")
_CONDITION_VALUES: Final = {"True": 1, "False": 0, "Unknown": None}


@dataclass(frozen=True, slots=True)
class _Metric:
    """A gauge; ``series`` returns the series of one table."""

    name: str
    help: str
    series: Callable[[TableStatus], Iterable[SeriesValue]]


def status_prometheus(
    tables: Sequence[TableStatus], *, observed_at: datetime, environment: str | None = None
) -> str:
    """Return the tables as metrics in a stable order; ``environment`` is a label of all series."""
    common = {} if environment is None else {"environment": environment}
    lines = list(
        _gauge_lines(
            "reconciler_status_timestamp_seconds",
            "Time of the status, in seconds since the epoch.",
            [(common, observed_at.timestamp())],
        )
    )
    in_order = sorted(tables, key=lambda table: (table.name, table.path))
    for metric in _METRICS:
        found = [
            ({**common, "table": table.name, **labels}, value)
            for table in in_order
            for labels, value in metric.series(table)
        ]
        lines += _gauge_lines(metric.name, metric.help, found)
    return "".join(f"{line}\n" for line in lines)


def _gauge_lines(name: str, text: str, series: Iterable[SeriesValue]) -> Iterator[str]:
    known = [(labels, value) for labels, value in series if value is not None]
    if not known:
        return
    yield f"# HELP {name} {text}"
    yield f"# TYPE {name} gauge"
    for labels, value in known:
        pairs = ",".join(f'{label}="{_escape_label(text)}"' for label, text in labels.items())
        yield (
            f"{name}{{{pairs}}} {_format_number(value)}"
            if pairs
            else f"{name} {_format_number(value)}"
        )


def _escape_label(text: str) -> str:
    r"""Return the value of a label with visible control characters.

    >>> print(_escape_label('a"b\\c\nd\x1be\udce9'))
    a\"b\\c\nd\\x1be\\udce9
    """
    shown = "\n".join(words.escape_text(line) for line in text.split("\n"))
    shown = _SURROGATE.sub(lambda found: f"\\u{ord(found[0]):04x}", shown)
    return shown.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _format_number(value: float) -> str:
    """Return the shortest text that reads back as the value.

    >>> _format_number(3), _format_number(3.0), _format_number(0.25)
    ('3', '3', '0.25')
    """
    return str(int(value)) if value == int(value) else repr(value)


def _single_series(value: float | None) -> Iterator[SeriesValue]:
    yield {}, value


def _condition_series(condition: TableCondition | None) -> Iterator[SeriesValue]:
    if condition is not None:
        yield {"reason": condition.reason}, _CONDITION_VALUES[condition.status]


def _info_series(table: TableStatus) -> Iterator[SeriesValue]:
    labels = {"path": table.path}
    if table.table_type is not None and table.table_version is not None:
        labels |= {"type": table.table_type, "version": str(table.table_version)}
    yield labels, 1


def _last_apply_time(table: TableStatus) -> float | None:
    at = None if table.last_apply is None else table.last_apply.at
    return None if at is None else datetime.fromisoformat(at).timestamp()


def _last_clustering_age(table: TableStatus) -> float | None:
    last = None if table.layout is None else table.layout.last_clustering
    return None if last is None else last.age_seconds


def _file_size_buckets(table: TableStatus) -> Iterator[SeriesValue]:
    """The files below each size, as the buckets of a histogram."""
    total = 0
    for one in table.layout.sizes if table.layout is not None else ():
        total += one.files
        yield {"le": "+Inf" if one.below is None else str(one.below)}, total


def _layout_series(
    value: Callable[[LayoutStatus], float | None],
) -> Callable[[TableStatus], Iterator[SeriesValue]]:
    """A value of tables with a clustering block in their spec."""
    return lambda table: _single_series(None if table.layout is None else value(table.layout))


def _index_series(
    value: Callable[[IndexStatus], float | None],
) -> Callable[[TableStatus], Iterator[SeriesValue]]:
    """A value of tables with an index block in their spec."""
    return lambda table: _single_series(None if table.index is None else value(table.index))


def _observed_series(
    value: Callable[[TableStatus], float | None],
) -> Callable[[TableStatus], Iterator[SeriesValue]]:
    """A value of tables that could be read."""
    return lambda table: _single_series(None if table.table_type is None else value(table))


_METRICS: Final = (
    _Metric(
        "reconciler_table_info",
        "A table of the specs: path, type and version.",
        _info_series,
    ),
    _Metric(
        "reconciler_synced",
        "Whether the table is as declared: 1 yes, 0 no; absent if unknown.",
        lambda table: _condition_series(table.condition("Synced")),
    ),
    _Metric(
        "reconciler_healthy",
        "Whether the table is healthy: 1 yes, 0 no.",
        lambda table: _condition_series(table.condition("Healthy")),
    ),
    _Metric(
        "reconciler_files",
        "Base, log and CDC files in the table's partitions.",
        _observed_series(lambda table: table.files),
    ),
    _Metric(
        "reconciler_bytes",
        "Bytes of base, log and CDC files.",
        _observed_series(lambda table: table.bytes),
    ),
    _Metric(
        "reconciler_bytes_reclaimable",
        "Bytes that a plan would remove now.",
        lambda table: _single_series(table.bytes_reclaimable),
    ),
    _Metric(
        "reconciler_small_files",
        "Newest base files below files.small of the spec.",
        _observed_series(lambda table: table.small_files),
    ),
    _Metric(
        "reconciler_small_file_share",
        "Share of small files among the newest base files, by count, from 0 to 1.",
        lambda table: _single_series(table.small_file_share),
    ),
    _Metric(
        "reconciler_earliest_readable_age_seconds",
        "Age of the earliest write that can still be read as of.",
        lambda table: _single_series(table.earliest_readable_age_seconds),
    ),
    _Metric(
        "reconciler_active_commits",
        "Completed commits on the active timeline; it grows if archiving stalls.",
        _observed_series(lambda table: table.active_commits),
    ),
    _Metric(
        "reconciler_pending_instants",
        "Requested and inflight instants.",
        _observed_series(lambda table: len(table.pending)),
    ),
    _Metric(
        "reconciler_pending_age_seconds",
        "Age of the oldest requested or inflight instant, 0 if there is none.",
        _observed_series(lambda table: table.oldest_pending_age_seconds or 0),
    ),
    _Metric(
        "reconciler_savepoint_pinned_bytes",
        "Bytes that a savepoint keeps besides the newest file slices.",
        lambda table: [
            ({"savepoint": s.instant}, s.pinned_bytes) for s in table.savepoints if s.is_completed
        ],
    ),
    _Metric(
        "reconciler_lock_age_seconds",
        "Seconds since the last heartbeat of the lock's holder; absent if it is free.",
        lambda table: _single_series(None if table.lock is None else table.lock.age_seconds),
    ),
    _Metric(
        "reconciler_last_apply_timestamp_seconds",
        "Instant of the newest clean or clustering that an apply completed, in seconds since the "
        "epoch.",
        lambda table: _single_series(_last_apply_time(table)),
    ),
    _Metric(
        "reconciler_base_files",
        "Newest base files below a size in bytes, if the spec has a clustering block.",
        _file_size_buckets,
    ),
    _Metric(
        "reconciler_small_partitions",
        "Partitions with base files below files.small, if the spec has a clustering block.",
        _layout_series(lambda layout: layout.small_partitions),
    ),
    _Metric(
        "reconciler_overlap",
        "Mean number of files that cover a row on the clustering columns.",
        _layout_series(lambda layout: layout.overlap),
    ),
    _Metric(
        "reconciler_last_clustering_age_seconds",
        "Age of the newest completed clustering by any writer.",
        lambda table: _single_series(_last_clustering_age(table)),
    ),
    _Metric(
        "reconciler_pending_clusterings",
        "Requested and inflight clusterings, if the spec has a clustering block.",
        _layout_series(lambda layout: len(layout.pending)),
    ),
    _Metric(
        "reconciler_index_files",
        "Newest base files, if the spec has an index block.",
        _index_series(lambda index: index.files),
    ),
    _Metric(
        "reconciler_index_files_covered",
        "Newest base files whose declared columns are all in the index.",
        _index_series(lambda index: index.files_covered),
    ),
    _Metric(
        "reconciler_index_commits_since",
        "Completed commits since the newest version of the index; absent if there is none.",
        _index_series(lambda index: index.commits_since),
    ),
)
