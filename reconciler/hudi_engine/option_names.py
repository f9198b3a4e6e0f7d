"""Hudi's names of the options that a spec sets, by engine and release.

The releases themselves declare every name. Source: ConfigProperty constants of the Spark bundles
0.15.0, 1.0.2, 1.1.1 and 1.2.0 (HoodieCleanConfig, HoodieClusteringConfig, HoodieArchivalConfig,
HoodieLockConfig, HoodieMetadataConfig, HoodieStorageConfig, HoodieTableConfig,
DataSourceWriteOptions); FlinkOptions; HoodieOptionConfig; HoodieStreamer.Config.
"""

from __future__ import annotations

from collections.abc import Collection
from enum import Enum
from typing import Final

from reconciler.hudi_engine.model import HudiRelease, WriterEngine
from reconciler.lazy_dataclass import dataclass

STORAGE_LOCK_VALIDITY: Final = "hoodie.write.lock.storage.validity.timeout.secs"
STORAGE_LOCK_RENEWAL: Final = "hoodie.write.lock.storage.renew.interval.secs"
ZOOKEEPER_SERVERS: Final = "hoodie.write.lock.zookeeper.url"
ZOOKEEPER_BASE_PATH: Final = "hoodie.write.lock.zookeeper.base_path"
ZOOKEEPER_KEY: Final = "hoodie.write.lock.zookeeper.lock_key"
ZOOKEEPER_SESSION: Final = "hoodie.write.lock.zookeeper.session_timeout_ms"
DYNAMODB_TABLE: Final = "hoodie.write.lock.dynamodb.table"
DYNAMODB_KEY: Final = "hoodie.write.lock.dynamodb.partition_key"
DYNAMODB_REGION: Final = "hoodie.write.lock.dynamodb.region"
DYNAMODB_ENDPOINT: Final = "hoodie.write.lock.dynamodb.endpoint_url"
METASTORE_LOCK_DATABASE: Final = "hoodie.write.lock.hivemetastore.database"
METASTORE_LOCK_TABLE: Final = "hoodie.write.lock.hivemetastore.table"
METASTORE_LOCK_URI: Final = "hoodie.write.lock.hivemetastore.uris"


@dataclass(frozen=True, slots=True)
class OptionName:
    """A name, and the releases that use it as their first name for an option."""

    text: str
    since: HudiRelease = HudiRelease.R0_15
    until: HudiRelease = HudiRelease.R1_2

    def is_used_by(self, releases: Collection[HudiRelease]) -> bool:
        """Return True if one of the releases uses the name."""
        return any(self.since <= release <= self.until for release in releases)


#: the names of one option, oldest first
Names = tuple[OptionName, ...]


def _renamed(old: str, new: str, since: HudiRelease = HudiRelease.R1_0) -> Names:
    order = tuple(HudiRelease)
    return OptionName(old, until=order[order.index(since) - 1]), OptionName(new, since=since)


def _name(text: str, since: HudiRelease = HudiRelease.R0_15) -> Names:
    return (OptionName(text, since=since),)


def _until_0_15(text: str) -> Names:
    return (OptionName(text, until=HudiRelease.R0_15),)


class Setting(Enum):
    """A setting of writers; the values are Hudi's own names of its option."""

    TARGET = _name("hoodie.parquet.max.file.size")
    TARGET_BYTES = ()
    SMALL = _name("hoodie.parquet.small.file.limit")
    RECORD_SIZE = _name("hoodie.copyonwrite.record.size.estimate")
    CLEAN = _name("hoodie.clean.automatic")
    CLEAN_ASYNC = _renamed("hoodie.clean.async", "hoodie.clean.async.enabled")
    CLEAN_POLICY = _renamed("hoodie.cleaner.policy", "hoodie.clean.policy")
    CLEAN_COMMITS = _renamed("hoodie.cleaner.commits.retained", "hoodie.clean.commits.retained")
    CLEAN_HOURS = _renamed("hoodie.cleaner.hours.retained", "hoodie.clean.hours.retained")
    CLEAN_VERSIONS = _renamed(
        "hoodie.cleaner.fileversions.retained", "hoodie.clean.fileversions.retained"
    )
    FAILED_WRITES = _renamed(
        "hoodie.cleaner.policy.failed.writes", "hoodie.clean.failed.writes.policy"
    )
    BEFORE_WRITES = _name("hoodie.prewrite.cleaner.policy", HudiRelease.R1_2)
    ARCHIVE_MIN = _name("hoodie.keep.min.commits")
    ARCHIVE_MAX = _name("hoodie.keep.max.commits")
    CLUSTER = _name("hoodie.clustering.inline")
    CLUSTER_ASYNC = _name("hoodie.clustering.async.enabled")
    CLUSTER_SCHEDULE = _name("hoodie.clustering.schedule.inline")
    COMPACT = _name("hoodie.compact.inline")
    COMPACT_ASYNC = _name("hoodie.datasource.compaction.async.enable")
    COMPACT_SCHEDULE = _name("hoodie.compact.schedule.inline")
    CONCURRENCY = _name("hoodie.write.concurrency.mode")
    LOCK = _name("hoodie.write.lock.provider")
    LOCK_PATH = _name("hoodie.write.lock.filesystem.path")
    LOCK_VALIDITY = _name(STORAGE_LOCK_VALIDITY, HudiRelease.R1_1)
    LOCK_RENEWAL = _name(STORAGE_LOCK_RENEWAL, HudiRelease.R1_1)
    LOCK_DATABASE = _name(METASTORE_LOCK_DATABASE)
    LOCK_TABLE = _name(METASTORE_LOCK_TABLE)
    LOCK_URI = _name(METASTORE_LOCK_URI)
    LOCK_SERVERS = _name(ZOOKEEPER_SERVERS)
    LOCK_BASE_PATH = _name(ZOOKEEPER_BASE_PATH)
    LOCK_KEY = _name(ZOOKEEPER_KEY)
    LOCK_SESSION = _name(ZOOKEEPER_SESSION)
    LOCK_DYNAMODB_TABLE = _name(DYNAMODB_TABLE)
    LOCK_PARTITION_KEY = _name(DYNAMODB_KEY)
    LOCK_REGION = _name(DYNAMODB_REGION)
    LOCK_ENDPOINT = _name(DYNAMODB_ENDPOINT)
    LOCK_EXPIRE = _name("hoodie.write.lock.filesystem.expire")
    METADATA = _name("hoodie.metadata.enable")
    STATISTICS = _name("hoodie.metadata.index.column.stats.enable")
    STATISTICS_COLUMNS = _name("hoodie.metadata.index.column.stats.column.list")
    NAME = _name("hoodie.table.name")
    TYPE = _name("hoodie.datasource.write.table.type")
    RECORD_KEY = _name("hoodie.datasource.write.recordkey.field")
    PARTITION_BY = _name("hoodie.datasource.write.partitionpath.field")
    ORDERING = _renamed(
        "hoodie.datasource.write.precombine.field", "hoodie.table.ordering.fields", HudiRelease.R1_1
    )
    PAYLOAD = _until_0_15("hoodie.datasource.write.payload.class")
    HIVE_STYLE = _name("hoodie.datasource.write.hive_style_partitioning")
    INDEX_TYPE = _name("hoodie.index.type")
    INDEX_BUCKETS = _name("hoodie.bucket.index.num.buckets")
    INDEX_KEYS = _name("hoodie.bucket.index.hash.field")
    VERSION = _name("hoodie.write.table.version", HudiRelease.R1_0)
    UPGRADE = _name("hoodie.write.auto.upgrade", HudiRelease.R1_0)


