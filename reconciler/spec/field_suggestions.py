"""Suggestions for unknown fields: Hudi's own keys, misspellings, and fields of other blocks."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from typing import Final

from reconciler.errors import did_you_mean
from reconciler.spec.schema import Schema, list_field_paths, load_definition

#: names that a message lists
_NAMES_SHOWN: Final = 12
ALIASES: Final = {
    "path": "basePath location hoodie.base.path",
    "timezone": "hoodie.table.timeline.timezone",
    "retention": "cleaning cleaner clean hoodie.clean.automatic",
    "retention.policy": "hoodie.clean.policy hoodie.cleaner.policy",
    "retention.commits": "commitsRetained retainCommits hoodie.clean.commits.retained"
    " hoodie.cleaner.commits.retained",
    "retention.hours": "hoursRetained retainHours hoodie.clean.hours.retained"
    " hoodie.cleaner.hours.retained",
    "retention.fileVersions": "fileVersionsRetained versions hoodie.clean.fileversions.retained"
    " hoodie.cleaner.fileversions.retained",
    "retention.scan": "hoodie.clean.incremental.enabled hoodie.cleaner.incremental.mode",
    "retention.afterCommits": "hoodie.clean.max.commits hoodie.clean.trigger.max.commits",
    "retention.maxCommitsPerRun": "hoodie.clean.max.commits.to.clean",
    "retention.failedWrites": "failedWritesPolicy hoodie.clean.failed.writes.policy"
    " hoodie.cleaner.policy.failed.writes",
    "retention.partitions": "ttl partitionTtl hoodie.partition.ttl.inline",
    "retention.partitions.olderThan": "maxAge days hoodie.partition.ttl.strategy.days.retain",
    "retention.partitions.by": "pattern dateFormat hoodie.partition.ttl.strategy.class",
    "files": "fileSize fileSizes sizing",
    "files.target": "maxFileSize targetSize hoodie.parquet.max.file.size",
    "files.small": "smallFileLimit hoodie.parquet.small.file.limit",
    "files.large": "maxSize splitAbove",
    "files.quiet": "quietPeriod quietFor",
    "files.recordSize": "hoodie.copyonwrite.record.size.estimate",
    "clustering": "cluster layout hoodie.clustering.inline",
    "clustering.columns": "sortColumns hoodie.clustering.plan.strategy.sort.columns",
    "clustering.curve": "layoutOptimizeStrategy strategy hoodie.layout.optimize.strategy",
    "clustering.mapping": "hoodie.layout.optimize.curve.build.method",
    "clustering.afterCommits": "hoodie.clustering.inline.max.commits"
    " hoodie.clustering.async.max.commits",
    "clustering.singleFile": "hoodie.clustering.plan.strategy.single.group.clustering.enabled",
    "clustering.partitions.include": "hoodie.clustering.plan.strategy.partition.regex.pattern",
    "clustering.partitions.from": "hoodie.clustering.plan.strategy.cluster.begin.partition",
    "clustering.partitions.to": "hoodie.clustering.plan.strategy.cluster.end.partition",
    "clustering.partitions.skipLatest": "skipLatestDays"
    " hoodie.clustering.plan.strategy.daybased.skipfromlatest.partitions",
    "clustering.partitions.latest": "lookbackDays"
    " hoodie.clustering.plan.strategy.daybased.lookback.partitions",
    "clustering.budget.perGroup": "hoodie.clustering.plan.strategy.max.bytes.per.group",
    "clustering.budget.groups": "hoodie.clustering.plan.strategy.max.num.groups",
    "compaction": "compact hoodie.compact.inline hoodie.compact.schedule.inline",
    "compaction.afterDeltaCommits": "after afterCommits hoodie.compact.inline.max.delta.commits",
    "compaction.order": "strategy hoodie.compaction.strategy",
    "compaction.when.olderThan": "hoodie.compact.inline.max.delta.seconds",
    "compaction.partitions.latest": "hoodie.compaction.daybased.target.partitions",
    "compaction.budget.rewrite": "targetIo hoodie.compaction.target.io",
    "compaction.budget.groups": "slices fileSlices",
    "index": "indexes metadataIndexes",
    "index.columns": "columnStats hoodie.metadata.index.column.stats.column.list",
    "queries": "workload",
    "readers.incrementalConsumers": "consumers",
    "savepoints": "savepoint pins",
    "timeline": "archive archival archiving hoodie.archive.automatic",
    "timeline.keep": "keepCommits hoodie.keep.min.commits hoodie.keep.max.commits",
    "concurrency.lock.provider": "lockProvider hoodie.write.lock.provider",
    "concurrency.lock.path": "hoodie.write.lock.filesystem.path",
    "concurrency.lock.expire": "hoodie.write.lock.filesystem.expire",
    "concurrency.lock.validity": "hoodie.write.lock.storage.validity.timeout.secs",
    "table.type": "tableType hoodie.table.type hoodie.datasource.write.table.type",
    "table.version": "hoodie.table.version hoodie.write.table.version",
    "table.recordKey": "primaryKey hoodie.table.recordkey.fields"
    " hoodie.datasource.write.recordkey.field",
    "table.partitionBy": "hoodie.table.partition.fields"
    " hoodie.datasource.write.partitionpath.field",
    "table.ordering": "precombine hoodie.table.ordering.fields hoodie.table.precombine.field"
    " hoodie.datasource.write.precombine.field",
    "table.hiveStyle": "hoodie.datasource.write.hive_style_partitioning",
    "table.index": "bucketIndex hoodie.index.type",
    "table.index.buckets": "numBuckets count hoodie.bucket.index.num.buckets",
    "table.index.keys": "hashField columns fields hoodie.bucket.index.hash.field",
}
"""Other names of fields, separated by blanks, by the dotted path of the field in ``spec``."""


FOREIGN: Final = "x-foreign-field-hint"
"""Schema keyword of an environment's blocks: the hint for a field of a table."""

