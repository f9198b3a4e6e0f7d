"""The Python API: the commands without a terminal.

import reconciler

specs = reconciler.load_specs("specs/")
plan = reconciler.plan(specs)
result = reconciler.apply(plan)  # spark=session: on its workers
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from reconciler import runtime
from reconciler.errors import UsageError
from reconciler.plans.model import Selection, TablePlan
from reconciler.plans.plan import Plan
from reconciler.plans.unreadable_table import OnCrash
from reconciler.spec.model import TableSpec
from reconciler.status.many_tables import run_for_each, take_first

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from reconciler.executor.result import ApplyResult
    from reconciler.layout.sizing.simulate_inserts import NextInsert
    from reconciler.planners.answers.model import Search
    from reconciler.planners.prediction.advice import Advice
    from reconciler.spec.model import Option
    from reconciler.state.model import TableState
    from reconciler.status.model import TableStatus
    from reconciler.status.observation import Purpose
    from reconciler.status.reconciliation import ReconciledWrite
    from reconciler.status.table_simulation import SimulationRequest, TableSimulation
    from reconciler.status.table_survey import TableSurvey
    from reconciler.transaction.catalogs.sync import PartitionSync
    from reconciler.verification.table_verification import TableVerification


Location = str | os.PathLike[str]
OnTable = Callable[[TablePlan], None]
_Result = TypeVar("_Result")


def load_specs(
    paths: Location | Sequence[Location],
    *,
    env: Location | None = None,
    policies: Location | Sequence[Location] = (),
    require_policies: bool = False,
) -> tuple[TableSpec, ...]:
    """Return the specs of files and folders, sorted by name.

    ``env``: the environment's name (``environments/NAME.yaml`` beside the specs or above) or file.
    ``policies``: more files and folders of them; with ``require_policies`` a table that none covers
    is an error. Raises SpecError with the problems of all files.
    """
    from reconciler.spec.load import load_specs as load  # noqa: PLC0415 (YAML)
    from reconciler.state.catalogs.open import TableLocator  # noqa: PLC0415

    rules: Any = {"policies": policies, "require_policies": require_policies}
    with closing(TableLocator(runtime.open_catalog)) as locator:
        return load(paths, env, locate=locator.locate, **rules)


def observe(spec: TableSpec, *, now: datetime | None = None) -> TableState:
    """Read the current state of a spec's table. Needs no Spark and no write permission.

    Raises StorageError, FormatError or UnsupportedError; each names the file.
    """
    return _observe(spec, now, "plan")


def _observe(spec: TableSpec, now: datetime | None, purpose: Purpose, **options: Any) -> TableState:
    """Read the state for a purpose, with the options of ``observe_for``."""
    from reconciler.status.observation import observe_for  # noqa: PLC0415 (Avro)

    storage = runtime.open_storage(spec.path, spec.storage_options)
    at, is_alive = now or runtime.now(), runtime.is_owner_alive
    return observe_for(purpose, spec, storage, at, is_alive, **options)


def plan(  # noqa: PLR0913 (the options of a plan)
    specs: TableSpec | Iterable[TableSpec],
    *,
    now: datetime | None = None,
    on_table: OnTable | None = None,
    on_crash: OnCrash | None = None,
    selection: Selection | None = None,
    parallelism: int = 1,
    insert: NextInsert | None = None,
    cache_folder: Location | None = None,
) -> Plan:
    """Plan what must change so that each table is as declared, and why. Changes no table.

    A table that cannot be read gets an ``error``. ``now`` (with a zone) is the current time by
    default. ``on_table`` gets every planned table, ``on_crash`` errors that are bugs of reconciler.
    ``selection``: how the specs were selected, if they are not all. ``parallelism``: number of
    tables to plan in parallel. ``insert``: new rows; the plan says where a writer would put them.
    ``cache_folder``: keep listings of large local tables there, and list only changed folders.
    """
    moment = now or runtime.now()
    if moment.tzinfo is None:
        raise ValueError("now needs a zone: datetime(..., tzinfo=...)")
    cache = None if cache_folder is None else runtime.open_listing_cache(Path(cache_folder))
    options: Any = {"insert": insert, "listing_cache": cache}
    tables = run_for_each(
        specs, lambda spec: _plan_table(spec, moment, on_crash, **options)[0], parallelism, on_table
    )
    tool, created_at = runtime.tool_name(), moment.isoformat()
    return Plan(created_at=created_at, tool=tool, tables=tables, selection=selection)


def status(
    specs: TableSpec | Iterable[TableSpec],
    *,
    now: datetime | None = None,
    on_table: OnTable | None = None,
    on_crash: OnCrash | None = None,
    parallelism: int = 1,
) -> tuple[TableStatus, ...]:
    """Return the health and drift of each table. Takes the arguments of ``plan``."""
    options: Any = {"on_table": on_table, "on_crash": on_crash, "parallelism": parallelism}
    return survey(specs, lambda table: table.status, now=now, purpose="status", **options)


def survey(
    specs: TableSpec | Iterable[TableSpec],
    use: Callable[[TableSurvey], _Result],
    *,
    now: datetime | None = None,
    purpose: Purpose = "plan",
    insert: NextInsert | None = None,
    **options: Any,
) -> tuple[_Result, ...]:
    """Return what ``use`` makes of each table's plan, status and state. Options as of ``plan``."""
    from reconciler.status.table_survey import survey_tables  # noqa: PLC0415

    make_plan = partial(_plan_table, now=now or runtime.now(), purpose=purpose, insert=insert)
    tools = (runtime.open_storage, runtime.current_process(), runtime.SystemClock())
    return survey_tables(specs, use, make_plan, tools, **options)


