"""Live tables into specs: what ``reconciler init --from`` does."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from reconciler import runtime
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
from reconciler.cli.terminal import Level, log_message, show_progress
from reconciler.errors import StorageError, UsageError
from reconciler.render import words
from reconciler.spec.text_rules import find_zone_problem
from reconciler.storage.api import Storage
from reconciler.storage.wrappers import ReadOnlyStorage

_ENDINGS: Final = (".yaml", ".yml")
#: folders between two lines about how far a search is
_MANY: Final = 500

OpenLocation = Callable[[str], Storage]


@dataclass(frozen=True, slots=True, kw_only=True)
class InitOptions:
    """The options of one command, as given."""

    paths: Sequence[str]
    output: Path | None
    depth: int | None
    is_relative: bool
    environment: str | None
    timezone: str | None
    parallelism: int


def adopt_tables(options: InitOptions) -> tuple[str | None, int]:
    """The spec of one table; or None and the exit code, when a folder of specs was written."""
    if options.timezone is not None and (problem := find_zone_problem(options.timezone)):
        raise UsageError(f"--timezone: {problem}")
    places = _find_environment_file(options)
    opened = _build_opener(places)
    with _start_workers(options.parallelism) as workers:
        search = _search_tables(options, opened, workers)
        folder = _find_output_folder(search, options)
        wishes = _build_adoption_options(options, folder, places)
        if folder is None:
            return _write_one_spec(opened(search.tables[0]), wishes), 0
        unlisted: list[str] = []
        adoption = Adoption(folder, opened, wishes, workers, report_crash, places, unlisted.extend)
        code = _write_all_specs(search, adoption)
        if places is not None and unlisted:
            log_message(f"{places.file} is not written a line a table; add under spec.tables:")
            for line in unlisted:
                log_message(line)
        return None, 1 if unlisted else code


def _find_environment_file(options: InitOptions) -> EnvironmentFile | None:
    if options.environment is None:
        return None
    if options.output is None or options.output.suffix in _ENDINGS:
        raise UsageError("--env: give a folder with -o, in which the specs are without their paths")
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
    """Threads that, when interrupted, finish the table they are at and begin no other."""
    workers = ThreadPoolExecutor(count)
    try:
        yield workers
    except BaseException:
        workers.shutdown(cancel_futures=True)
        raise
    workers.shutdown()


def _search_tables(
    options: InitOptions, open_storage: OpenLocation, workers: Executor
) -> TableSearch:
    search = find_tables(
        options.paths,
        open_storage,
        workers=workers,
        depth=options.depth,
        on_progress=_report_search,
    )
    for problem in search.problems:
        log_message(f"not searched: {words.escape_text(problem)}", level="error")
    return search


def _report_search(folders: int, tables: int) -> None:
    if folders % _MANY == 0:
        found = words.format_count(tables, "table")
        log_message(f"searching: {words.format_number(folders)} folders looked at, {found} found")


def _find_output_folder(search: TableSearch, options: InitOptions) -> Path | None:
    """The folder that specs go to; None where one spec is printed or written to a file."""
    output, count = options.output, len(search.tables)
    if not count:
        raise StorageError("--from", "finds no table that can be read")
    if output is not None and (output.is_dir() or options.environment is not None):
        return output
    is_file = output is None or output.suffix in _ENDINGS
    if search.is_one or (count == 1 and is_file):
        return None
    if is_file:
        raise UsageError(
            f"{words.format_count(count, 'table')} found; -o FOLDER takes a spec for each"
        )
    return output


def _write_one_spec(storage: Storage, options: AdoptionOptions) -> str:
    made = adopt_table(storage, choose_name(storage), options)
    if made.refused is not None:
        location = words.escape_text(made.location)
        refused = f"its plan is refused, whatever is declared: {made.refused}"
        log_message(f"{location}: {refused}", level="warning")
    return made.text


def _write_all_specs(search: TableSearch, adoption: Adoption) -> int:
    folder, places = adoption.folder, adoption.environment
    declared = load_declared_tables(folder, places)
    folder.mkdir(parents=True, exist_ok=True)
    with show_progress("adopting", len(search.tables), "tables") as tell:
        done = adoption.adopt_all(
            search.tables, declared, lambda each: tell(1, _format_result(each))
        )
    for each in done:
        if each.problem:
            level: Level = "error" if each.status == "failed" else "warning"
            log_message(
                f"{words.escape_text(each.location)}: {words.escape_text(each.problem)}",
                level=level,
            )
    chosen = "" if places is None else f" --env {places.argument}"
    _warn_about_defaults(adoption, done)
    log_message(summarize(done, folder))
    log_message(f"next: reconciler lint {folder}{chosen} && reconciler plan {folder}{chosen}")
    return 1 if search.problems or any(each.status == "failed" for each in done) else 0


def _warn_about_defaults(adoption: Adoption, results: Sequence[AdoptionResult]) -> None:
    folder, places = adoption.folder, adoption.environment
    fresh = None if places is None else open_environment_file(places.argument, folder)
    if changed := find_overridden_retentions(folder, results, fresh):
        log_message(
            f"the TableDefaults in {folder} give {words.format_count(len(changed), 'table')} another "
            f"retention, so look at their plans: {', '.join(changed)}",
            level="warning",
        )


def _format_result(result: AdoptionResult) -> str:
    if result.adopted is not None:
        return f"{result.file}: {result.adopted.headline}"
    location = words.escape_text(result.location)
    if result.status == "declared":
        return f"{location}: declared already in {result.file}"
    return f"{location}: {result.status}"
