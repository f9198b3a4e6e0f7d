"""A catalog in memory, with the interface of a client."""

from __future__ import annotations

from fnmatch import fnmatchcase

from reconciler.errors import CatalogError, NoCatalogTableError
from reconciler.state.catalogs.api import CatalogEntry


class MemoryCatalog:
    """``entries``: tables by name; ``partitions``: their partitions by values.

    ``broken``: every change fails.
    """

    address = "memory:"

    def __init__(self, *entries, broken=False):
        self.entries = {entry.name: entry for entry in entries}
        self.partitions = {entry.name: {} for entry in entries}
        self.broken, self.opened = broken, 0

    def open(self, _table):
        self.opened += 1
        return self

    def find_table(self, name):
        if name not in self.entries:
            raise NoCatalogTableError(self.address, f"has no table {name}")
        return self.entries[name]

    def list_tables(self, database, table):
        return sorted(name for name in self.entries if fnmatchcase(name, f"{database}.{table}"))

    def list_partitions(self, name):
        return list(self.partitions[name].values())

    def add_partitions(self, name, partitions):
        self._check()
        for partition in partitions:
            self.partitions[name].setdefault(partition.values, partition)

    def drop_partitions(self, name, values):
        self._check()
        for each in values:
            self.partitions[name].pop(each, None)

    def close(self):
        self.opened -= 1

    def _check(self):
        if self.broken:
            raise CatalogError(self.address, "refuses changes")


def make_entry(name, location, keys=("p",)):
    """Return the entry of a Hudi table."""
    properties = {"spark.sql.sources.provider": "hudi"}
    return CatalogEntry(
        name=name, location=location, properties=properties, partition_keys=tuple(keys)
    )
