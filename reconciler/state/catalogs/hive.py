"""Hive Metastore, by its Thrift interface. Needs the extra `hive`."""

from __future__ import annotations

import copy
import logging
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from fnmatch import fnmatchcase
from typing import Any, Final

from reconciler.errors import CatalogError, NoCatalogTableError
from reconciler.lazy_dataclass import dataclass
from reconciler.state.catalogs.addresses import format_server, parse_servers
from reconciler.state.catalogs.api import CatalogEntry, CatalogPartition

#: partitions per request; a request is one transaction of the metastore's database
_BATCH: Final = 500
_TIMEOUT_S: Final = 30.0
_ESCAPED: Final = frozenset("\"#%'*/:=?\\\x7f{[]^")
_NULL: Final = "__HIVE_DEFAULT_PARTITION__"
_OPTIONS: Final = ("timeout",)
_UNKNOWN_METHOD: Final = 1  # TApplicationException.UNKNOWN_METHOD


@dataclass(frozen=True, slots=True)
class MetastoreConnection:
    """A connection to one metastore: its address, Thrift's client of it, and what closes it."""

    address: str
    client: Any
    transport: Any

    @contextmanager
    def explain_errors(self, name: str) -> Iterator[None]:
        """Raise errors of the client as CatalogError; ``name``: the table that is asked about."""
        from pymetastore.hive_metastore.ttypes import NoSuchObjectException  # noqa: PLC0415
        from thrift.Thrift import TException  # noqa: PLC0415

        try:
            yield
        except NoSuchObjectException:
            raise NoCatalogTableError(self.address, f"has no table {name}") from None
        except (TException, OSError, EOFError, UnicodeDecodeError) as error:
            raise CatalogError(self.address, f"{name}: {_explain(error)}") from None

    def close(self) -> None:
        self.transport.close()


def connect_hive(uri: str, options: Mapping[str, str]) -> HiveCatalog:
    """Connect to the first metastore of a URI that answers, as a catalog.

    Raises CatalogError if none answers or the client is not installed.
    """
    return HiveCatalog(open_metastore(uri, options))


def open_metastore(uri: str, options: Mapping[str, str]) -> MetastoreConnection:
    """Connect to the first metastore of a URI that answers; raises as ``connect_hive``."""
    timeout_s = _read_timeout(uri, options)
    try:
        from pymetastore.hive_metastore import ThriftHiveMetastore  # noqa: PLC0415 (an extra)
        from thrift.protocol.TBinaryProtocol import TBinaryProtocol  # noqa: PLC0415
        from thrift.Thrift import TException  # noqa: PLC0415
        from thrift.transport import TSocket, TTransport  # noqa: PLC0415
    except ImportError:
        remedy = "pip install 'hudi-reconciler[hive]'"
        raise CatalogError(uri, f"needs a client that is not installed; {remedy}") from None
    logging.getLogger("thrift").setLevel(logging.CRITICAL)  # the errors below say it
    problems = []
    for host, port in parse_servers(uri):
        socket = TSocket.TSocket(host, port)
        socket.setTimeout(timeout_s * 1000)
        transport = TTransport.TBufferedTransport(socket)
        try:
            transport.open()
        except (TException, OSError) as error:
            problems.append(f"{format_server(host, port)} {_explain(error)}")
            continue
        client = ThriftHiveMetastore.Client(TBinaryProtocol(transport))
        return MetastoreConnection(format_server(host, port), client, transport)
    raise CatalogError(uri, f"no metastore can be reached ({'; '.join(problems)}); check the URI")


def _read_timeout(uri: str, options: Mapping[str, str]) -> float:
    unknown = sorted(options.keys() - set(_OPTIONS))
    if unknown:
        known = ", ".join(_OPTIONS)
        raise CatalogError(uri, f"unknown option {', '.join(unknown)}; known for hive: {known}")
    text = options.get("timeout", str(_TIMEOUT_S))
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0
    if not 0 < seconds <= 3600:  # noqa: PLR2004 (an hour)
        raise CatalogError(uri, f"option timeout is {text!r}; write seconds, at most 3600")
    return seconds


