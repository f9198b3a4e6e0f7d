"""The Python API: what the commands do, without a terminal.

import reconciler

specs = reconciler.load_specs("specs/")
plan = reconciler.plan(specs)
result = reconciler.apply(plan, spark=session)
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, tzinfo
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from reconciler import runtime
from reconciler.errors import BlockedError, FormatError, ReconcilerError, StorageError
from reconciler.plans.model import Note, Selection, TablePlan
from reconciler.plans.plan import Plan
from reconciler.spec.model import TableSpec
from reconciler.storage.parallel import run_parallel

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from reconciler.executor.result import ApplyResult
    from reconciler.layout.sizing.simulate_inserts import NextInsert
    from reconciler.layout.sizing.write_history import PastWrite
    from reconciler.planners.prediction.advice import Advice
    from reconciler.reader.model import Scan
    from reconciler.reader.request import ReadArguments
    from reconciler.spec.model import Option
    from reconciler.state.model import TableState
    from reconciler.status.model import LockStatus, TableStatus
    from reconciler.storage.api import Storage
    from reconciler.writer.request import WriteResult

#: an interruption waits so long for every table that is looked at: nothing has to be put in order
_REFRESH_WAIT_S: Final = 0.5

Location = str | os.PathLike[str]
OnTable = Callable[[TablePlan], None]
OnCrash = Callable[[TableSpec, Exception], None]


def load_specs(
    paths: Location | Sequence[Location], *, env: Location | None = None
) -> tuple[TableSpec, ...]:
    """The specs of files and folders, sorted by name, in an environment if one is named.

    ``env``: its name, as in ``environments/NAME.yaml`` beside the specs or above them, or its file.
    Raises SpecError with every problem of every file; an empty folder is one.
    """
    from reconciler.spec.load import load_specs as load  # noqa: PLC0415 (YAML)

    several = [paths] if isinstance(paths, str | os.PathLike) else paths
    return load([Path(path) for path in several], None if env is None else os.fspath(env))


def observe(spec: TableSpec, *, now: datetime | None = None) -> TableState:
    """What the table of a spec is right now. Needs no Spark and no write permission.

    Raises StorageError, FormatError or UnsupportedError; each names the file.
    """
    return _observe(spec, now, with_predictions=True)


def _observe(
    spec: TableSpec, now: datetime | None, *, with_predictions: bool, with_simulation: bool = False
) -> TableState:
    """``with_predictions``: with what is only shown or predicted, beside what decides about steps.

    ``with_simulation``: with what a simulated insert needs, whatever the spec declares.
    """
    from reconciler.state.observe import observe as look  # noqa: PLC0415 (Avro)
    from reconciler.storage.wrappers import ReadOnlyStorage  # noqa: PLC0415

    storage = ReadOnlyStorage(runtime.open_storage(spec.path, spec.storage_options))
    state = look(
        storage,
        spec,
        observed_ms=runtime.to_epoch_ms(now or runtime.now()),
        check_process=runtime.is_owner_alive,
    )
    if with_predictions and (spec.files is not None or with_simulation):
        from reconciler.state.recent_writes import add_recent_writes  # noqa: PLC0415 (few specs have files)

        state = add_recent_writes(storage, state, with_footers=with_simulation)
    if not spec.queries:
        return state
    from reconciler.planners.prediction.forecast import choose_samples  # noqa: PLC0415
    from reconciler.state.sampling.forecast_input import add_forecast_input  # noqa: PLC0415

    return add_forecast_input(
        storage, spec, state, choose_samples, only_max_scan=not with_predictions
    )


def plan(  # noqa: PLR0913 (the options of a plan)
    specs: TableSpec | Iterable[TableSpec],
    *,
    now: datetime | None = None,
    on_table: OnTable | None = None,
    on_crash: OnCrash | None = None,
    selection: Selection | None = None,
    parallelism: int = 1,
    insert: NextInsert | None = None,
) -> Plan:
    """What must change so that each table is as declared, and why. Writes nothing.

    A table that cannot be read carries ``error`` while the others go on. ``now`` has a zone and is
    the present by default; ``on_table`` hears of every table as soon as it is planned, ``on_crash``
    of errors that are this program's own. ``selection`` says that the specs are not all there are.
    ``parallelism``: tables at a time; the plan is in the order of the specs whatever it is.
    ``insert``: new rows; the plan says what a writer would do with them, and nothing is written.
    """
    moment = now or runtime.now()
    if moment.tzinfo is None:
        raise ValueError("now needs a zone: datetime(..., tzinfo=...)")
    tables = run_parallel(
        lambda spec: _plan_table(spec, moment, on_crash, insert=insert)[0],
        [specs] if isinstance(specs, TableSpec) else specs,
        parallelism=parallelism,
        on_done=on_table,
        wait_s=_REFRESH_WAIT_S,
    )
    return Plan(
        created_at=moment.isoformat(),
        tool=runtime.tool_name(),
        tables=tuple(tables),
        selection=selection,
    )


def status(
    specs: TableSpec | Iterable[TableSpec],
    *,
    now: datetime | None = None,
    on_table: OnTable | None = None,
    on_crash: OnCrash | None = None,
    parallelism: int = 1,
) -> tuple[TableStatus, ...]:
    """How each table is: in sync or not, what hangs, what is pinned. Writes nothing.

    The arguments are those of ``plan``.
    """
    from reconciler.status.lock import read_lock_status  # noqa: PLC0415
    from reconciler.status.table import table_status  # noqa: PLC0415

    def read_lock(spec: TableSpec) -> LockStatus | None:
        return read_lock_status(
            spec,
            runtime.open_storage,
            process=runtime.current_process(),
            clock=runtime.SystemClock(),
        )

    moment = now or runtime.now()

    def work(spec: TableSpec) -> tuple[TablePlan, TableStatus]:
        made, state = _plan_table(spec, moment, on_crash, with_predictions=False)
        try:
            written = () if state is None else _read_writes(spec, state)
            return made, table_status(spec, state, made, lock=read_lock(spec), writes=written)
        except Exception as error:  # noqa: BLE001 (one table must not stop the others)
            made = replace(_unreadable_plan(spec), error=_report_crash(spec, error, on_crash))
            return made, table_status(spec, None, made)

    def on_done(done: tuple[TablePlan, TableStatus]) -> None:
        if on_table is not None:
            on_table(done[0])

    found = run_parallel(
        work,
        [specs] if isinstance(specs, TableSpec) else specs,
        parallelism=parallelism,
        on_done=on_done,
        wait_s=_REFRESH_WAIT_S,
    )
    return tuple(table for _, table in found)


def advise(
    specs: TableSpec | Iterable[TableSpec],
    *,
    now: datetime | None = None,
    on_table: Callable[[TableSpec], None] | None = None,
    on_crash: OnCrash | None = None,
    parallelism: int = 1,
) -> tuple[Advice, ...]:
    """Which clustering and which index the declared queries of each table ask for. Writes nothing.

    A table that cannot be read carries ``error``; the arguments are those of ``plan``.
    """
    from reconciler.planners.prediction.advice import Advice  # noqa: PLC0415 (pyarrow)
    from reconciler.storage.wrappers import ReadOnlyStorage  # noqa: PLC0415

    observed_ms = runtime.to_epoch_ms(now or runtime.now())

    def work(spec: TableSpec) -> tuple[TableSpec, Advice]:
        try:
            storage = ReadOnlyStorage(runtime.open_storage(spec.path, spec.storage_options))
            return spec, advise_table(storage, spec, observed_ms=observed_ms)
        except ReconcilerError as error:
            problem = str(error)
        except Exception as error:  # noqa: BLE001 (one table must not stop the others)
            problem = _report_crash(spec, error, on_crash)
        return spec, Advice(name=spec.name, path=spec.path, queries=spec.queries, error=problem)

    found = run_parallel(
        work,
        [specs] if isinstance(specs, TableSpec) else specs,
        parallelism=parallelism,
        on_done=lambda done: on_table(done[0]) if on_table is not None else None,
        wait_s=_REFRESH_WAIT_S,
    )
    return tuple(advice for _, advice in found)


def advise_table(
    storage: Storage, spec: TableSpec, *, observed_ms: int, max_rows: int | None = None
) -> Advice:
    """Return the layout and index columns that the queries of a spec need; the spec has some.

    Reads footers, or their entries in indexes, and a sample of at most ``max_rows`` rows. The same
    files give the same advice. Raises StorageError, FormatError, UnsupportedError, BlockedError.
    """
    from reconciler.planners.picture import TablePicture  # noqa: PLC0415 (all of these: pyarrow)
    from reconciler.planners.prediction import advice  # noqa: PLC0415
    from reconciler.planners.prediction.forecast import choose_samples  # noqa: PLC0415
    from reconciler.state.observe import observe as observe_table  # noqa: PLC0415
    from reconciler.state.sampling.forecast_input import add_forecast_input  # noqa: PLC0415
    from reconciler.state.sampling.row_sample import SampleLimits, read_sample  # noqa: PLC0415

    rows = max_rows or advice.MAX_ROWS
    state = observe_table(storage, advice.widen_spec(spec), observed_ms=observed_ms)
    state = add_forecast_input(storage, replace(spec, clustering=None), state, choose_samples)
    draft = advice.draft_advice(TablePicture(spec, state))
    if draft.table is None:
        return draft.advice
    known = draft.forecast_input
    requests, limits = draft.choose_samples(rows), SampleLimits(rows=rows)
    sample = read_sample(storage, state.files, requests, known.columns, known.schema, limits)
    return advice.finish_advice(draft, sample)


def _plan_table(
    spec: TableSpec,
    now: datetime,
    on_crash: OnCrash | None,
    *,
    with_predictions: bool = True,
    insert: NextInsert | None = None,
) -> tuple[TablePlan, TableState | None]:
    """A table's plan and what it was made from; no state where it could not be read."""
    from reconciler.planners.compose import plan_table  # noqa: PLC0415

    try:
        state = _observe(
            spec, now, with_predictions=with_predictions, with_simulation=insert is not None
        )
        return plan_table(spec, state, now, next_insert=insert), state
    except BlockedError as error:  # the table's own state: nothing of it may be believed
        return replace(_unreadable_plan(spec), refusals=(Note("pendingRestore", str(error)),)), None
    except ReconcilerError as error:
        problem = str(error)
    except Exception as error:  # noqa: BLE001 (one table must not stop the others)
        problem = _report_crash(spec, error, on_crash)
    return replace(_unreadable_plan(spec), error=problem), None


