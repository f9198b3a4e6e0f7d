"""Reading a table for ``reconciler read``, with a Spark session if one is needed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, assert_never

from reconciler import runtime
from reconciler.cli import interruption
from reconciler.cli.environment import find_stores
from reconciler.cli.options import SparkSettings
from reconciler.cli.read_options import DEFAULT_ROW_LIMIT, ReadOptions, RowFormat, TableRead
from reconciler.cli.spark import has_active_session, open_spark_session
from reconciler.cli.spark_connectors import StoreNeeds
from reconciler.cli.terminal import find_terminal, log_message, print_result
from reconciler.reader.merge_report import measure_merging
from reconciler.reader.open_scan import open_requested_scan
from reconciler.reader.plain_condition import parse_plain_condition, prune_plainly
from reconciler.reader.pruning import PrunedScan, keep_all
from reconciler.reader.read_report import make_read_report
from reconciler.reader.row_group_counts import count_row_groups
from reconciler.reader.short_logs import find_short_logs
from reconciler.reader.spark_types import format_spark_type
from reconciler.reader.sql_text import make_json_expression, make_text_expressions
from reconciler.render import read_report, words
from reconciler.render import rows as row_output
from reconciler.storage.locations import names_account

if TYPE_CHECKING:
    from reconciler.reader.model import Scan

#: lines that are printed at once
_ROWS_PER_FETCH: Final = 1000


def print_explanation(work: TableRead, options: ReadOptions) -> None:
    """Print what a read would touch. Spark starts only for what only Spark can interpret."""
    storage, where = work.storage, options.where
    scan = open_requested_scan(storage, work.request, zone=work.zone)
    pruned, reaches, groups = keep_all(scan), True, None
    if where is not None:
        pruned, reaches = _prune(work, scan, where)
        groups = count_row_groups(storage, pruned.kept)
    report = make_read_report(
        pruned,
        work.request,
        where=where,
        spark_reaches=reaches,
        row_groups=groups,
        damaged=find_short_logs(storage, pruned.kept),
    )
    report = replace(report, merging=measure_merging(storage, pruned.kept))
    if options.format is RowFormat.JSON:
        print_result(read_report.explanation_json(report))
    else:
        print_result(read_report.explanation_text(report, find_terminal()))


def _prune(work: TableRead, scan: Scan, where: str) -> tuple[PrunedScan, bool]:
    """Return what a condition leaves of a scan, and whether Spark has a file system for it."""
    predicate, why = parse_plain_condition(where, scan), _find_need_of_spark(work.spark, scan)
    if predicate is not None and why is None:
        return prune_plainly(scan, predicate, work.index), True
    from reconciler.reader import spark  # noqa: PLC0415 (slow to import)

    why = why or "it is more than comparisons of columns with values of their type"
    log_message(f"Spark interprets the condition: {why}")
    with _open_session(work) as session, spark.translate_spark_errors(work.storage.ref):
        pruned = spark.prune_by_condition(session, scan, where, work.index)
        return pruned, spark.has_file_system(session, scan.location)


def _find_need_of_spark(settings: SparkSettings, scan: Scan) -> str | None:
    """Return why only a session can explain a read, whatever the condition; None if that is not so.

    Settings of Spark may change what a condition means.
    """
    if "://" in scan.location:
        return f"only Spark tells whether it can read {scan.location.partition('://')[0]}://"
    if key := next((key for key in settings.conf if key.startswith("spark.sql.")), None):
        return f"the setting {key} may change what it means"
    variables = ("SPARK_HOME", "SPARK_CONF_DIR", "PYSPARK_SUBMIT_ARGS")
    if name := next((name for name in variables if name in runtime.environment()), None):
        return f"{name} may configure Spark"
    return "a session is running" if has_active_session() else None


def print_rows(work: TableRead, options: ReadOptions) -> None:
    """Print the rows of a read."""
    from reconciler.reader import spark  # noqa: PLC0415 (slow to import)

    ref, where = work.storage.ref, options.where
    scan = open_requested_scan(work.storage, work.request, zone=work.zone)
    with _open_session(work) as session, spark.translate_spark_errors(ref):
        pruned = spark.prune_scan(session, scan, where, work.index)
        for damaged in find_short_logs(work.storage, pruned.kept):
            log_message(f"warning: {damaged}", level="warning")
        _print_frame(spark.make_pruned_frame(session, pruned, ref, where), scan, options)


@contextmanager
def _open_session(work: TableRead) -> Iterator[Any]:
    """Open a session whose jobs are watched. An error after Ctrl-C is reported as the interrupt."""
    from reconciler.spark.jobs import watch_job_group  # noqa: PLC0415 (with Spark only)

    location = work.storage.location
    stores = find_stores([location] if names_account(location) else [])
    opened = open_spark_session(
        work.spark.master,
        work.spark.conf,
        from_variables=work.spark.from_variables,
        needs=StoreNeeds(stores=stores, is_required=False),
    )
    with opened as session:
        try:
            with watch_job_group(session.sparkContext, "reconciler: read"):
                yield session
        except Exception:
            interruption.raise_if_interrupted()
            raise


def _print_frame(frame: Any, scan: Scan, options: ReadOptions) -> None:
    match options.format:
        case RowFormat.JSON:
            rows = _iterate_rows(frame.selectExpr(make_json_expression(scan.schema)), options.limit)
            _print_lines(f"{row[0]}\n" for row in rows)
        case RowFormat.CSV:
            print_result("".join(row_output.csv_lines([scan.schema.names])))
            rows = _iterate_rows(_as_text(frame, scan), options.limit)
            _print_lines(row_output.csv_lines(rows))
        case RowFormat.TEXT:
            limit = DEFAULT_ROW_LIMIT if options.limit is None else options.limit
            cells = list(_iterate_rows(_as_text(frame, scan), limit + 1))
            kinds = [format_spark_type(field.type) for field in scan.schema]
            print_result(row_output.rows_text(scan.schema.names, kinds, cells[:limit]))
            _report_row_count(cells, limit)
        case _:
            assert_never(options.format)


def _as_text(frame: Any, scan: Scan) -> Any:
    """Return the frame with text in every column."""
    return frame.selectExpr(*make_text_expressions(scan.schema))


def _report_row_count(rows: Sequence[Any], limit: int) -> None:
    if len(rows) > limit:
        log_message(f"showing the first {words.format_count(limit, 'row')}; use --limit N for more "
            "rows, or --format csv or json for all")  # fmt: skip
    else:
        log_message(words.format_count(len(rows), "row"))


def _iterate_rows(frame: Any, limit: int | None) -> Iterator[Any]:
    """Iterate over the rows of a frame: at once with a limit, else a partition at a time."""
    if limit is not None:
        return iter(frame.limit(limit).collect())
    rows: Iterator[Any] = frame.toLocalIterator(prefetchPartitions=True)
    return rows


def _print_lines(lines: Iterable[str]) -> None:
    rest = iter(lines)
    while batch := list(islice(rest, _ROWS_PER_FETCH)):
        print_result("".join(batch))
