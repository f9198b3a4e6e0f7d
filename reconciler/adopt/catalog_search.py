"""Search for tables in catalogs: those that a catalog knows as Hudi's."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import field

from reconciler.errors import UsageError
from reconciler.lazy_dataclass import dataclass
from reconciler.render import words
from reconciler.spec.model import CatalogTable
from reconciler.state.catalogs.addresses import CatalogSearch, parse_catalog_search
from reconciler.state.catalogs.api import CatalogClient, CatalogEntry
from reconciler.state.catalogs.open import CatalogOpener, find_location_problem
from reconciler.storage.locations import LocationMap, escape_hadoop_path, normalise_location

#: adds what an environment says about a catalog to a table
AddAccess = Callable[[CatalogTable], CatalogTable]


@dataclass(slots=True)
class CatalogTables:
    """Tables that were found in catalogs: their locations, and their names by location.

    ``skipped``: number of tables that are not Hudi's. ``problems``: Hudi tables without a location
    that can be opened. ``is_one``: a search named one table.
    """

    locations: list[str] = field(default_factory=list)
    names: LocationMap[CatalogTable] = field(default_factory=LocationMap)
    skipped: int = 0
    problems: list[str] = field(default_factory=list)
    is_one: bool = False


def find_catalog_tables(
    addresses: Sequence[str], open_catalog: CatalogOpener, add_access: AddAccess
) -> CatalogTables:
    """Find the Hudi tables at addresses such as ``hive://host:9083/db*``.

    A table with several names at one location has the shortest. Raises UsageError for an address
    without a Hudi table, and CatalogError.
    """
    found = CatalogTables()
    for text in addresses:
        search = parse_catalog_search(text)
        catalog = _add_access(text, search, add_access)
        with closing(open_catalog(catalog)) as client:
            entries = _list_entries(text, client, search, found)
        for entry in sorted(entries, key=lambda entry: (len(entry.name), entry.name)):
            location = normalise_location(escape_hadoop_path(entry.location))
            table = CatalogTable(
                type=catalog.type, name=entry.name, uri=catalog.uri, options=catalog.options
            )
            if found.names.add(location, table) is None:
                found.locations.append(location)
        found.is_one |= search.is_one
    return found


def _add_access(text: str, search: CatalogSearch, add_access: AddAccess) -> CatalogTable:
    """Return the catalog of a search, with the options of the environment."""
    given = CatalogTable(type=search.type, name="", uri=search.uri or None)
    catalog = add_access(given)
    if given.uri is not None and catalog.uri != given.uri:
        raise UsageError(f"--from {text}: the environment has another catalog, {catalog.uri}")
    return catalog


def _list_entries(
    text: str, client: CatalogClient, search: CatalogSearch, found: CatalogTables
) -> list[CatalogEntry]:
    if search.is_one:
        entry = client.find_table(f"{search.database}.{search.table}")
        if problem := find_location_problem(entry.location):
            raise UsageError(f"--from {text}: {entry.name} {problem}")
        return [entry]
    names = client.list_tables(search.database, search.table)
    entries = [entry for entry in map(client.find_table, names) if entry.location]
    hudi = [entry for entry in entries if entry.is_hudi]
    if not hudi:
        others = words.format_count(len(names), "other table")
        raise UsageError(f"--from {text}: no Hudi table matches in {client.address} ({others})")
    found.skipped += len(names) - len(hudi)
    problems = {entry.name: find_location_problem(entry.location) for entry in hudi}
    found.problems += (f"{name} {problem}" for name, problem in problems.items() if problem)
    return [entry for entry in hudi if problems[entry.name] is None]
