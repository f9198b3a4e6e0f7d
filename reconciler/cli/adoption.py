"""Live tables into specs: what ``reconciler init --from`` does."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from reconciler import world
from reconciler.adopt.discover import Search, find_tables
from reconciler.adopt.folder import (
    Adoption,
    Outcome,
    declared_in,
    named,
    summary,
    with_defaults,
)
from reconciler.adopt.places import Places, places_of
from reconciler.adopt.table import Wishes, adopt
from reconciler.cli.failures import explain_crash
from reconciler.cli.terminal import Level, progress, say
from reconciler.errors import StorageError, UsageError
from reconciler.render import words
from reconciler.spec.words import zone_problem
from reconciler.storage.api import Storage
from reconciler.storage.wrappers import ReadOnly

_ENDINGS: Final = (".yaml", ".yml")
#: folders between two lines about how far a search is
_MANY: Final = 500

Opened = Callable[[str], Storage]


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """The options of one command, as given."""

    paths: Sequence[str]
    output: Path | None
    depth: int | None
    is_relative: bool
    environment: str | None
    timezone: str | None
    parallelism: int


def adopted(wanted: Wanted) -> tuple[str | None, int]:
    """The spec of one table; or None and the exit code, when a folder of specs was written."""
    if wanted.timezone is not None and (problem := zone_problem(wanted.timezone)):
        raise UsageError(f"--timezone: {problem}")
    places = _places(wanted)
    opened = _opener(places)
    with _workers(wanted.parallelism) as workers:
        search = _search(wanted, opened, workers)
        folder = _folder(search, wanted)
        wishes = _wishes(wanted, folder, places)
        if folder is None:
            return _spec_of(opened(search.tables[0]), wishes), 0
        unlisted: list[str] = []
        adoption = Adoption(folder, opened, wishes, workers, explain_crash, places, unlisted.extend)
        code = _adopt_all(search, adoption)
        if places is not None and unlisted:
            say(f"{places.file} is not written a line a table; add under spec.tables:")
            for line in unlisted:
                say(line)
        return None, 1 if unlisted else code


def _places(wanted: Wanted) -> Places | None:
    if wanted.environment is None:
        return None
    if wanted.output is None or wanted.output.suffix in _ENDINGS:
        raise UsageError("--env: give a folder with -o, in which the specs are without their paths")
    return places_of(wanted.environment, wanted.output)


def _opener(places: Places | None) -> Opened:
    known = None if places is None else places.known
    options = {} if known is None else known.storage_options
    return lambda location: ReadOnly(world.open_storage(location, options))


def _wishes(wanted: Wanted, folder: Path | None, places: Places | None) -> Wishes:
    now = world.now()
    return Wishes(
        now=now,
        now_ms=world.epoch_ms(now),
        folder=folder or (wanted.output or Path("x")).parent,
        timezone=wanted.timezone,
        is_relative=wanted.is_relative,
        environment=None if places is None else str(places.file),
    )


@contextmanager
def _workers(count: int) -> Iterator[Executor]:
    """Threads that, when interrupted, finish the table they are at and begin no other."""
    workers = ThreadPoolExecutor(count)
    try:
        yield workers
    except BaseException:
        workers.shutdown(cancel_futures=True)
        raise
    workers.shutdown()


def _search(wanted: Wanted, opened: Opened, workers: Executor) -> Search:
    search = find_tables(
        wanted.paths, opened, workers=workers, depth=wanted.depth, tell=_say_how_far
    )
    for problem in search.problems:
        say(f"not searched: {words.plain(problem)}", level="error")
    return search


def _say_how_far(folders: int, tables: int) -> None:
    if folders % _MANY == 0:
        found = words.count(tables, "table")
        say(f"searching: {words.number(folders)} folders looked at, {found} found")


def _folder(search: Search, wanted: Wanted) -> Path | None:
    """The folder that specs go to; None where one spec is printed or written to a file."""
    output, count = wanted.output, len(search.tables)
    if not count:
        raise StorageError("--from", "finds no table that can be read")
    if output is not None and (output.is_dir() or wanted.environment is not None):
        return output
    is_file = output is None or output.suffix in _ENDINGS
    if search.is_one or (count == 1 and is_file):
        return None
    if is_file:
        raise UsageError(f"{words.count(count, 'table')} found; -o FOLDER takes a spec for each")
    return output


def _spec_of(storage: Storage, wishes: Wishes) -> str:
    made = adopt(storage, named(storage), wishes)
    if made.refused is not None:
        location = words.plain(made.location)
        refused = f"its plan is refused, whatever is declared: {made.refused}"
        say(f"{location}: {refused}", level="warning")
    return made.text


def _adopt_all(search: Search, adoption: Adoption) -> int:
    folder, places = adoption.folder, adoption.places
    declared = declared_in(folder, places)
    folder.mkdir(parents=True, exist_ok=True)
    with progress("adopting", len(search.tables), "tables") as tell:
        done = adoption.run(search.tables, declared, lambda each: tell(1, _line(each)))
    for each in done:
        if each.problem:
            level: Level = "error" if each.how == "failed" else "warning"
            say(f"{words.plain(each.location)}: {words.plain(each.problem)}", level=level)
    chosen = "" if places is None else f" --env {places.chosen}"
    _point_out_defaults(adoption, done)
    say(summary(done, folder))
    say(f"next: reconciler lint {folder}{chosen} && reconciler plan {folder}{chosen}")
    return 1 if search.problems or any(each.how == "failed" for each in done) else 0


def _point_out_defaults(adoption: Adoption, done: Sequence[Outcome]) -> None:
    folder, places = adoption.folder, adoption.places
    fresh = None if places is None else places_of(places.chosen, folder)
    if changed := with_defaults(folder, done, fresh):
        say(
            f"the TableDefaults in {folder} give {words.count(len(changed), 'table')} another "
            f"retention, so look at their plans: {', '.join(changed)}",
            level="warning",
        )


def _line(outcome: Outcome) -> str:
    if outcome.adopted is not None:
        return f"{outcome.file}: {outcome.adopted.headline}"
    location = words.plain(outcome.location)
    if outcome.how == "declared":
        return f"{location}: declared already in {outcome.file}"
    return f"{location}: {outcome.how}"
