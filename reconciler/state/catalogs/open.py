"""Open the catalog of a table, and find where the table is."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from reconciler.errors import CatalogError
from reconciler.spec.model import CatalogTable
from reconciler.state.catalogs.api import CatalogClient
from reconciler.storage.locations import escape_hadoop_path

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

        Raises CatalogError, NoCatalogTableError if the catalog does not have the table.
        """
        catalog = repr(replace(table, name=""))
        known = self._locations.get((catalog, table.name))
        if known is not None:
            return known
        if catalog not in self._clients:
            self._clients[catalog] = self.open_catalog(table)
        entry = self._clients[catalog].find_table(table.name)
        if not entry.location:
            message = f"{table.name} has no location there; is it a view?"
            raise CatalogError(self._clients[catalog].address, message)
        location = escape_hadoop_path(entry.location)
        self._locations[catalog, table.name] = location
        return location

    def close(self) -> None:
        """Close the connections."""
        while self._clients:
            self._clients.popitem()[1].close()