def _report_crash(spec: TableSpec, error: Exception, on_crash: OnCrash | None) -> str:
    """The sentence for an error that is this program's own."""
    if on_crash is not None:
        on_crash(spec, error)
    return f"{type(error).__name__}: {error} (an error of this program, please report it)"


def _read_writes(spec: TableSpec, state: TableState) -> tuple[PastWrite, ...]:
    """The newest writes, where the spec says what files they should make; those that can be read.

    What a plan needs of them is in the state already; what is damaged is not for a status to judge.
    """
    from reconciler.hudi.load import load_properties  # noqa: PLC0415
    from reconciler.state.write_history import read_newest_writes  # noqa: PLC0415
    from reconciler.storage.wrappers import ReadOnlyStorage  # noqa: PLC0415

    if state.clustering_facts is not None:
        return state.clustering_facts.written
    if spec.files is None:
        return ()
    storage = ReadOnlyStorage(runtime.open_storage(spec.path, spec.storage_options))
    try:
        return read_newest_writes(storage, load_properties(storage), state.timeline)
    except (FormatError, StorageError):
        return ()  # the timeline has moved on, or a write cannot be read: nothing is said of it


def _unreadable_plan(spec: TableSpec) -> TablePlan:
    """What is known of a table that could not be looked at."""
    from reconciler.plans.document import compute_spec_digest  # noqa: PLC0415

    return TablePlan(
        name=spec.name,
        path=spec.path,
        spec=spec.document,
        spec_digest=compute_spec_digest(spec.document),
    )


