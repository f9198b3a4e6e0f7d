"""The options of a table's lock that writers must set; pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import assert_never

from reconciler.hudi.timeline.storage_lock import DEFAULT_VALIDITY_S, get_renewal_s
from reconciler.hudi.timeline.zookeeper_lock import DEFAULT_SESSION_S
from reconciler.hudi_engine.option_names import Setting
from reconciler.hudi_engine.table_options import (
    IMPLICIT_LOCK_PROVIDERS,
    LOCK_PROVIDERS,
    make_lock_path,
)
from reconciler.spec.lock_rules import derive_lock_place
from reconciler.spec.model import Lock

#: an option before its name for an engine is known: its value, the spec's field, and a reason
Request = tuple[Setting, str, str, str]


def list_lock_requests(lock: Lock, path: str, *, by_implicit: bool) -> Iterator[Request]:
    """Yield a lock's provider and its options; ``path``: the table's location.

    ``by_implicit``: all writers have Hudi's implicit providers. Others can take the same lock at
    the place that is derived here.
    """
    because = "writers and apply take the same lock; a single_writer takes none"
    if lock.implicit and by_implicit:
        provider = IMPLICIT_LOCK_PROVIDERS[lock.provider]
        because = f"{because}; its place is derived from the path, which all must spell alike"
        yield Setting.LOCK, provider, "concurrency.lock", because
    else:
        yield Setting.LOCK, LOCK_PROVIDERS[lock.provider], "concurrency.lock", because
        lock = replace(derive_lock_place(lock, path), implicit=False)
    yield from _list_provider_requests(lock, path)


def _list_provider_requests(lock: Lock, path: str) -> Iterator[Request]:
    match lock.provider:
        case "filesystem":
            yield from _list_file_lock(lock, path)
        case "storage":
            yield from _list_storage_lock(lock)
        case "hivemetastore":
            yield from _list_metastore_lock(lock)
        case "zookeeper":
            yield from _list_zookeeper_lock(lock)
        case "dynamodb":
            yield from _list_dynamodb_lock(lock)
        case "none":
            return
        case _:
            assert_never(lock.provider)


def _list_file_lock(lock: Lock, path: str) -> Iterator[Request]:
    because = "writers and apply take the same lock; a single_writer takes none"
    yield Setting.LOCK_PATH, make_lock_path(lock, path), "concurrency.lock.path", because
    because = "minutes until a lock expires, 0 for never; all must use the same"
    yield Setting.LOCK_EXPIRE, str(lock.expire), "concurrency.lock.expire", because


def _list_storage_lock(lock: Lock) -> Iterator[Request]:
    validity_s, field = lock.validity or DEFAULT_VALIDITY_S, "concurrency.lock.validity"
    because = "seconds for which the lock is taken and renewed"
    yield Setting.LOCK_VALIDITY, str(validity_s), field, because
    because = "seconds between renewals; Hudi wants ten in the validity"
    yield Setting.LOCK_RENEWAL, str(get_renewal_s(validity_s)), field, because


def _list_metastore_lock(lock: Lock) -> Iterator[Request]:
    database, _, table = (lock.table or "").partition(".")
    because, field = "the name that is locked; all must spell it alike", "concurrency.lock.table"
    yield Setting.LOCK_DATABASE, database, field, because
    yield Setting.LOCK_TABLE, table, field, because
    because = "the metastore that has the locks"
    yield Setting.LOCK_URI, lock.uri or "", "concurrency.lock.uri", because


def _list_zookeeper_lock(lock: Lock) -> Iterator[Request]:
    because = "the servers of ZooKeeper that have the lock"
    yield Setting.LOCK_SERVERS, lock.servers or "", "concurrency.lock.servers", because
    if not lock.implicit:
        because = "base path and key are the lock's path; all must use the same"
        yield Setting.LOCK_BASE_PATH, lock.base_path or "", "concurrency.lock.basePath", because
        yield Setting.LOCK_KEY, lock.key or "", "concurrency.lock.key", because
    session_ms = (lock.session_timeout or DEFAULT_SESSION_S) * 1000
    because = "milliseconds after which ZooKeeper frees the lock of a dead writer"
    yield Setting.LOCK_SESSION, str(session_ms), "concurrency.lock.sessionTimeout", because


def _list_dynamodb_lock(lock: Lock) -> Iterator[Request]:
    because = "table and partition key are the row of the lock; all must use the same"
    yield Setting.LOCK_DYNAMODB_TABLE, lock.table or "", "concurrency.lock.table", because
    field = "concurrency.lock.partitionKey"
    if not lock.implicit:
        yield Setting.LOCK_PARTITION_KEY, lock.partition_key or "", field, because
    if lock.region:
        because = "the region of the table of locks"
        yield Setting.LOCK_REGION, lock.region, "concurrency.lock.region", because
    if lock.endpoint:
        yield Setting.LOCK_ENDPOINT, lock.endpoint, "concurrency.lock.endpoint", "DynamoDB's URL"