#: Flink's own names; Flink passes every other ``hoodie.`` option to the writer unchanged
_FLINK: Final[dict[Setting, Names]] = {
    Setting.TARGET: _name("write.parquet.max.file.size"),
    Setting.TARGET_BYTES: _name("hoodie.parquet.max.file.size"),
    Setting.CLEAN_ASYNC: _name("clean.async.enabled"),
    Setting.CLEAN_POLICY: _name("clean.policy"),
    Setting.CLEAN_COMMITS: _name("clean.retain_commits"),
    Setting.CLEAN_HOURS: _name("clean.retain_hours"),
    Setting.CLEAN_VERSIONS: _name("clean.retain_file_versions"),
    Setting.ARCHIVE_MIN: _name("archive.min_commits"),
    Setting.ARCHIVE_MAX: _name("archive.max_commits"),
    Setting.CLUSTER: (),
    Setting.CLUSTER_ASYNC: _name("clustering.async.enabled"),
    Setting.CLUSTER_SCHEDULE: _name("clustering.schedule.enabled"),
    Setting.COMPACT: (),
    Setting.COMPACT_ASYNC: _name("compaction.async.enabled"),
    Setting.COMPACT_SCHEDULE: _name("compaction.schedule.enabled"),
    Setting.METADATA: _name("metadata.enabled"),
    Setting.TYPE: _name("table.type"),
    Setting.ORDERING: _renamed("precombine.field", "ordering.fields", HudiRelease.R1_1),
    Setting.PAYLOAD: (),  # the default compares event times
    Setting.INDEX_TYPE: _name("index.type"),
}
#: names in TBLPROPERTIES, when a table is created
_SQL: Final[dict[Setting, Names]] = {
    Setting.NAME: (),
    Setting.TYPE: _name("type"),
    Setting.RECORD_KEY: _name("primaryKey"),
    Setting.PARTITION_BY: (),
    Setting.ORDERING: _renamed("preCombineField", "orderingFields", HudiRelease.R1_1),
    Setting.PAYLOAD: _until_0_15("payloadClass"),
}
#: flags of the command, which override properties
_STREAMER: Final[dict[Setting, Names]] = {
    Setting.NAME: _name("--target-table"),
    Setting.TYPE: _name("--table-type"),
    Setting.ORDERING: _name("--source-ordering-field"),
    Setting.PAYLOAD: _until_0_15("--payload-class"),
}
_OWN_NAMES: Final = {
    WriterEngine.SPARK: {},
    WriterEngine.FLINK: _FLINK,
    WriterEngine.STREAMER: _STREAMER,
    WriterEngine.SQL: _SQL,
}


def find_option_names(
    setting: Setting, engine: WriterEngine, releases: Collection[HudiRelease]
) -> tuple[str, ...]:
    """Return the names that an engine uses in one of the releases; empty if it has none.

    >>> find_option_names(Setting.CLEAN_POLICY, WriterEngine.SPARK, tuple(HudiRelease))
    ('hoodie.cleaner.policy', 'hoodie.clean.policy')
    >>> find_option_names(Setting.CLEAN_POLICY, WriterEngine.FLINK, (HudiRelease.R1_2,))
    ('clean.policy',)
    """
    names = _OWN_NAMES[engine].get(setting, setting.value)
    return tuple(name.text for name in names if name.is_used_by(releases))
