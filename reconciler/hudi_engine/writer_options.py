"""Derive the options that make a writer follow a spec; pure. An absent block sets no option.

Source of what options do: HoodieWriteConfig.Builder (defaults and checks), BaseHoodieWriteClient,
FlinkWriteClients, CompactionCommitSink; 0.15 to 1.2.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from reconciler.errors import UnsupportedError
from reconciler.hudi_engine.lock_requests import Request, list_lock_requests
from reconciler.hudi_engine.model import HudiRelease, WriterEngine, WriterOption, WriterOptions
from reconciler.hudi_engine.option_names import Setting, find_option_names
from reconciler.hudi_engine.table_options import format_boolean
from reconciler.spec.lock_rules import find_lock_problem
from reconciler.spec.model import (
    FileSizes,
    NewTable,
    Policy,
    Retention,
    TableSpec,
)
from reconciler.units import format_size

_MIB: Final = 1024**2
_RETENTION_OPTIONS: Final = {
    Policy.COMMITS: (Setting.CLEAN_COMMITS, "retention.commits"),
    Policy.HOURS: (Setting.CLEAN_HOURS, "retention.hours"),
    Policy.FILE_VERSIONS: (Setting.CLEAN_VERSIONS, "retention.fileVersions"),
}
#: default of archive.min_commits in Flink, and of hoodie.keep.min.commits elsewhere
_DEFAULT_MIN_COMMITS: Final = {True: 40, False: 20}
#: by how much Hudi's own defaults exceed the retained commits: the minimum and maximum not archived
_ARCHIVE_MARGINS: Final = (10, 20)
#: table version -> the first release that writes it
_FIRST_RELEASES: Final = {6: HudiRelease.R0_15, 8: HudiRelease.R1_0, 9: HudiRelease.R1_1}
_FIRST_WITH_SEVERAL_ORDERING_COLUMNS: Final = HudiRelease.R1_1
_FIRST_WITH_STORAGE_LOCK: Final = HudiRelease.R1_1
_FIRST_WITH_IMPLICIT_LOCKS: Final = HudiRelease.R1_1
#: before 1.0 the default payload lets the later write win, whatever the ordering value
_EVENT_TIME_PAYLOAD: Final = "org.apache.hudi.common.model.DefaultHoodieRecordPayload"
_FLINK_WITHOUT_ORDERING: Final = "no_precombine"
#: options that say how a table is created, not how it is written
_CREATING: Final = {
    Setting.NAME,
    Setting.TYPE,
    Setting.RECORD_KEY,
    Setting.PARTITION_BY,
    Setting.ORDERING,
    Setting.PAYLOAD,
    Setting.HIVE_STYLE,
}


def make_writer_options(
    spec: TableSpec, engine: WriterEngine, release: HudiRelease | None = None
) -> WriterOptions:
    """Return the options for the writers of a table.

    ``release`` None: for every release that can write the table. ``error`` of the result says in a
    sentence why there are no options, as for a release that cannot write the declared table.
    """
    try:
        releases = _find_releases(spec, release)
        options = tuple(_name_options(_list_requests(spec, engine, releases), engine, releases))
    except UnsupportedError as error:
        return WriterOptions(name=spec.name, path=spec.path, engine=engine, error=str(error))
    return WriterOptions(
        name=spec.name,
        path=spec.path,
        engine=engine,
        releases=releases,
        options=options,
        partition_by=() if spec.table is None else spec.table.partition_by,
        notes=tuple(_list_notes(spec, engine, releases, options)),
    )


def _find_releases(spec: TableSpec, release: HudiRelease | None) -> tuple[HudiRelease, ...]:
    """Return the releases that write the declared table; raises UnsupportedError for none."""
    table = spec.table
    lock = spec.concurrency.lock if spec.concurrency else None
    least = HudiRelease.R0_15
    if lock is not None and lock.provider == "storage":
        least = _FIRST_WITH_STORAGE_LOCK
        if release is not None and release < least:
            raise UnsupportedError(
                f"Hudi {release} has no storage lock (concurrency.lock.provider): use Hudi {least} "
                "or newer"
            )
    if table is None:
        newer = tuple(one for one in HudiRelease if one >= least)
        return newer if release is None else (release,)
    several = len(table.ordering) > 1
    oldest = max(
        _FIRST_RELEASES[table.version],
        _FIRST_WITH_SEVERAL_ORDERING_COLUMNS if several else HudiRelease.R0_15,
        least,
    )
    if release is None:
        return tuple(newer for newer in HudiRelease if newer >= oldest)
    if release >= oldest:
        return (release,)
    if release < _FIRST_RELEASES[table.version]:
        raise UnsupportedError(
            f"Hudi {release} does not write tables of version {table.version} (table.version): "
            f"use Hudi {oldest} or newer"
        )
    raise UnsupportedError(
        f"Hudi {release} orders records by one column, and table.ordering has "
        f"{len(table.ordering)}: use Hudi {oldest} or newer"
    )


def _name_options(
    requests: Iterator[Request], engine: WriterEngine, releases: Sequence[HudiRelease]
) -> Iterator[WriterOption]:
    for setting, value, field, because in requests:
        if any(not sign.isprintable() for sign in value):
            raise UnsupportedError(
                f"{field} contains a control character such as a line break, which writer options "
                "cannot hold"
            )
        for key in find_option_names(setting, engine, releases):
            yield WriterOption(
                key=key,
                value=value,
                field=field,
                because=because,
                creates_table=setting in _CREATING,
            )


def _list_requests(
    spec: TableSpec, engine: WriterEngine, releases: Sequence[HudiRelease]
) -> Iterator[Request]:
    if spec.table is not None:
        yield from _table_requests(spec.table, spec.name, engine)
    if spec.files is not None:
        yield from _file_requests(spec.files, engine)
    if spec.retention is not None:
        yield from _retention_requests(spec.retention, engine)
    if spec.timeline is not None:
        because = "a writer that archives leaves the same commits active as the reconciler"
        yield Setting.ARCHIVE_MIN, str(spec.timeline.least), "timeline.keep", because
        yield Setting.ARCHIVE_MAX, str(spec.timeline.most), "timeline.keep", because
    elif spec.retention is not None:
        yield from _archive_requests(spec.retention, engine)
    yield from _service_requests(spec)
    if spec.index is not None and spec.index.hudi == "build":
        because = "a writer for which the metadata table or the index is off drops it"
        yield Setting.METADATA, "true", "index.hudi", because
        yield Setting.STATISTICS, "true", "index.hudi", because
        because = "the columns that Hudi's readers can skip files by"
        yield Setting.STATISTICS_COLUMNS, ",".join(spec.index.columns), "index.columns", because
    yield from _concurrency_requests(spec, releases)


def _service_requests(spec: TableSpec) -> Iterator[Request]:
    """Yield that writers leave to applies what these rewrite."""
    if spec.rewriting is not None:
        because = (
            "the reconciler clusters; while a writer's plan is pending, updates of its file groups "
            "fail"
        )
        field = "clustering" if spec.clustering is not None else "files"
        for setting in (Setting.CLUSTER, Setting.CLUSTER_ASYNC, Setting.CLUSTER_SCHEDULE):
            yield setting, "false", field, because
    if spec.compaction is not None:
        because = "the reconciler compacts; it leaves what a writer's plan is going to compact"
        for setting in (Setting.COMPACT, Setting.COMPACT_ASYNC, Setting.COMPACT_SCHEDULE):
            yield setting, "false", "compaction", because


def _table_requests(table: NewTable, name: str, engine: WriterEngine) -> Iterator[Request]:
    yield Setting.NAME, name.rpartition(".")[2], "metadata.name", "the table's name"
    short_types = {"COPY_ON_WRITE": "cow", "MERGE_ON_READ": "mor"}
    kind = short_types[table.type] if engine is WriterEngine.SQL else table.type
    yield Setting.TYPE, kind, "table.type", "the table's type"
    because = "the columns of the record key"
    yield Setting.RECORD_KEY, ",".join(table.record_key), "table.recordKey", because
    because = "the columns of the partition path" if table.partition_by else "no partitions"
    yield Setting.PARTITION_BY, ",".join(table.partition_by), "table.partitionBy", because
    field = "table.ordering"
    if table.ordering:
        because = "of two records with one key, the greater value wins"
        yield Setting.ORDERING, ",".join(table.ordering), field, because
        because = "the value also decides against records already in the table"
        yield Setting.PAYLOAD, _EVENT_TIME_PAYLOAD, field, because
    elif engine is WriterEngine.FLINK:
        because = "the later write wins; by default Flink orders by a column ts"
        yield Setting.ORDERING, _FLINK_WITHOUT_ORDERING, field, because
    because = "whether partition folders are named column=value"
    yield Setting.HIVE_STYLE, format_boolean(table.hive_style), "table.hiveStyle", because
    yield from _index_requests(table)
    because = "a newer Hudi otherwise upgrades the table to its own version"
    yield Setting.VERSION, str(table.version), "table.version", because
    yield Setting.UPGRADE, "false", "table.version", because


def _index_requests(table: NewTable) -> Iterator[Request]:
    if table.index is None:
        return
    because = "every writer looks for a row in the file group of its bucket"
    yield Setting.INDEX_TYPE, "BUCKET", "table.index.type", because
    because = "no property of the table tells the number"
    yield Setting.INDEX_BUCKETS, str(table.index.buckets), "table.index.buckets", because
    because = "the columns of the record key that are hashed"
    keys = ",".join(table.index.keys or table.record_key)
    yield Setting.INDEX_KEYS, keys, "table.index.keys", because


def _file_requests(files: FileSizes, engine: WriterEngine) -> Iterator[Request]:
    because, field = f"base files grow to {format_size(files.target)}", "files.target"
    if engine is WriterEngine.FLINK:
        mib = max(1, round(files.target / _MIB))
        yield Setting.TARGET, str(mib), field, f"{because}; in MiB"
        if mib * _MIB != files.target:
            exact = f"{because}; in bytes, which wins over Flink's whole MiB"
            yield Setting.TARGET_BYTES, str(files.target), field, exact
    else:
        yield Setting.TARGET, str(files.target), field, because
    because = f"inserts fill base files below {format_size(files.small)} first"
    yield Setting.SMALL, str(files.small), "files.small", because
    because = "assumed bytes of a record until commits show the real size"
    yield Setting.RECORD_SIZE, str(files.record_size), "files.recordSize", because


def _retention_requests(retention: Retention, engine: WriterEngine) -> Iterator[Request]:
    setting, field = _RETENTION_OPTIONS[retention.policy]
    because = "the reconciler cleans; a writer's own cleaning would use its own limits"
    yield Setting.CLEAN, "false", "retention", because
    yield Setting.CLEAN_ASYNC, "false", "retention", because
    because = "a clean that somebody runs by hand keeps the same"
    if engine is WriterEngine.FLINK:
        because = "Flink still cleans after its own compactions, and then keeps the same"
    yield Setting.CLEAN_POLICY, retention.policy.value, field, because
    yield setting, str(retention.keep), field, because


def _archive_requests(retention: Retention, engine: WriterEngine) -> Iterator[Request]:
    """Yield the limits of archival that a retention of commits needs, if none are declared."""
    oldest, most = (retention.keep + more for more in _ARCHIVE_MARGINS)
    usual = _DEFAULT_MIN_COMMITS[engine is WriterEngine.FLINK]
    if retention.policy is Policy.COMMITS and oldest > usual:
        because = "commits that the retention counts stay on the active timeline"
        yield Setting.ARCHIVE_MIN, str(oldest), "retention.commits", because
        yield Setting.ARCHIVE_MAX, str(most), "retention.commits", because


def _concurrency_requests(spec: TableSpec, releases: Sequence[HudiRelease]) -> Iterator[Request]:
    """Yield the options of the lock that apply takes; a single writer takes none."""
    lock, field = spec.concurrency.lock if spec.concurrency else None, "concurrency.lock"
    if lock is not None and lock.provider != "none":
        because = "writers and apply take the same lock; a single_writer takes none"
        yield Setting.CONCURRENCY, "optimistic_concurrency_control", field, because
        by_implicit = min(releases) >= _FIRST_WITH_IMPLICIT_LOCKS
        yield from list_lock_requests(lock, spec.path, by_implicit=by_implicit)
    elif lock is not None:
        because = "declared: nothing else ever writes the table"
        yield Setting.CONCURRENCY, "single_writer", field, because
    failed = _choose_failed_writes_policy(spec)
    if failed is not None:
        because = "required of writers that share a table; EAGER would roll back others' writes"
        if spec.retention is not None and spec.retention.failed_writes == failed:
            field, because = "retention.failedWrites", "when leftovers of failed writes are removed"
        yield Setting.FAILED_WRITES, failed, field, because
    if _needs_rollback_before_writes(spec):
        because = "failed writes are rolled back although no writer cleans"
        yield Setting.BEFORE_WRITES, "ROLLBACK_FAILED_WRITES", "retention", because


def _choose_failed_writes_policy(spec: TableSpec) -> str | None:
    """Return the policy for failed writes; Hudi refuses EAGER for several writers."""
    declared = spec.retention.failed_writes if spec.retention else None
    lock = spec.concurrency.lock if spec.concurrency else None
    if lock is not None and lock.provider != "none" and declared in {None, "EAGER"}:
        return "LAZY"
    return declared


def _needs_rollback_before_writes(spec: TableSpec) -> bool:
    """Return True if failed writes would stay pending: under LAZY only Hudi's cleans undo them."""
    return spec.retention is not None and _choose_failed_writes_policy(spec) == "LAZY"


