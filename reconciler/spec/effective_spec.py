"""Effective specs: a table's document merged with its defaults and the environment."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from reconciler.errors import (
    CatalogLocationError,
    NoCatalogTableError,
    Problem,
    Problems,
    quote_value,
)
from reconciler.lazy_dataclass import dataclass
from reconciler.spec import locations
from reconciler.spec.declarations import Declaration
from reconciler.spec.document import build_spec, fill_sizes, spec_to_document
from reconciler.spec.environment import Environment, Placement, make_path_entry
from reconciler.spec.lock_rules import Metastore, check_lock, complete_lock
from reconciler.spec.model import CatalogTable, TableSpec
from reconciler.spec.overlay import Selector, build_selector, list_provenance, merge_nodes
from reconciler.spec.rule_block import Block
from reconciler.spec.rules import check_rules
from reconciler.spec.schema import load_definition
from reconciler.spec.structure import INVALID, read_structure
from reconciler.spec.yaml_nodes import MappingNode, ScalarNode
from reconciler.storage.locations import LocationMap

#: finds the location of a table in its catalog; raises NoCatalogTableError if it is not there, and
#: CatalogLocationError if it cannot be opened
Locator = Callable[[CatalogTable], str]


@dataclass(frozen=True, slots=True)
class Defaults:
    """A document of defaults, and the tables that it is for."""

    selector: Selector
    spec: MappingNode


@dataclass(frozen=True, slots=True)
class DeclaredTable:
    """A table's document, the location that it declares, and the location that counts.

    ``catalog``: the catalog that gives the location, None if a path does.
    """

    declaration: Declaration
    own_placement: Placement | None
    placement: Placement | None
    catalog: CatalogTable | None = None


def collect_defaults(declarations: Iterable[Declaration], problems: Problems) -> list[Defaults]:
    """Return the defaults, less specific ones first, then in the order of the files."""
    parsed = []
    for item in declarations:
        schema = load_definition("defaults")
        data = read_structure(item.spec, schema, problems, is_partial=True)
        check_rules(Block(problems, data, item.spec, is_partial=True))
        selector = build_selector(item.envelope.get("selector", {}), item.folder)
        parsed.append(Defaults(selector, item.spec))
    return sorted(parsed, key=lambda defaults: defaults.selector.specificity)


def place_table(
    declaration: Declaration,
    environment: Environment | None,
    locate: Locator | None,
    problems: Problems,
) -> DeclaredTable:
    """Find the location of a table; that of the environment counts more than its own.

    ``locate``: finds tables in catalogs; without it they get no location. Raises its errors, except
    that a table which the catalog does not have, or has at no place, is a problem.
    """
    place = None if environment is None else environment.placement(declaration.name)
    if "catalog" in declaration.spec.entries and place is None:
        return _place_by_catalog(declaration, environment, locate, problems)
    node, own = declaration.spec.get("path"), None
    if isinstance(node, ScalarNode) and isinstance(node.value, str) and "\0" not in node.value:
        path = locations.resolve_location(node.value, declaration.folder)
        own = Placement(path=path, position=declaration.spec.key_position("path"))
    return DeclaredTable(declaration, own, place or own)


def _place_by_catalog(
    declaration: Declaration,
    environment: Environment | None,
    locate: Locator | None,
    problems: Problems,
) -> DeclaredTable:
    """Find the location of a table in its catalog; errors of its fields are reported later."""
    unplaced = DeclaredTable(declaration, None, None)
    written, found = declaration.spec.entries["catalog"].node, Problems()
    data = read_structure(written, load_definition("catalog"), found)
    if found.errors or "path" in declaration.spec.entries:
        return unplaced
    catalog = CatalogTable(**data)
    if environment is not None:
        catalog = environment.add_catalog_access(catalog)
    position, field = declaration.spec.key_position("catalog"), "spec.catalog"
    if problem := _find_access_problem(catalog, is_needed=locate is not None):
        problems.error(position, f"{field}.uri", *problem)
        return unplaced
    unplaced = replace(unplaced, catalog=catalog)
    if locate is None:
        return unplaced
    try:
        location = locate(catalog)
    except NoCatalogTableError as error:
        problems.error(position, field, str(error), "check type, name and uri")
        return unplaced
    except CatalogLocationError as error:
        problems.error(position, field, str(error), "give the table a path instead")
        return unplaced
    path = locations.resolve_location(location, declaration.folder)
    own = Placement(path=path, position=position, field=field)
    return replace(unplaced, own_placement=own, placement=own)


def _find_access_problem(catalog: CatalogTable, *, is_needed: bool) -> tuple[str, str] | None:
    """Return what is wrong with the URI of a catalog, and what to do."""
    is_glue = (catalog.uri or "").startswith("glue:")
    if catalog.uri is None:
        hint = "add it here or in an environment, such as thrift://host:9083"
        return ("is missing", hint) if is_needed and catalog.type == "hive" else None
    if is_glue == (catalog.type == "glue"):
        return None
    example = "glue://123456789012" if catalog.type == "glue" else "thrift://host:9083"
    return f"{quote_value(catalog.uri)} is none of type {catalog.type}", f"write {example}"


def build_effective_spec(
    table: DeclaredTable,
    defaults: Iterable[Defaults],
    environment: Environment | None,
    problems: Problems,
    *,
    known: Problems,
) -> TableSpec | None:
    """Return the effective spec, None after an error; a table without a place is at ``""``.

    ``problems`` takes what is wrong with this table; ``known`` has the problems of others.
    """
    by, place = table.declaration, table.placement
    found = Problems()
    node = _merge_layers(table, defaults, environment)
    data = read_structure(node, load_definition("completeTable"), found)
    metastore = _find_metastore(table.catalog, environment)
    _check_rules(Block(found, data, node), place, metastore)
    _check_own_location(table, found)
    problems.extend(_blame_declaration(problem, by, known) for problem in found)
    is_misplaced = place is not None and _is_misplaced(place, problems)
    zone = node.entries.get("timezone")
    if environment is not None and (clash := environment.find_timezone_conflict(by.name, zone)):
        problems.error(*clash, "keep one of them")
        return None
    if found.errors or is_misplaced or data is INVALID:
        return None
    head = {key: by.envelope["metadata"].get(key) for key in ("labels", "owner")}
    given = {key: value for key, value in head.items() if value is not None}
    path = "" if place is None else place.path
    declared = {key: value for key, value in fill_sizes(data).items() if key != "catalog"}
    entries = {}
    if environment is not None:
        given["storageOptions"] = environment.storage_options
        entries = environment.storage_option_entries()
    options = MappingNode(node.position, entries)
    spec = replace(
        build_spec({**declared, **given}, name=by.name, path=path),
        catalog=table.catalog,
        source=by.file,
        prices=None if environment is None else environment.prices,
        provenance=dict((*list_provenance(node), *list_provenance(options))),
    )
    spec = _complete_lock(spec, metastore)
    return replace(spec, document=spec_to_document(spec))


def _complete_lock(spec: TableSpec, metastore: Metastore) -> TableSpec:
    if spec.concurrency is None or spec.concurrency.lock is None:
        return spec
    lock = complete_lock(spec.concurrency.lock, metastore)
    return replace(spec, concurrency=replace(spec.concurrency, lock=lock))


def _check_own_location(table: DeclaredTable, problems: Problems) -> None:
    """Report a location of the table's own that is no location, or is given twice."""
    entries = table.declaration.spec.entries
    if "path" in entries and table.placement is not table.own_placement:
        read_structure(entries["path"].node, load_definition("location"), problems, "spec.path")
    if "path" in entries and "catalog" in entries:
        message = "is given beside spec.path, and either is the location of the table"
        at = table.declaration.spec.key_position("catalog")
        problems.error(at, "spec.catalog", message, "remove one of them")


