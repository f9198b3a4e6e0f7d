"""Which options bring a writer in line with a spec; pure. A block that is not there asks nothing.

Source of what options do: HoodieWriteConfig.Builder (defaults and checks), BaseHoodieWriteClient,
FlinkWriteClients, CompactionCommitSink; 0.15 to 1.2.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from reconciler.errors import UnsupportedError
from reconciler.hudi_engine.model import HudiRelease, WriterEngine, WriterOption, WriterOptions
from reconciler.hudi_engine.option_names import OptionMeaning, find_option_names
from reconciler.hudi_engine.table_options import LOCK_PROVIDER, make_lock_path, spell_boolean
from reconciler.spec.model import (
    Clustering,
    FileSizes,
    IndexColumns,
    Lock,
    NewTable,
    Policy,
    Retention,
    TableSpec,
)
from reconciler.units import format_size

_MIB: Final = 1024**2
_COUNTS: Final = {
    Policy.COMMITS: (OptionMeaning.CLEAN_COMMITS, "retention.commits"),
    Policy.HOURS: (OptionMeaning.CLEAN_HOURS, "retention.hours"),
    Policy.FILE_VERSIONS: (OptionMeaning.CLEAN_VERSIONS, "retention.fileVersions"),
}
#: hoodie.keep.min.commits and Flink's archive.min_commits where nobody sets them
_ARCHIVES_FROM: Final = {True: 40, False: 20}
#: Hudi's own distance from the commits retained to the least and the most that are not archived
_UNARCHIVED: Final = (10, 20)
#: the first release that writes a table version, and the first that orders by several columns
_WRITES: Final = {6: HudiRelease.R0_15, 8: HudiRelease.R1_0, 9: HudiRelease.R1_1}
_ORDERS_BY_SEVERAL: Final = HudiRelease.R1_1
#: before 1.0 the default payload lets the later write win, whatever its ordering value
_EVENT_TIME: Final = "org.apache.hudi.common.model.DefaultHoodieRecordPayload"
_NO_ORDER_OF_FLINK: Final = "no_precombine"


@dataclass(frozen=True, slots=True)
class _OptionRequest:
    """An option before it has a name."""

    meaning: OptionMeaning
    value: str
    field: str
    because: str
    creates_table: bool = False


def make_writer_options(
    spec: TableSpec, engine: WriterEngine, release: HudiRelease | None = None
) -> WriterOptions:
    """The options for the writers of a table; ``release`` None: for every one that can write it.

    What cannot be is in ``error``, a sentence: a release that does not write the declared table.
    """
    try:
        releases = _find_releases(spec, release)
        options = tuple(_name_options(_list_requests(spec, engine), engine, releases))
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
    """Those that write the table as it is declared; raises UnsupportedError where that is none."""
    table = spec.table
    if table is None:
        return tuple(HudiRelease) if release is None else (release,)
    several = len(table.ordering) > 1
    least = max(_WRITES[table.version], _ORDERS_BY_SEVERAL if several else HudiRelease.R0_15)
    if release is None:
        return tuple(each for each in HudiRelease if each >= least)
    if release >= least:
        return (release,)
    if release < _WRITES[table.version]:
        raise UnsupportedError(
            f"Hudi {release} does not write tables of version {table.version} (table.version): "
            f"take Hudi {least} or newer"
        )
    raise UnsupportedError(
        f"Hudi {release} orders records by one column, and table.ordering has "
        f"{len(table.ordering)}: take Hudi {least} or newer"
    )


def _name_options(
    requests: Iterator[_OptionRequest], engine: WriterEngine, releases: Sequence[HudiRelease]
) -> Iterator[WriterOption]:
    for one in requests:
        if any(not sign.isprintable() for sign in one.value):
            raise UnsupportedError(
                f"{one.field} has a line break or another control character in it, and writer "
                "options cannot hold one"
            )
        for key in find_option_names(one.meaning, engine, releases):
            yield WriterOption(
                key=key,
                value=one.value,
                field=one.field,
                because=one.because,
                creates_table=one.creates_table,
            )


def _list_requests(spec: TableSpec, engine: WriterEngine) -> Iterator[_OptionRequest]:
    if spec.table is not None:
        yield from _table_requests(spec.table, spec.name, engine)
    if spec.files is not None:
        yield from _file_requests(spec.files, engine)
    if spec.retention is not None:
        yield from _retention_requests(spec.retention, engine)
    if spec.clustering is not None:
        yield from _clustering_requests(spec.clustering)
    if spec.index is not None:
        yield from _index_requests(spec.index)
    yield from _concurrency_requests(spec)


def _table_requests(table: NewTable, name: str, engine: WriterEngine) -> Iterator[_OptionRequest]:
    def made(meaning: OptionMeaning, value: str, field: str, because: str) -> _OptionRequest:
        return _OptionRequest(meaning, value, field, because, creates_table=True)

    because = "what the table is called"
    yield made(OptionMeaning.NAME, name.rpartition(".")[2], "metadata.name", because)
    kind = {"COPY_ON_WRITE": "cow", "MERGE_ON_READ": "mor"}[table.type]
    value = kind if engine is WriterEngine.SQL else table.type
    yield made(OptionMeaning.TYPE, value, "table.type", "how the table is made")
    because = "what names a record"
    yield made(OptionMeaning.RECORD_KEY, ",".join(table.record_key), "table.recordKey", because)
    because = "what makes a partition's path" if table.partition_by else "no partitions"
    yield made(
        OptionMeaning.PARTITION_BY, ",".join(table.partition_by), "table.partitionBy", because
    )
    if table.ordering:
        because = "of two records of one key the one with the greater value wins"
        yield made(OptionMeaning.ORDERING, ",".join(table.ordering), "table.ordering", because)
        because = "the value decides between a write and the table too, not only within a write"
        yield made(OptionMeaning.PAYLOAD, _EVENT_TIME, "table.ordering", because)
    elif engine is WriterEngine.FLINK:
        because = "the later write wins; unsaid, Flink orders by a column ts"
        yield made(OptionMeaning.ORDERING, _NO_ORDER_OF_FLINK, "table.ordering", because)
    because = "whether partition folders are named column=value"
    yield made(
        OptionMeaning.HIVE_STYLE, spell_boolean(table.hive_style), "table.hiveStyle", because
    )
    because = "a newer Hudi otherwise upgrades the table to its own version"
    yield _OptionRequest(OptionMeaning.VERSION, str(table.version), "table.version", because)
    yield _OptionRequest(OptionMeaning.UPGRADE, "false", "table.version", because)


def _file_requests(files: FileSizes, engine: WriterEngine) -> Iterator[_OptionRequest]:
    because = f"base files grow to {format_size(files.target)}"
    if engine is WriterEngine.FLINK:
        mib = max(1, round(files.target / _MIB))
        yield _OptionRequest(OptionMeaning.TARGET, str(mib), "files.target", f"{because}; in MiB")
        if mib * _MIB != files.target:
            exact = f"{because}; in bytes, which wins over Flink's whole MiB"
            yield _OptionRequest(
                OptionMeaning.TARGET_BYTES, str(files.target), "files.target", exact
            )
    else:
        yield _OptionRequest(OptionMeaning.TARGET, str(files.target), "files.target", because)
    because = f"inserts fill base files below {format_size(files.small)} first"
    yield _OptionRequest(OptionMeaning.SMALL, str(files.small), "files.small", because)
    because = "bytes of a record until past commits tell"
    yield _OptionRequest(
        OptionMeaning.RECORD_SIZE, str(files.record_size), "files.recordSize", because
    )


def _retention_requests(retention: Retention, engine: WriterEngine) -> Iterator[_OptionRequest]:
    meaning, field = _COUNTS[retention.policy]
    because = "the reconciler cleans; a writer that cleans too removes by its own count"
    yield _OptionRequest(OptionMeaning.CLEAN, "false", "retention", because)
    yield _OptionRequest(OptionMeaning.CLEAN_ASYNC, "false", "retention", because)
    because = "a clean that somebody runs all the same keeps as much"
    if engine is WriterEngine.FLINK:
        because = "Flink cleans after a compaction of its own whatever is off; it keeps as much"
    yield _OptionRequest(OptionMeaning.CLEAN_POLICY, retention.policy.value, field, because)
    yield _OptionRequest(meaning, str(retention.keep), field, because)
    least, most = (retention.keep + more for more in _UNARCHIVED)
    usual = _ARCHIVES_FROM[engine is WriterEngine.FLINK]
    if retention.policy is Policy.COMMITS and least > usual:
        because = "commits that the retention counts stay on the active timeline"
        yield _OptionRequest(OptionMeaning.ARCHIVE_LEAST, str(least), field, because)
        yield _OptionRequest(OptionMeaning.ARCHIVE_MOST, str(most), field, because)


def _clustering_requests(_: Clustering) -> Iterator[_OptionRequest]:
    because = (
        "the reconciler clusters; while a writer's plan is pending, updates of its file groups fail"
    )
    for meaning in (
        OptionMeaning.CLUSTER,
        OptionMeaning.CLUSTER_ASYNC,
        OptionMeaning.CLUSTER_SCHEDULE,
    ):
        yield _OptionRequest(meaning, "false", "clustering", because)


def _index_requests(index: IndexColumns) -> Iterator[_OptionRequest]:
    if index.hudi != "build":
        return
    because = "a writer for which the metadata table or the index is off drops it"
    yield _OptionRequest(OptionMeaning.METADATA, "true", "index.hudi", because)
    yield _OptionRequest(OptionMeaning.STATISTICS, "true", "index.hudi", because)
    because = "the columns that Hudi's readers skip by"
    yield _OptionRequest(
        OptionMeaning.STATISTICS_COLUMNS, ",".join(index.columns), "index.columns", because
    )


def _concurrency_requests(spec: TableSpec) -> Iterator[_OptionRequest]:
    """With the lock that apply takes; a writer alone on the table takes none."""
    lock = spec.concurrency.lock if spec.concurrency else None
    if lock is not None and lock.provider == "filesystem":
        yield from _lock_requests(lock, spec.path)
    elif lock is not None:
        because = "declared: nothing else ever writes the table"
        yield _OptionRequest(
            OptionMeaning.CONCURRENCY, "single_writer", "concurrency.lock", because
        )
    failed = _choose_failed_writes_policy(spec)
    if failed is not None:
        field, because = "retention.failedWrites", "when what a failed write left is removed"
        if spec.retention is None or spec.retention.failed_writes != failed:
            field = "concurrency.lock"
            because = "Hudi wants it of writers that share a table; EAGER would undo others' writes"
        yield _OptionRequest(OptionMeaning.FAILED_WRITES, failed, field, because)
    if _needs_rollback_before_writes(spec):
        because = "failed writes are rolled back although no writer cleans"
        yield _OptionRequest(
            OptionMeaning.BEFORE_WRITES, "ROLLBACK_FAILED_WRITES", "retention", because
        )


def _choose_failed_writes_policy(spec: TableSpec) -> str | None:
    """The policy for failed writes; of several writers never EAGER, which Hudi refuses."""
    said = spec.retention.failed_writes if spec.retention else None
    lock = spec.concurrency.lock if spec.concurrency else None
    if lock is not None and lock.provider == "filesystem" and said in {None, "EAGER"}:
        return "LAZY"
    return said


def _needs_rollback_before_writes(spec: TableSpec) -> bool:
    """Whether what failed would stay pending: under LAZY only a clean of Hudi's rolls it back."""
    return spec.retention is not None and _choose_failed_writes_policy(spec) == "LAZY"