def advise(
    specs: TableSpec | Iterable[TableSpec],
    *,
    now: datetime | None = None,
    on_table: Callable[[TableSpec], None] | None = None,
    on_crash: OnCrash | None = None,
    parallelism: int = 1,
) -> tuple[Advice, ...]:
    """Propose clustering and index columns for the declared queries of each table.

    Changes no table. A table that cannot be read gets an ``error``. The arguments are those of
    ``plan``.
    """
    from reconciler.status.table_advice import advise_spec  # noqa: PLC0415 (pyarrow)

    observed_ms = runtime.to_epoch_ms(now or runtime.now())

    def work(spec: TableSpec) -> tuple[TableSpec, Advice]:
        return spec, advise_spec(spec, runtime.open_storage, observed_ms, on_crash)

    pairs = run_for_each(specs, work, parallelism, take_first(on_table))
    return tuple(advice for _, advice in pairs)


def simulate(
    specs: TableSpec | Iterable[TableSpec],
    request: SimulationRequest,
    *,
    now: datetime | None = None,
    on_table: Callable[[TableSimulation], None] | None = None,
    on_crash: OnCrash | None = None,
    parallelism: int = 1,
) -> tuple[TableSimulation, ...]:
    """Return what each table would be with other declarations. Takes the arguments of ``plan``."""
    from reconciler.status.table_simulation import simulate_spec  # noqa: PLC0415 (pyarrow)

    at, is_alive = now or runtime.now(), runtime.is_owner_alive
    work = partial(simulate_spec, request, runtime.open_storage, at, is_alive, on_crash)
    return run_for_each(specs, work, parallelism, on_table)


def verify(
    specs: TableSpec | Iterable[TableSpec],
    *,
    sample: float = 1.0,
    now: datetime | None = None,
    on_table: Callable[[TableVerification], None] | None = None,
    on_crash: OnCrash | None = None,
    parallelism: int = 1,
) -> tuple[TableVerification, ...]:
    """Compare each table's metadata table and index with its folders, footers and keys.

    Changes no table. ``sample``: the share of the file groups whose footers and keys are read. A
    table that cannot be read gets an ``error``. The other arguments are those of ``plan``.
    """
    from reconciler.verification.table_verification import verify_table  # noqa: PLC0415 (pyarrow)

    if not 0 < sample <= 1:
        raise ValueError("sample is a share: greater than 0, at most 1")
    observed_ms = runtime.to_epoch_ms(now or runtime.now())

    def work(spec: TableSpec) -> TableVerification:
        return verify_table(spec, runtime.open_storage, sample, observed_ms, on_crash)

    return run_for_each(specs, work, parallelism, on_table)