_WORD_ALIASES: Final = {"cow": "COPY_ON_WRITE", "mor": "MERGE_ON_READ"}


def suggest_field(key: str, block: Schema, parent: str) -> str:
    """Return what to do about a key that the block at the dotted path ``parent`` does not have."""
    names, foreign = block["properties"], block.get(FOREIGN)
    if foreign and not did_you_mean(key, names) and _normalize_key(key) in _table_field_names():
        return str(foreign)
    is_table = parent == "spec" and "clustering" in names
    if is_table and key in load_definition("environment")["properties"]:
        return "move it to an environment (kind: Environment), which --env selects"
    meant = find_meant_field(key, block, parent)
    if meant is None:
        return f"use one of {_list_names(list(names))}"
    near = _parent_path(meant) == parent
    return f"did you mean {meant.rpartition('.')[2]!r}?" if near else f"did you mean {meant}?"


def _list_names(names: Sequence[str]) -> str:
    """Return the names, or the first of so many that nobody would read them.

    >>> _list_names(["a", "b"]), _list_names([str(n) for n in range(20)])[-17:]
    ('a, b', '10, 11 and 8 more')
    """
    more = len(names) - _NAMES_SHOWN
    rest = f" and {more} more" if more > 0 else ""
    return ", ".join(names[:_NAMES_SHOWN]) + rest


def find_meant_field(key: str, block: Schema, parent: str) -> str | None:
    """Return the dotted path of the field that an unknown key means; None if that is unclear."""
    is_of_table = FOREIGN not in block
    if is_of_table and (alias := _fields_by_alias().get(_normalize_key(key))):
        return alias
    if close := did_you_mean(key, block["properties"]):
        return f"{parent}.{close}" if parent else close
    return _find_elsewhere(key, parent) if is_of_table else None


def find_field_by_alias(key: str) -> str | None:
    """Return the dotted path of the field with this alias."""
    return _fields_by_alias().get(_normalize_key(key))


def find_meant_word(text: str, words: Sequence[str]) -> str | None:
    """Return the word that a text means: misspelt, cut short, or part of a class name."""
    plain = _normalize_key(text)
    if _WORD_ALIASES.get(plain) in words:
        return _WORD_ALIASES[plain]
    keys = {word: _normalize_key(word) for word in words}
    within = (word for word, key in keys.items() if key in plain or key.startswith(plain))
    return did_you_mean(text, words) or (next(within, None) if plain else None)


def _find_elsewhere(key: str, parent: str) -> str | None:
    """Return the field of that name that is nearest to the top of the spec, if only one is."""
    paths = _paths_by_last_part().get(key, ())
    nearest = [path for path in paths if path.count(".") == min(p.count(".") for p in paths)]
    return nearest[0] if len(nearest) == 1 and _parent_path(nearest[0]) != parent else None


def _parent_path(path: str) -> str:
    return path.rpartition(".")[0]


def _normalize_key(key: str) -> str:
    """Return the key in lower case, without hyphens and underscores."""
    return re.sub("[-_]", "", key).lower()


@cache
def _fields_by_alias() -> dict[str, str]:
    fields: dict[str, str] = {}
    for path, names in ALIASES.items():
        fields |= {_normalize_key(alias): f"spec.{path}" for alias in names.split()}
    return {**fields, "table": "spec.table", "tablename": "metadata.name"}


@cache
def _table_field_names() -> frozenset[str]:
    """Return the normalized names of all fields of tables' specs and policies."""
    kinds = ("table", "policy")
    fields = [path for kind in kinds for path in list_field_paths(load_definition(kind))]
    return frozenset(
        (*_fields_by_alias(), *(_normalize_key(field.rpartition(".")[2]) for field in fields))
    )


@cache
def _paths_by_last_part() -> dict[str, list[str]]:
    paths: dict[str, list[str]] = {}
    metadata = list_field_paths(load_definition("metadata"), "metadata.")
    for path in (*metadata, *list_field_paths(load_definition("table"), "spec.")):
        paths.setdefault(path.rpartition(".")[2], []).append(path)
    return paths
