"""The status of tables in Prometheus' text exposition format 0.0.4.

A series is present only if its value is known. Dashboards and alerts rely on names, labels and
meanings: new ones may be added, and none changes. ADR 0006 says why this is no library.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from math import inf
from typing import Any, Final

from reconciler.render import words
from reconciler.status.conditions import ConditionType
from reconciler.status.logs import LogStatus, PartitionLogs
from reconciler.status.model import TableStatus

Labels = Mapping[str, str]
#: the labels of a series besides those of its table, and its value
SeriesValue = tuple[Labels, float | None]
Series = Callable[[TableStatus], Iterable[SeriesValue]]

_SURROGATE: Final = re.compile("[\ud800-\udfff]")
_CONDITION_VALUES: Final = {"True": 1, "False": 0, "Unknown": None}


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
    for name, (text, value) in _METRICS.items():
        series = [
            ({**common, "table": table.name, **labels}, number)
            for table in in_order
            for labels, number in _list_series(table, value)
        ]
        lines += _gauge_lines(name, text, series)
    return "".join(f"{line}\n" for line in lines)


def _gauge_lines(name: str, text: str, series: Iterable[SeriesValue]) -> Iterator[str]:
    known = [(labels, value) for labels, value in series if value is not None]
    if not known:
        return
    yield f"# HELP {name} {text}"
    yield f"# TYPE {name} gauge"
    for labels, value in known:
        pairs = ",".join(f'{label}="{_escape_label(text)}"' for label, text in labels.items())
        yield f"{name}{f'{{{pairs}}}' if pairs else ''} {_format_number(value)}"


def _escape_label(text: str) -> str:
    r"""Return the value of a label with visible control characters.

    >>> print(_escape_label('a"b\\c\nd\x1be\udce9'))
    a\"b\\c\nd\\x1be\\udce9
    """
    shown = "\n".join(words.escape_text(line) for line in text.split("\n"))
    shown = _SURROGATE.sub(lambda match: f"\\u{ord(match[0]):04x}", shown)
    return shown.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _format_number(value: float) -> str:
    """Return the shortest text that reads back as the value.

    >>> _format_number(3), _format_number(3.0), _format_number(0.25), _format_number(inf)
    ('3', '3', '0.25', '+Inf')
    """
    if value == inf:
        return "+Inf"
    return str(int(value)) if value == int(value) else repr(value)


def _list_series(table: TableStatus, value: str | Series) -> Iterator[SeriesValue]:
    """Yield the series of a table: of a field, if the table could be read, or of a function."""
    if not isinstance(value, str):
        yield from value(table)
    elif table.table_type is not None:
        number: Any = table
        for name in value.split("."):
            number = None if number is None else getattr(number, name)
        yield {}, len(number) if isinstance(number, tuple) else number


def _info_series(table: TableStatus) -> Iterator[SeriesValue]:
    labels = {"path": table.path}
    if table.table_type is not None and table.table_version is not None:
        labels |= {"type": table.table_type, "version": str(table.table_version)}
    yield labels, 1


def _condition_series(type: ConditionType) -> Series:  # noqa: A002 (its name)
    def list_series(table: TableStatus) -> Iterator[SeriesValue]:
        if (condition := table.condition(type)) is not None:
            yield {"reason": condition.reason}, _CONDITION_VALUES[condition.status]

    return list_series


def _pending_age_series(table: TableStatus) -> Iterator[SeriesValue]:
    if table.table_type is not None:
        yield {}, table.oldest_pending_age_seconds or 0


def _held_commits_series(table: TableStatus) -> Iterator[SeriesValue]:
    if table.timeline is not None:
        yield {}, table.timeline.bound.commits if table.timeline.bound else 0


def _savepoint_series(table: TableStatus) -> Iterator[SeriesValue]:
    for savepoint in table.savepoints:
        if savepoint.is_completed:
            yield {"savepoint": savepoint.instant}, savepoint.pinned_bytes


def _freed_series(table: TableStatus) -> Iterator[SeriesValue]:
    for savepoint in table.savepoints:
        if savepoint.freed_bytes is not None:
            yield {"savepoint": savepoint.instant}, savepoint.freed_bytes


def _log_share_series(find: Callable[[LogStatus], LogStatus | PartitionLogs | None]) -> Series:
    """Return a function that yields the bytes of log files per byte of base files."""

    def list_series(table: TableStatus) -> Iterator[SeriesValue]:
        logs = None if table.logs is None else find(table.logs)
        if logs is not None:
            none = inf if logs.files else 0.0
            share = logs.bytes_per_base_byte
            yield {}, none if share is None else share

    return list_series


def _storage_cost_series(table: TableStatus) -> Iterator[SeriesValue]:
    if table.costs is not None:
        yield {"currency": table.costs.currency}, table.costs.per_month


def _reclaimable_cost_series(table: TableStatus) -> Iterator[SeriesValue]:
    if table.costs is not None:
        yield {"currency": table.costs.currency}, table.costs.reclaimable_per_month


def _last_apply_series(table: TableStatus) -> Iterator[SeriesValue]:
    at = None if table.last_apply is None else table.last_apply.at
    yield {}, None if at is None else datetime.fromisoformat(at).timestamp()


def _file_size_buckets(table: TableStatus) -> Iterator[SeriesValue]:
    """Yield the files below each size, as the buckets of a histogram."""
    total = 0
    for size in table.layout.sizes if table.layout is not None else ():
        total += size.files
        yield {"le": "+Inf" if size.below is None else str(size.below)}, total


#: name -> its explanation, and the field of a table's status or the function that yields its series
_METRICS: Final[Mapping[str, tuple[str, str | Series]]] = {
    "reconciler_table_info": ("A table of the specs: path, type and version.", _info_series),
    "reconciler_synced": (
        "Whether the table is as declared: 1 yes, 0 no; absent if unknown.",
        _condition_series("Synced"),
    ),
    "reconciler_healthy": (
        "Whether the table is healthy: 1 yes, 0 no.",
        _condition_series("Healthy"),
    ),
    "reconciler_files": ("Base, log and CDC files in the table's partitions.", "files"),
    "reconciler_bytes": ("Bytes of base, log and CDC files.", "bytes"),
    "reconciler_bytes_reclaimable": ("Bytes that a plan would remove now.", "bytes_reclaimable"),
    "reconciler_storage_cost_per_month": (
        "Price of a month of storage of these files, as the environment declares it.",
        _storage_cost_series,
    ),
    "reconciler_storage_cost_reclaimable_per_month": (
        "Price of a month of storage of bytes that a plan would remove now.",
        _reclaimable_cost_series,
    ),
    "reconciler_small_files": ("Newest base files below files.small of the spec.", "small_files"),
    "reconciler_small_file_share": (
        "Share of small files among the newest base files, by count, from 0 to 1.",
        "small_file_share",
    ),
    "reconciler_earliest_readable_age_seconds": (
        "Age of the earliest write that can still be read as of.",
        "earliest_readable_age_seconds",
    ),
    "reconciler_log_files": (
        "Log files of the newest file slices of a merge-on-read table.",
        "logs.files",
    ),
    "reconciler_log_bytes": (
        "Bytes of these log files, which a snapshot read merges.",
        "logs.bytes",
    ),
    "reconciler_log_bytes_per_base_byte": (
        "Bytes of these log files per byte of the newest base files.",
        _log_share_series(lambda logs: logs),
    ),
    "reconciler_log_bytes_per_base_byte_worst_partition": (
        "The same in the partition where it is greatest; absent without log files.",
        _log_share_series(lambda logs: logs.worst),
    ),
    "reconciler_oldest_log_age_seconds": (
        "Age of the oldest of these log files; absent if there is none or it is unknown.",
        "logs.oldest_age_seconds",
    ),
    "reconciler_active_commits": (
        "Completed commits on the active timeline; it grows if archiving stalls.",
        "active_commits",
    ),
    "reconciler_timeline_keep_commits": (
        "Commits above which the oldest are archived, by timeline.keep of the spec.",
        "timeline.keep_most",
    ),
    "reconciler_timeline_held_commits": (
        "Commits that a rule keeps active although timeline.keep would archive them.",
        _held_commits_series,
    ),
    "reconciler_pending_instants": ("Requested and inflight instants.", "pending"),
    "reconciler_pending_age_seconds": (
        "Age of the oldest requested or inflight instant, 0 if there is none.",
        _pending_age_series,
    ),
    "reconciler_savepoint_pinned_bytes": (
        "Bytes that a savepoint keeps besides the newest file slices.",
        _savepoint_series,
    ),
    "reconciler_orphan_files": (
        "Base, log and CDC files that no write knows, older than orphans.olderThan or a day.",
        "orphans.files",
    ),
    "reconciler_orphan_bytes": ("Bytes of these files.", "orphans.bytes"),
    "reconciler_orphan_removable_bytes": (
        "Bytes of those of these files that no reader sees, which a plan removes if declared.",
        "orphans.removable_bytes",
    ),
    "reconciler_orphan_age_seconds": (
        "Age of the oldest of these files; absent if there is none.",
        "orphans.oldest_age_seconds",
    ),
    "reconciler_savepoint_freed_bytes": (
        "Bytes that a clean would remove if only this savepoint were gone.",
        _freed_series,
    ),
    "reconciler_lock_age_seconds": (
        "Seconds since the last heartbeat of the lock's holder; absent if it is free.",
        "lock.age_seconds",
    ),
    "reconciler_last_apply_timestamp_seconds": (
        (
            "Instant of the newest clean or clustering that an apply completed, in seconds since "
            "the epoch."
        ),
        _last_apply_series,
    ),
    "reconciler_base_files": (
        "Newest base files below a size in bytes, if the spec has a clustering block.",
        _file_size_buckets,
    ),
    "reconciler_small_partitions": (
        "Partitions with base files below files.small, if the spec has a clustering block.",
        "layout.small_partitions",
    ),
    "reconciler_overlap": (
        "Mean number of files that cover a row on the clustering columns.",
        "layout.overlap",
    ),
    "reconciler_last_clustering_age_seconds": (
        "Age of the newest completed clustering by any writer.",
        "layout.last_clustering.age_seconds",
    ),
    "reconciler_pending_clusterings": (
        "Requested and inflight clusterings, if the spec has a clustering block.",
        "layout.pending",
    ),
    "reconciler_compaction_slices": (
        "File slices that a plan would compact now, if the spec has a compaction block.",
        "compaction.slices",
    ),
    "reconciler_compaction_log_bytes": ("Bytes of their log files.", "compaction.log_bytes"),
    "reconciler_compaction_waiting_slices": (
        "File slices that are due and beyond compaction.budget of one run.",
        "compaction.waiting_slices",
    ),
    "reconciler_compaction_deltacommits": (
        "Completed deltacommits since the newest compaction; it grows if compactions stall.",
        "compaction.deltacommits",
    ),
    "reconciler_index_files": ("Newest base files, if the spec has an index block.", "index.files"),
    "reconciler_index_files_covered": (
        "Newest base files whose declared columns are all in the index.",
        "index.files_covered",
    ),
    "reconciler_index_commits_since": (
        "Completed commits since the newest version of the index; absent if there is none.",
        "index.commits_since",
    ),
}