def _list_notes(
    spec: TableSpec,
    engine: WriterEngine,
    releases: Sequence[HudiRelease],
    options: Sequence[WriterOption],
) -> Iterator[str]:
    if not options:
        yield "the spec sets no writer options"
        return
    if spec.retention is not None:
        yield "with these options only reconciler apply cleans: run it on a schedule"
    if spec.suspend:
        yield "the spec has suspend: true, so apply does nothing: nobody cleans or clusters"
    if _needs_rollback_before_writes(spec) and releases[0] < HudiRelease.R1_2:
        yield (
            "under LAZY a writer before Hudi 1.2 rolls failed writes back only when it cleans: "
            "where status shows one stuck, CALL run_clean with the retention below rolls it back"
        )
    if spec.files is not None:
        yield "bulk_insert and insert_overwrite never fill small files, whatever is set"
    yield from _list_lock_notes(spec)
    if engine is WriterEngine.FLINK and spec.retention is not None:
        yield "Flink keeps running compactions: the reconciler runs none"


def _list_lock_notes(spec: TableSpec) -> Iterator[str]:
    if spec.concurrency is None or spec.concurrency.lock is None:
        yield "the spec has no concurrency.lock, so no lock options are listed; apply needs one"
    elif spec.concurrency.lock.provider != "none":
        if problem := find_lock_problem(spec.concurrency.lock, spec.path):
            yield f"{problem[0]}: {problem[1]}"
        if spec.concurrency.lock.single_writer:
            yield "concurrency.lock.singleWriter declares that only reconciler writes: start none"
        if spec.concurrency.lock.provider == "storage":
            yield "the storage lock of S3 needs hudi-aws-bundle on the writers' class path"
        if spec.concurrency.lock.provider == "dynamodb":
            yield "a lock in DynamoDB needs hudi-aws-bundle on the writers' class path"
        failed = spec.retention.failed_writes if spec.retention else None
        if failed == "EAGER":
            yield "retention.failedWrites: EAGER does not work with a lock; LAZY is used instead"
