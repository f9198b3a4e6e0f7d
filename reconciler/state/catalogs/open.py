"""Open the catalog of a table, and find where the table is."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field, replace

from reconciler.errors import CatalogError, CatalogLocationError, StorageError
from reconciler.lazy_dataclass import dataclass
from reconciler.spec.model import CatalogTable
from reconciler.state.catalogs.api import CatalogClient
from reconciler.storage.locations import escape_hadoop_path, find_local_path, normalise_location

#: takes the catalog of a table, whose name does not matter
CatalogOpener = Callable[[CatalogTable], CatalogClient]


def open_catalog(table: CatalogTable, options: Mapping[str, str]) -> CatalogClient:
    """Open the catalog of a table with these values of its options.

    Raises CatalogError if it cannot be reached or its client is not installed.
    """
    if table.type == "hive":
        if not table.uri:
            raise CatalogError("hive", "has no uri; write thrift://host:9083 into spec.catalog.uri")
        from reconciler.state.catalogs.hive import connect_hive  # noqa: PLC0415 (only if used)

        return connect_hive(table.uri, options)
    from reconciler.state.catalogs.glue import connect_glue  # noqa: PLC0415 (only if used)

    return connect_glue(table.uri, options)


def find_location_problem(location: str) -> str | None:
    """Return why a table at this location of a catalog cannot be opened; None if it can.

    >>> find_location_problem("")
    'has no location there, as a view has none'
    >>> find_location_problem("lake/orders")
    "is at 'lake/orders' there, which is neither an absolute path nor a URL"
    >>> find_location_problem("dbfs:/lake")
    "is at 'dbfs:/lake' there, which has one slash after the scheme; write dbfs://bucket/folder"
    >>> find_location_problem("s3a://lake/orders"), find_location_problem("file:/lake/orders")
    (None, None)
    """
    if not location:
        return "has no location there, as a view has none"
    try:
        normalise_location(escape_hadoop_path(location))
    except StorageError as error:
        return f"is at {location!r} there, which {error.problem}"
    local = find_local_path(location)
    if local is not None and not local.startswith("/"):
        return f"is at {location!r} there, which is neither an absolute path nor a URL"
    return None


@dataclass(frozen=True, slots=True)
class TableLocator:
    """Finds the locations of tables in their catalogs.

    Each catalog is connected to once until ``close``, and each table is asked for once.
    """

    open_catalog: CatalogOpener
    _clients: dict[str, CatalogClient] = field(default_factory=dict)
    _locations: dict[tuple[str, str], str] = field(default_factory=dict)

    def locate(self, table: CatalogTable) -> str:
        """Return the location of a table, in a form that spec files may have.

        Raises CatalogError: NoCatalogTableError if the catalog does not have the table,
        CatalogLocationError if its location there cannot be opened.
        """
        catalog = repr(replace(table, name=""))
        known = self._locations.get((catalog, table.name))
        if known is not None:
            return known
        if catalog not in self._clients:
            self._clients[catalog] = self.open_catalog(table)
        entry = self._clients[catalog].find_table(table.name)
        if problem := find_location_problem(entry.location):
            raise CatalogLocationError(self._clients[catalog].address, f"{table.name} {problem}")
        location = escape_hadoop_path(entry.location)
        self._locations[catalog, table.name] = location
        return location

    def close(self) -> None:
        """Close the connections."""
        while self._clients:
            self._clients.popitem()[1].close()
