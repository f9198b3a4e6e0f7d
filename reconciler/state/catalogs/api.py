"""The interface of catalogs: tables by name, and the partitions that a catalog lists."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Final, Protocol

from reconciler.lazy_dataclass import dataclass

_HUDI_PROVIDER: Final = "spark.sql.sources.provider"
_HUDI_FORMATS: Final = ("org.apache.hudi.", "com.uber.hoodie.")


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogEntry:
    """A table as a catalog has it. ``name`` is ``database.table``.

    ``partition_keys``: names of its partition columns; a table without any lists no partitions.
    ``input_format``: the Java class that reads it, "" if unknown.
    """

    name: str
    location: str
    properties: Mapping[str, str]
    partition_keys: tuple[str, ...] = ()
    input_format: str = ""

    @property
    def is_hudi(self) -> bool:
        """True if the catalog says that the table is one of Hudi's."""
        provider = self.properties.get(_HUDI_PROVIDER, "").lower()
        return provider == "hudi" or self.input_format.startswith(_HUDI_FORMATS)


@dataclass(frozen=True, slots=True)
class CatalogPartition:
    """A partition that a catalog lists, by its values in the order of the partition keys."""

    values: tuple[str, ...]
    location: str


class CatalogClient(Protocol):
    """A connection to a catalog.

    Every method raises CatalogError, NoCatalogTableError for a table that is not there.
    """

    @property
    def address(self) -> str:
        """The address of the catalog, for messages."""

    def find_table(self, name: str) -> CatalogEntry: ...

    def list_tables(self, database: str, table: str) -> Sequence[str]:
        """Return the sorted names of tables whose database and table match the globs."""

    def list_partitions(self, name: str) -> Sequence[CatalogPartition]: ...

    def add_partitions(self, name: str, partitions: Collection[CatalogPartition]) -> None:
        """Add partitions. One that exists by now is left as it is."""

    def drop_partitions(self, name: str, values: Collection[tuple[str, ...]]) -> None:
        """Drop partitions by their values, and no file of them. A missing one is left out."""

    def close(self) -> None: ...
