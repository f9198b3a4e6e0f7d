"""Environments such as production: locations of tables, and how to reach them and Spark.

An environment has no field about what may be done to a table.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any, Final

from reconciler.errors import Problems, SourcePosition, did_you_mean, quote_value
from reconciler.lazy_dataclass import dataclass
from reconciler.prices import CORE_HOUR, PRICED, Prices, parse_price, parse_prices, parse_throughput
from reconciler.spec import locations
from reconciler.spec.declarations import Declaration, read_declarations, select_kind
from reconciler.spec.model import CatalogTable, Option
from reconciler.spec.schema import load_definition
from reconciler.spec.spec_files import YAML_ENDINGS, FileTree, SpecFiles
from reconciler.spec.structure import read_structure
from reconciler.spec.text_rules import fill_placeholders
from reconciler.spec.yaml_nodes import Entry, MappingNode, Node, join_path, make_scalar, to_plain

FOLDER: Final = "environments"
"""The folder in which an environment is found by its name, beside the specs or above them."""

_MAX_LISTED_NAMES: Final = 5
"""The number of names that one message lists at most."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Placement:
    """The resolved location of a table, and the field and position that declare it.

    ``problem`` is what is wrong with it and what to do.
    """

    path: str
    position: SourcePosition
    field: str = "spec.path"
    problem: tuple[str, str] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Environment:
    """A document of kind Environment without errors; ``data`` is the data of its spec."""

    name: str
    source: str
    folder: str
    node: MappingNode
    data: Mapping[str, Any]

    @property
    def spark_master(self) -> str | None:
        """Spark's master, if the environment gives one."""
        master: str | None = self.data.get("spark", {}).get("master")
        return master

    @property
    def spark_executor(self) -> str | None:
        """Where work runs (auto, spark or local), if the environment says so."""
        executor: str | None = self.data.get("spark", {}).get("executor")
        return executor

    @property
    def spark_conf(self) -> Mapping[str, Option]:
        """Settings of Spark."""
        return dict(self.data.get("spark", {}).get("conf", {}))

    @property
    def storage_options(self) -> Mapping[str, Option]:
        """Options for the client of the store, for every table."""
        return dict(self.data.get("storageOptions", {}))

    @property
    def prices(self) -> Prices | None:
        """What storage, scans and rewrites cost; None if it gives no price."""
        costs = self.data.get("costs", {})
        return parse_prices(costs) if costs.keys() & set(PRICED) else None

    def list_locations(self) -> list[str]:
        """Return the locations that it gives to tables, as written."""
        tables = self.data.get("tables", {}).values()
        listed = [each if isinstance(each, str) else each.get("path", "") for each in tables]
        return [each for each in (self.data.get("pattern", ""), *listed) if each]

    def add_catalog_access(self, table: CatalogTable) -> CatalogTable:
        """Return a table of a catalog with the URI and options that this environment gives."""
        access = self.data.get("catalogs", {}).get(table.type, {})
        uri, options = access.get("uri", table.uri), access.get("options", {})
        return replace(table, uri=uri, options=dict(options))

    def placement(self, table: str) -> Placement | None:
        """Return the location of a table, if the environment gives it."""
        if path := self._listed_fields(table).get("path"):
            at = self.table_position(table, "path")
            place = locations.resolve_location(path, self.folder)
            return Placement(path=place, position=at, field=join_path("spec.tables", table))
        if pattern := self.data.get("pattern"):
            at = self.node.key_position("pattern")
            place = locations.resolve_location(fill_placeholders(pattern, table), self.folder)
            problem = None
            if "{schema}" in pattern and "." not in table:
                problem = f"{table} has no schema in its name", "list the table under tables"
            return Placement(path=place, position=at, field="spec.pattern", problem=problem)
        return None

    def timezone_entry(self, table: str) -> Entry | None:
        """Return the time zone of tables whose spec and defaults give none."""
        if zone := self._listed_fields(table).get("timezone"):
            return _make_entry(self.table_position(table, "timezone"), zone)
        return self.node.entries.get("timezone")

    def find_timezone_conflict(
        self, table: str, zone: Entry | None
    ) -> tuple[SourcePosition, str, str] | None:
        """Return position, field and message if the zone listed here differs from the spec's."""
        listed = self._listed_fields(table).get("timezone")
        if listed is None or zone is None or to_plain(zone.node) == listed:
            return None
        field = join_path(join_path("spec.tables", table), "timezone")
        message = f"{listed} contradicts {quote_value(to_plain(zone.node))} in {zone.position}"
        return self.table_position(table, "timezone"), field, message

    def storage_option_entries(self) -> dict[str, Entry]:
        """Return the storage options as written."""
        entry = self.node.entries.get("storageOptions")
        return {} if entry is None else {"storageOptions": entry}

    def table_position(self, table: str, field: str = "") -> SourcePosition:
        """Return the position of a listed table, or of one of its fields here."""
        tables = self.node.get("tables")
        if not isinstance(tables, MappingNode):
            return self.node.position
        listed = tables.get(table)
        if isinstance(listed, MappingNode) and field in listed.entries:
            return listed.key_position(field)
        return tables.key_position(table)

    def _listed_fields(self, table: str) -> Mapping[str, Any]:
        declared = self.data.get("tables", {}).get(table, {})
        return {"path": declared} if isinstance(declared, str) else declared


