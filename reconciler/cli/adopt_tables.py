"""``reconciler init --from``: write specs for existing tables."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Final

from reconciler import runtime
from reconciler.adopt.catalog_search import find_catalog_tables
from reconciler.adopt.environment_file import EnvironmentFile, open_environment_file
from reconciler.adopt.spec_folder import (
    Adoption,
    AdoptionResult,
    choose_name,
    find_overridden_retentions,
    load_declared_tables,
    summarize,
)
from reconciler.adopt.table import AdoptionOptions, adopt_table
from reconciler.adopt.table_search import TableSearch, find_tables
from reconciler.cli.error_reports import report_crash
from reconciler.cli.event_logs import read_event_logs
from reconciler.cli.init_options import InitOptions
from reconciler.cli.table_work import choose_parallelism
from reconciler.cli.terminal import Level, log_message, show_progress
from reconciler.errors import StorageError, UsageError
from reconciler.event_logs.proposal import QueryProposal, propose_queries
from reconciler.event_logs.workload import KnownTable
from reconciler.render import words
from reconciler.render.observed_queries import summarize_logs
from reconciler.spec.spec_files import YAML_ENDINGS
from reconciler.spec.zones import find_zone_problem
from reconciler.state.catalogs.addresses import is_catalog_address
from reconciler.state.catalogs.open import TableLocator
from reconciler.storage.api import Storage
from reconciler.storage.locations import LocationMap
from reconciler.storage.read_only import ReadOnlyStorage

#: folders between two messages about the progress of a search
_MANY: Final = 500

OpenLocation = Callable[[str], Storage]


def adopt_tables(options: InitOptions, paths: Sequence[str]) -> tuple[str | None, int]:
    """Return the spec of one table, or None and the exit code after writing a folder of specs."""
    if options.timezone is not None and (problem := find_zone_problem(options.timezone)):
        raise UsageError(f"--timezone: {problem}")
    environment = _find_environment_file(options)
    open_location = _build_opener(environment)
    with _start_workers(options.parallelism or choose_parallelism(paths)) as workers:
        search = _search_tables(paths, options.depth, open_location, workers, environment)
        folder = _find_output_folder(search, options)
        adoption_options = replace(
            _build_adoption_options(options, folder, environment),
            queries=_read_queries(options, search, environment),
        )
        if folder is None:
            catalog = search.catalogs.find(search.tables[0])
            one = replace(adoption_options, catalog=catalog)
            return _write_one_spec(open_location(search.tables[0]), one), 0
        unlisted: list[str] = []
        adoption = Adoption(
            folder,
            open_location,
            adoption_options,
            workers,
            report_crash,
            environment,
            unlisted.extend,
            search.catalogs,
        )
        code = _write_all_specs(search, adoption)
        if environment is not None and unlisted:
            log_message(
                f"{environment.file}: cannot edit one-line YAML; add these lines under spec.tables:"
            )
            for line in unlisted:
                log_message(line)
        return None, 1 if unlisted else code


def _read_queries(
    options: InitOptions, search: TableSearch, environment: EnvironmentFile | None
) -> LocationMap[QueryProposal]:
    """Return what event logs asked of the tables; nothing without logs."""
    queries: LocationMap[QueryProposal] = LocationMap()
    if options.event_logs is None:
        return queries
    names = [search.catalogs.find(location) for location in search.tables]
    known = [
        KnownTable(location=location, catalog_name=None if table is None else table.name)
        for location, table in zip(search.tables, names, strict=True)
    ]
    settings = None if environment is None else environment.environment
    access = {} if settings is None else settings.storage_options
    workload = read_event_logs(options.event_logs, known, access)
    log_message(f"event logs: {summarize_logs(workload)}")
    for problem in workload.problems:
        log_message(f"event log {words.escape_text(problem)}", level="warning")
    for place, table in zip(search.tables, workload.tables, strict=False):
        if table.queries:
            queries.add(place, propose_queries(table, (), workload.days, options.max_queries))
    return queries


def _find_environment_file(options: InitOptions) -> EnvironmentFile | None:
    if options.environment is None:
        return None
    if options.output is None or options.output.suffix in YAML_ENDINGS:
        raise UsageError("--env: give a folder with -o for the specs, which get no paths")
    return open_environment_file(options.environment, options.output)


def _build_opener(environment: EnvironmentFile | None) -> OpenLocation:
    known = None if environment is None else environment.environment
    options = {} if known is None else known.storage_options
    return lambda location: ReadOnlyStorage(runtime.open_storage(location, options))


def _build_adoption_options(
    options: InitOptions, folder: Path | None, environment: EnvironmentFile | None
) -> AdoptionOptions:
    now = runtime.now()
    return AdoptionOptions(
        now=now,
        now_ms=runtime.to_epoch_ms(now),
        folder=folder or (options.output or Path("x")).parent,
        timezone=options.timezone,
        is_relative=options.is_relative,
        environment=None if environment is None else str(environment.file),
    )


@contextmanager
def _start_workers(count: int) -> Iterator[Executor]:
    """Start threads that finish their table when interrupted, and begin no other."""
    workers = ThreadPoolExecutor(count)
    try:
        yield workers
    except BaseException:
        workers.shutdown(cancel_futures=True)
        raise
    workers.shutdown()


def _search_tables(
    paths: Sequence[str],
    depth: int | None,
    open_location: OpenLocation,
    workers: Executor,
    environment: EnvironmentFile | None,
) -> TableSearch:
    """Find tables in folders and in catalogs."""
    addresses = [path for path in paths if is_catalog_address(path)]
    folders = [path for path in paths if path not in addresses]
    search = find_tables(
        folders, open_location, workers=workers, depth=depth, on_progress=_report_search
    )
    for problem in search.problems:
        log_message(f"not searched: {words.escape_text(problem)}", level="error")
    if addresses:
        _add_catalog_tables(search, addresses, environment)
        search.is_one &= len(paths) == 1
    return search


def _add_catalog_tables(
    search: TableSearch, addresses: Sequence[str], environment: EnvironmentFile | None
) -> None:
    """Add the tables of catalogs, which count more than folders of the same tables."""
    known = None if environment is None else environment.environment
    found = find_catalog_tables(
        addresses, runtime.open_catalog, known.add_catalog_access if known else lambda table: table
    )
    if found.skipped:
        log_message(f"{words.format_count(found.skipped, 'table')} skipped: not Hudi's")
    others = [location for location in search.tables if found.names.find(location) is None]
    search.tables = sorted([*others, *found.locations])
    search.is_one = found.is_one
    search.catalogs = found.names
    for problem in found.problems:
        log_message(f"not adopted: {words.escape_text(problem)}", level="error")
    search.problems += found.problems


def _report_search(folders: int, tables: int) -> None:
    if folders % _MANY == 0:
        count = words.format_count(tables, "table")
        log_message(f"searching: {words.format_number(folders)} folders searched, {count} found")


def _find_output_folder(search: TableSearch, options: InitOptions) -> Path | None:
    """Return the folder to write specs to; None to print one spec or write it to a file."""
    output, count = options.output, len(search.tables)
    if not count:
        raise StorageError("--from", "no readable table found; check the path")
    if output is not None and (output.is_dir() or options.environment is not None):
        return output
    is_file = output is None or output.suffix in YAML_ENDINGS
    if search.is_one or (count == 1 and is_file):
        return None
    if is_file:
        raise UsageError(
            f"{words.format_count(count, 'table')} found; give a folder with -o for their specs"
        )
    return output


def _write_one_spec(storage: Storage, options: AdoptionOptions) -> str:
    adopted = adopt_table(storage, choose_name(storage, options.catalog), options)
    if adopted.refused is not None:
        location = words.escape_text(adopted.location)
        refused = f"its plan is refused, whatever the spec declares: {adopted.refused}"
        log_message(f"{location}: {refused}", level="warning")
    return adopted.text


def _write_all_specs(search: TableSearch, adoption: Adoption) -> int:
    folder, environment = adoption.folder, adoption.environment
    with closing(TableLocator(runtime.open_catalog)) as locator:
        declared = load_declared_tables(folder, environment, locator.locate)
    folder.mkdir(parents=True, exist_ok=True)
    with show_progress("adopting", len(search.tables), "tables") as report:
        results = adoption.adopt_all(
            search.tables, declared, lambda result: report(1, _format_result(result))
        )
    for result in results:
        if result.problem:
            level: Level = "error" if result.status == "failed" else "warning"
            log_message(
                f"{words.escape_text(result.location)}: {words.escape_text(result.problem)}",
                level=level,
            )
    option = "" if environment is None else f" --env {environment.argument}"
    _warn_about_defaults(adoption, results)
    log_message(summarize(results, folder))
    log_message(f"next: reconciler lint {folder}{option} && reconciler plan {folder}{option}")
    return 1 if search.problems or any(result.status == "failed" for result in results) else 0


def _warn_about_defaults(adoption: Adoption, results: Sequence[AdoptionResult]) -> None:
    folder, environment = adoption.folder, adoption.environment
    updated = None if environment is None else open_environment_file(environment.argument, folder)
    with closing(TableLocator(runtime.open_catalog)) as locator:
        changed = find_overridden_retentions(folder, results, updated, locator.locate)
    if changed:
        tables = words.format_count(len(changed), "table")
        log_message(
            f"TableDefaults in {folder} change the retention of {tables}; check their plans: "
            f"{', '.join(changed)}",
            level="warning",
        )


def _format_result(result: AdoptionResult) -> str:
    if result.adopted is not None:
        return f"{result.file}: {result.adopted.headline}"
    location = words.escape_text(result.location)
    if result.status == "declared":
        return f"{location}: already declared in {result.file}"
    if result.status == "placed":
        return f"{location}: listed for {result.file}, which an earlier run wrote"
    if result.status == "unlisted":
        return f"{location}: not listed yet for {result.file}, which an earlier run wrote"
    return f"{location}: {result.status}"