def apply(
    plan: Plan,
    *,
    spark: SparkSession,
    now: datetime | None = None,
    specs: Iterable[TableSpec] | None = None,
    digest: str | None = None,
    parallelism: int = 1,
) -> ApplyResult:
    """Do what a reviewed plan says, and less where a table has moved since. Never more.

    ``specs``: today's; a table whose spec or path is no longer the reviewed one is left out.
    ``digest``: refuse any plan but this one (StaleError). ``parallelism``: tables at a time.
    What goes wrong with a table is in its result, and ``ApplyResult.plan_exit_code`` is the command's.
    """
    from reconciler.executor.gate import admit_plan, get_waiver_time  # noqa: PLC0415
    from reconciler.executor.run import apply_plan  # noqa: PLC0415
    from reconciler.executor.session import ApplyContext  # noqa: PLC0415
    from reconciler.executor.spark import SparkFileDeleter  # noqa: PLC0415
    from reconciler.index.spark import SparkIndexBuilder  # noqa: PLC0415
    from reconciler.rewrite.spark import SparkRewriter  # noqa: PLC0415

    clock = runtime.SystemClock()
    admitted = admit_plan(
        plan, specs=specs, expected_digest=digest, now=get_waiver_time(now, clock)
    )
    context = ApplyContext(
        open_storage=runtime.open_storage,
        deleter=SparkFileDeleter(spark),
        rewriter=SparkRewriter(spark),
        builder=SparkIndexBuilder(spark),
        clock=clock,
        new_token=runtime.new_token,
        process=runtime.current_process(),
        now=now,
    )
    return apply_plan(admitted, context, parallelism=parallelism)


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
) -> WriteResult:
    """Write the rows of a DataFrame into the table of a spec, all or none. Needs no Hudi jar.

    A table that is not there is made as the spec's ``table`` block says. ``operation``: insert,
    upsert, delete (key and partition columns are enough), bulk-insert, insert-overwrite (partitions
    that rows come to), insert-overwrite-table, delete-partition (``partitions``: their paths; no
    rows). ``dedupe``: of an insert, one row a key. ``fill_missing``: columns that the rows lack are
    null. ``batch``: name of a stream and number of the batch (``foreachBatch``), which is written
    once however often it comes. ``extra``: kept in the extra metadata of the instant. Raises
    BusyError where another writer is in the way: nothing was written then, and it can be run again;
    RowsError and UnsupportedError for rows that do not fit the table, and what ``read`` does.
    """
    from reconciler.transaction.session import RunContext  # noqa: PLC0415
    from reconciler.writer.entry import write_table  # noqa: PLC0415
    from reconciler.writer.spark import SparkWriter, make_write_request  # noqa: PLC0415

    ask = make_write_request(
        rows, operation, dedupes=dedupe, fills_missing=fill_missing, partitions=partitions
    )
    return write_table(
        spec,
        ask,
        context=RunContext(
            open_storage=runtime.open_storage,
            clock=runtime.SystemClock(),
            process=runtime.current_process(),
            report_wait=lambda _name, _what: None,
            check_stop=lambda: None,
        ),
        token=runtime.new_token(),
        writer=None if rows is None else partial(SparkWriter, rows.sparkSession),
        batch=batch,
        extra=extra or {},
    )


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
    """The rows of a table as they are now, or as of an instant. Needs no Hudi jar; writes nothing.

    ``where``: a condition of Spark SQL on the table's columns; it spares partitions, files by the
    table's index (``skipping=False``: none) and, with ``columns``, what is read of files.
    ``as_of``: an instant of the timeline, or a time in its zone as 2026-01-31 04:00:00.
    ``kind``: snapshot, readOptimized (no log files are merged), or incremental: the rows written
    after ``begin`` up to ``end`` (the newest). ``storage_options`` go to the store's client.
    Raises UsageError, BlockedError for a time that can no longer be read, UnsupportedError,
    FormatError and StorageError. What goes wrong on a worker is raised when rows are asked for.
    """
    from reconciler.reader.request import ReadArguments  # noqa: PLC0415
    from reconciler.reader.spark import make_data_frame  # noqa: PLC0415
    from reconciler.storage.wrappers import ReadOnlyStorage  # noqa: PLC0415

    if isinstance(columns, str):
        raise TypeError("columns is a sequence of names")
    asked = ReadArguments(kind=kind, as_of=as_of, begin=begin, end=end, columns=columns)
    storage = runtime.open_storage(os.fspath(path), storage_options)
    index = ReadOnlyStorage(storage) if skipping else None
    return make_data_frame(spark, open_scan(storage, asked), storage.ref, where, index=index)


def open_scan(storage: Storage, asked: ReadArguments, *, zone: tzinfo | None = None) -> Scan:
    """What a read touches. ``zone``: of the timeline, where the table does not say it."""
    from reconciler.hudi.load import load_properties  # noqa: PLC0415
    from reconciler.reader.open_scan import open_scan as opened  # noqa: PLC0415
    from reconciler.storage.wrappers import ReadOnlyStorage  # noqa: PLC0415

    guarded = ReadOnlyStorage(storage)
    if asked.needs_zone and load_properties(guarded).timezone == "UTC":
        zone = UTC
    return opened(guarded, asked.to_request(zone))