def build_environment(declaration: Declaration, problems: Problems) -> Environment | None:
    """Return the environment of a document, None after an error."""
    found = Problems()
    data = read_structure(declaration.spec, load_definition("environment"), found)
    _check_costs(declaration.spec.get("costs"), data.get("costs", {}), found)
    problems.extend(found)
    if found.errors:
        return None
    head = {"name": declaration.name, "source": declaration.file, "folder": declaration.folder}
    return Environment(**head, node=declaration.spec, data=data)


def _check_costs(node: Node | None, costs: Mapping[str, str], problems: Problems) -> None:
    """Report prices in several currencies, and a throughput that is 0 or that no price needs."""
    if not isinstance(node, MappingNode):
        return
    prices = {name: parse_price(costs[name]) for name in PRICED if name in costs}
    first = next(iter(prices.values()), None)
    for name, price in prices.items():
        if first is not None and price.currency != first.currency:
            message = f"is in {price.currency}, but another price is in {first.currency}"
            place = node.key_position(name)
            problems.error(place, f"spec.costs.{name}", message, "give all in one currency")
    throughput = costs.get("throughput")
    if throughput is None:
        return
    place, field = node.key_position("throughput"), "spec.costs.throughput"
    if not parse_throughput(throughput):
        problems.error(place, field, "must be more than 0", "remove it for 13 MB/s")
    elif "compute" not in prices or prices["compute"].unit != CORE_HOUR:
        message = f"has no effect without a price of compute in {CORE_HOUR}s"
        problems.warning(place, field, message, "remove it, or write compute: 0.05 USD/core-hour")


def read_environment(name: str, paths: Sequence[Path] = (Path(),)) -> Environment:
    """Return the environment with a name, beside these specs or above them, or at a path.

    Raises SpecError with all its problems.
    """
    files = SpecFiles(Problems())
    environment = choose_environment(name, paths, (), files)
    files.problems.raise_errors()
    assert environment is not None, "without an error there is an environment"
    return environment


def choose_environment(
    name: str, paths: Sequence[Path], named: Iterable[Path], files: SpecFiles
) -> Environment | None:
    """Return the environment that is given by name or path, None after an error.

    The files in ``named`` were read already; messages name one of them as it was named before.
    """
    is_path = os.sep in name or name.endswith(YAML_ENDINGS)
    file = _find_by_path(name, files) if is_path else _find_by_name(name, paths, files)
    if file is None:
        return None
    known = {files.tree.real_path(path): path for path in named}
    file = known.get(files.tree.real_path(file), file)
    found = Problems()
    declarations = list(read_declarations(file, SpecFiles(found, files.tree)))
    environments = select_kind("Environment", declarations)
    if not declarations and not found.errors:
        hint = "add a document with kind: Environment"
        found.file_error(file, "declares no environment", hint)
    for item in declarations:
        if environments[:1] != [item]:
            message = f"is {item.kind}, but an environment needs a file of its own"
            found.error(item.node.key_position("kind"), "kind", message, "move it to another file")
    for item in environments[:1]:
        if not is_path and item.name != name:
            message = f"is {quote_value(item.name)}, but the file is named {name}"
            found.error(item.name_position, "metadata.name", message, "make both equal")
    read = [build_environment(item, found) for item in environments]
    files.problems.extend(found)
    return None if found.errors else read[0]


