"""Execution of ``reconciler write``: a Spark session, and the result as text or JSON."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import import_module
from typing import Any, Final

from reconciler import api, runtime
from reconciler.cli import interruption
from reconciler.cli.environment import find_stores
from reconciler.cli.executor_choice import Work, choose_executor
from reconciler.cli.options import ShortFormat, SparkSettings
from reconciler.cli.spark import open_spark_session
from reconciler.cli.spark_connectors import StoreNeeds
from reconciler.cli.spark_sql_settings import find_sql_configuration
from reconciler.cli.terminal import find_terminal, log_message, print_result
from reconciler.cli.write_options import WriteOptions
from reconciler.errors import ReconcilerError
from reconciler.render import words
from reconciler.render.write_result import (
    lookup_text,
    reconciliation_text,
    write_json,
    write_text,
)
from reconciler.spark.failures import LINE
from reconciler.spec.model import TableSpec
from reconciler.status.reconciliation import (
    ReconciledWrite,
    add_reconciliation,
    reconcile_written,
)
from reconciler.storage.parallel import MOST_THREADS
from reconciler.storage.read_only import ReadOnlyStorage
from reconciler.storage.redaction import redact_urls
from reconciler.transaction.session import RunContext
from reconciler.writer.catalog_sync import write_synced
from reconciler.writer.local import LocalWriter
from reconciler.writer.request import WriteRequest, check_request, parse_mode
from reconciler.writer.sources.files import SourceFiles, find_source_files
from reconciler.writer.sources.formats import SourceFormat
from reconciler.writer.sources.local import LocalSource, NeedsSparkError, open_local_source
from reconciler.writer.target_check import WriteTarget, check_target

#: bytes of the sources for each shuffle partition
_BYTES_PER_PARTITION: Final = 32 * 1024 * 1024


def write_files(
    spec: TableSpec,
    options: WriteOptions,
    reader_options: Mapping[str, str],
    settings: SparkSettings,
) -> int:
    """Write the files, print the result and return the exit code.

    What options, the spec and the table tell is checked before Spark starts.
    """
    check_request(
        parse_mode(options.operation),
        has_rows=bool(options.sources),
        dedupes=options.dedupe,
        partitions=options.partitions,
    )
    if options.then is not None:
        import_module("reconciler.cli.run_apply")  # it must not fail once the write is committed
    if options.sources:
        result = _write_sources(spec, options, reader_options, settings)
    else:
        written = api.write(None, spec, options.operation, partitions=options.partitions)
        result = _run_service(written, spec, options, settings)
    for note in result.warnings:
        log_message(f"warning: {note.because}", level="warning")
    if options.format is ShortFormat.JSON:
        print_result(write_json(spec.name, options.operation, result))
    else:
        text = write_text(spec.name, options.operation, result)
        if (made := result.reconciliation) is not None:
            text += reconciliation_text(spec.name, made, find_terminal())
        print_result(text)
    return result.exit_code


def _write_sources(
    spec: TableSpec,
    options: WriteOptions,
    reader_options: Mapping[str, str],
    settings: SparkSettings,
) -> ReconciledWrite:
    """Write the rows of the source files, with Spark if that pays or if only Spark reads them."""
    storage = ReadOnlyStorage(runtime.open_storage(spec.path, spec.storage_options))
    mode, now_ms = parse_mode(options.operation), runtime.SystemClock().now_ms()
    target = check_target(spec, storage, mode, now_ms=now_ms)
    source = find_source_files(
        options.sources or (),
        options.source_format,
        reader_options,
        runtime.resolve_options(spec.storage_options),
    )
    interruption.set_advice(
        "run the same write again, unless `reconciler status` shows it completed"
    )
    local: list[LocalSource] = []

    def measure() -> Work:
        is_avro = source.format is SourceFormat.AVRO  # Python reads those in any case
        if not is_avro and (configured := find_sql_configuration(settings)):
            return Work(text="", needs_spark=configured)
        try:
            local.append(open_local_source(source))
        except NeedsSparkError as reason:
            return Work(text="", needs_spark=str(reason))
        return _measure_write(local[0], target)

    choice = choose_executor(settings, measure)
    choice.report()
    if choice.is_local:
        written = _write_here(spec, options, local[0])
    else:
        with _open_session(source, settings) as session:
            written = _write_with_spark(session, spec, options, source, target)
            return _run_service(written, spec, options, settings)
    return _run_service(written, spec, options, settings)


def _measure_write(source: LocalSource, target: WriteTarget) -> Work:
    rows = source.bytes if source.rows is None else source.rows
    rewritten = target.estimate_rewrite(rows)
    files = words.format_count(len(source.source.files), "source file")
    what = f"of {files} and of files they may change" if rewritten else f"of {files}"
    return Work.from_bytes(source.bytes + rewritten, what, fits_threads=True)


def _write_here(spec: TableSpec, options: WriteOptions, source: LocalSource) -> ReconciledWrite:
    """Write the rows of the sources in this process."""
    log_message(f"writing into {spec.name}")
    threads = min(MOST_THREADS, runtime.count_cores())
    shuffled = max(threads, -(-source.bytes // _BYTES_PER_PARTITION))
    request = WriteRequest(
        mode=parse_mode(options.operation),
        rows=source.parts,
        schema=source.schema,
        dedupes=options.dedupe,
        fills_missing=options.fill_missing,
    )
    interruption.raise_if_interrupted()  # Python drops what a handler raises in a callback
    written = write_synced(
        spec,
        request,
        context=RunContext(
            open_storage=runtime.open_storage,
            clock=runtime.SystemClock(),
            process=runtime.current_process(),
        ),
        token=runtime.new_token(),
        writer=lambda ref: LocalWriter(
            runtime.open_storage(ref), shuffle_partitions=shuffled, threads=threads
        ),
        open_catalog=runtime.open_catalog,
    )
    return add_reconciliation(written, None)


@contextmanager
def _open_session(source: SourceFiles, settings: SparkSettings) -> Iterator[Any]:
    """Open a session that can read the sources."""
    is_avro = source.format is SourceFormat.AVRO  # Python reads those
    opened = open_spark_session(
        settings.master,
        settings.conf,
        in_python=True,
        from_variables=settings.from_variables,
        needs=StoreNeeds(stores=find_stores([] if is_avro else source.files)),
    )
    with opened as session:
        yield session


def _write_with_spark(
    session: Any,
    spec: TableSpec,
    options: WriteOptions,
    source: SourceFiles,
    target: WriteTarget,
) -> ReconciledWrite:
    from reconciler.spark.jobs import watch_job_group  # noqa: PLC0415 (with Spark only)
    from reconciler.writer.sources.spark import read_source_files  # noqa: PLC0415

    try:
        with watch_job_group(session.sparkContext, "reconciler: read the sources"):
            rows = read_source_files(session, source, target.schema)
        log_message(f"writing into {spec.name}")
        return api.write(
            rows,
            spec,
            options.operation,
            dedupe=options.dedupe,
            fill_missing=options.fill_missing,
        )
    except Exception as error:
        interruption.raise_if_interrupted()
        if isinstance(error, ReconcilerError) and str(error).startswith(LINE):
            raise ReconcilerError(f"{_name_sources(source.paths)}: {error}") from error
        raise


def _run_service(
    written: ReconciledWrite, spec: TableSpec, options: WriteOptions, settings: SparkSettings
) -> ReconciledWrite:
    """Say how the write found its keys; reconcile the table after it if that is asked for."""
    if written.lookup is not None:
        log_message(lookup_text(written.lookup), event="lookup")
    if options.then is None:
        return written
    from reconciler.cli.run_apply import ApplyRun, run_apply  # noqa: PLC0415 (slow to import)

    done = "is done" if written.instant is None else f"is committed as {written.instant}"
    log_message(f"{spec.name}: the write {done}; planning the table")
    advice = f"the write {done}: do not repeat it; run `reconciler apply` for the rest"
    interruption.set_advice(advice)
    run = ApplyRun(specs=[spec], spark=settings, advice=advice)
    made = reconcile_written(written, spec, api.plan, lambda plan: run_apply(plan, run))
    interruption.raise_if_interrupted()
    return made


def _name_sources(paths: Sequence[str]) -> str:
    """Return the names of the sources, for a message about one of them."""
    return " or ".join(redact_urls(path) for path in paths)
