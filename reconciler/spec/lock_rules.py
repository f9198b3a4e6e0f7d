"""Rules of a declared lock: whether the writers of the table can take it where the table is."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Final

from reconciler.hudi.timeline.implicit_lock import (
    IMPLICIT_KEY,
    derive_base_path,
    derive_partition_key,
)
from reconciler.lazy_dataclass import dataclass
from reconciler.spec.model import Lock
from reconciler.spec.rule_block import Block

#: object stores, where Hudi's file-system lock cannot create its file atomically
_OBJECT_STORES: Final = frozenset(
    {"s3", "s3a", "gs", "gcs", "abfs", "abfss", "az", "adl", "wasb", "wasbs"}
)
#: stores for which Hudi and reconciler both have conditional writes
_LOCKING_STORES: Final = frozenset({"s3", "s3a"})
#: places for which only reconciler has them; Hudi's writers refuse to start there
_LOCKING_PLACES: Final = _LOCKING_STORES | {"", "memory"}
_MIN_VALIDITY_S: Final = 10
_LAST_PORT: Final = 65535
#: fields that name a lock in a Hive Metastore
_NAMES: Final = ("table", "uri")
#: fields with an effect; those of the others have none
_FIELDS: Final = {
    "filesystem": ("path", "expire", "singleWriter"),
    "storage": ("validity",),
    "hivemetastore": ("table", "uri"),
    "zookeeper": ("servers", "basePath", "key", "sessionTimeout", "implicit"),
    "dynamodb": ("table", "partitionKey", "region", "endpoint", "implicit"),
    "none": ("path", "expire"),
}
_ALL_FIELDS: Final = tuple(dict.fromkeys(name for fields in _FIELDS.values() for name in fields))
#: fields without a default, and how to find their values
_NEEDED: Final = {
    "zookeeper": {
        "servers": "the writers' hoodie.write.lock.zookeeper.url, such as zk1:2181,zk2:2181",
        "basePath": "the writers' hoodie.write.lock.zookeeper.base_path, such as /hudi/locks",
        "key": "the writers' hoodie.write.lock.zookeeper.lock_key, by default the table's name",
    },
    "dynamodb": {
        "table": "the writers' hoodie.write.lock.dynamodb.table, such as hudi_locks",
        "partitionKey": "the writers' hoodie.write.lock.dynamodb.partition_key",
    },
}
#: fields that an implicit lock derives
_DERIVED: Final = ("basePath", "key", "partitionKey")


@dataclass(frozen=True, slots=True, kw_only=True)
class Metastore:
    """What a Hive catalog and an environment say of a table; None is nothing.

    ``environment_uri`` counts more than the URI of a spec, as it does for catalogs.
    """

    table: str | None = None
    uri: str | None = None
    environment_uri: str | None = None


def check_lock(spec: Block, path: str, metastore: Metastore) -> None:
    """Check the lock of a table's spec; ``path``: the table's location, empty if unknown.

    ``metastore``: as for ``complete_lock``.
    """
    concurrency = spec.find_block("concurrency")
    block = concurrency.find_block("lock") if concurrency else None
    provider = block.data.get("provider") if block else None
    if block is None or provider not in _FIELDS:
        return
    for field in _ALL_FIELDS:
        is_used = field in _FIELDS[provider]
        if not is_used and field in block.data and field in block.node.entries:
            block.warn(field, f"has no effect with provider: {provider}", "remove it")
    if block.data.get("validity", _MIN_VALIDITY_S) < _MIN_VALIDITY_S:
        block.error("validity", "Hudi takes no lock for less than 10 seconds", "write 10s or more")
    _check_needed_fields(block, provider)
    if provider == "dynamodb" and "region" not in block.node.entries:
        message = "has no region: Hudi's writers take AWS_REGION or us-east-1, not AWS's settings"
        block.warn("provider", message, "add region, the one of the table of locks")
    _check_ports(block)
    lock = Lock(
        provider=provider,
        path=block.data.get("path", ""),
        single_writer=block.data.get("singleWriter", False),
        table=block.data.get("table"),
        uri=block.data.get("uri"),
    )
    is_valid = not any(name in block.node.entries and name not in block.data for name in _NAMES)
    if is_valid and (gap := _find_gap(complete_lock(lock, metastore))):
        block.error("provider", *gap)
    if problem := path and find_lock_problem(lock, path):
        message, hint = problem
        block.error("provider", message, hint)


def _check_needed_fields(block: Block, provider: str) -> None:
    is_implicit = block.data.get("implicit", False)
    for field, hint in _NEEDED.get(provider, {}).items():
        if is_implicit and field in _DERIVED:
            if field in block.node.entries:
                message = "is given beside implicit: true, which derives it from the location"
                block.error(field, message, "remove one of them")
        elif field not in block.node.entries:
            block.error("provider", f"{provider} needs {field}", f"add {hint}")
    table = block.data.get("table", "a.b")
    if provider == "hivemetastore" and [part != "" for part in table.split(".")] != [True, True]:
        block.error("table", f"{table} is no database and table", "write them as sales.orders")
    if block.data.get("sessionTimeout", 1) < 1:
        block.error(
            "sessionTimeout", "a session of no time cannot hold a lock", "write 10s or more"
        )


def _check_ports(block: Block) -> None:
    """Report addresses of servers whose port is none, which clients take badly."""
    for field in ("servers", "uri"):
        ports = re.findall(r":([0-9]+)", block.data.get(field, ""))
        if wrong := [port for port in ports if not 0 < int(port) <= _LAST_PORT]:
            block.error(field, f"{wrong[0]} is no port", f"write one from 1 to {_LAST_PORT}")


def complete_lock(lock: Lock, metastore: Metastore) -> Lock:
    """Return a lock in a Hive Metastore with the table and the URI that it does not declare.

    >>> metastore = Metastore(table="sales.orders", uri="thrift://host:9083")
    >>> complete_lock(Lock(provider="hivemetastore", table="sales.lock"), metastore).table
    'sales.lock'
    """
    if lock.provider != "hivemetastore":
        return lock
    uri = metastore.environment_uri or lock.uri or metastore.uri
    return replace(lock, table=lock.table or metastore.table, uri=uri)


def derive_lock_place(lock: Lock, location: str) -> Lock:
    """Return a lock whose place is known: an implicit one has its own from the table's location.

    >>> derive_lock_place(Lock(provider="zookeeper", implicit=True), "s3a://lake/t").key
    'lock_key'
    """
    if not lock.implicit:
        return lock
    if lock.provider == "zookeeper":
        return replace(lock, base_path=derive_base_path(location), key=IMPLICIT_KEY)
    return replace(lock, partition_key=derive_partition_key(location))


def _find_gap(lock: Lock) -> tuple[str, str] | None:
    """Return what a complete lock in a Hive Metastore lacks, and what to do."""
    if lock.provider != "hivemetastore":
        return None
    if not lock.table:
        hint = "add table: sales.orders, the name that the writers lock"
        return "hivemetastore needs a table, and no Hive catalog names one", hint
    if not lock.uri:
        hint = "add uri: thrift://host:9083 here, or catalogs.hive.uri to an environment"
        return "hivemetastore needs the URI of a metastore", hint
    return None


def find_lock_problem(lock: Lock, path: str) -> tuple[str, str] | None:
    """Return why writers cannot take a lock of the table at ``path``, and what to do; else None.

    >>> find_lock_problem(Lock(provider="storage"), "s3://lake/t")
    >>> find_lock_problem(Lock(provider="filesystem"), "/lake/t")
    >>> find_lock_problem(Lock(provider="filesystem"), "s3://lake/t")[0]
    "Hudi's writers cannot take a filesystem lock on s3://"
    >>> find_lock_problem(Lock(provider="filesystem", single_writer=True), "s3://lake/t")
    """
    is_absolute = lock.path.startswith("/") or "://" in lock.path
    store = _get_scheme(path)
    if lock.provider == "storage" and store not in _LOCKING_PLACES:
        hint = "write filesystem, or none if nothing else ever writes the table"
        if store in _OBJECT_STORES:
            hint = "write {provider: filesystem, singleWriter: true} if only reconciler writes"
        return f"there is no storage lock on {store}://, only on s3:// and s3a://", hint
    store = _get_scheme(lock.path) if is_absolute else store
    if lock.provider == "filesystem" and store in _OBJECT_STORES and not lock.single_writer:
        remedy = "write provider: storage, or " if store in _LOCKING_STORES else ""
        hint = f"{remedy}add singleWriter: true if only reconciler writes"
        return f"Hudi's writers cannot take a filesystem lock on {store}://", hint
    return None


def propose_provider(path: str) -> str:
    """Return the provider of a lock that most writers of the table at ``path`` can take.

    >>> propose_provider("s3://lake/t"), propose_provider("/lake/t")
    ('storage', 'filesystem')
    """
    return "storage" if _get_scheme(path) in _LOCKING_STORES else "filesystem"


def _get_scheme(location: str) -> str:
    return location.partition("://")[0].lower() if "://" in location else ""