def _plan_table(
    spec: TableSpec,
    now: datetime,
    on_crash: OnCrash | None,
    purpose: Purpose = "plan",
    *,
    insert: NextInsert | None = None,
    **options: Any,
) -> tuple[TablePlan, TableState | None]:
    """Return a table's plan and the state it was made from; no state if it cannot be read."""
    from reconciler.status.observed_plan import plan_observed  # noqa: PLC0415

    read = partial(_observe, spec, now, purpose, with_simulation=insert is not None, **options)
    return plan_observed(spec, read, now, on_crash, insert)


def explain(spec: TableSpec, name: str, *, now: datetime | None = None) -> Search:
    """Return why a file, file group, instant or partition of a table stays or goes.

    ``name``: its path or name. Changes no table. Raises the errors of ``observe``.
    """
    from reconciler.status.answers import explain_name  # noqa: PLC0415

    moment = now or runtime.now()
    state = _observe(spec, moment, "plan")
    return explain_name(spec, state, moment, name, runtime.open_storage)


def apply(
    plan: Plan,
    *,
    spark: SparkSession | None = None,
    now: datetime | None = None,
    specs: Iterable[TableSpec] | None = None,
    digest: str | None = None,
    parallelism: int = 1,
) -> ApplyResult:
    """Execute a reviewed plan, and nothing beyond it. Steps that no longer hold are skipped.

    ``spark``: the session whose workers do the work; without one, threads of this process do.
    ``specs``: the current ones; a table whose spec or path changed since the review is skipped.
    ``digest``: raise StaleError unless the plan has it. ``parallelism``: tables to apply in
    parallel. Errors of a table are in its result; ``ApplyResult.exit_code`` is the command's.
    """
    from reconciler.executor import plan_executors  # noqa: PLC0415
    from reconciler.executor.gate import admit_plan, get_waiver_time  # noqa: PLC0415
    from reconciler.executor.run import apply_plan  # noqa: PLC0415
    from reconciler.executor.session import ApplyContext  # noqa: PLC0415

    clock = runtime.SystemClock()
    waiver_time = get_waiver_time(now, clock)
    admitted = admit_plan(plan, specs=specs, expected_digest=digest, now=waiver_time)
    if spark is None:
        cores = runtime.count_cores()
        opened = plan_executors.make_local_executors(
            runtime.open_storage, cores=cores, parallelism=parallelism
        )
    else:
        opened = plan_executors.make_session_executors(spark, admitted.working_tables)
    context = ApplyContext(
        open_storage=runtime.open_storage,
        deleter=opened.deleter,
        rewriter=opened.rewriter,
        builder=opened.builder,
        clock=clock,
        new_token=runtime.new_token,
        process=runtime.current_process(),
        now=now,
        open_catalog=runtime.open_catalog,
    )
    return apply_plan(admitted, context, parallelism=parallelism)


def sync(spec: TableSpec) -> PartitionSync:
    """Bring the partitions that the catalog of a spec's table lists to those that have files.

    Touches no file. Raises UsageError for a spec without a catalog, CatalogError, and the errors of
    ``observe``.
    """
    from reconciler.state.current_files import list_current_partitions  # noqa: PLC0415
    from reconciler.storage.read_only import ReadOnlyStorage  # noqa: PLC0415
    from reconciler.transaction.catalogs.whole_table import sync_all_partitions  # noqa: PLC0415

    if spec.catalog is None:
        raise UsageError(f"{spec.name}: its spec declares no catalog to sync")
    storage = ReadOnlyStorage(runtime.open_storage(spec.path, spec.storage_options))
    view = _observe(spec, None, "view").view
    present = list_current_partitions(view)
    return sync_all_partitions(storage, spec.path, present, spec.catalog, runtime.open_catalog)


