"""Where tables are in one place such as production, and how they and Spark are reached there.

An environment never says what may be done to a table: it has no field for that.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, Final

from reconciler.diagnostics import Place, Problems, did_you_mean, shown
from reconciler.spec import locations
from reconciler.spec.declarations import Declaration, declarations, of_kind
from reconciler.spec.kinds import ENVIRONMENT_SPEC
from reconciler.spec.model import Option
from reconciler.spec.nodes import Entry, MappingNode, dotted, plain, scalar
from reconciler.spec.project import folders_above
from reconciler.spec.reading import Reader
from reconciler.spec.sources import DISK, Files
from reconciler.spec.words import filled

FOLDER: Final = "environments"
"""The folder in which an environment is found by its name, beside the specs or above them."""

_ENDINGS: Final = (".yaml", ".yml")
_MOST_NAMED: Final = 5
"""The most names in one message."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Placement:
    """The resolved place of a table, and where which field says so.

    ``problem`` is what is wrong with it and what to do.
    """

    path: str
    at: Place
    field: str = "spec.path"
    problem: tuple[str, str] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Environment:
    """One document of kind Environment without an error; ``data`` is its spec's."""

    name: str
    source: str
    folder: str
    node: MappingNode
    data: Mapping[str, Any]

    @property
    def spark_master(self) -> str | None:
        """Where Spark runs."""
        found: str | None = self.data.get("spark", {}).get("master")
        return found

    @property
    def spark_conf(self) -> Mapping[str, Option]:
        """Settings of Spark."""
        return dict(self.data.get("spark", {}).get("conf", {}))

    @property
    def storage_options(self) -> Mapping[str, Option]:
        """What the store's client is told, for every table."""
        return dict(self.data.get("storageOptions", {}))

    def placement(self, table: str) -> Placement | None:
        """Where the table of that name is, if the environment says so."""
        if path := self._listed(table).get("path"):
            at = self.place_of(table, "path")
            place = locations.resolved(path, self.folder)
            return Placement(path=place, at=at, field=dotted("spec.tables", table))
        if pattern := self.data.get("pattern"):
            at = self.node.place("pattern")
            place = locations.resolved(filled(pattern, table), self.folder)
            problem = None
            if "{schema}" in pattern and "." not in table:
                problem = f"has no schema for {table}", "list that table under tables"
            return Placement(path=place, at=at, field="spec.pattern", problem=problem)
        return None

    def zone(self, table: str) -> Entry | None:
        """The zone of a table whose spec, with its defaults, says no other."""
        if zone := self._listed(table).get("timezone"):
            return _entry(self.place_of(table, "timezone"), zone)
        return self.node.entries.get("timezone")

    def contradiction(self, table: str, zone: Entry | None) -> tuple[Place, str, str] | None:
        """Where and how the zone a table is listed with is not the one its spec has come to."""
        listed = self._listed(table).get("timezone")
        if listed is None or zone is None or plain(zone.node) == listed:
            return None
        field = dotted(dotted("spec.tables", table), "timezone")
        said = f"{listed} contradicts {shown(plain(zone.node))} in {zone.at}"
        return self.place_of(table, "timezone"), field, said

    def options(self) -> dict[str, Entry]:
        """The storage options as they are written."""
        entry = self.node.entries.get("storageOptions")
        return {} if entry is None else {"storageOptions": entry}

    def place_of(self, table: str, field: str = "") -> Place:
        """Where a table is listed, or one of the fields it is listed with."""
        tables = self.node.get("tables")
        if not isinstance(tables, MappingNode):
            return self.node.at
        listed = tables.get(table)
        if isinstance(listed, MappingNode) and field in listed.entries:
            return listed.place(field)
        return tables.place(table)

    def _listed(self, table: str) -> Mapping[str, Any]:
        found = self.data.get("tables", {}).get(table, {})
        return {"path": found} if isinstance(found, str) else found


def environment_of(declaration: Declaration, problems: Problems) -> Environment | None:
    """The environment of a document, None after an error."""
    found = Problems()
    data = Reader(found).block(declaration.spec, ENVIRONMENT_SPEC, "spec")
    problems.extend(found)
    if found.errors:
        return None
    return Environment(
        name=declaration.name,
        source=declaration.file,
        folder=declaration.folder,
        node=declaration.spec,
        data=data,
    )


def read_environment(name: str, paths: Sequence[Path] = (Path(),)) -> Environment:
    """The environment of a name beside these specs or above them, or of a path.

    Raises SpecError with everything that is wrong with it.
    """
    problems = Problems()
    found = chosen(name, paths, (), problems)
    problems.raise_errors()
    assert found is not None, "there is no environment only after an error"
    return found


