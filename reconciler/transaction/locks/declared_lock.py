"""Find the lock that a spec declares, for its status and to remove it."""

from __future__ import annotations

from collections.abc import Callable

from reconciler.hudi.timeline.storage_lock import DEFAULT_VALIDITY_S
from reconciler.hudi.timeline.zookeeper_lock import DEFAULT_SESSION_S
from reconciler.spec.lock_rules import derive_lock_place
from reconciler.spec.model import Lock, TableSpec
from reconciler.storage.api import Storage
from reconciler.transaction.locks.dynamodb_lock import DynamodbLockPlace
from reconciler.transaction.locks.dynamodb_rows import DynamodbPlace, connect_dynamodb
from reconciler.transaction.locks.file_lock import FileLockPlace, locate_lock
from reconciler.transaction.locks.metastore_lock import MetastoreLockPlace
from reconciler.transaction.locks.metastore_requests import MetastoreLocks
from reconciler.transaction.locks.storage_lock import StorageLockPlace
from reconciler.transaction.locks.table_lock import LockPlace
from reconciler.transaction.locks.zookeeper_lock import ZookeeperLockPlace
from reconciler.transaction.locks.zookeeper_nodes import ZookeeperPlace, connect_zookeeper
from reconciler.transaction.process import Clock


def find_declared_lock(spec: TableSpec) -> Lock | None:
    """Return the lock that a spec declares, with its place.

    None for none, or if it declares a single writer.
    """
    lock = spec.concurrency.lock if spec.concurrency else None
    if lock is None or lock.provider == "none":
        return None
    return derive_lock_place(lock, spec.path)


def get_validity_s(lock: Lock) -> int:
    """Return for how many seconds a storage lock is taken and renewed."""
    return DEFAULT_VALIDITY_S if lock.validity is None else lock.validity


def open_metastore_locks(lock: Lock) -> MetastoreLocks:
    """Return the locks of a table in its Hive Metastore, which is not asked yet."""
    assert lock.table is not None, "an effective spec has the table"
    assert lock.uri is not None, "an effective spec has the URI"
    return MetastoreLocks(lock.uri, lock.table)


def find_zookeeper_place(lock: Lock) -> ZookeeperPlace:
    """Return where a lock in ZooKeeper is."""
    assert lock.servers is not None, "a checked spec has the servers"
    assert lock.base_path is not None, "a checked spec has the base path"
    assert lock.key is not None, "a checked spec has the key"
    session_s = lock.session_timeout or DEFAULT_SESSION_S
    return ZookeeperPlace(lock.servers, lock.base_path, lock.key, session_s)


def find_dynamodb_place(lock: Lock) -> DynamodbPlace:
    """Return where a lock in DynamoDB is."""
    assert lock.table is not None, "a checked spec has the table"
    assert lock.partition_key is not None, "a checked spec has the partition key"
    return DynamodbPlace(lock.table, lock.partition_key, lock.region, lock.endpoint)


def open_lock_place(
    lock: Lock, table: Storage, open_storage: Callable[[str], Storage], clock: Clock
) -> LockPlace:
    """Return a declared lock as others see it; ``open_storage`` opens an absolute folder."""
    if lock.provider == "storage":
        return StorageLockPlace(table, get_validity_s(lock), clock)
    if lock.provider == "hivemetastore":
        return MetastoreLockPlace(open_metastore_locks(lock))
    if lock.provider == "zookeeper":
        place = find_zookeeper_place(lock)
        return ZookeeperLockPlace(place.location, lambda: connect_zookeeper(place))
    if lock.provider == "dynamodb":
        return DynamodbLockPlace(connect_dynamodb(find_dynamodb_place(lock)))
    storage, path = locate_lock(lock.path, table, open_storage)
    return FileLockPlace(storage, path, lock.expire)