def write(  # noqa: PLR0913 (the options of a write)
    rows: DataFrame | None,
    spec: TableSpec,
    operation: str = "upsert",
    *,
    dedupe: bool = False,
    fill_missing: bool = False,
    partitions: Sequence[str] | None = None,
    batch: tuple[str, int] | None = None,
    extra: Mapping[str, str] | None = None,
    reconcile: bool = False,
) -> ReconciledWrite:
    """Write the rows of a DataFrame into the table of a spec, all or none. Needs no Hudi jar.

    A missing table is created from the spec's ``table`` block. ``operation``: insert, upsert,
    delete (needs only key and partition columns), bulk-insert, insert-overwrite (the partitions of
    the rows), insert-overwrite-table, or delete-partition (``partitions``: their paths; no rows).
    ``dedupe``: with insert, write one row per key. ``fill_missing``: write null to columns that the
    rows do not have. ``batch``: name of a stream and number of a batch (``foreachBatch``), which is
    written only once. ``extra``: stored in the instant's metadata. ``reconcile``: afterwards plan
    the table and apply the plan, under the spec's policies; the result's ``reconciliation`` is its
    outcome or error.

    Raises BusyError if another writer conflicts: nothing was written, and you can write again.
    Raises RowsError and UnsupportedError for rows that do not fit, and the errors of ``read``.
    """
    from reconciler.status.reconciliation import add_reconciliation, reconcile_written  # noqa: PLC0415
    from reconciler.transaction.session import RunContext  # noqa: PLC0415
    from reconciler.writer.catalog_sync import write_synced  # noqa: PLC0415
    from reconciler.writer.spark import (  # noqa: PLC0415
        find_session,
        make_write_request,
        open_writer,
    )

    request = make_write_request(
        rows, operation, dedupes=dedupe, fills_missing=fill_missing, partitions=partitions
    )
    session = find_session(rows) if reconcile else None
    written = write_synced(
        spec,
        replace(request, batch=batch, extra=extra or {}),
        context=RunContext(
            open_storage=runtime.open_storage,
            clock=runtime.SystemClock(),
            process=runtime.current_process(),
        ),
        token=runtime.new_token(),
        writer=None if rows is None else open_writer(rows.sparkSession),
        open_catalog=runtime.open_catalog,
    )
    if session is None:
        return add_reconciliation(written, None)
    return reconcile_written(written, spec, plan, partial(apply, spark=session, specs=[spec]))


def read(  # noqa: PLR0913 (the options of a read)
    spark: SparkSession,
    path: Location,
    where: str | None = None,
    as_of: str | None = None,
    *,
    columns: Sequence[str] | None = None,
    kind: str = "snapshot",
    begin: str | None = None,
    end: str | None = None,
    storage_options: Mapping[str, Option] | None = None,
    skipping: bool = True,
) -> DataFrame:
    """Return the rows of a table, now or as of an instant. Needs no Hudi jar; changes nothing.

    ``where``: a condition in Spark SQL; it skips partitions, files by the table's index (unless
    ``skipping=False``) and, with ``columns``, parts of files.
    ``as_of``: an instant of the timeline, or a time in its zone such as 2026-01-31 04:00:00.
    ``kind``: snapshot, readOptimized (no log files are merged), or incremental: the rows written
    after ``begin`` up to ``end`` (the newest). ``storage_options`` go to the store's client.
    Raises UsageError, BlockedError for a time that can no longer be read, UnsupportedError,
    FormatError and StorageError. Errors of a worker are raised when rows are fetched.
    """
    from reconciler.reader.open_scan import open_requested_scan  # noqa: PLC0415
    from reconciler.reader.request import ReadArguments  # noqa: PLC0415
    from reconciler.reader.spark import make_data_frame, translate_spark_errors  # noqa: PLC0415
    from reconciler.storage.read_only import ReadOnlyStorage  # noqa: PLC0415

    if isinstance(columns, str):
        raise TypeError("columns must be a sequence of names")
    request = ReadArguments(kind=kind, as_of=as_of, begin=begin, end=end, columns=columns)
    storage = runtime.open_storage(os.fspath(path), storage_options)
    index = ReadOnlyStorage(storage) if skipping else None
    scan = open_requested_scan(storage, request)
    with translate_spark_errors(storage.ref):
        return make_data_frame(spark, scan, storage.ref, where, index=index)