def list_environment_names(paths: Sequence[Path], tree: FileTree) -> list[str]:
    """Return the names of the environments for the specs at these paths, sorted."""
    files = SpecFiles(Problems(), tree)
    return sorted({file.stem for file in _find_environment_files(paths, files)})


def check_listed_tables(
    environment: Environment, tables: Iterable[str], paths: Sequence[Path], problems: Problems
) -> None:
    """Warn about listed names that no table has: one warning per misspelt name, one for the rest.

    If a single file was read, the rest may be tables of other files.
    """
    listed = environment.data.get("tables", {})
    declared = set(tables)
    unknown = [name for name in listed if name not in declared]
    rest = []
    for name in unknown:
        if close := did_you_mean(name, declared - listed.keys()):
            at, path = environment.table_position(name), join_path("spec.tables", name)
            problems.warning(at, path, "no table has this name", f"did you mean {close!r}?")
        else:
            rest.append(name)
    if rest and all(path.suffix not in YAML_ENDINGS for path in paths):
        some = ", ".join(rest[:_MAX_LISTED_NAMES]) + (", ..." if rest[_MAX_LISTED_NAMES:] else "")
        message = f"lists tables that no spec declares: {some}"
        problems.warning(environment.table_position(rest[0]), "spec.tables", message, "remove them")


def _find_by_path(name: str, files: SpecFiles) -> Path | None:
    """Return the path if it is a file."""
    kind = files.find_kind(name)
    if kind == "folder":
        files.problems.file_error(name, "is a folder", "name the file of an environment")
    return None if kind in (None, "folder") else Path(name)


def _find_by_name(name: str, paths: Sequence[Path], files: SpecFiles) -> Path | None:
    """Return the file of the environment with a name."""
    known = _find_environment_files(paths, files)
    matches = [file for file in known if file.stem == name]
    if len(matches) == 1:
        return matches[0]
    place = f"environment {quote_value(name)}"
    if matches:
        message = f"several files have this name: {', '.join(map(str, matches))}"
        files.problems.file_error(place, message, "give the path of one of them")
        return None
    names = sorted({file.stem for file in known})
    close = did_you_mean(name, names)
    file = f"{FOLDER}/{'NAME' if name.startswith('.') else name}.yaml"  # hidden files are not read
    hint = f"use one of {', '.join(names)}" if names else f"create {file} beside the specs"
    hint = f"did you mean {close!r}?" if close else hint
    files.problems.file_error(place, "not found", hint)
    return None


def _find_environment_files(paths: Sequence[Path], files: SpecFiles) -> list[Path]:
    """Return the files in the nearest folder of environments above each of the paths."""
    folders: dict[str, Path] = {}
    for path in paths:
        try:
            start = path if files.tree.path_kind(path) == "folder" else path.parent
        except OSError:
            continue  # reading specs there reports it
        for folder in islice(files.find_parent_folders(start, FOLDER), 1):
            folders.setdefault(files.tree.real_path(folder), folder)
    found = []
    for folder in folders.values():
        try:
            names = sorted(files.tree.list_names(folder))
        except OSError as error:
            files.report_unreadable(folder, error, "check its permissions")
            continue
        found += [_relative_to_cwd(folder / name) for name in names if _has_environment_name(name)]
    return found


def _has_environment_name(file: str) -> bool:
    return file.endswith(YAML_ENDINGS) and not file.startswith(".")


def _relative_to_cwd(path: Path) -> Path:
    """Return the path relative to the current folder, if it is below it."""
    relative = os.path.relpath(path)
    return path if relative.startswith("..") else Path(relative)


def make_path_entry(placement: Placement) -> Entry:
    """Return the path of a placement as a field."""
    return _make_entry(placement.position, placement.path)


def _make_entry(position: SourcePosition, text: str) -> Entry:
    return Entry(position, make_scalar(position, text, quoted=True))