def _lock_requests(lock: Lock, location: str) -> Iterator[_OptionRequest]:
    field = "concurrency.lock"
    because = "writers and apply take the same lock; a single_writer takes none"
    mode = "optimistic_concurrency_control"
    yield _OptionRequest(OptionMeaning.CONCURRENCY, mode, field, because)
    yield _OptionRequest(OptionMeaning.LOCK, LOCK_PROVIDER, field, because)
    path = make_lock_path(lock, location)
    yield _OptionRequest(OptionMeaning.LOCK_PATH, path, f"{field}.path", because)
    because = "minutes after which a lock counts for nothing, 0 for never; the same for all"
    yield _OptionRequest(OptionMeaning.LOCK_EXPIRE, str(lock.expire), f"{field}.expire", because)


def _list_notes(
    spec: TableSpec,
    engine: WriterEngine,
    releases: Sequence[HudiRelease],
    options: Sequence[WriterOption],
) -> Iterator[str]:
    if not options:
        yield "the spec asks nothing of its writers"
        return
    if spec.retention is not None:
        yield "with these nobody but reconciler apply cleans: run it on a schedule"
    if spec.suspend:
        yield "the spec has suspend: true, so apply does nothing: nobody cleans or clusters"
    if _needs_rollback_before_writes(spec) and releases[0] < HudiRelease.R1_2:
        yield (
            "under LAZY a writer before Hudi 1.2 rolls failed writes back only when it cleans: "
            "where status shows one stuck, CALL run_clean with the retention below rolls it back"
        )
    if spec.files is not None:
        yield "bulk_insert and insert_overwrite never fill small files, whatever is set"
    if spec.concurrency is None or spec.concurrency.lock is None:
        yield "the spec has no concurrency.lock, so nothing is said of locks; apply needs it"
    elif spec.concurrency.lock.provider == "filesystem":
        failed = spec.retention.failed_writes if spec.retention else None
        if failed == "EAGER":
            yield "retention.failedWrites: EAGER does not go with a lock; LAZY is said instead"
    if engine is WriterEngine.FLINK and spec.retention is not None:
        yield "compactions stay Flink's: the reconciler makes none"
