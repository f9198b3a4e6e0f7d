"""Addresses of catalogs, as specs, environments and ``init --from`` write them; pure."""

from __future__ import annotations

import re
from typing import Final, Literal

from reconciler.errors import UsageError
from reconciler.lazy_dataclass import dataclass

HIVE_PORT: Final = 9083
_FROM: Final = re.compile(r"(?P<type>hive|glue)://(?P<host>[^/]*)/?(?P<glob>.*)", re.IGNORECASE)
_SERVER: Final = re.compile(
    r"(?:thrift|hive)://(?P<host>\[[0-9A-Fa-f:]+\]|[^:/\s@\[\]]+)(?::(?P<port>[0-9]{1,5}))?/?"
)
_ACCOUNT: Final = re.compile(r"glue://([0-9]{12})?/?")


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogSearch:
    """The tables of a catalog to search for: globs of databases and of tables.

    ``uri`` is that of a spec; "" for the catalog of the credentials' own account.
    """

    type: Literal["hive", "glue"]
    uri: str
    database: str
    table: str

    @property
    def is_one(self) -> bool:
        """True if the search names one table."""
        return not re.search(r"[*?\[]", self.database + self.table)


def is_catalog_address(text: str) -> bool:
    """Return whether the argument of ``--from`` is a catalog and no folder.

    >>> is_catalog_address("hive://metastore:9083/sales"), is_catalog_address("s3://lake/hive")
    (True, False)
    """
    return _FROM.fullmatch(text) is not None


def parse_catalog_search(text: str) -> CatalogSearch:
    """Return what ``hive://host:9083/db*`` or ``glue://account/db.orders*`` searches for.

    Without a glob of tables all tables of the databases match, without any glob all of the catalog.
    Raises UsageError.

    >>> parse_catalog_search("hive://metastore/sales*")
    CatalogSearch(type='hive', uri='thrift://metastore:9083', database='sales*', table='*')
    >>> parse_catalog_search("glue:///sales.orders")
    CatalogSearch(type='glue', uri='', database='sales', table='orders')
    """
    parts = _FROM.fullmatch(text)
    assert parts is not None, "only addresses of catalogs are parsed"
    kind: Literal["hive", "glue"] = "hive" if parts["type"].lower() == "hive" else "glue"
    host, glob = parts["host"], parts["glob"].strip("/")
    if "/" in glob:
        example = "hive://host:9083/sales.orders*"
        raise UsageError(f"--from {text}: separate database and table by a dot: {example}")
    uri = f"thrift://{host}" if kind == "hive" else f"glue://{host}" if host else ""
    if problem := find_uri_problem(kind, uri) if uri else None:
        raise UsageError(f"--from {text}: {problem}")
    database, _, table = glob.partition(".")
    uri = format_server(*parse_servers(uri)[0]) if kind == "hive" else uri
    return CatalogSearch(type=kind, uri=uri, database=database or "*", table=table or "*")


def find_uri_problem(kind: str, uri: str) -> str | None:
    """Return what is wrong with the URI of a catalog, with an example; None if nothing is.

    >>> find_uri_problem("hive", "thrift://a:9083,thrift://b:9083")
    >>> find_uri_problem("glue", "glue://123")
    "'glue://123' names no account of 12 digits; write glue://123456789012"
    """
    if kind == "glue":
        is_valid = _ACCOUNT.fullmatch(uri) is not None
        example = "names no account of 12 digits; write glue://123456789012"
        return None if is_valid else f"{uri!r} {example}"
    for part in uri.split(","):
        server = _SERVER.fullmatch(part.strip())
        if server is None or not 0 < int(server["port"] or HIVE_PORT) < 65536:  # noqa: PLR2004
            return f"{part.strip()!r} names no metastore; write thrift://host:{HIVE_PORT}"
    return None


def parse_servers(uri: str) -> list[tuple[str, int]]:
    """Return host and port of every metastore of a valid URI, in its order.

    >>> parse_servers("thrift://a,thrift://[::1]:9084")
    [('a', 9083), ('::1', 9084)]
    """
    servers = filter(None, (_SERVER.fullmatch(part.strip()) for part in uri.split(",")))
    return [(server["host"].strip("[]"), int(server["port"] or HIVE_PORT)) for server in servers]


def format_server(host: str, port: int) -> str:
    """Return the URI of one metastore.

    >>> format_server("::1", 9083)
    'thrift://[::1]:9083'
    """
    return f"thrift://[{host}]:{port}" if ":" in host else f"thrift://{host}:{port}"


def parse_account(uri: str | None) -> str | None:
    """Return the account of Glue's URI; None for the account of the credentials.

    >>> parse_account("glue://123456789012"), parse_account(None)
    ('123456789012', None)
    """
    account = _ACCOUNT.fullmatch(uri or "")
    return account[1] if account else None
