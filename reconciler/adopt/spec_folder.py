"""Adoption of many tables into a folder of specs, one file each. No file is overwritten."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, Future, as_completed
from dataclasses import field, replace
from itertools import repeat
from pathlib import Path
from typing import Any, Final, Literal

from reconciler.adopt.environment_file import EnvironmentFile
from reconciler.adopt.naming import UnnamedTable, choose_names, preferred_name
from reconciler.adopt.spec_text import find_origin
from reconciler.adopt.table import AdoptedTable, AdoptionOptions, adopt_table, format_location
from reconciler.adopt.table_search import OpenStorage
from reconciler.errors import ReconcilerError
from reconciler.hudi.load import load_properties
from reconciler.lazy_dataclass import dataclass
from reconciler.render import words
from reconciler.spec.effective_spec import Locator
from reconciler.spec.load import read_specs
from reconciler.spec.model import CatalogTable, TableSpec
from reconciler.spec.spec_files import YAML_ENDINGS
from reconciler.storage.api import Storage
from reconciler.storage.local import LocalStorage
from reconciler.storage.locations import LocationMap

_DATABASE: Final = "hoodie.database.name"

#: takes the name of a table and an error that is a bug of this program
OnCrash = Callable[[str, Exception], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class AdoptionResult:
    """The result for one table. ``file`` is its spec, new or existing.

    ``status``: ``written``; already ``declared`` in ``file``; ``placed``: an earlier run wrote
    ``file``, and the environment gets its location now, under ``name``; ``unlisted``: the same, but
    the location could not be added to the environment; ``undecided``: a table with its name is
    declared in ``file`` without a location; or ``failed``. ``problem`` is the reason.
    """

    location: str
    status: Literal["written", "declared", "placed", "unlisted", "undecided", "failed"]
    file: str = ""
    name: str = ""
    problem: str = ""
    adopted: AdoptedTable | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DeclaredTables:
    """The declarations of a folder: files by location, and the names of tables and files.

    ``unplaced``: files by name of tables without a known location. ``origins``: their names by the
    location of the table that they were written for.
    """

    files: LocationMap[str]
    names: frozenset[str]
    unplaced: Mapping[str, str]
    origins: LocationMap[str] = field(default_factory=LocationMap)


def load_declared_tables(
    folder: Path, environment: EnvironmentFile | None = None, locate: Locator | None = None
) -> DeclaredTables:
    """Return what the specs in a folder declare; nothing if the folder does not exist yet.

    Raises SpecError for an error in any of them: their content would be unknown.
    """
    if not folder.is_dir():
        return DeclaredTables(files=LocationMap(), names=frozenset(), unplaced={})
    specs = _load_specs(folder, environment, locate)
    stems = {path.stem for path in folder.iterdir() if path.suffix in YAML_ENDINGS}
    files: LocationMap[str] = LocationMap()
    for spec in specs:
        if spec.path:
            files.add(spec.path, spec.source)
    unplaced = {spec.name: spec.source for spec in specs if not spec.path}
    origins: LocationMap[str] = LocationMap()
    for name, source in unplaced.items():
        if origin := find_origin(Path(source).read_text("utf-8")):
            origins.add(origin, name)
    return DeclaredTables(
        files=files,
        names=frozenset({spec.name for spec in specs} | stems),
        unplaced=unplaced,
        origins=origins,
    )


def _load_specs(
    folder: Path, environment: EnvironmentFile | None, locate: Locator | None
) -> Sequence[TableSpec]:
    if not any(path.suffix in YAML_ENDINGS for path in folder.rglob("*")):
        return ()
    has_environment = environment is not None and environment.environment is not None
    known = str(environment.file.absolute()) if environment and has_environment else None
    options: Any = {"may_be_empty": True, "may_lack_paths": True, "locate": locate}
    loaded = read_specs([folder], environment=known, **options)
    loaded.problems.raise_errors()
    return loaded.tables


@dataclass(frozen=True, slots=True)
class Adoption:
    """Adopts tables into a folder of specs.

    ``environment`` gets the locations of the tables; without one, specs have them. ``on_unlisted``
    takes the lines that could not be added to its file. ``catalogs``: tables that specs find by a
    catalog instead.
    """

    folder: Path
    open_storage: OpenStorage
    options: AdoptionOptions
    workers: Executor
    on_crash: OnCrash
    environment: EnvironmentFile | None = None
    on_unlisted: Callable[[Sequence[str]], None] = lambda _: None
    catalogs: LocationMap[CatalogTable] = field(default_factory=LocationMap)

    def adopt_all(
        self,
        tables: Sequence[str],
        declared: DeclaredTables,
        on_result: Callable[[AdoptionResult], None],
    ) -> tuple[AdoptionResult, ...]:
        """Adopt the tables and return the results; ``on_result`` gets each one when it is done."""
        known = {at: file for at in tables if (file := declared.files.find(at))}
        placed = self._place_written_specs([at for at in tables if at not in known], declared)
        fresh = [at for at in tables if at not in known and at not in placed]
        results = self.workers.map(self._identify_table, fresh, repeat(declared.unplaced))
        looked = dict(zip(fresh, results, strict=True))
        unnamed = [table for table in looked.values() if isinstance(table, UnnamedTable)]
        done = [
            AdoptionResult(location=at, status="declared", file=file) for at, file in known.items()
        ]
        done += (result for result in looked.values() if isinstance(result, AdoptionResult))
        for outcome in done:
            on_result(outcome)
        names = self._choose_names(unnamed, declared)
        work = [self.workers.submit(self._adopt_one, at, name) for at, name in names.items()]
        try:
            for future in as_completed(work):
                done.append(future.result())
                on_result(done[-1])
        finally:  # the environment gets the location of every table with a spec, however this ends
            is_listed = self._list_in_environment(work, placed)
        for result in placed.values():
            done.append(result if is_listed else replace(result, status="unlisted"))
            on_result(done[-1])
        return tuple(sorted(done, key=lambda outcome: outcome.location))

    def _place_written_specs(
        self, tables: Iterable[str], declared: DeclaredTables
    ) -> Mapping[str, AdoptionResult]:
        """Return the tables whose specs an earlier run wrote, and which no environment lists."""
        if self.environment is None:
            return {}
        names = {at: name for at in tables if (name := declared.origins.find(at))}
        return {
            at: AdoptionResult(
                location=at, status="placed", file=declared.unplaced[name], name=name
            )
            for at, name in names.items()
        }

    def _identify_table(
        self, location: str, unplaced: Mapping[str, str]
    ) -> UnnamedTable | AdoptionResult:
        try:
            found = read_name(self.open_storage(location), self.catalogs.find(location))
        except Exception as error:  # noqa: BLE001 (one table must not stop the others)
            return self._failed_result(location, error)
        name = self._find_listed_name(location) or preferred_name(found)
        if name not in unplaced:
            return found
        problem = f"{name} in {unplaced[name]} has no location; if it is this table, declare it"
        where = "there" if self.environment is None else f"in {self.environment.file}"
        return AdoptionResult(
            location=location,
            status="undecided",
            file=unplaced[name],
            problem=f"{problem} {where}: {name}: {location}",
        )

    def _choose_names(
        self, unnamed: Sequence[UnnamedTable], declared: DeclaredTables
    ) -> Mapping[str, str]:
        """Return a name for every location: that of the environment if it lists the location."""
        fixed = {
            table.location: name
            for table in unnamed
            if (name := self._find_listed_name(table.location)) and name not in declared.names
        }
        free = [table for table in unnamed if table.location not in fixed]
        listed = () if self.environment is None else self.environment.listed
        return {**choose_names(free, declared.names.union(listed)), **fixed}

    def _find_listed_name(self, location: str) -> str | None:
        return None if self.environment is None else self.environment.find_name(location)

    def _list_in_environment(
        self, work: Iterable[Future[AdoptionResult]], placed: Mapping[str, AdoptionResult]
    ) -> bool:
        """Add the locations of tables with specs; return whether the environment has them all."""
        if self.environment is None:
            return True
        for future in work:
            future.cancel()
        ended = [future for future in work if not future.cancelled() and not future.exception()]
        adopted = [made for future in ended if (made := future.result().adopted)]
        base = self.environment.file.parent if self.options.is_relative else None
        places = {made.name: made.location for made in adopted}
        places |= {result.name: result.location for result in placed.values()}
        new = {
            name: format_location(location, base)
            for name, location in places.items()
            if not self.environment.is_listed(name, location)
            and self.catalogs.find(location) is None
        }
        lines = self.environment.add_tables(new)
        if lines:
            self.on_unlisted(lines)
        return not lines

    def _adopt_one(self, location: str, name: str) -> AdoptionResult:
        file = f"{name}.yaml"
        zone = None if self.environment is None else self.environment.find_timezone(name)
        try:
            catalog = self.catalogs.find(location)
            wishes = replace(self.options, known_zone=zone, catalog=catalog)
            adopted = adopt_table(self.open_storage(location), name, wishes)
            LocalStorage(str(self.folder.resolve())).create(file, adopted.text.encode())
        except Exception as error:  # noqa: BLE001 (one table must not stop the others)
            return self._failed_result(location, error)
        return AdoptionResult(
            location=location,
            status="written",
            file=str(self.folder / file),
            adopted=replace(adopted, text=""),  # do not keep hundreds of texts
        )

    def _failed_result(self, location: str, error: Exception) -> AdoptionResult:
        problem = str(error)
        if not isinstance(error, ReconcilerError):
            self.on_crash(location, error)
            problem = f"{type(error).__name__}: {error} (a bug in reconciler, please report it)"
        return AdoptionResult(location=location, status="failed", problem=problem)


def choose_name(storage: Storage, catalog: CatalogTable | None = None) -> str:
    """Return the name of a single table."""
    (name,) = choose_names([read_name(storage, catalog)]).values()
    return name


def read_name(storage: Storage, catalog: CatalogTable | None) -> UnnamedTable:
    """Return the name that a table has in its catalog, or by its own properties."""
    properties = load_properties(storage)
    if catalog is not None:
        database, _, table = catalog.name.partition(".")
        return UnnamedTable(location=storage.location, table=table, database=database)
    database = properties.raw.get(_DATABASE, "")
    return UnnamedTable(location=storage.location, table=properties.table_name, database=database)


def find_overridden_retentions(
    folder: Path,
    results: Iterable[AdoptionResult],
    environment: EnvironmentFile | None = None,
    locate: Locator | None = None,
) -> tuple[str, ...]:
    """Return the names of new specs whose retention a TableDefaults in the folder changes."""
    adopted = {entry.adopted.name: entry.adopted for entry in results if entry.adopted is not None}
    return tuple(
        spec.name
        for spec in _load_specs(folder, environment, locate)
        if (made := adopted.get(spec.name)) and spec.retention != made.retention
    )


def summarize(results: Sequence[AdoptionResult], folder: Path) -> str:
    """Return one line about all results."""
    written = [entry.adopted for entry in results if entry.adopted is not None]
    parts = {
        "with retention": [table.retention is not None for table in written],
        "with one for you to decide": [table.is_open for table in written],
        "without retention (no clean to derive it from)": [
            table.retention is None and not table.is_open for table in written
        ],
        "whose plan is refused": [table.refused is not None for table in written],
    }
    rest = {
        "listed now, with a spec of an earlier run": [
            result.status == "placed" for result in results
        ],
        "to list by hand, with a spec of an earlier run": [
            result.status == "unlisted" for result in results
        ],
        "already declared": [result.status == "declared" for result in results],
        "for you to decide on": [result.status == "undecided" for result in results],
        "failed": [result.status == "failed" for result in results],
    }
    details = ", ".join(_count_parts(parts))
    total = words.format_count(len(results), "table")
    count = words.format_number(len(written))
    line = f"wrote {count} of {total} to {folder}/{': ' if details else ''}{details}"
    return "; ".join([line, *_count_parts(rest)])


def _count_parts(parts: Mapping[str, Sequence[bool]]) -> Iterator[str]:
    return (f"{words.format_number(sum(are))} {what}" for what, are in parts.items() if any(are))