def chosen(
    name: str,
    paths: Sequence[Path],
    files: Iterable[Path],
    problems: Problems,
    source: Files = DISK,
) -> Environment | None:
    """The environment that people name, None after an error.

    ``files`` were read already: one of them is named in messages as it was there.
    """
    is_path = os.sep in name or name.endswith(_ENDINGS)
    file = _there(name, problems, source) if is_path else _called(name, paths, problems, source)
    if file is None:
        return None
    known = {source.real(each): each for each in files}
    file = known.get(source.real(file), file)
    found = Problems()
    among = list(declarations(file, found, source))
    environments = of_kind("Environment", among)
    if not among and not found.errors:
        hint = "add a document with kind: Environment"
        found.error(Place(str(file)), "", "declares no environment", hint)
    for each in among:
        if environments[:1] != [each]:
            message = f"is {each.kind}, and an environment has a file of its own"
            found.error(each.node.place("kind"), "kind", message, "move it to another file")
    for each in environments[:1]:
        if not is_path and each.name != name:
            message = f"is {shown(each.name)} in the file of {name}"
            found.error(each.name_at, "metadata.name", message, "make them the same")
    read = [environment_of(each, found) for each in environments]
    problems.extend(found)
    return None if found.errors else read[0]


def names_above(paths: Sequence[Path], source: Files = DISK) -> list[str]:
    """The names of the environments that can be chosen for the specs at these paths, sorted."""
    return sorted({file.stem for file in _files(paths, Problems(), source)})


def check_listed(
    environment: Environment, tables: Iterable[str], paths: Sequence[Path], problems: Problems
) -> None:
    """Warn of names that no table has: each that was meant to be another's, and the rest at once.

    Where a single file was read, the rest are taken for tables of other files.
    """
    listed = environment.data.get("tables", {})
    declared = set(tables)
    strangers = [name for name in listed if name not in declared]
    rest = []
    for name in strangers:
        if close := did_you_mean(name, declared - listed.keys()):
            message = "is the name of no table"
            at = environment.place_of(name)
            problems.warning(at, dotted("spec.tables", name), message, f"did you mean {close!r}?")
        else:
            rest.append(name)
    if rest and all(path.suffix not in _ENDINGS for path in paths):
        some = ", ".join(rest[:_MOST_NAMED]) + (", ..." if rest[_MOST_NAMED:] else "")
        message = f"names tables that no spec declares: {some}"
        problems.warning(environment.place_of(rest[0]), "spec.tables", message, "remove them")


def _there(name: str, problems: Problems, source: Files) -> Path | None:
    """The file at a path."""
    try:
        if source.kind(Path(name)) != "folder":
            return Path(name)
        problems.error(Place(name), "", "is a folder", "name the file of an environment")
    except OSError as error:
        is_gone = isinstance(error, FileNotFoundError)
        why = "does not exist" if is_gone else f"cannot be read: {error.strerror or error}"
        problems.error(Place(name), "", why, "check the path")
    return None


def _called(name: str, paths: Sequence[Path], problems: Problems, source: Files) -> Path | None:
    """The file of a name."""
    known = _files(paths, problems, source)
    found = [file for file in known if file.stem == name]
    place = Place(f"environment {shown(name)}")
    if len(found) == 1:
        return found[0]
    if found:
        message = f"is the name of {' and of '.join(map(str, found))}"
        problems.error(place, "", message, "give the path of one of them")
        return None
    names = sorted({file.stem for file in known})
    close = did_you_mean(name, names)
    file = f"{FOLDER}/{'NAME' if name.startswith('.') else name}.yaml"  # hidden ones are not read
    hint = f"known are {', '.join(names)}" if names else f"make {file} beside the specs"
    problems.error(place, "", "is not there", f"did you mean {close!r}?" if close else hint)
    return None


def _files(paths: Sequence[Path], problems: Problems, source: Files) -> list[Path]:
    """The files of the nearest folder of environments above each of the paths."""
    folders: dict[str, Path] = {}
    for path in paths:
        try:
            start = path if source.kind(path) == "folder" else path.parent
        except OSError:
            continue  # whoever reads specs there says so
        for folder in islice(folders_above(start, FOLDER, problems, source), 1):
            folders.setdefault(source.real(folder), folder)
    found = []
    for folder in folders.values():
        try:
            names = sorted(source.names(folder))
        except OSError as error:
            why = f"cannot be read: {error.strerror or error}"
            problems.error(Place(str(folder)), "", why, "check its permissions")
            continue
        found += [_here(folder / each) for each in names if _is_named(each)]
    return found


def _is_named(file: str) -> bool:
    return file.endswith(_ENDINGS) and not file.startswith(".")


def _here(path: Path) -> Path:
    """The path as people in the current folder would write it."""
    here = os.path.relpath(path)
    return path if here.startswith("..") else Path(here)


def entry_of(placement: Placement) -> Entry:
    """The path as a field."""
    return _entry(placement.at, placement.path)


def _entry(at: Place, text: str) -> Entry:
    return Entry(at, scalar(at, text, quoted=True))
