"""Options under which Hudi executes a plan of reconciler and does nothing else.

Hudi's plans name the groups to rewrite and the columns to order by. Curve, file size, indexes,
locks and services are options of whoever executes them. Source: HoodieWriteConfig,
HoodieClusteringConfig, HoodieMetadataConfig, HoodieLayoutConfig, HoodieLockConfig; 0.15 to 1.2.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Final

from reconciler.errors import UnsupportedError
from reconciler.hudi.metadata.sync_decisions import (
    BLOOM_FILTERS,
    COLUMN_STATS,
    PARTITION_STATS,
    RECORD_INDEX,
)
from reconciler.hudi.metadata.table import FILES
from reconciler.hudi.table.properties import TableProperties
from reconciler.hudi.timeline.storage_lock import DEFAULT_VALIDITY_S, get_renewal_s
from reconciler.hudi.timeline.zookeeper_lock import DEFAULT_SESSION_S
from reconciler.hudi_engine.bundles import NO_UPGRADE_FROM, parse_release
from reconciler.hudi_engine.layouts import find_strategy
from reconciler.hudi_engine.option_names import (
    DYNAMODB_ENDPOINT,
    DYNAMODB_KEY,
    DYNAMODB_REGION,
    DYNAMODB_TABLE,
    METASTORE_LOCK_DATABASE,
    METASTORE_LOCK_TABLE,
    METASTORE_LOCK_URI,
    STORAGE_LOCK_RENEWAL,
    STORAGE_LOCK_VALIDITY,
    ZOOKEEPER_BASE_PATH,
    ZOOKEEPER_KEY,
    ZOOKEEPER_SERVERS,
    ZOOKEEPER_SESSION,
)
from reconciler.spec.model import Lock
from reconciler.state.clustering_layout import ClusteringLayout

#: Hudi's classes of locks
LOCK_PROVIDERS: Final = {
    "filesystem": "org.apache.hudi.client.transaction.lock.FileSystemBasedLockProvider",
    "storage": "org.apache.hudi.client.transaction.lock.StorageBasedLockProvider",
    "zookeeper": "org.apache.hudi.client.transaction.lock.ZookeeperBasedLockProvider",
    "dynamodb": "org.apache.hudi.aws.transaction.lock.DynamoDBBasedLockProvider",
    "hivemetastore": "org.apache.hudi.hive.transaction.lock.HiveMetastoreBasedLockProvider",
}
#: those of them that derive their place from the table's, from Hudi 1.1 on
IMPLICIT_LOCK_PROVIDERS: Final = {
    "zookeeper": (
        "org.apache.hudi.client.transaction.lock.ZookeeperBasedImplicitBasePathLockProvider"
    ),
    "dynamodb": (
        "org.apache.hudi.aws.transaction.lock.DynamoDBBasedImplicitPartitionKeyLockProvider"
    ),
}
#: Hudi ends a file when its rows in memory reach its size limit, before compression. At the target
#: itself files would be a third of it, so the limit is this multiple; the plan sets the number of
#: files. The limit only matters for a file whose rows all have one key.
_SIZE_FACTOR: Final = 8
_SERVICES_OFF: Final = {
    "hoodie.table.services.enabled": "true",  # false would also turn off the requested service
    "hoodie.clean.automatic": "false",
    "hoodie.archive.automatic": "false",
    "hoodie.compact.inline": "false",
    "hoodie.clustering.inline": "false",
    "hoodie.clustering.async.enabled": "false",
    "hoodie.embed.timeline.server": "false",
    "hoodie.write.markers.type": "direct",
    # never roll back other writers' unfinished writes
    "hoodie.clean.failed.writes.policy": "NEVER",
    "hoodie.cleaner.policy.failed.writes": "NEVER",
}
_INDEXES: Final = {
    COLUMN_STATS: "hoodie.metadata.index.column.stats.enable",
    PARTITION_STATS: "hoodie.metadata.index.partition.stats.enable",
    BLOOM_FILTERS: "hoodie.metadata.index.bloom.filter.enable",
    RECORD_INDEX: "hoodie.metadata.record.index.enable",
}
#: Hudi indexes its own columns without being asked
_META_PREFIX: Final = "_hoodie_"
_WRITER_OPTIONS: Final = {
    "hoodie.table.recordkey.fields": "hoodie.datasource.write.recordkey.field",
    "hoodie.table.partition.fields": "hoodie.datasource.write.partitionpath.field",
    "hoodie.table.precombine.field": "hoodie.datasource.write.precombine.field",
    "hoodie.table.ordering.fields": "hoodie.datasource.write.precombine.field",
    "hoodie.table.keygenerator.class": "hoodie.datasource.write.keygenerator.class",
    "hoodie.table.keygenerator.type": "hoodie.datasource.write.keygenerator.type",
    "hoodie.compaction.payload.class": "hoodie.datasource.write.payload.class",
}


def make_table_options(
    properties: TableProperties,
    *,
    location: str,
    lock: Lock | None,
    bundle: str,
    schema: str | None = None,
    indexes: Mapping[str, str],
) -> dict[str, str]:
    """Return the options with which Hudi executes any plan on a table.

    ``schema``: the table's Avro schema, if rows are read. ``indexes``: from
    ``make_index_options``.
    """
    options = {key: value for key, value in properties.raw.items() if value}
    options |= {
        writer_key: options[table_key]
        for table_key, writer_key in _WRITER_OPTIONS.items()
        if table_key in options
    }
    options |= _SERVICES_OFF | dict(indexes)
    options["hoodie.datasource.write.table.type"] = properties.table_type
    if schema is not None:
        options |= {"hoodie.avro.schema": schema, "hoodie.write.schema": schema}
    if parse_release(bundle) >= NO_UPGRADE_FROM:
        options["hoodie.write.auto.upgrade"] = "false"
        options["hoodie.write.table.version"] = str(properties.table_version)
    return options | _make_lock_options(lock, location)


def make_index_options(
    live: Collection[str], indexed: Sequence[str] = (), *, by_partition: bool = False
) -> dict[str, str]:
    """Return options with which Hudi keeps the live metadata partitions and creates none.

    A writer removes an index that is off for it, so every index must be set. ``indexed``: the
    columns of the column statistics index, empty if no file names them. ``by_partition``: True if
    the record index holds keys per partition. Raises UnsupportedError for indexes that Hudi
    may not keep.

    >>> make_index_options(["files"])["hoodie.metadata.index.column.stats.enable"]
    'false'
    """
    if unknown := sorted(set(live) - {FILES, *_INDEXES}):
        raise UnsupportedError(
            f"the table has the index {', '.join(unknown)}, which Hudi may not keep when it "
            "executes a plan; apply with --executor native"
        )
    options = {"hoodie.metadata.enable": format_boolean(bool(live))}
    options |= {key: format_boolean(partition in live) for partition, key in _INDEXES.items()}
    if by_partition and RECORD_INDEX in live:
        del options[_INDEXES[RECORD_INDEX]]
        options["hoodie.metadata.record.level.index.enable"] = "true"
    if indexed and COLUMN_STATS in live:
        columns = (name for name in indexed if not name.startswith(_META_PREFIX))
        options["hoodie.metadata.index.column.stats.column.list"] = ",".join(columns)
    return options


def make_clustering_options(
    layout: ClusteringLayout, *, target: int, outputs: int, codec: str
) -> dict[str, str]:
    """Return the layout, the file size and the largest number of files per group for a clustering.

    ``codec``: Parquet's. Raises UnsupportedError for a layout that Hudi lacks.
    """
    options = {
        "hoodie.layout.optimize.strategy": find_strategy(layout),
        "hoodie.layout.optimize.curve.build.method": "direct",
        "hoodie.clustering.plan.strategy.target.file.max.bytes": str(target * _SIZE_FACTOR),
        "hoodie.bulkinsert.shuffle.parallelism": str(outputs),
        "hoodie.parquet.compression.codec": "uncompressed" if codec == "none" else codec,
    }
    if layout.columns:  # Hudi's curves do not read the plan's columns
        options["hoodie.clustering.plan.strategy.sort.columns"] = ",".join(layout.columns)
    return options


def add_conflict_check(options: Mapping[str, str], lock: Lock | None) -> dict[str, str]:
    """Return the options with Hudi's own conflict check at the end of a rewrite.

    The check needs another policy for failed writes; a clustering ignores that policy.
    """
    if lock is None or lock.provider == "none":
        return dict(options)
    lazy = dict.fromkeys(
        ("hoodie.clean.failed.writes.policy", "hoodie.cleaner.policy.failed.writes"), "LAZY"
    )
    return {**options, "hoodie.write.concurrency.mode": "optimistic_concurrency_control", **lazy}


def _make_lock_options(lock: Lock | None, location: str) -> dict[str, str]:
    options = {"hoodie.write.concurrency.mode": "single_writer"}
    if lock is None or lock.provider == "none":
        return options
    options["hoodie.write.lock.provider"] = LOCK_PROVIDERS[lock.provider]
    if lock.provider == "storage":
        validity_s = lock.validity or DEFAULT_VALIDITY_S
        return options | {
            STORAGE_LOCK_VALIDITY: str(validity_s),
            STORAGE_LOCK_RENEWAL: str(get_renewal_s(validity_s)),
        }
    if lock.provider == "hivemetastore":
        return options | make_metastore_options(lock)
    if lock.provider == "zookeeper":
        return options | make_zookeeper_options(lock)
    if lock.provider == "dynamodb":
        return options | make_dynamodb_options(lock)
    return options | {
        "hoodie.write.lock.filesystem.path": make_lock_path(lock, location),
        "hoodie.write.lock.filesystem.expire": str(lock.expire),
    }


def make_zookeeper_options(lock: Lock) -> dict[str, str]:
    """Return the options of a lock in ZooKeeper, as a checked spec has it.

    >>> lock = Lock(provider="zookeeper", servers="zk:2181", base_path="/locks", key="orders")
    >>> make_zookeeper_options(lock)[ZOOKEEPER_SESSION]
    '60000'
    """
    return {
        ZOOKEEPER_SERVERS: lock.servers or "",
        ZOOKEEPER_BASE_PATH: lock.base_path or "",
        ZOOKEEPER_KEY: lock.key or "",
        ZOOKEEPER_SESSION: str((lock.session_timeout or DEFAULT_SESSION_S) * 1000),
    }


def make_dynamodb_options(lock: Lock) -> dict[str, str]:
    """Return the options of a lock in DynamoDB, as a checked spec has it.

    >>> lock = Lock(provider="dynamodb", table="locks", partition_key="orders")
    >>> sorted(make_dynamodb_options(lock).values())
    ['locks', 'orders']
    """
    options = {
        DYNAMODB_TABLE: lock.table,
        DYNAMODB_KEY: lock.partition_key,
        DYNAMODB_REGION: lock.region,
        DYNAMODB_ENDPOINT: lock.endpoint,
    }
    return {key: value for key, value in options.items() if value}


def make_metastore_options(lock: Lock) -> dict[str, str]:
    """Return the options of a lock in a Hive Metastore, as an effective spec has it.

    >>> lock = Lock(provider="hivemetastore", table="sales.orders", uri="thrift://host:9083")
    >>> make_metastore_options(lock)[METASTORE_LOCK_TABLE]
    'orders'
    """
    database, _, table = (lock.table or "").partition(".")
    return {
        METASTORE_LOCK_DATABASE: database,
        METASTORE_LOCK_TABLE: table,
        METASTORE_LOCK_URI: lock.uri or "",
    }


def make_lock_path(lock: Lock, location: str) -> str:
    """Return the folder of the lock as Hudi takes it; a relative one is below the table.

    >>> make_lock_path(Lock(provider="filesystem", path=".hoodie"), "/lake/t")
    'file:/lake/t/.hoodie'
    """
    is_absolute = lock.path.startswith("/") or "://" in lock.path
    return to_hadoop_path(lock.path if is_absolute else f"{location}/{lock.path}")


def to_hadoop_path(location: str) -> str:
    """Return a location as Hadoop writes it: a local path gets the scheme ``file``.

    >>> to_hadoop_path("/lake/t"), to_hadoop_path("s3://lake/t")
    ('file:/lake/t', 's3://lake/t')
    """
    return f"file:{location}" if location.startswith("/") else location


def format_boolean(value: bool) -> str:  # noqa: FBT001
    """Return ``true`` or ``false``, as Hudi writes booleans."""
    return str(value).lower()
