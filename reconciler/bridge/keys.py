"""What Hudi calls what a spec can ask of a writer, by engine and release.

Every name is one that the release itself declares. Source: ConfigProperty constants of the Spark
bundles 0.15.0, 1.0.2, 1.1.1 and 1.2.0 (HoodieCleanConfig, HoodieClusteringConfig,
HoodieArchivalConfig, HoodieLockConfig, HoodieMetadataConfig, HoodieStorageConfig,
HoodieTableConfig, DataSourceWriteOptions); FlinkOptions; HoodieOptionConfig; HoodieStreamer.Config.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from enum import StrEnum, auto
from typing import Final

from reconciler.bridge.model import Engine, Release


class Meaning(StrEnum):
    """What an option is about."""

    TARGET = auto()
    TARGET_BYTES = auto()
    SMALL = auto()
    RECORD_SIZE = auto()
    CLEAN = auto()
    CLEAN_ASYNC = auto()
    CLEAN_POLICY = auto()
    CLEAN_COMMITS = auto()
    CLEAN_HOURS = auto()
    CLEAN_VERSIONS = auto()
    FAILED_WRITES = auto()
    BEFORE_WRITES = auto()
    ARCHIVE_LEAST = auto()
    ARCHIVE_MOST = auto()
    CLUSTER = auto()
    CLUSTER_ASYNC = auto()
    CLUSTER_SCHEDULE = auto()
    CONCURRENCY = auto()
    LOCK = auto()
    LOCK_PATH = auto()
    LOCK_EXPIRE = auto()
    METADATA = auto()
    STATISTICS = auto()
    STATISTICS_COLUMNS = auto()
    NAME = auto()
    TYPE = auto()
    RECORD_KEY = auto()
    PARTITION_BY = auto()
    ORDERING = auto()
    PAYLOAD = auto()
    HIVE_STYLE = auto()
    VERSION = auto()
    UPGRADE = auto()


@dataclass(frozen=True, slots=True)
class Name:
    """A name, and the releases that have it as their first name for something."""

    text: str
    since: Release = Release.R0_15
    until: Release = Release.R1_2

    def is_of(self, releases: Collection[Release]) -> bool:
        """Whether one of the releases goes by it."""
        return any(self.since <= release <= self.until for release in releases)


def _renamed(old: str, new: str, since: Release = Release.R1_0) -> tuple[Name, ...]:
    order = tuple(Release)
    return Name(old, until=order[order.index(since) - 1]), Name(new, since=since)


def _one(text: str, since: Release = Release.R0_15) -> tuple[Name, ...]:
    return (Name(text, since=since),)


def _before_1_0(text: str) -> tuple[Name, ...]:
    return (Name(text, until=Release.R0_15),)


_HUDI: Final[dict[Meaning, tuple[Name, ...]]] = {
    Meaning.TARGET: _one("hoodie.parquet.max.file.size"),
    Meaning.TARGET_BYTES: (),
    Meaning.SMALL: _one("hoodie.parquet.small.file.limit"),
    Meaning.RECORD_SIZE: _one("hoodie.copyonwrite.record.size.estimate"),
    Meaning.CLEAN: _one("hoodie.clean.automatic"),
    Meaning.CLEAN_ASYNC: _renamed("hoodie.clean.async", "hoodie.clean.async.enabled"),
    Meaning.CLEAN_POLICY: _renamed("hoodie.cleaner.policy", "hoodie.clean.policy"),
    Meaning.CLEAN_COMMITS: _renamed(
        "hoodie.cleaner.commits.retained", "hoodie.clean.commits.retained"
    ),
    Meaning.CLEAN_HOURS: _renamed("hoodie.cleaner.hours.retained", "hoodie.clean.hours.retained"),
    Meaning.CLEAN_VERSIONS: _renamed(
        "hoodie.cleaner.fileversions.retained", "hoodie.clean.fileversions.retained"
    ),
    Meaning.FAILED_WRITES: _renamed(
        "hoodie.cleaner.policy.failed.writes", "hoodie.clean.failed.writes.policy"
    ),
    Meaning.BEFORE_WRITES: _one("hoodie.prewrite.cleaner.policy", Release.R1_2),
    Meaning.ARCHIVE_LEAST: _one("hoodie.keep.min.commits"),
    Meaning.ARCHIVE_MOST: _one("hoodie.keep.max.commits"),
    Meaning.CLUSTER: _one("hoodie.clustering.inline"),
    Meaning.CLUSTER_ASYNC: _one("hoodie.clustering.async.enabled"),
    Meaning.CLUSTER_SCHEDULE: _one("hoodie.clustering.schedule.inline"),
    Meaning.CONCURRENCY: _one("hoodie.write.concurrency.mode"),
    Meaning.LOCK: _one("hoodie.write.lock.provider"),
    Meaning.LOCK_PATH: _one("hoodie.write.lock.filesystem.path"),
    Meaning.LOCK_EXPIRE: _one("hoodie.write.lock.filesystem.expire"),
    Meaning.METADATA: _one("hoodie.metadata.enable"),
    Meaning.STATISTICS: _one("hoodie.metadata.index.column.stats.enable"),
    Meaning.STATISTICS_COLUMNS: _one("hoodie.metadata.index.column.stats.column.list"),
    Meaning.NAME: _one("hoodie.table.name"),
    Meaning.TYPE: _one("hoodie.datasource.write.table.type"),
    Meaning.RECORD_KEY: _one("hoodie.datasource.write.recordkey.field"),
    Meaning.PARTITION_BY: _one("hoodie.datasource.write.partitionpath.field"),
    Meaning.ORDERING: _renamed(
        "hoodie.datasource.write.precombine.field", "hoodie.table.ordering.fields", Release.R1_1
    ),
    Meaning.PAYLOAD: _before_1_0("hoodie.datasource.write.payload.class"),
    Meaning.HIVE_STYLE: _one("hoodie.datasource.write.hive_style_partitioning"),
    Meaning.VERSION: _one("hoodie.write.table.version", Release.R1_0),
    Meaning.UPGRADE: _one("hoodie.write.auto.upgrade", Release.R1_0),
}
#: Flink's own; it hands on every other ``hoodie.`` option to the writer as it is
_FLINK: Final[dict[Meaning, tuple[Name, ...]]] = {
    Meaning.TARGET: _one("write.parquet.max.file.size"),
    Meaning.TARGET_BYTES: _one("hoodie.parquet.max.file.size"),
    Meaning.CLEAN_ASYNC: _one("clean.async.enabled"),
    Meaning.CLEAN_POLICY: _one("clean.policy"),
    Meaning.CLEAN_COMMITS: _one("clean.retain_commits"),
    Meaning.CLEAN_HOURS: _one("clean.retain_hours"),
    Meaning.CLEAN_VERSIONS: _one("clean.retain_file_versions"),
    Meaning.ARCHIVE_LEAST: _one("archive.min_commits"),
    Meaning.ARCHIVE_MOST: _one("archive.max_commits"),
    Meaning.CLUSTER: (),
    Meaning.CLUSTER_ASYNC: _one("clustering.async.enabled"),
    Meaning.CLUSTER_SCHEDULE: _one("clustering.schedule.enabled"),
    Meaning.METADATA: _one("metadata.enabled"),
    Meaning.TYPE: _one("table.type"),
    Meaning.ORDERING: _renamed("precombine.field", "ordering.fields", Release.R1_1),
    Meaning.PAYLOAD: (),  # its default goes by event time
}
#: of TBLPROPERTIES, where a table is made
_SQL: Final[dict[Meaning, tuple[Name, ...]]] = {
    Meaning.NAME: (),
    Meaning.TYPE: _one("type"),
    Meaning.RECORD_KEY: _one("primaryKey"),
    Meaning.PARTITION_BY: (),
    Meaning.ORDERING: _renamed("preCombineField", "orderingFields", Release.R1_1),
    Meaning.PAYLOAD: _before_1_0("payloadClass"),
}
#: these are flags of the command, which win over properties
_STREAMER: Final[dict[Meaning, tuple[Name, ...]]] = {
    Meaning.NAME: _one("--target-table"),
    Meaning.TYPE: _one("--table-type"),
    Meaning.ORDERING: _one("--source-ordering-field"),
    Meaning.PAYLOAD: _before_1_0("--payload-class"),
}
_OWN: Final[dict[Engine, dict[Meaning, tuple[Name, ...]]]] = {
    Engine.SPARK: {},
    Engine.FLINK: _FLINK,
    Engine.STREAMER: _STREAMER,
    Engine.SQL: _SQL,
}


def names_of(meaning: Meaning, engine: Engine, releases: Collection[Release]) -> tuple[str, ...]:
    """What an engine calls it, every name that one of the releases goes by; empty: it has none.

    >>> names_of(Meaning.CLEAN_POLICY, Engine.SPARK, tuple(Release))
    ('hoodie.cleaner.policy', 'hoodie.clean.policy')
    >>> names_of(Meaning.CLEAN_POLICY, Engine.FLINK, (Release.R1_2,))
    ('clean.policy',)
    """
    names = _OWN[engine].get(meaning, _HUDI[meaning])
    return tuple(name.text for name in names if name.is_of(releases))