class HiveCatalog:
    """A connection to one metastore."""

    def __init__(self, connection: MetastoreConnection) -> None:
        self._connection, self._client = connection, connection.client

    @property
    def address(self) -> str:
        return self._connection.address

    def find_table(self, name: str) -> CatalogEntry:
        table = self._read_table(name)
        descriptor = table.sd
        return CatalogEntry(
            name=f"{table.dbName}.{table.tableName}",
            location=descriptor.location or "",
            properties=table.parameters or {},
            partition_keys=tuple(key.name for key in table.partitionKeys or ()),
            input_format=descriptor.inputFormat or "",
        )

    def list_tables(self, database: str, table: str) -> Sequence[str]:
        with self._connection.explain_errors(f"{database}.{table}"):
            databases = self._client.get_all_databases()
            names = {
                each: self._client.get_all_tables(each)
                for each in databases
                if fnmatchcase(each.lower(), database.lower())
            }
        return sorted(
            f"{each}.{one}"
            for each, tables in names.items()
            for one in tables
            if fnmatchcase(one.lower(), table.lower())
        )

    def list_partitions(self, name: str) -> Sequence[CatalogPartition]:
        database, table = _split_name(name)
        found: list[CatalogPartition] = []
        with self._connection.explain_errors(name):
            names = self._client.get_partition_names(database, table, -1)
            for batch in _split_batches(names):
                partitions = self._client.get_partitions_by_names(database, table, batch)
                found += (
                    CatalogPartition(tuple(each.values), (each.sd and each.sd.location) or "")
                    for each in partitions
                )
        return found

    def add_partitions(self, name: str, partitions: Collection[CatalogPartition]) -> None:
        from pymetastore.hive_metastore.ttypes import AddPartitionsRequest  # noqa: PLC0415

        database, table = _split_name(name)
        known = self._read_table(name)
        rows = [_make_partition(known, partition) for partition in partitions]
        with self._connection.explain_errors(name):
            for batch in _split_batches(rows):
                request = AddPartitionsRequest(
                    dbName=database,
                    tblName=table,
                    parts=batch,
                    ifNotExists=True,
                    needResult=False,
                )
                self._client.add_partitions_req(request)

    def drop_partitions(self, name: str, values: Collection[tuple[str, ...]]) -> None:
        from pymetastore.hive_metastore import ttypes  # noqa: PLC0415

        database, table = _split_name(name)
        keys = [key.name for key in self._read_table(name).partitionKeys or ()]
        named = {format_partition_name(keys, each): each for each in values}
        with self._connection.explain_errors(name):
            listed = named.keys() & self._client.get_partition_names(database, table, -1)
            for batch in _split_batches(sorted(listed)):
                request = ttypes.DropPartitionsRequest(
                    dbName=database,
                    tblName=table,
                    parts=ttypes.RequestPartsSpec(names=batch),
                    deleteData=False,
                    ifExists=True,
                    needResult=False,
                )
                self._client.drop_partitions_req(request)
            for other in named.keys() - listed:  # gone by now, or a name that Hive writes otherwise
                with suppress(ttypes.NoSuchObjectException):
                    self._client.drop_partition(database, table, list(named[other]), False)

    def close(self) -> None:
        self._connection.close()

    def _read_table(self, name: str) -> Any:
        """Return the metastore's table. Hive 4 has only the newer method, Hive 2.1 the older."""
        from pymetastore.hive_metastore.ttypes import GetTableRequest  # noqa: PLC0415
        from thrift.Thrift import TApplicationException  # noqa: PLC0415

        database, table = _split_name(name)
        with self._connection.explain_errors(name):
            try:
                request = GetTableRequest(dbName=database, tblName=table)
                return self._client.get_table_req(request).table
            except TApplicationException as error:
                if error.type != _UNKNOWN_METHOD:
                    raise
                return self._client.get_table(database, table)


def format_partition_name(keys: Sequence[str], values: Sequence[str]) -> str:
    """Return the name of a partition as a metastore lists it (Warehouse.makePartName).

    >>> format_partition_name(["Day", "zone"], ["2024/01", "a b"])
    'day=2024%2F01/zone=a b'
    """
    pairs = zip(keys, values, strict=True)
    return "/".join(f"{_escape(key.lower())}={_escape(value)}" for key, value in pairs)


def _escape(text: str) -> str:
    """Escape as Hive's FileUtils.escapePathName; an empty value is that of nulls."""
    escaped = (f"%{ord(each):02X}" if each in _ESCAPED or each < " " else each for each in text)
    return "".join(escaped) or _NULL


def _explain(error: Exception) -> str:
    """Return what an error of Thrift says, in one line."""
    text = str(getattr(error, "message", None) or error).strip().partition("\n")[0]
    if isinstance(error, EOFError) or "read 0 bytes" in text:
        return "closed the connection (a metastore with Kerberos or TLS is not supported)"
    is_other = type(error).__name__ in ("TProtocolException", "UnicodeDecodeError")
    if is_other or text.startswith("Length exceeded"):
        return f"the answer is not that of a metastore ({text}); check host and port"
    return text or type(error).__name__


def _make_partition(table: Any, partition: CatalogPartition) -> Any:
    """Return a metastore's partition: columns and formats are those of the table, as Hudi does."""
    from pymetastore.hive_metastore.ttypes import Partition  # noqa: PLC0415

    descriptor = copy.copy(table.sd)
    descriptor.location = partition.location
    return Partition(
        values=list(partition.values),
        dbName=table.dbName,
        tableName=table.tableName,
        sd=descriptor,
        parameters={},
    )


def _split_batches(items: Sequence[Any]) -> Iterator[list[Any]]:
    return (list(items[start : start + _BATCH]) for start in range(0, len(items), _BATCH))


def _split_name(name: str) -> tuple[str, str]:
    database, _, table = name.partition(".")
    return database, table
