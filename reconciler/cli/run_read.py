"""Reading a table for ``reconciler read``, with a Spark session if one is needed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, assert_never

import pyarrow as pa

from reconciler.cli import interruption
from reconciler.cli.environment import find_stores
from reconciler.cli.executor_choice import Work, choose_executor
from reconciler.cli.options import Executor, SparkSettings
from reconciler.cli.read_options import ReadOptions, RowFormat, TableRead
from reconciler.cli.spark import has_active_session, is_spark_running, open_spark_session
from reconciler.cli.spark_connectors import StoreNeeds
from reconciler.cli.spark_sql_settings import find_sql_configuration
from reconciler.cli.terminal import find_terminal, log_message, print_result
from reconciler.errors import UsageError
from reconciler.index.predicate_columns import find_unknown_names
from reconciler.reader.local import NOT_PLAIN, LocalRead, plan_local_read, read_rows, take_rows
from reconciler.reader.merge_report import measure_merging
from reconciler.reader.open_scan import open_requested_scan
from reconciler.reader.plain_condition import parse_plain_condition, prune_plainly
from reconciler.reader.pruning import PrunedScan, keep_all, keep_unsure, prune_cautiously
from reconciler.reader.read_report import make_read_report
from reconciler.reader.row_group_counts import count_row_groups
from reconciler.reader.short_logs import find_short_logs
from reconciler.reader.spark_types import format_spark_type
from reconciler.reader.sql_text import make_json_expression, make_text_expressions
from reconciler.render import read_report, words
from reconciler.render import rows as row_output
from reconciler.render.row_text import find_unprintable_column, make_cells, make_json_lines
from reconciler.runtime import find_local_zone
from reconciler.storage.locations import names_account

if TYPE_CHECKING:
    from reconciler.reader.model import Scan

#: lines that are printed at once
_ROWS_PER_FETCH: Final = 1000


def print_explanation(work: TableRead, options: ReadOptions) -> None:
    """Print what a read would touch. Spark starts only if the user asks for it."""
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
    settings, predicate = work.spark, parse_plain_condition(where, scan)
    doubt = find_sql_configuration(settings)
    if settings.executor is Executor.SPARK or (is_spark_running() and _is_auto(settings)):
        why = doubt or _find_other_need(scan) or (None if predicate else NOT_PLAIN)
        if why is not None or predicate is None:
            return _prune_with_spark(work, scan, where, why or NOT_PLAIN)
    _check_columns(scan, where)
    if doubt is not None:
        return keep_unsure(scan, f"{doubt}, so only Spark interprets the condition"), True
    if predicate is None:
        return prune_cautiously(scan, where, work.index), True
    return prune_plainly(scan, predicate, work.index), True


def _check_columns(scan: Scan, where: str) -> None:
    """Refuse a condition on columns that the table lacks, as Spark does after its start."""
    if unknown := find_unknown_names(where, scan.table_schema):
        raise UsageError(f"--where: {unknown[0].message}")


def _is_auto(settings: SparkSettings) -> bool:
    return settings.executor is Executor.AUTO


def _prune_with_spark(work: TableRead, scan: Scan, where: str, why: str) -> tuple[PrunedScan, bool]:
    from reconciler.reader import spark  # noqa: PLC0415 (slow to import)

    log_message(f"Spark interprets the condition: {why}")
    with _open_session(work) as session, spark.translate_spark_errors(work.storage.ref):
        pruned = spark.prune_by_condition(session, scan, where, work.index)
        return pruned, spark.has_file_system(session, scan.location)


def _find_other_need(scan: Scan) -> str | None:
    """Return why a session tells more of a read than its condition; None if that is not so."""
    if "://" in scan.location:
        return f"only Spark tells whether it can read {scan.location.partition('://')[0]}://"
    return "a session is running" if has_active_session() else None


def print_rows(work: TableRead, options: ReadOptions) -> None:
    """Print the rows of a read, with Spark if that pays or if only Spark can read them."""
    scan = open_requested_scan(work.storage, work.request, zone=work.zone)
    plan, zone = None, find_local_zone()
    needed = _find_need_of_spark(work.spark, scan, zone)
    if options.where is not None and not needed and work.spark.executor is not Executor.SPARK:
        _check_columns(scan, options.where)
    if not needed and (plan := plan_local_read(scan, options.where, work.index)) is None:
        needed = NOT_PLAIN

    def measure() -> Work:
        if plan is None:
            return Work(text="", needs_spark=needed or "")
        return _measure_read(plan, options)

    choice = choose_executor(work.spark, measure)
    choice.report()
    if choice.is_local and plan is not None:
        _print_here(work, plan, options, zone or "UTC")
    else:
        _print_with_spark(work, scan, options)


def _find_need_of_spark(settings: SparkSettings, scan: Scan, zone: str | None) -> str | None:
    """Return why only Spark prints the rows of a scan as it would, whatever the condition."""
    if doubt := find_sql_configuration(settings):
        return doubt
    if column := find_unprintable_column(scan.schema):
        return f"column {column} has a type that only Spark prints"
    has_times = any(_has_zone(field.type) for field in scan.schema)
    return "the time zone of this machine has no name" if has_times and zone is None else None


def _has_zone(kind: pa.DataType) -> bool:
    if pa.types.is_timestamp(kind):
        return kind.tz is not None
    return any(_has_zone(kind.field(at).type) for at in range(kind.num_fields))


def _measure_read(plan: LocalRead, options: ReadOptions) -> Work:
    slices = words.format_count(len(plan.pruned.kept.slices), "file slice")
    if options.where is None and (limit := options.row_limit) is not None:
        return Work(text=f"{words.format_count(limit, 'row')} of {slices}")
    return Work.from_bytes(plan.bytes, f"of {slices} to read")


def _print_here(work: TableRead, plan: LocalRead, options: ReadOptions, zone: str) -> None:
    """Print the rows of a read without Spark."""
    scan = plan.pruned.scan
    for damaged in find_short_logs(work.storage, plan.pruned.kept):
        log_message(f"warning: {damaged}", level="warning")
    batches = read_rows(plan, work.storage)
    match options.format:
        case RowFormat.JSON:
            rows = take_rows(batches, options.limit)
            _print_lines(f"{line}\n" for batch in rows for line in make_json_lines(batch, zone))
        case RowFormat.CSV:
            print_result("".join(row_output.csv_lines([scan.schema.names])))
            rows = take_rows(batches, options.limit)
            cells = (row for batch in rows for row in make_cells(batch, zone))
            _print_lines(row_output.csv_lines(cells))
        case RowFormat.TEXT:
            rows = take_rows(batches, (options.row_limit or 0) + 1)
            _print_table([row for batch in rows for row in make_cells(batch, zone)], scan, options)
        case _:
            assert_never(options.format)


def _print_with_spark(work: TableRead, scan: Scan, options: ReadOptions) -> None:
    from reconciler.reader import spark  # noqa: PLC0415 (slow to import)

    ref, where = work.storage.ref, options.where
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
            rows = _iterate_rows(_as_text(frame, scan), (options.row_limit or 0) + 1)
            _print_table(list(rows), scan, options)
        case _:
            assert_never(options.format)


def _print_table(cells: Sequence[Any], scan: Scan, options: ReadOptions) -> None:
    """Print rows as a table for people; one more than the limit tells that there are more."""
    limit = options.row_limit or 0
    kinds = [format_spark_type(field.type) for field in scan.schema]
    print_result(row_output.rows_text(scan.schema.names, kinds, cells[:limit]))
    _report_row_count(cells, limit)


def _as_text(frame: Any, scan: Scan) -> Any:
    """Return the frame with text in every column."""
    return frame.selectExpr(*make_text_expressions(scan.schema))


def _report_row_count(rows: Sequence[Any], limit: int) -> None:
    if len(rows) > limit:
        shown = f"the first {words.format_count(limit, 'row')}" if limit else "no row"
        log_message(
            f"showing {shown}; use --limit N for more rows, or --format csv or json for all"
        )
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
