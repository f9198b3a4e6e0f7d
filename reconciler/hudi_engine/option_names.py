"""Hudi's names of the options that a spec sets, by engine and release.

The releases themselves declare every name. Source: ConfigProperty constants of the Spark bundles
0.15.0, 1.0.2, 1.1.1 and 1.2.0 (HoodieCleanConfig, HoodieClusteringConfig, HoodieArchivalConfig,
HoodieLockConfig, HoodieMetadataConfig, HoodieStorageConfig, HoodieTableConfig,
DataSourceWriteOptions); FlinkOptions; HoodieOptionConfig; HoodieStreamer.Config.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from enum import StrEnum, auto
from typing import Final

from reconciler.hudi_engine.model import HudiRelease, WriterEngine


class OptionMeaning(StrEnum):
    """What an option controls."""

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
class OptionName:
    """A name, and the releases that use it as their first name for an option."""

    text: str
    since: HudiRelease = HudiRelease.R0_15
    until: HudiRelease = HudiRelease.R1_2

    def is_used_by(self, releases: Collection[HudiRelease]) -> bool:
        """Whether one of the releases uses the name."""
        return any(self.since <= release <= self.until for release in releases)


def _renamed_option(
    old: str, new: str, since: HudiRelease = HudiRelease.R1_0
) -> tuple[OptionName, ...]:
    order = tuple(HudiRelease)
    return OptionName(old, until=order[order.index(since) - 1]), OptionName(new, since=since)


def _single_name(text: str, since: HudiRelease = HudiRelease.R0_15) -> tuple[OptionName, ...]:
    return (OptionName(text, since=since),)


def _name_before_1_0(text: str) -> tuple[OptionName, ...]:
    return (OptionName(text, until=HudiRelease.R0_15),)


_HUDI: Final[dict[OptionMeaning, tuple[OptionName, ...]]] = {
    OptionMeaning.TARGET: _single_name("hoodie.parquet.max.file.size"),
    OptionMeaning.TARGET_BYTES: (),
    OptionMeaning.SMALL: _single_name("hoodie.parquet.small.file.limit"),
    OptionMeaning.RECORD_SIZE: _single_name("hoodie.copyonwrite.record.size.estimate"),
    OptionMeaning.CLEAN: _single_name("hoodie.clean.automatic"),
    OptionMeaning.CLEAN_ASYNC: _renamed_option("hoodie.clean.async", "hoodie.clean.async.enabled"),
    OptionMeaning.CLEAN_POLICY: _renamed_option("hoodie.cleaner.policy", "hoodie.clean.policy"),
    OptionMeaning.CLEAN_COMMITS: _renamed_option(
        "hoodie.cleaner.commits.retained", "hoodie.clean.commits.retained"
    ),
    OptionMeaning.CLEAN_HOURS: _renamed_option(
        "hoodie.cleaner.hours.retained", "hoodie.clean.hours.retained"
    ),
    OptionMeaning.CLEAN_VERSIONS: _renamed_option(
        "hoodie.cleaner.fileversions.retained", "hoodie.clean.fileversions.retained"
    ),
    OptionMeaning.FAILED_WRITES: _renamed_option(
        "hoodie.cleaner.policy.failed.writes", "hoodie.clean.failed.writes.policy"
    ),
    OptionMeaning.BEFORE_WRITES: _single_name("hoodie.prewrite.cleaner.policy", HudiRelease.R1_2),
    OptionMeaning.ARCHIVE_LEAST: _single_name("hoodie.keep.min.commits"),
    OptionMeaning.ARCHIVE_MOST: _single_name("hoodie.keep.max.commits"),
    OptionMeaning.CLUSTER: _single_name("hoodie.clustering.inline"),
    OptionMeaning.CLUSTER_ASYNC: _single_name("hoodie.clustering.async.enabled"),
    OptionMeaning.CLUSTER_SCHEDULE: _single_name("hoodie.clustering.schedule.inline"),
    OptionMeaning.CONCURRENCY: _single_name("hoodie.write.concurrency.mode"),
    OptionMeaning.LOCK: _single_name("hoodie.write.lock.provider"),
    OptionMeaning.LOCK_PATH: _single_name("hoodie.write.lock.filesystem.path"),
    OptionMeaning.LOCK_EXPIRE: _single_name("hoodie.write.lock.filesystem.expire"),
    OptionMeaning.METADATA: _single_name("hoodie.metadata.enable"),
    OptionMeaning.STATISTICS: _single_name("hoodie.metadata.index.column.stats.enable"),
    OptionMeaning.STATISTICS_COLUMNS: _single_name(
        "hoodie.metadata.index.column.stats.column.list"
    ),
    OptionMeaning.NAME: _single_name("hoodie.table.name"),
    OptionMeaning.TYPE: _single_name("hoodie.datasource.write.table.type"),
    OptionMeaning.RECORD_KEY: _single_name("hoodie.datasource.write.recordkey.field"),
    OptionMeaning.PARTITION_BY: _single_name("hoodie.datasource.write.partitionpath.field"),
    OptionMeaning.ORDERING: _renamed_option(
        "hoodie.datasource.write.precombine.field", "hoodie.table.ordering.fields", HudiRelease.R1_1
    ),
    OptionMeaning.PAYLOAD: _name_before_1_0("hoodie.datasource.write.payload.class"),
    OptionMeaning.HIVE_STYLE: _single_name("hoodie.datasource.write.hive_style_partitioning"),
    OptionMeaning.VERSION: _single_name("hoodie.write.table.version", HudiRelease.R1_0),
    OptionMeaning.UPGRADE: _single_name("hoodie.write.auto.upgrade", HudiRelease.R1_0),
}
#: Flink's own names; Flink passes every other ``hoodie.`` option to the writer unchanged
_FLINK: Final[dict[OptionMeaning, tuple[OptionName, ...]]] = {
    OptionMeaning.TARGET: _single_name("write.parquet.max.file.size"),
    OptionMeaning.TARGET_BYTES: _single_name("hoodie.parquet.max.file.size"),
    OptionMeaning.CLEAN_ASYNC: _single_name("clean.async.enabled"),
    OptionMeaning.CLEAN_POLICY: _single_name("clean.policy"),
    OptionMeaning.CLEAN_COMMITS: _single_name("clean.retain_commits"),
    OptionMeaning.CLEAN_HOURS: _single_name("clean.retain_hours"),
    OptionMeaning.CLEAN_VERSIONS: _single_name("clean.retain_file_versions"),
    OptionMeaning.ARCHIVE_LEAST: _single_name("archive.min_commits"),
    OptionMeaning.ARCHIVE_MOST: _single_name("archive.max_commits"),
    OptionMeaning.CLUSTER: (),
    OptionMeaning.CLUSTER_ASYNC: _single_name("clustering.async.enabled"),
    OptionMeaning.CLUSTER_SCHEDULE: _single_name("clustering.schedule.enabled"),
    OptionMeaning.METADATA: _single_name("metadata.enabled"),
    OptionMeaning.TYPE: _single_name("table.type"),
    OptionMeaning.ORDERING: _renamed_option(
        "precombine.field", "ordering.fields", HudiRelease.R1_1
    ),
    OptionMeaning.PAYLOAD: (),  # the default compares event times
}
#: names in TBLPROPERTIES, when a table is created
_SQL: Final[dict[OptionMeaning, tuple[OptionName, ...]]] = {
    OptionMeaning.NAME: (),
    OptionMeaning.TYPE: _single_name("type"),
    OptionMeaning.RECORD_KEY: _single_name("primaryKey"),
    OptionMeaning.PARTITION_BY: (),
    OptionMeaning.ORDERING: _renamed_option("preCombineField", "orderingFields", HudiRelease.R1_1),
    OptionMeaning.PAYLOAD: _name_before_1_0("payloadClass"),
}
#: flags of the command, which override properties
_STREAMER: Final[dict[OptionMeaning, tuple[OptionName, ...]]] = {
    OptionMeaning.NAME: _single_name("--target-table"),
    OptionMeaning.TYPE: _single_name("--table-type"),
    OptionMeaning.ORDERING: _single_name("--source-ordering-field"),
    OptionMeaning.PAYLOAD: _name_before_1_0("--payload-class"),
}
_NAMES_BY_ENGINE: Final[dict[WriterEngine, dict[OptionMeaning, tuple[OptionName, ...]]]] = {
    WriterEngine.SPARK: {},
    WriterEngine.FLINK: _FLINK,
    WriterEngine.STREAMER: _STREAMER,
    WriterEngine.SQL: _SQL,
}


def find_option_names(
    meaning: OptionMeaning, engine: WriterEngine, releases: Collection[HudiRelease]
) -> tuple[str, ...]:
    """Return the names that an engine uses in one of the releases; empty where it has none.

    >>> find_option_names(OptionMeaning.CLEAN_POLICY, WriterEngine.SPARK, tuple(HudiRelease))
    ('hoodie.cleaner.policy', 'hoodie.clean.policy')
    >>> find_option_names(OptionMeaning.CLEAN_POLICY, WriterEngine.FLINK, (HudiRelease.R1_2,))
    ('clean.policy',)
    """
    names = _NAMES_BY_ENGINE[engine].get(meaning, _HUDI[meaning])
    return tuple(name.text for name in names if name.is_used_by(releases))
