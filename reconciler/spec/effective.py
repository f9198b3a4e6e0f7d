"""One table's document, its defaults and the environment, merged into the spec that counts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from reconciler.diagnostics import Problem, Problems, shown
from reconciler.spec import locations
from reconciler.spec.declarations import Declaration
from reconciler.spec.document import document_of
from reconciler.spec.environment import Environment, Placement, entry_of
from reconciler.spec.grammar import DEFAULTS_SPEC, PATH, TABLE_SPEC
from reconciler.spec.model import TableSpec
from reconciler.spec.nodes import MappingNode, ScalarNode
from reconciler.spec.overlay import Selector, overlay, provenance, selector
from reconciler.spec.reading import INVALID, Reader
from reconciler.spec.rules import Rules
from reconciler.spec.validate import spec_of


@dataclass(frozen=True, slots=True)
class Defaults:
    """One document of defaults and the tables it is for."""

    selector: Selector
    spec: MappingNode


@dataclass(frozen=True, slots=True)
class Declared:
    """A table's document, the place that it names itself, and the one that counts."""

    by: Declaration
    own: Placement | None
    place: Placement | None


def defaults_of(among: Iterable[Declaration], problems: Problems) -> list[Defaults]:
    """Less specific ones first, then in the order of the files."""
    found = []
    for each in among:
        data = Reader(problems, partial=True).block(each.spec, DEFAULTS_SPEC, "spec")
        Rules(problems, partial=True).check(data, each.spec, "spec")
        found.append(Defaults(selector(each.head.get("selector", {}), each.folder), each.spec))
    return sorted(found, key=lambda defaults: defaults.selector.conditions)


def declared(by: Declaration, environment: Environment | None) -> Declared:
    """Where a table is: the environment knows best."""
    node, own = by.spec.get("path"), None
    if isinstance(node, ScalarNode) and isinstance(node.value, str) and "\0" not in node.value:
        path = locations.resolved(node.value, by.folder)
        own = Placement(path=path, at=by.spec.place("path"))
    place = None if environment is None else environment.placement(by.name)
    return Declared(by, own, place or own)


def effective(
    table: Declared,
    defaults: Iterable[Defaults],
    environment: Environment | None,
    problems: Problems,
) -> TableSpec | None:
    """The effective spec, None after an error; a table without a place is at ``""``."""
    by, place = table.by, table.place
    found = Problems()
    node = _merged(table, defaults, environment)
    data = Reader(found).block(node, TABLE_SPEC, "spec")
    Rules(found).check(data, node, "spec")
    if "path" in by.spec.entries and place is not table.own:
        Reader(found).read(by.spec.entries["path"].node, PATH.kind, "spec.path")
    problems.extend(_blamed(problem, by, problems) for problem in found)
    is_misplaced = place is not None and _is_misplaced(place, problems)
    zone = node.entries.get("timezone")
    if environment is not None and (clash := environment.contradiction(by.name, zone)):
        problems.error(*clash, "keep one of them")
        return None
    if found.errors or is_misplaced or data is INVALID:
        return None
    head = {key: by.head["metadata"].get(key) for key in ("labels", "owner")}
    given = {key: value for key, value in head.items() if value is not None}
    path = "" if place is None else place.path
    options = MappingNode(node.at, {} if environment is None else environment.options())
    if environment is not None:
        given["storageOptions"] = environment.storage_options
    spec = replace(
        spec_of({**data, **given}, name=by.name, path=path),
        source=by.file,
        provenance=dict((*provenance(node), *provenance(options))),
    )
    return replace(spec, document=document_of(spec))


def check_paths(
    tables: Iterable[Declared],
    environment: Environment | None,
    others: Callable[[], Sequence[str]],
    problems: Problems,
) -> None:
    """Every table is somewhere; ``others`` names the environments that could be chosen."""
    lost = [each for each in tables if not each.place and "path" not in each.by.spec.entries]
    names = others() if lost and environment is None else ()
    for table in lost:
        if environment is not None:
            message = f"is missing, and the environment {environment.name} has no place for it"
            hint = f"list {table.by.name} in {environment.source}, or give that a pattern"
        elif names:
            choices = " or ".join(f"--env {name}" for name in names)
            message, hint = "is missing: the table has no path", f"choose an environment: {choices}"
        else:
            message = "is missing"
            hint = "where the table is: relative to this file, absolute, or a URL"
        problems.error(table.by.spec.at, "spec.path", message, hint)


def check_places(tables: Iterable[Declared], problems: Problems) -> None:
    """No two tables are at one place."""
    first: dict[str, Declared] = {}
    for table in tables:
        place = table.place
        if place is None:
            continue
        known = first.setdefault(locations.identity(place.path), table)
        if known is not table and known.place is not None:
            as_known = f"as {known.by.name} in {known.place.at}"
            message = f"the table at {place.path} is declared already, {as_known}"
            problems.error(place.at, place.field, message, "keep one of them")


def _merged(
    table: Declared, defaults: Iterable[Defaults], environment: Environment | None
) -> MappingNode:
    at, path = table.by.spec.at, None if table.place is None else table.place.path
    zone = None if environment is None else environment.zone(table.by.name)
    base = MappingNode(at, {} if zone is None else {"timezone": zone})
    for layer in defaults:
        if layer.selector.selects(table.by.labels, path):
            base = overlay(base, layer.spec, TABLE_SPEC)
    base = overlay(base, table.by.spec, TABLE_SPEC)
    if table.place is None or table.place is table.own:
        return base
    return overlay(base, MappingNode(at, {"path": entry_of(table.place)}), TABLE_SPEC)


def _blamed(problem: Problem, declaration: Declaration, known: Problems) -> Problem:
    """A problem that only this table has, with values from another file, is said at the table."""
    if problem.place.file == declaration.file or problem in known:
        return problem
    message = f"{problem.message}, with the defaults of {problem.place}"
    return replace(problem, place=declaration.node.place("spec"), message=message)


def _is_misplaced(place: Placement, problems: Problems) -> bool:
    """Whether no table can be there, which is said."""
    if place.problem is not None:
        problems.error(place.at, place.field, *place.problem)
    elif place.path == "/":
        problems.error(place.at, place.field, "is the root folder", "no table is there")
    elif not place.path.isprintable():
        message = f"lies in {shown(place.path)}, which is not plain text"
        problems.error(place.at, place.field, message, "rename the folder")
    else:
        return False
    return True