def _check_rules(block: Block, place: Placement | None, metastore: Metastore) -> None:
    check_rules(block)
    check_lock(block, "" if place is None else place.path, metastore)


def _find_metastore(catalog: CatalogTable | None, environment: Environment | None) -> Metastore:
    """Return what a Hive catalog and the environment say of a table's metastore."""
    known = CatalogTable(type="hive", name="")
    given = known if environment is None else environment.add_catalog_access(known)
    if catalog is None or catalog.type != "hive":
        return Metastore(environment_uri=given.uri)
    return Metastore(table=catalog.name, uri=catalog.uri, environment_uri=given.uri)


def check_paths_known(
    tables: Iterable[DeclaredTable],
    environment: Environment | None,
    list_environments: Callable[[], Sequence[str]],
    problems: Problems,
) -> None:
    """Report tables without a location; ``list_environments`` returns the available ones."""
    unplaced = [table for table in tables if not table.placement]
    own = frozenset(("path", "catalog"))
    unplaced = [table for table in unplaced if own.isdisjoint(table.declaration.spec.entries)]
    names = list_environments() if unplaced and environment is None else ()
    for table in unplaced:
        if environment is not None:
            message = f"is missing, and the environment {environment.name} has no location for it"
            hint = f"list {table.declaration.name} in {environment.source}, or add a pattern there"
        elif names:
            choices = " or ".join(f"--env {name}" for name in names)
            message, hint = "is missing: the table has no path", f"select an environment: {choices}"
        else:
            message = "is missing"
            hint = "add the location of the table: relative to this file, absolute, or a URL"
        problems.error(table.declaration.spec.position, "spec.path", message, hint)


def check_distinct_places(tables: Iterable[DeclaredTable], problems: Problems) -> None:
    """Report tables that are at the same location."""
    places: LocationMap[DeclaredTable] = LocationMap()
    for table in tables:
        place = table.placement
        if place is None:
            continue
        known = places.add(place.path, table)
        if known is not None and known.placement is not None:
            as_known = f"as {known.declaration.name} in {known.placement.position}"
            message = f"the table at {place.path} is already declared, {as_known}"
            problems.error(place.position, place.field, message, "keep one of them")


def _merge_layers(
    table: DeclaredTable, defaults: Iterable[Defaults], environment: Environment | None
) -> MappingNode:
    at, place = table.declaration.spec.position, table.placement
    path = None if place is None else place.path
    schema = load_definition("table")
    zone = None if environment is None else environment.timezone_entry(table.declaration.name)
    base = MappingNode(at, {} if zone is None else {"timezone": zone})
    for layer in defaults:
        if layer.selector.selects(table.declaration.labels, path):
            base = merge_nodes(base, layer.spec, schema)
    base = merge_nodes(base, table.declaration.spec, schema)
    if place is None or place is table.own_placement:
        return base
    return merge_nodes(base, MappingNode(at, {"path": make_path_entry(place)}), schema)


def _blame_declaration(problem: Problem, declaration: Declaration, known: Problems) -> Problem:
    """Move a problem that only this table has, with values of another file, to the table."""
    if problem.position.file == declaration.file or problem in known:
        return problem
    message = f"{problem.message}, with the defaults of {problem.position}"
    return replace(problem, position=declaration.node.key_position("spec"), message=message)


def _is_misplaced(placement: Placement, problems: Problems) -> bool:
    """Return whether no table can be at a location, after reporting it."""
    problem = placement.problem
    if problem is None and placement.path == "/":
        problem = "is the root folder", "give the folder of the table"
    elif problem is None and not placement.path.isprintable():
        message = f"lies in {quote_value(placement.path)}, which has unprintable characters"
        problem = message, "rename the folder"
    if problem is not None:
        problems.error(placement.position, placement.field, *problem)
    return problem is not None
